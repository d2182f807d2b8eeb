/**
 * The steps of tasks, as the browser takes them, whoever causes them: a page or another view of it
 * is opened, a dialog is opened, a dialog is confirmed. Typing and choosing are no steps.
 */
import type { Page } from "playwright-core";

/** What a page calls. */
declare global {
  interface Window {
    stepTaken?: (step: string) => Promise<void>;
  }
}

/** Runs in the page before its own scripts. */
function watch(): void {
  const note = (step: string) => void window.stepTaken?.(step);
  note(`page ${location.pathname}`);
  const push = history.pushState.bind(history);
  history.pushState = (...given) => {
    push(...given);
    note(`page ${location.pathname}`);
  };
  // eslint-disable-next-line @typescript-eslint/unbound-method -- it is called with its dialog.
  const show = HTMLDialogElement.prototype.showModal;
  HTMLDialogElement.prototype.showModal = function showModal() {
    show.call(this);
    note(`dialog ${this.querySelector("h2")?.innerText ?? ""}`);
  };
  const within = (event: Event, selector: string) =>
    event.target instanceof Element ? event.target.closest(selector) : null;
  document.addEventListener("submit", (event) => within(event, "dialog") && note("confirm"), true);
  document.addEventListener(
    "click",
    (event) => {
      const tab = within(event, ".tabs [aria-pressed]");
      if (tab !== null) note(`view ${tab.textContent}`);
    },
    true,
  );
}

/** Has a page note its steps, from its next load on. */
export async function noteSteps(page: Page): Promise<string[]> {
  const steps: string[] = [];
  await page.exposeFunction("stepTaken", (step: string) => {
    steps.push(step);
  });
  await page.addInitScript(watch);
  return steps;
}
