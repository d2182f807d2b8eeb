import { expect, test } from "vitest";

import { NOTICED_WITHIN_MS } from "./reach";

test("an array that is away is noticed within 3 s", () => {
  expect(NOTICED_WITHIN_MS).toBeLessThanOrEqual(3000);
});
