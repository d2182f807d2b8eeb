/**
 * Whether the array answers at all. A small request of its own asks, again and again, with a
 * deadline: the others have longer ones, and some pages send none for seconds.
 */
import { useSyncExternalStore } from "react";

/** What answers everybody, without a session. */
const PROBED = "/api/api_version";
/** How long an answer may take, in milliseconds. */
const DEADLINE_MS = 1200;
/** The pause after an answer, and after none. */
const PAUSE_MS = 1000;
const AGAIN_MS = 250;
/** If something else was answered so lately, the probe only stood in line behind it. */
const QUIET_MS = 1000;
/** After how long at most a page says that the array is away, on a machine that keeps up. */
export const NOTICED_WITHIN_MS = Math.max(PAUSE_MS, QUIET_MS + AGAIN_MS) + DEADLINE_MS;

/** That nothing answers, and when something last did; null if nothing has since the page opened. */
export interface Away {
  heardMs: number | null;
}

let heardMs: number | null = null;
let away: Away | null = null;
const listeners = new Set<() => void>();

function publish(next: Away | null): void {
  away = next;
  for (const listener of listeners) listener();
}

/** The array has answered something. */
export function heard(): void {
  heardMs = Date.now();
}

async function answers(): Promise<boolean> {
  try {
    const signal = AbortSignal.timeout(DEADLINE_MS);
    const answer = await fetch(PROBED, { cache: "no-store", signal });
    // A proxy may answer in place of an unreachable array.
    return answer.ok;
  } catch {
    return false;
  }
}

/** Probes until the function that it gives is called; `back` is called when it answers again. */
export function startProbing(back: () => void): () => void {
  let timer: number | undefined;
  let stopped = false;
  const next = async () => {
    const does = document.hidden ? null : await answers();
    if (stopped) return;
    if (does === true) {
      heard();
      if (away !== null) {
        publish(null);
        back();
      }
    }
    const isQuiet = heardMs === null || Date.now() - heardMs > QUIET_MS;
    if (does === false && isQuiet && away === null) publish({ heardMs });
    timer = window.setTimeout(() => void next(), does === false ? AGAIN_MS : PAUSE_MS);
  };
  void next();
  return () => {
    stopped = true;
    window.clearTimeout(timer);
  };
}

const subscribe = (listener: () => void) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
};

/** That the array is away, in a component; null while it answers. */
export const useAway = () => useSyncExternalStore(subscribe, () => away);
