/** The message about the last change, for the page and for screen readers. */
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
/** The number of changes so far: each one clears the choice of rows. */
export const useDoneCount = () => useSyncExternalStore(subscribe, () => count);
