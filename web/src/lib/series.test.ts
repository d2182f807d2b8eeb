import { expect, test } from "vitest";

import { alone, samplesOf, withGaps } from "./series";

const read = {
  per_s: 4,
  failed_per_s: 1,
  bytes_per_s: 4096,
  latency_us: 200,
  latency_us_p50: 150,
  latency_us_p99: 700,
  per_s_max: 9,
  bytes_per_s_max: 8192,
  latency_us_max: 350,
};

test("samples tell rates and peaks, and that the others did nothing", () => {
  const samples = [{ time_ms: 30_000, covered_ms: 30_000, commands: { read } }];
  const [found] = samplesOf({ resolution_ms: 30_000, samples });
  expect(found?.time).toBe(30);
  expect(found?.classes["read"]).toMatchObject({ perSecond: 5, latencyUs: 200 });
  expect(found?.classes["read"]).toMatchObject({ p50Us: 150, p99Us: 700 });
  expect(found?.classes["read"]?.peaks).toEqual({
    perSecond: 9,
    bytesPerSecond: 8192,
    latencyUs: 350,
  });
  expect(found?.classes["write"]).toMatchObject({ perSecond: 0, latencyUs: null });
});

test("what is not known is a gap", () => {
  const at = (time: number) => ({ time, classes: {} });
  const found = withGaps([at(0), at(30), at(300)], 30_000, at);
  expect(found.map(({ time }) => time)).toEqual([0, 30, 60, 300]);
});

test("values that no line leads to are alone", () => {
  expect(alone([])).toEqual([]);
  expect(alone([5])).toEqual([0]);
  expect(alone([0, null, 3, 4, undefined, 7])).toEqual([0, 5]);
  expect(alone([null, 3, 4, null])).toEqual([]);
});
