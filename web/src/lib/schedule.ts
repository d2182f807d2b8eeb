/** Schedules of snapshots, in words and as they are typed. */
import { duration } from "./format";
import type { RestSchedule } from "./types";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_S = 86_400;

const two = (value: number) => String(value).padStart(2, "0");

/** `02:30` of milliseconds from midnight. */
export function timeOfDay(ms: number): string {
  return `${two(Math.floor(ms / HOUR_MS))}:${two(Math.floor(ms / MINUTE_MS) % 60)}`;
}

/** Milliseconds from midnight of `02:30`; undefined if that is not a time of day. */
export function parseTimeOfDay(text: string): number | undefined {
  const found = /^(\d{1,2}):(\d{1,2})$/.exec(text.trim());
  if (!found) return undefined;
  const [hour, minute] = [Number(found[1]), Number(found[2])];
  return hour < 24 && minute < 60 ? hour * HOUR_MS + minute * MINUTE_MS : undefined;
}

/** Whether an interval can have a time of day. */
export function isOfDays(seconds: number | undefined): boolean {
  return seconds !== undefined && seconds > 0 && seconds % DAY_S === 0;
}

/** `Every 1 d at 02:30 UTC`, or `Manual`. */
export function scheduleText(schedule: RestSchedule): string {
  const { enabled, frequency, at } = schedule;
  if (!enabled || !frequency) return "Manual";
  const when = at !== null ? ` at ${timeOfDay(at)} UTC` : "";
  return `Every ${duration(frequency / 1000)}${when}`;
}

/** The time of day as it is typed, and that of the existing schedule. */
export interface AskedTime {
  everyS: number | undefined;
  text: string;
  old: number | null | undefined;
}

/** The `at` of the request: null for none, undefined if the text is not a time of day. */
export function askedAt({ everyS, text, old }: AskedTime): number | null | undefined {
  if (!isOfDays(everyS) || text.trim() === "") return null;
  // Seconds that are not shown are preserved.
  if (typeof old === "number" && text.trim() === timeOfDay(old)) return old;
  return parseTimeOfDay(text);
}

/** The argument of `--at` on the command line; undefined without the option. */
export function atArgument(asked: AskedTime): string | undefined {
  const at = askedAt(asked);
  if (at === undefined) return "HH:MM";
  if (at !== null) return timeOfDay(at);
  return typeof asked.old === "number" ? "none" : undefined;
}
