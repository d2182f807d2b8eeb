/** Rates per second from counters, which only grow. */
import { percentile, since } from "./percentiles";
import type { CommandCounters, Commands, Counters, PathCounters } from "./types";

/** The peak in any second between two samples, if the array has recorded it. */
export interface Peaks {
  perSecond: number;
  bytesPerSecond: number;
  latencyUs: number;
}

/** The rates of one class of commands between two samples. */
export interface ClassRate {
  perSecond: number;
  bytesPerSecond: number;
  /** The mean latency; null if no command succeeded. */
  latencyUs: number | null;
  failedPerSecond: number;
  /** The p50 and p99 latencies; null if they are unknown. */
  p50Us?: number | null;
  p99Us?: number | null;
  peaks?: Peaks;
}

/** The rates of all hosts between two samples. */
export interface Sample {
  /** The time of the sample, in seconds since 1970. */
  time: number;
  classes: Record<string, ClassRate>;
}

const NOTHING: CommandCounters = { ok: 0, failed: 0, bytes: 0, ok_latency_us: 0 };

/** The rates of a class; undefined if the counters were reset because the array was restarted. */
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

/** The percentiles of the commands whose latencies are counted. */
function percentiles(before: CommandCounters, after: CommandCounters) {
  if (after.latencies === undefined) return {};
  const found = since(before.latencies ?? [], after.latencies);
  return { p50Us: percentile(found, 50), p99Us: percentile(found, 99) };
}

/** The rates of all classes; undefined if the counters were reset. */
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

/** The commands of all classes. */
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

/** The key that identifies a path. */
export const pathKey = (path: PathCounters) => `${path.initiator} ${path.volume_id ?? ""}`;

/** The rates of each path between two samples, by its key; new paths start from zero. */
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
