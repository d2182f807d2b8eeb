import { expect, test } from "vitest";

import { alertsText, byWeight } from "./alerts";
import type { RestAlert } from "./types";

const alert = (severity: RestAlert["severity"], created: number) => ({
  name: String(created),
  severity,
  created,
});

test("the worst alerts come first, and of those the newest", () => {
  const critical = [alert("critical", 1), alert("critical", 2)];
  const alerts = [alert("info", 9), ...critical, alert("warning", 5)];
  expect(byWeight(alerts).map((one) => one.created)).toEqual([2, 1, 5, 9]);
});

test("alerts are counted, with the worst severity", () => {
  expect(alertsText([])).toBe("No alerts");
  expect(alertsText([alert("warning", 1)])).toBe("1 alert: warning");
  const three = [alert("info", 1), alert("critical", 2), alert("warning", 3)];
  expect(alertsText(three)).toBe("3 alerts, worst: critical");
});
