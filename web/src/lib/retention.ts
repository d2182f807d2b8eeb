/** The retention of scheduled snapshots, in words. */
import { count, duration } from "./format";
import type { RestGroup } from "./types";

const DAY_S = 86_400;

/** A policy: all snapshots for a time, then a number per day for further days. */
export interface Policy {
  allForS: number;
  perDay: number;
  days: number;
  /** The interval between snapshots; null without a schedule. */
  everyS: number | null;
}

/** The policy of a group. */
export function policyOf(
  group: Pick<RestGroup, "snapshot_schedule" | "source_retention">,
): Policy {
  const { snapshot_schedule: schedule, source_retention: kept } = group;
  const every = schedule.enabled && schedule.frequency ? schedule.frequency / 1000 : null;
  return {
    allForS: kept.all_for_sec,
    perDay: kept.per_day,
    days: kept.days,
    everyS: every,
  };
}

/** `All for 7 d, then 4 per day for 7 d more: 14 d in total, about 196 snapshots`. */
export function retentionText({ allForS, perDay, days, everyS }: Policy): string {
  const moreS = perDay > 0 ? days * DAY_S : 0;
  const wholeS = allForS + moreS;
  // A day with no more snapshots than that keeps all of them.
  const madeADay = everyS === null ? null : Math.ceil(DAY_S / everyS);
  const areThinned = moreS > 0 && (madeADay === null || madeADay > perDay);
  const kept = areThinned
    ? `All for ${duration(allForS)}, then ${count(perDay)} per day for ${count(days)} d more: ` +
      `${duration(wholeS)} in total`
    : `All for ${duration(wholeS)}`;
  if (everyS === null) return kept;
  const whole = areThinned ? allForS / everyS + perDay * days : wholeS / everyS;
  const most = Math.max(1, Math.ceil(whole));
  return `${kept}, about ${count(most)} ${most === 1 ? "snapshot" : "snapshots"}`;
}
