import { expect, test } from "vitest";

import { axisPx, BINARY_STEPS } from "./axis";
import { bytes } from "./size";

test("an axis is wide enough for its longest label", () => {
  const short = axisPx(["0/s", "500/s"]);
  expect(axisPx(["0 B/s", "128 MiB/s"]) - short).toBe(4 * 7);
  expect(axisPx(["1,023.99 MiB/s"])).toBeGreaterThan(100);
  expect(axisPx(null)).toBe(axisPx([]));
});

test("lines of bytes are whole units apart", () => {
  for (const step of BINARY_STEPS) expect(bytes(step)).toMatch(/^\d+ /);
});
