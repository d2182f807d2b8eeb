/** What was done last: told once, on the page and to screen readers. */
import { useSyncExternalStore } from "react";

let told = "";
let count = 0;
const listeners = new Set<() => void>();

export function tell(text: string): void {
  told = text;
  count += 1;
  for (const listener of listeners) listener();
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

export const useTold = () => useSyncExternalStore(subscribe, () => told);
/** How often something was done: a choice that was made before is over then. */
export const useDoneCount = () => useSyncExternalStore(subscribe, () => count);
