import { expect, test } from "vitest";

import {
  count,
  duration,
  durationArgument,
  latency,
  parseDuration,
  percent,
  plural,
  rate,
  ratio,
  time,
  words,
} from "./format";

test("numbers read well, and what is not known is a dash", () => {
  expect([count(1234567), count(null)]).toEqual(["1,234,567", "–"]);
  expect([rate(12345.6), rate(45.64), rate(0), rate(null)]).toEqual(["12,346", "45.6", "0", "–"]);
  expect([latency(849.6), latency(1250), latency(2_100_000), latency(null)]).toEqual([
    "850 µs",
    "1.25 ms",
    "2.1 s",
    "–",
  ]);
  expect([ratio(3.24), ratio(1), ratio(1234.5), ratio(null)]).toEqual([
    "3.2 to 1",
    "1.0 to 1",
    "1,235 to 1",
    "–",
  ]);
  expect([percent(1, 3), percent(1, 1000), percent(0, 5), percent(1, 0)]).toEqual([
    "33%",
    "<1%",
    "0%",
    "–",
  ]);
  expect([plural(1, "volume"), plural(0, "volume")]).toEqual(["1 volume", "0 volumes"]);
});

test("lengths of time have two units at most", () => {
  expect([0, 59.6, 86_399, 86_400, 90_061, -5].map(duration)).toEqual([
    "0 s",
    "1 min",
    "23 h 59 min",
    "1 d",
    "1 d 1 h",
    "0 s",
  ]);
});

test("lengths of time are read and written as the command line does", () => {
  expect(["7d", "12h", "30m", "45s", "90", " 1D "].map(parseDuration)).toEqual([
    604_800, 43_200, 1800, 45, 90, 86_400,
  ]);
  for (const wrong of ["", "d", "-1d", "1w", "1d2h", "1.5h"]) {
    expect(parseDuration(wrong), wrong).toBeUndefined();
  }
  const written = [86_400, 3600, 5400, 61, 0].map(durationArgument);
  expect(written).toEqual(["1d", "1h", "90m", "61s", "0s"]);
});

test("moments are in the zone of who looks; none is a dash", () => {
  expect(time(new Date(2026, 0, 2, 3, 4, 5).getTime())).toBe("2026-01-02 03:04:05");
  expect([time(0), time(null), time(undefined)]).toEqual(["–", "–", "–"]);
});

test("names are parted by blanks, commas and lines", () => {
  expect(words(" a, b\nc,,d ")).toEqual(["a", "b", "c", "d"]);
  expect(words(" ")).toEqual([]);
});
