import { expect, test } from "vitest";

import { classRate, pathKey, pathRates, sampleOf, sumOf } from "./rates";
import type { CommandCounters, Counters, PathCounters } from "./types";

const counters = (ok: number, bytes = 0, latency = 0, failed = 0): CommandCounters => ({
  ok,
  failed,
  bytes,
  ok_latency_us: latency,
});

const all = (totals: Counters["totals"], paths: PathCounters[] = []) => ({ totals, paths });

test("rates are differences by the second, latencies are means", () => {
  const rate = classRate(counters(10, 4096, 1000, 1), counters(30, 12_288, 5000, 2), 2);
  expect(rate).toEqual({
    perSecond: 10,
    bytesPerSecond: 4096,
    latencyUs: 200,
    failedPerSecond: 0.5,
  });
  expect(classRate(undefined, counters(4), 2)?.perSecond).toBe(2);
  expect(classRate(counters(4), counters(4), 2)?.latencyUs).toBeNull();
});

test("percentiles are of what was counted in between", () => {
  const counted = (ok: number, slow: number) => ({
    ...counters(ok),
    latencies: [
      { up_to_us: 100, count: ok - slow },
      { up_to_us: 500, count: slow },
    ],
  });
  const rate = classRate(counted(100, 100), counted(104, 101), 1);
  expect(rate).toMatchObject({ p50Us: 100, p99Us: 500 });
  expect(classRate(counted(4, 0), counted(4, 0), 1)).toMatchObject({ p50Us: null, p99Us: null });
});

test("a start of the array in between gives no sample", () => {
  expect(classRate(counters(10), counters(3), 2)).toBeUndefined();
  expect(classRate(counters(1), counters(2), 0)).toBeUndefined();
  const before = all({ read: counters(5), write: counters(9) });
  expect(sampleOf(before, all({ read: counters(6), write: counters(1) }), 1, 7)).toBeUndefined();
  const sample = sampleOf(before, all({ read: counters(6), write: counters(9) }), 1, 7);
  expect([sample?.time, sample?.classes["read"]?.perSecond]).toEqual([7, 1]);
});

test("paths are told apart by initiator and volume", () => {
  const path = (initiator: string, id: number | null, ok: number): PathCounters => ({
    initiator,
    volume_id: id,
    volume: null,
    commands: { read: counters(ok), write: counters(ok) },
  });
  const before = all({}, [path("a", 1, 5), path("a", 2, 5)]);
  const after = all({}, [path("a", 1, 7), path("a", 2, 5), path("b", null, 1)]);
  const rates = pathRates(before, after, 2);
  const shown = after.paths.map((one) => rates.get(pathKey(one))?.perSecond);
  expect(shown).toEqual([2, 0, 1]);
  expect(sumOf(path("a", 1, 3).commands).ok).toBe(6);
});
