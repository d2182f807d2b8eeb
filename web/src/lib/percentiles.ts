/** Percentiles of latencies, from histograms. */
import type { Bucket } from "./types";

/** The difference between two histograms. */
export function since(before: Bucket[], after: Bucket[]): Bucket[] {
  const of = new Map(before.map((bucket) => [bucket.up_to_us, bucket.count]));
  return after.map(({ up_to_us, count }) => ({
    up_to_us,
    count: Math.max(0, count - (of.get(up_to_us) ?? 0)),
  }));
}

/**
 * The percentile: the end of its bucket, or the start of the last bucket; null if nothing was
 * counted.
 */
export function percentile(buckets: Bucket[], percent: number): number | null {
  const all = buckets.reduce((sum, bucket) => sum + bucket.count, 0);
  const wanted = Math.ceil((all * percent) / 100);
  let soFar = 0;
  let end: number | null = null;
  for (const { up_to_us, count } of all > 0 ? buckets : []) {
    soFar += count;
    end = up_to_us ?? end;
    if (count > 0 && soFar >= wanted) return end;
  }
  return null;
}
