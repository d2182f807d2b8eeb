/** The value axis of a chart. */

/** The space around labels, and the maximum width of a character of 12 pixels. */
const GAP_PX = 14;
const CHARACTER_PX = 7;

/** The width of the axis, so that no label is cut off. At first there are no labels. */
export function axisPx(labels: string[] | null): number {
  return GAP_PX + CHARACTER_PX * Math.max(0, ...(labels ?? []).map((label) => label.length));
}

/** Distances between grid lines for bytes: powers of two, as 100 MB would be 95.37 MiB. */
export const BINARY_STEPS = Array.from({ length: 61 }, (_, power) => 2 ** power);
