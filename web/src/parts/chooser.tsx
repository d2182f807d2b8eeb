/**
 * A choice of objects by name: a search field, and a list of what it finds. The list is loaded page
 * by page, so it may be of any length. What is chosen stands above, and is removed there.
 */
import {
  Combobox,
  ComboboxItem,
  ComboboxList,
  ComboboxProvider,
} from "@ariakit/react/combobox";
import { type KeyboardEvent, useEffect, useId, useRef, useState } from "react";

import { type Choice, type Source, useChoices } from "../lib/choices";
import { plural } from "../lib/format";
import { Failure } from "./notice";

/** How long a text must stay the same before it is searched for, in milliseconds. */
const TYPED_MS = 200;
/** As many choices are loaded at least, if there are, so that the list scrolls. */
const CHOICES_MIN = 10;

/** The text, once nobody has typed for a moment. */
function useTyped(text: string): string {
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    const timer = window.setTimeout(() => setTyped(text), TYPED_MS);
    return () => window.clearTimeout(timer);
  }, [text]);
  return typed;
}

export interface ChooserProps {
  label: string;
  sources: Source[];
  chosen: string[];
  set: (chosen: string[]) => void;
  /** Whether only one can be chosen. */
  single?: boolean;
  /** The text shown if there is nothing to choose from. */
  none: string;
}

export function Chooser(props: ChooserProps) {
  const { label, sources, chosen, set, single = false, none } = props;
  const id = useId();
  const [text, setText] = useState("");
  const typed = useTyped(text);
  const query = useChoices(sources, typed);
  const choices = query.data?.pages.flatMap((page) => page.choices) ?? [];
  const { hasNextPage, isFetching, fetchNextPage } = query;
  const isShort = choices.length < CHOICES_MIN;
  useEffect(() => {
    if (isShort && hasNextPage && !isFetching) void fetchNextPage();
  }, [isShort, hasNextPage, isFetching, fetchNextPage]);
  const isStale = typed !== text || query.isPlaceholderData;
  const nameOf = (value: string) =>
    value.slice(sources.find(({ prefix = "" }) => value.startsWith(prefix))?.prefix?.length ?? 0);
  const found = plural(choices.length, "match", "matches");
  const nothing = typed === "" ? none : "No name matches.";
  // Enter chooses; it confirms the dialog only while nothing is searched for.
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && text !== "") event.preventDefault();
  };
  // Until a text has been searched for, Enter must not choose what the last one found.
  const onKeyDownFirst = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || !isStale) return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      className="field chooser"
      role="presentation"
      onKeyDown={onKeyDown}
      onKeyDownCapture={onKeyDownFirst}
    >
      <label htmlFor={id}>{label}</label>
      <Chosen label={label} values={chosen} nameOf={nameOf} set={set} />
      <ComboboxProvider
        open
        inputValue={text}
        setInputValue={setText}
        selectedValue={single ? (chosen[0] ?? "") : chosen}
        setSelectedValue={(values: string | string[]) => set([values].flat())}
        resetValueOnHide={false}
      >
        <Combobox
          id={id}
          autoSelect
          placeholder="Find by name"
          autoCapitalize="off"
          spellCheck={false}
          aria-describedby={`${id}-found`}
        />
        <ComboboxList alwaysVisible aria-label={label} className="choices">
          {choices.map((one) => (
            <Option key={one.value} choice={one} />
          ))}
          {hasNextPage && (
            <More key={choices.length} load={() => !isFetching && void fetchNextPage()} />
          )}
        </ComboboxList>
      </ComboboxProvider>
      {query.error !== null && <Failure error={query.error} what={label.toLowerCase()} />}
      <small id={`${id}-found`} className="muted" aria-live="polite">
        {query.data === undefined
          ? "Loading…"
          : choices.length === 0 && !hasNextPage
            ? nothing
            : `${found}${hasNextPage ? " so far; scroll or type for more" : ""}`}
      </small>
    </div>
  );
}

function Option({ choice: { value, name, hint, taken } }: { choice: Choice }) {
  return (
    <ComboboxItem
      value={value}
      className={taken === undefined ? "option" : "option taken"}
      disabled={taken !== undefined}
      accessibleWhenDisabled
      setValueOnClick={false}
      resetValueOnSelect={false}
      hideOnClick={false}
    >
      <span className="option-name">{name}</span>
      <span className="muted">{taken ?? hint}</span>
    </ComboboxItem>
  );
}

/** The end of the list: when it comes into view, there is more of it. */
function More({ load }: { load: () => void }) {
  const place = useRef<HTMLDivElement>(null);
  const latest = useRef(load);
  useEffect(() => {
    latest.current = load;
  });
  useEffect(() => {
    const end = place.current;
    if (end === null) return;
    const observer = new IntersectionObserver((entries) => {
      if (entries.some((one) => one.isIntersecting)) latest.current();
    });
    observer.observe(end);
    return () => observer.disconnect();
  }, []);
  return <div ref={place} className="more" aria-hidden="true" />;
}

/** What is chosen: each can be removed. */
function Chosen(props: {
  label: string;
  values: string[];
  nameOf: (value: string) => string;
  set: (values: string[]) => void;
}) {
  const { label, values, nameOf, set } = props;
  if (values.length === 0) return null;
  return (
    <ul className="chosen-names" aria-label={`Chosen: ${label}`}>
      {values.map((value) => (
        <li key={value}>
          <button
            type="button"
            aria-label={`Remove ${nameOf(value)}`}
            onClick={() => set(values.filter((one) => one !== value))}
          >
            {nameOf(value)} <span aria-hidden="true">×</span>
          </button>
        </li>
      ))}
    </ul>
  );
}
