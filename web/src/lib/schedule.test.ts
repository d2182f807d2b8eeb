import { expect, test } from "vitest";

import { askedAt, atArgument, isOfDays, parseTimeOfDay, scheduleText, timeOfDay } from "./schedule";

const [HOUR_S, DAY_S] = [3600, 86_400];
const HALF_PAST_TWO = 9_000_000;

test("times of the day are read and shown", () => {
  expect(parseTimeOfDay(" 2:30 ")).toBe(HALF_PAST_TWO);
  expect(parseTimeOfDay("00:00")).toBe(0);
  for (const bad of ["", "24:00", "2:60", "2", "02:30:00", "-1:00"]) {
    expect(parseTimeOfDay(bad), bad).toBeUndefined();
  }
  expect(timeOfDay(HALF_PAST_TWO)).toBe("02:30");
  expect(timeOfDay(86_399_999)).toBe("23:59");
});

test("only whole days have a time of day", () => {
  expect([DAY_S, 2 * DAY_S].every(isOfDays)).toBe(true);
  expect([0, HOUR_S, 36 * HOUR_S, undefined].some(isOfDays)).toBe(false);
  const frequency = DAY_S * 1000;
  expect(scheduleText({ enabled: true, frequency, at: HALF_PAST_TWO })).toBe(
    "Every 1 d at 02:30 UTC",
  );
  expect(scheduleText({ enabled: true, frequency, at: 0 })).toBe("Every 1 d at 00:00 UTC");
  expect(scheduleText({ enabled: true, frequency, at: null })).toBe("Every 1 d");
  expect(scheduleText({ enabled: false, frequency, at: null })).toBe("Manual");
});

test("a time of day is sent, kept or cleared, and never lost without a word", () => {
  const old = HALF_PAST_TWO + 1234;
  const asked = (everyS: number, text: string, before: number | null = old) => {
    const all = { everyS, text, old: before };
    return [askedAt(all), atArgument(all)];
  };
  expect(asked(DAY_S, "02:30")).toEqual([old, "02:30"]);
  expect(asked(DAY_S, "03:00")).toEqual([10_800_000, "03:00"]);
  expect(asked(DAY_S, "x")).toEqual([undefined, "HH:MM"]);
  expect(asked(DAY_S, "")).toEqual([null, "none"]);
  expect(asked(HOUR_S, "02:30")).toEqual([null, "none"]);
  expect(asked(HOUR_S, "", null)).toEqual([null, undefined]);
});
