import { expect, test } from "vitest";

import { percentile, since } from "./percentiles";

const buckets = (...counts: number[]) =>
  counts.map((count, at) => ({ up_to_us: [100, 300, 10_000, null][at] ?? null, count }));

test("percentiles are where buckets end", () => {
  const all = buckets(50, 49, 0, 1);
  expect([50, 51, 99, 100].map((percent) => percentile(all, percent))).toEqual([
    100, 300, 300, 10_000,
  ]);
  expect(percentile(buckets(0, 0), 50)).toBeNull();
  expect(percentile([], 50)).toBeNull();
});

test("between two times is what was counted more", () => {
  expect(since(buckets(5, 1), buckets(7, 1, 4))).toEqual(buckets(2, 0, 4));
  expect(since([], buckets(7))).toEqual(buckets(7));
});
