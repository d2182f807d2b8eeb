/**
 * Samples the counters of the array while the page is looked at, and keeps the rates of the last
 * half hour in memory. It begins with what the array has kept of them.
 */
import { useEffect, useSyncExternalStore } from "react";

import { get, own, sessions } from "./api";
import { history } from "./history";
import { type ClassRate, pathRates, type Sample, sampleOf } from "./rates";
import { samplesOf } from "./series";
import type { Counters, PathCounters, Port } from "./types";

/** The pause between two samples, in milliseconds; longer where an answer takes long. */
const PAUSE_MS = 3000;
/** How many times as long as an answer took the next one is waited for. */
const PATIENCE = 20;
/** For how long samples are kept, in milliseconds. */
const KEPT_MS = 30 * 60_000;

/** What is known now. */
export interface Measured {
  samples: Sample[];
  /** Empty while nobody looks at them: see `usePaths`. */
  paths: PathCounters[];
  /** Whether the paths are known. */
  hasPaths: boolean;
  ports: Port[];
  pathRates: Map<string, ClassRate>;
  connections: number | null;
  /** Why there is no newer sample. */
  error: string;
}

const nothing: Measured = {
  samples: [],
  paths: [],
  hasPaths: false,
  ports: [],
  pathRates: new Map(),
  connections: null,
  error: "",
};
let measured = nothing;
let last: { counters: Counters; atMs: number; hasPaths: boolean } | undefined;
/** How many parts of the page show paths: there may be ten thousand, so only they ask for them. */
let pathsWanted = 0;
/** Samples now. */
let wake: (() => void) | undefined;
const listeners = new Set<() => void>();

function publish(next: Measured): void {
  measured = next;
  for (const listener of listeners) listener();
}

async function sample(): Promise<void> {
  const hasPaths = pathsWanted > 0;
  const counters = await get<Counters>(own("counters", hasPaths ? {} : { paths: false }));
  const atMs = performance.now();
  let { samples } = measured;
  let rates: Map<string, ClassRate> = new Map();
  if (last !== undefined) {
    const seconds = (atMs - last.atMs) / 1000;
    const found = sampleOf(last.counters, counters, seconds, Date.now() / 1000);
    const oldest = (Date.now() - KEPT_MS) / 1000;
    samples = found === undefined ? [] : [...samples, found].filter(({ time }) => time > oldest);
    if (hasPaths && last.hasPaths) rates = pathRates(last.counters, counters, seconds);
  }
  last = { counters, atMs, hasPaths };
  const { paths, ports, wire } = counters;
  const { connections } = wire;
  publish({ samples, paths, hasPaths, ports, pathRates: rates, connections, error: "" });
}

/** Every third second that the array has kept: as many as the page would have sampled. */
async function begin(): Promise<void> {
  const kept = await history(KEPT_MS, 1000);
  const samples = samplesOf(kept).filter((_, at) => at % (PAUSE_MS / 1000) === 0);
  publish({ ...measured, samples });
}

/** Samples until the function that it gives is called. */
export function startSampling(): () => void {
  let timer: number | undefined;
  let stopped = false;
  let begun = false;
  let isAtIt = false;
  let isWanted = false;
  const lacksPaths = () => isWanted && pathsWanted > 0 && !measured.hasPaths;
  const next = async () => {
    // A caller that needs paths while a sample is taken without them triggers the next one at once.
    if (isAtIt) {
      isWanted = true;
      return;
    }
    isAtIt = true;
    isWanted = false;
    window.clearTimeout(timer);
    const began = performance.now();
    if (!document.hidden && sessions.isOpen()) {
      try {
        if (!begun) {
          await begin();
          begun = true;
        }
        await sample();
      } catch (error) {
        publish({ ...measured, error: error instanceof Error ? error.message : String(error) });
      }
    }
    const took = performance.now() - began;
    isAtIt = false;
    const pauseMs = lacksPaths() ? 0 : Math.max(PAUSE_MS, PATIENCE * took);
    if (!stopped) timer = window.setTimeout(() => void next(), pauseMs);
  };
  wake = () => void next();
  wake();
  return () => {
    stopped = true;
    wake = undefined;
    window.clearTimeout(timer);
    last = undefined;
    publish(nothing);
  };
}

/** What is known now, in a component. */
export function useMeasured(): Measured {
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return useSyncExternalStore(subscribe, () => measured);
}

/** What is known now with what each initiator does to each volume, in a component. */
export function usePaths(): Measured {
  useEffect(() => {
    pathsWanted += 1;
    if (!measured.hasPaths) wake?.();
    return () => {
      pathsWanted -= 1;
    };
  }, []);
  return useMeasured();
}
