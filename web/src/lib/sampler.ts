/**
 * Samples the counters of the array while the page is visible, and keeps the rates of the last half
 * hour in memory. It starts with the history that the array has kept.
 */
import { useEffect, useSyncExternalStore } from "react";

import { get, own, sessions } from "./api";
import { history } from "./history";
import { type ClassRate, pathRates, type Sample, sampleOf } from "./rates";
import { samplesOf } from "./series";
import type { Counters, PathCounters, Port } from "./types";

/** The pause between two samples, in milliseconds; longer if responses are slow. */
const PAUSE_MS = 3000;
/** The minimum pause, as a multiple of the time that the last response took. */
const PATIENCE = 20;
/** How long samples are kept, in milliseconds. */
const KEPT_MS = 30 * 60_000;

/** The current state. */
export interface Measured {
  samples: Sample[];
  /** Empty while no component shows them: see `usePaths`. */
  paths: PathCounters[];
  /** Whether the paths are known. */
  hasPaths: boolean;
  ports: Port[];
  pathRates: Map<string, ClassRate>;
  connections: number | null;
  /** The reason if there is no newer sample. */
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
/** The number of components that show paths, which are requested only then: they may be many. */
let pathsWanted = 0;
/** Takes a sample at once. */
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

/** Every third second of the history: as many samples as the page itself would have taken. */
async function begin(): Promise<Sample[]> {
  const kept = await history(KEPT_MS, 1000);
  return samplesOf(kept).filter((_, at) => at % (PAUSE_MS / 1000) === 0);
}

/** Puts the history before the samples that the page has taken meanwhile. */
function publishHistory(kept: Sample[]): void {
  const { samples } = measured;
  const first = samples[0]?.time ?? Infinity;
  publish({ ...measured, samples: [...kept.filter(({ time }) => time < first), ...samples] });
}

function publishError(error: unknown): void {
  publish({ ...measured, error: error instanceof Error ? error.message : String(error) });
}

/** Samples until the returned function is called. */
export function startSampling(): () => void {
  let timer: number | undefined;
  let stopped = false;
  let begun = false;
  let isAtIt = false;
  let isWanted = false;
  const lacksPaths = () => isWanted && pathsWanted > 0 && !measured.hasPaths;
  const beginOnce = () => {
    begun = true;
    begin().then(
      (kept) => !stopped && publishHistory(kept),
      (error: unknown) => {
        begun = false;
        if (!stopped) publishError(error);
      },
    );
  };
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
        // Counters do not wait for the history, which is long: a page may show nothing but them.
        if (!begun) beginOnce();
        await sample();
      } catch (error) {
        publishError(error);
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

/** The current state, for a component. */
export function useMeasured(): Measured {
  const subscribe = (listener: () => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  };
  return useSyncExternalStore(subscribe, () => measured);
}

/** The current state with the rates of all paths, for a component. */
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
