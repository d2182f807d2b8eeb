/** A multiple choice: checkboxes, with a search field if there are many. */
import { useState } from "react";

import { count } from "../lib/format";
import { CheckField, TextField } from "./fields";

/** An option. */
export interface Choice {
  value: string;
  label: string;
  hint?: string | undefined;
}

/** With more options than this, there is a search field. */
const MANY = 8;
/** How many are shown at once, besides the chosen ones. */
const SHOWN = 50;

export function PickField(props: {
  legend: string;
  /** The label of the search field. */
  find: string;
  choices: Choice[];
  chosen: string[];
  set: (chosen: string[]) => void;
}) {
  const { legend, find, choices, chosen, set } = props;
  const [text, setText] = useState("");
  const isMeant = (one: Choice) => one.label.toLowerCase().includes(text.trim().toLowerCase());
  const ticked = choices.filter((one) => chosen.includes(one.value));
  const others = choices.filter((one) => !chosen.includes(one.value) && isMeant(one));
  const toggle = (value: string) =>
    set(chosen.includes(value) ? chosen.filter((one) => one !== value) : [...chosen, value]);
  const shown = new Set([...ticked, ...others.slice(0, SHOWN)]);
  if (choices.length === 0) return null;
  return (
    <fieldset>
      <legend>{legend}</legend>
      {choices.length > MANY && <TextField label={find} value={text} set={setText} />}
      {choices
        .filter((one) => shown.has(one))
        .map((one) => (
          <CheckField
            key={one.value}
            label={one.label}
            hint={one.hint}
            value={chosen.includes(one.value)}
            set={() => toggle(one.value)}
          />
        ))}
      {others.length > SHOWN && (
        <p className="muted">{count(others.length - SHOWN)} more: find them by their names.</p>
      )}
    </fieldset>
  );
}
