/** Formats numbers, ratios and times. Unknown values are a dash. */

const UNKNOWN = "–";
const MINUTE_S = 60;
const HOUR_S = 60 * MINUTE_S;
const DAY_S = 24 * HOUR_S;

/** `1,234`. */
export function count(value: number | null | undefined): string {
  return value === null || value === undefined ? UNKNOWN : value.toLocaleString("en-US");
}

/** A rate per second: `12,300`, `45.6`, `0`. */
export function rate(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  if (value >= 100) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toFixed(1)));
}

/** A latency: `850 µs`, `1.25 ms`, `2.1 s`. */
export function latency(us: number | null | undefined): string {
  if (us === null || us === undefined) return UNKNOWN;
  if (us < 1000) return `${Math.round(us)} µs`;
  if (us < 1_000_000) return `${Number((us / 1000).toFixed(2))} ms`;
  return `${Number((us / 1_000_000).toFixed(2))} s`;
}

/** A reduction: `3.2 to 1`. */
export function ratio(value: number | null | undefined): string {
  if (value === null || value === undefined) return UNKNOWN;
  const shown = value >= 100 ? Math.round(value).toLocaleString("en-US") : value.toFixed(1);
  return `${shown} to 1`;
}

/** A part of a whole: `12%`, `<1%`. */
export function percent(part: number, whole: number): string {
  if (whole <= 0) return UNKNOWN;
  const value = (100 * part) / whole;
  return value > 0 && value < 1 ? "<1%" : `${Math.round(value)}%`;
}

/** A duration, in its two largest units: `23 h 59 min`. */
export function duration(seconds: number): string {
  const units: [string, number][] = [
    ["d", DAY_S],
    ["h", HOUR_S],
    ["min", MINUTE_S],
    ["s", 1],
  ];
  let rest = Math.max(0, Math.round(seconds));
  const parts: string[] = [];
  for (const [unit, length] of units) {
    const whole = Math.floor(rest / length);
    if (whole > 0) parts.push(`${whole} ${unit}`);
    rest -= whole * length;
    if (parts.length === 2) break;
  }
  return parts.join(" ") || "0 s";
}

/** A date and time, in the time zone of the browser; a dash for none and for 0. */
export function time(ms: number | null | undefined): string {
  if (!ms) return UNKNOWN;
  const at = new Date(ms);
  const two = (value: number) => String(value).padStart(2, "0");
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** Seconds of `1d`, `12h`, `30m` or `45s`; undefined if that is not a duration. */
export function parseDuration(text: string): number | undefined {
  const found = /^(\d{1,9})\s*([smhd])?$/i.exec(text.trim());
  if (!found?.[1]) return undefined;
  const units: Record<string, number> = { s: 1, m: MINUTE_S, h: HOUR_S, d: DAY_S };
  return Number(found[1]) * (units[(found[2] ?? "s").toLowerCase()] ?? 1);
}

/** `1d`, `12h`, `90m` or `45s`, exactly. */
export function durationArgument(seconds: number): string {
  const units: [string, number][] = [
    ["d", DAY_S],
    ["h", HOUR_S],
    ["m", MINUTE_S],
  ];
  const fit = units.find(([, length]) => seconds > 0 && seconds % length === 0);
  return fit ? `${seconds / fit[1]}${fit[0]}` : `${seconds}s`;
}

/** `1 volume`, `3 volumes`. */
export function plural(number: number, one: string, many = `${one}s`): string {
  return `${count(number)} ${number === 1 ? one : many}`;
}

/** Words separated by blanks, commas or newlines. */
export function words(text: string): string[] {
  return text.split(/[\s,]+/).filter((word) => word !== "");
}
