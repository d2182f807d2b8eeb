/** Form fields, each with a label and an optional hint. */
import { type ReactNode, useId } from "react";

interface FieldProps {
  label: string;
  hint?: ReactNode;
}

function Described(props: FieldProps & { id: string; children: ReactNode }) {
  const { id, label, hint, children } = props;
  return (
    <div className="field">
      <label htmlFor={id}>{label}</label>
      {children}
      {hint !== undefined && (
        <small id={`${id}-hint`} className="muted">
          {hint}
        </small>
      )}
    </div>
  );
}

const described = (id: string, hint: ReactNode) =>
  hint === undefined ? undefined : `${id}-hint`;

export function TextField(
  props: FieldProps & {
    value: string;
    set: (value: string) => void;
    placeholder?: string;
    secret?: boolean;
    numeric?: boolean;
    invalid?: boolean;
    first?: boolean;
    complete?: string;
    suggestions?: string[];
  },
) {
  const id = useId();
  const { label, hint, value, set, placeholder, secret = false, numeric = false } = props;
  const { invalid = false, first = false, complete = "off", suggestions } = props;
  return (
    <Described id={id} label={label} hint={hint}>
      <input
        id={id}
        type={secret ? "password" : "text"}
        inputMode={numeric ? "numeric" : undefined}
        value={value}
        placeholder={placeholder}
        autoComplete={complete}
        autoCapitalize="off"
        spellCheck={false}
        aria-invalid={invalid}
        aria-describedby={described(id, hint)}
        list={suggestions === undefined ? undefined : `${id}-list`}
        ref={(input) => {
          if (first && input !== null && input.dataset["seen"] === undefined) {
            input.dataset["seen"] = "";
            input.focus();
          }
        }}
        onChange={(event) => set(event.target.value)}
      />
      {suggestions !== undefined && (
        <datalist id={`${id}-list`}>
          {suggestions.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </Described>
  );
}

export function AreaField(
  props: FieldProps & { value: string; set: (value: string) => void; placeholder?: string },
) {
  const id = useId();
  const { label, hint, value, set, placeholder } = props;
  return (
    <Described id={id} label={label} hint={hint}>
      <textarea
        id={id}
        rows={3}
        value={value}
        placeholder={placeholder}
        spellCheck={false}
        aria-describedby={described(id, hint)}
        onChange={(event) => set(event.target.value)}
      />
    </Described>
  );
}

export function ChoiceField(
  props: FieldProps & {
    value: string;
    set: (value: string) => void;
    choices: (readonly [value: string, label: string])[];
  },
) {
  const id = useId();
  const { label, hint, value, set, choices } = props;
  return (
    <Described id={id} label={label} hint={hint}>
      <select
        id={id}
        value={value}
        aria-describedby={described(id, hint)}
        onChange={(event) => set(event.target.value)}
      >
        {choices.map(([one, text]) => (
          <option key={one} value={one}>
            {text}
          </option>
        ))}
      </select>
    </Described>
  );
}

export function CheckField(props: FieldProps & { value: boolean; set: (on: boolean) => void }) {
  const id = useId();
  const { label, hint, value, set } = props;
  return (
    <div className="check">
      <input
        id={id}
        type="checkbox"
        checked={value}
        aria-describedby={described(id, hint)}
        onChange={(event) => set(event.target.checked)}
      />
      <label htmlFor={id}>{label}</label>
      {hint !== undefined && (
        <small id={`${id}-hint`} className="muted">
          {hint}
        </small>
      )}
    </div>
  );
}
