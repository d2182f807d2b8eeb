/**
 * A dialog that changes something: its fields, the line of the command line that does the same,
 * and why it was refused if it was. Escape closes it; focus stays inside until then, and goes back
 * to where it came from.
 */
import { type ReactNode, type SubmitEvent, useId, useLayoutEffect, useRef, useState } from "react";

import { refresh } from "../lib/query";
import { Command } from "./command";
import { tell } from "../lib/done";
import { Notice } from "./notice";

export interface TaskProps {
  title: string;
  /** What the button says that does it. */
  submit: string;
  /** The lines that do the same; none where there is no verb for it. */
  cli: string[];
  /** Whether all is filled in. */
  ready?: boolean;
  /** Whether it takes something away. */
  danger?: boolean;
  /** Does it, and says what was done. */
  run: () => Promise<string>;
  close: () => void;
  children?: ReactNode;
}

/** What has the focus at first: a field, or else the button that changes nothing. */
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

/** What had the focus may be gone with what was done: the heading of the page takes it then. */
function keepFocus(): void {
  window.setTimeout(() => {
    const active = document.activeElement;
    const isLost = active === null || active === document.body || active.matches(":disabled");
    if (isLost) document.querySelector<HTMLElement>("main h1")?.focus();
  }, 0);
}
