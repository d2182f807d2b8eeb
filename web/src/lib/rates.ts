/** From counters, which only grow, to what happens by the second. */
import { percentile, since } from "./percentiles";
import type { CommandCounters, Commands, Counters, PathCounters } from "./types";

/** The most in any second between two samples, where the array has kept it. */
export interface Peaks {
  perSecond: number;
  bytesPerSecond: number;
  latencyUs: number;
}

/** What one class of commands did between two samples. */
export interface ClassRate {
  perSecond: number;
  bytesPerSecond: number;
  /** The mean latency; null where no command succeeded. */
  latencyUs: number | null;
  failedPerSecond: number;
  /** What half took at most, and 99 percent; null where that is not known. */
  p50Us?: number | null;
  p99Us?: number | null;
  peaks?: Peaks;
}

/** What all hosts did between two samples. */
export interface Sample {
  /** When it was taken, in seconds since 1970. */
  time: number;
  classes: Record<string, ClassRate>;
}

const NOTHING: CommandCounters = { ok: 0, failed: 0, bytes: 0, ok_latency_us: 0 };

/** What a class did; undefined where the counters began anew, as the array was started again. */
export function classRate(
  before: CommandCounters | undefined,
  after: CommandCounters,
  seconds: number,
): ClassRate | undefined {
  const from = before ?? NOTHING;
  const ok = after.ok - from.ok;
  const failed = after.failed - from.failed;
  const moved = after.bytes - from.bytes;
  const waited = after.ok_latency_us - from.ok_latency_us;
  if (seconds <= 0 || ok < 0 || failed < 0 || moved < 0 || waited < 0) return undefined;
  return {
    perSecond: ok / seconds,
    bytesPerSecond: moved / seconds,
    latencyUs: ok > 0 ? waited / ok : null,
    failedPerSecond: failed / seconds,
    ...percentiles(from, after),
  };
}

/** Of those that are counted by how long they took. */
function percentiles(before: CommandCounters, after: CommandCounters) {
  if (after.latencies === undefined) return {};
  const found = since(before.latencies ?? [], after.latencies);
  return { p50Us: percentile(found, 50), p99Us: percentile(found, 99) };
}

/** What all classes did; undefined where the counters began anew. */
export function sampleOf(
  before: Pick<Counters, "totals">,
  after: Pick<Counters, "totals">,
  seconds: number,
  time: number,
): Sample | undefined {
  const classes: Record<string, ClassRate> = {};
  for (const [name, counters] of Object.entries(after.totals)) {
    const found = classRate(before.totals[name], counters, seconds);
    if (found === undefined) return undefined;
    classes[name] = found;
  }
  return { time, classes };
}

/** Commands of all classes together. */
export function sumOf(commands: Commands): CommandCounters {
  const sum = { ...NOTHING };
  for (const one of Object.values(commands)) {
    sum.ok += one.ok;
    sum.failed += one.failed;
    sum.bytes += one.bytes;
    sum.ok_latency_us += one.ok_latency_us;
  }
  return sum;
}

/** What tells a path from others. */
export const pathKey = (path: PathCounters) => `${path.initiator} ${path.volume_id ?? ""}`;

/** What each path did between two samples, by its key; those that are new began at nothing. */
export function pathRates(
  before: Pick<Counters, "paths">,
  after: Pick<Counters, "paths">,
  seconds: number,
): Map<string, ClassRate> {
  const known = new Map(before.paths.map((path) => [pathKey(path), sumOf(path.commands)]));
  const rates = new Map<string, ClassRate>();
  for (const path of after.paths) {
    const found = classRate(known.get(pathKey(path)), sumOf(path.commands), seconds);
    if (found !== undefined) rates.set(pathKey(path), found);
  }
  return rates;
}
