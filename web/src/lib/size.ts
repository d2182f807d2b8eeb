/** Parses and formats sizes: binary multiples, as on the command line. */

const UNITS = ["B", "K", "M", "G", "T", "P"] as const;

/** The bytes of `10G`, `1.5T`, `512 MiB` or `1048576`; undefined if that is not a size. */
export function parseSize(text: string): number | undefined {
  const found = /^(\d+(?:\.\d{1,9})?)\s*(?:([KMGTP])(?:i?B)?|B)?$/i.exec(text.trim());
  if (!found?.[1]) return undefined;
  const shift = found[2] ? UNITS.findIndex((unit) => unit === found[2]?.toUpperCase()) : 0;
  const bytes = Number(found[1]) * 1024 ** shift;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** The exact size as an argument of the command line: `10G`, `1536M` or `4097`. */
export function sizeArgument(bytes: number): string {
  for (let at = UNITS.length - 1; at > 0; at -= 1) {
    const count = bytes / 1024 ** at;
    if (count >= 1 && Number.isInteger(count)) return `${count}${UNITS[at]}`;
  }
  return String(bytes);
}

/** `10 GiB`, `1.5 TiB`, `512 B`: with about three digits, as the command line shows them. */
export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  let at = 0;
  let rest = Math.abs(value);
  while (rest >= 1024 && at < UNITS.length - 1) {
    rest /= 1024;
    at += 1;
  }
  const sign = value < 0 ? "-" : "";
  if (at === 0) return `${sign}${Math.round(rest)} B`;
  return `${sign}${Number(rest.toFixed(rest < 100 ? 2 : 1))} ${UNITS[at]}iB`;
}
