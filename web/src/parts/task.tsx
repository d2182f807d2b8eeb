/**
 * A dialog that changes something: its fields, the equivalent command line, and the reason if it is
 * refused. Escape closes it; until then the focus stays inside, and then returns to where it was.
 */
import { type ReactNode, type SubmitEvent, useId, useLayoutEffect, useRef, useState } from "react";

import { refresh } from "../lib/query";
import { Command } from "./command";
import { tell } from "../lib/done";
import { Notice } from "./notice";

export interface TaskProps {
  title: string;
  /** The label of the button that confirms. */
  submit: string;
  /** The equivalent command lines; empty if there is no verb for it. */
  cli: string[];
  /** Whether all required fields are valid. */
  ready?: boolean;
  /** Whether it destroys or removes something. */
  danger?: boolean;
  /** Performs the change, and returns a message about it. */
  run: () => Promise<string>;
  close: () => void;
  children?: ReactNode;
}

/** The element with the initial focus: the first field, or else the button that cancels. */
const FIRST = ".fields :is(input, select, textarea), .buttons button";

export function Task(props: TaskProps) {
  const { title, submit, cli, ready = true, danger = false, run, close, children } = props;
  const dialog = useRef<HTMLDialogElement>(null);
  const heading = useId();
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState("");

  // Before it leaves the page: only a dialog that is still present returns the focus.
  useLayoutEffect(() => {
    const shown = dialog.current;
    shown?.showModal();
    shown?.querySelector<HTMLElement>(FIRST)?.focus();
    return () => shown?.close();
  }, []);

  const perform = async () => {
    setBusy(true);
    setRefused("");
    try {
      tell(await run());
      close();
      keepFocus();
      await refresh();
    } catch (error) {
      setRefused(error instanceof Error ? error.message : String(error));
      setBusy(false);
    }
  };
  const onSubmit = (event: SubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    if (ready && !busy) void perform();
  };

  return (
    <dialog
      ref={dialog}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        close();
      }}
    >
      <form onSubmit={onSubmit} noValidate>
        <h2 id={heading}>{title}</h2>
        <div className="fields">{children}</div>
        {refused !== "" && <Notice kind="error">{refused}</Notice>}
        <Command lines={cli} />
        <div className="buttons">
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button
            type="submit"
            className={danger ? "danger" : "primary"}
            disabled={!ready || busy}
          >
            {busy ? "Working…" : submit}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** If the change removed the focused element, the heading of the page gets the focus. */
function keepFocus(): void {
  window.setTimeout(() => {
    const active = document.activeElement;
    const isLost = active === null || active === document.body || active.matches(":disabled");
    if (isLost) document.querySelector<HTMLElement>("main h1")?.focus();
  }, 0);
}
