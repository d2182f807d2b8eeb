import { expect, test } from "vitest";

import { limitsText, NO_LIMITS } from "./limits";

test("the most that can be set is no limit", () => {
  expect(limitsText(NO_LIMITS)).toBe("None");
  expect(limitsText({ ...NO_LIMITS, iops_limit: 2000 })).toBe("2,000 IOPS");
  const both = { bandwidth_limit: 100 * 1024 ** 2, iops_limit: 100 };
  expect(limitsText(both)).toBe("100 MiB/s, 100 IOPS");
});
