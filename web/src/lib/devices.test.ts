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
    [well, "In use"],
    [{ ...well, parts: parts(false, null) }, "In use"],
    [{ ...well, parts: parts(true, 9) }, "In use: its data moves to other devices, 9 s left"],
    [{ ...well, parts: parts(true, null) }, "In use: its data moves to other devices"],
    [
      { ...well, state: "catching_up", catching_up: progress },
      "Catching up: 1 GiB of 4 GiB, 2 h 5 min left",
    ],
    [{ ...well, state: "out", why_out }, "Out of use: a write failed"],
    [
      { ...well, state: "out", why_out, parts: parts(false, 65) },
      "Out of use: a write failed; rebuilt on other devices in 1 min 5 s",
    ],
    [
      { ...well, state: "missing", parts: parts(false, 7500) },
      "Missing: rebuilt on other devices in 2 h 5 min",
    ],
    [{ ...well, state: "missing", parts: parts(false, null) }, "Missing"],
  ] satisfies [DeviceStanding, string][]) {
    expect(stateText(device)).toBe(text);
  }
});
