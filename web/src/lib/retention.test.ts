import { expect, test } from "vitest";

import { type Policy, policyOf, retentionText } from "./retention";

const HOUR_S = 3600;
const DAY_S = 24 * HOUR_S;

test("what is kept is said as a whole", () => {
  const week: Policy = { allForS: 7 * DAY_S, perDay: 4, days: 7, everyS: HOUR_S };
  for (const [policy, text] of [
    [week, "All for 7 d, then 4 per day for 7 d more: 14 d in total, about 196 snapshots"],
    [{ ...week, everyS: null }, "All for 7 d, then 4 per day for 7 d more: 14 d in total"],
    // Nothing is kept longer, or nothing is removed before the end.
    [{ ...week, days: 0 }, "All for 7 d, about 168 snapshots"],
    [{ ...week, perDay: 0 }, "All for 7 d, about 168 snapshots"],
    [{ ...week, everyS: 6 * HOUR_S }, "All for 14 d, about 56 snapshots"],
    [{ ...week, everyS: 2 * DAY_S }, "All for 14 d, about 7 snapshots"],
    [{ ...week, everyS: 400 * DAY_S }, "All for 14 d, about 1 snapshot"],
    [
      { allForS: 90, perDay: 1, days: 1, everyS: 300 },
      "All for 1 min 30 s, then 1 per day for 1 d more: 1 d 1 min in total, about 2 snapshots",
    ],
  ] satisfies [Policy, string][]) {
    expect(retentionText(policy)).toBe(text);
  }
});

test("the policy of a group counts what its schedule makes", () => {
  const group = {
    snapshot_schedule: { enabled: true, frequency: 3_600_000, at: null },
    source_retention: { all_for_sec: DAY_S, per_day: 4, days: 7 },
  };
  const policy = { allForS: DAY_S, perDay: 4, days: 7, everyS: HOUR_S };
  expect(policyOf(group)).toEqual(policy);
  const schedule = { ...group.snapshot_schedule, enabled: false };
  expect(policyOf({ ...group, snapshot_schedule: schedule })).toEqual({ ...policy, everyS: null });
});
