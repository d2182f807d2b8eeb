/**
 * Whether the array answers at all. A small probe is sent repeatedly, with its own deadline: other
 * requests have longer ones, and some pages send none for seconds.
 */
import { useSyncExternalStore } from "react";

/** The path of the probe, which needs no session. */
const PROBED = "/api/api_version";
/** The deadline of the probe, in milliseconds. */
const DEADLINE_MS = 1200;
/** The pause after a response, and after a timeout. */
const PAUSE_MS = 1000;
const AGAIN_MS = 250;
/** If another response arrived this recently, the probe was only queued after that request. */
const QUIET_MS = 1000;
/** The maximum time until a page says that the array is unreachable, on a machine that keeps up. */
export const NOTICED_WITHIN_MS = Math.max(PAUSE_MS, QUIET_MS + AGAIN_MS) + DEADLINE_MS;

/** An outage, with the time of the last response; null if there was none since the page opened. */
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

/** Records that the array has answered a request. */
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

/** Probes until the returned function is called. Calls `back` when the array answers again. */
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

/** The current outage, for a component; null while the array answers. */
export const useAway = () => useSyncExternalStore(subscribe, () => away);
