/** The axis of values beside a chart. */

/** What labels take beside their text, and what a character of 12 pixels takes at most. */
const GAP_PX = 14;
const CHARACTER_PX = 7;

/** How wide the axis is, so that none of its labels is cut off; none are there at first. */
export function axisPx(labels: string[] | null): number {
  return GAP_PX + CHARACTER_PX * Math.max(0, ...(labels ?? []).map((label) => label.length));
}

/** From one line across to the next, where values are bytes: 95.37 MiB would be no round number. */
export const BINARY_STEPS = Array.from({ length: 61 }, (_, power) => 2 ** power);
