/** Initiators that tried to log in: names for new hosts. */
import { plural, time, words } from "./format";
import type { Initiator } from "./types";

/** The initiators without a host, the latest first. */
export function strangers(all: Initiator[]): Initiator[] {
  const last = (one: Initiator) => (one.sessions > 0 ? Infinity : (one.refused?.time_ms ?? 0));
  return all.filter((one) => one.host === null).sort((a, b) => (last(a) < last(b) ? 1 : -1));
}

/** When an initiator tried to log in, from where, and with what result. */
export function cameText({ sessions, refused }: Initiator): string {
  if (sessions > 0) return `logged in, with ${plural(sessions, "session")}`;
  if (refused === null) return "";
  return `${time(refused.time_ms)} from ${refused.address}: ${refused.why}`;
}

/** The names in a text, with this one added, or removed if the text contains it. */
export function toggled(text: string, name: string): string {
  const names = words(text);
  const others = names.filter((one) => one !== name);
  return (others.length < names.length ? others : [...names, name]).join("\n");
}
