import { expect, test } from "vitest";

import { type DeviceStanding, stateText } from "./devices";

const well: DeviceStanding = { state: "in", why_out: null, catching_up: null, parts: null };
const parts = (is_emptied: boolean, left_s: number | null) => ({
  all: 9,
  used: 3,
  is_emptied,
  left_s,
});

test("a device says what it does, why, and how long that takes yet", () => {
  const GIB = 1024 ** 3;
  const progress = { done_bytes: GIB, all_bytes: 4 * GIB, left_s: 7500 };
  const why_out = "a write failed";
  for (const [device, text] of [
    [well, "In"],
    [{ ...well, parts: parts(false, null) }, "In"],
    [{ ...well, parts: parts(true, 9) }, "In: what it has moves to others, 9 s left"],
    [{ ...well, parts: parts(true, null) }, "In: what it has moves to others"],
    [
      { ...well, state: "catching_up", catching_up: progress },
      "Catching up: 1 GiB of 4 GiB, 2 h 5 min left",
    ],
    [{ ...well, state: "out", why_out }, "Out: a write failed"],
    [
      { ...well, state: "out", why_out, parts: parts(false, 65) },
      "Out: a write failed; others have all that was on it in 1 min 5 s",
    ],
    [
      { ...well, state: "missing", parts: parts(false, 7500) },
      "Missing: others have all that was on it in 2 h 5 min",
    ],
    [{ ...well, state: "missing", parts: parts(false, null) }, "Missing"],
  ] satisfies [DeviceStanding, string][]) {
    expect(stateText(device)).toBe(text);
  }
});
