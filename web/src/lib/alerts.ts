/** The open alerts, as the header, the dashboard and the health page show them. */
import { plural } from "./format";
import type { RestAlert } from "./types";

/** The severities, in ascending order. */
const SEVERITIES: readonly RestAlert["severity"][] = ["info", "warning", "critical"];

/** The fields that determine the order of alerts. */
type Weighed = Pick<RestAlert, "severity" | "created">;

const rank = (alert: Weighed) => SEVERITIES.indexOf(alert.severity);

/** Alerts sorted by severity, the worst first, and then by time, the newest first. */
export const byWeight = <T extends Weighed>(alerts: T[]): T[] =>
  [...alerts].sort((one, other) => rank(other) - rank(one) || other.created - one.created);

/** `No alerts`, `1 alert: warning`, `3 alerts, worst: critical`. */
export function alertsText(alerts: Weighed[]): string {
  const [worst] = byWeight(alerts);
  if (worst === undefined) return "No alerts";
  const shown = plural(alerts.length, "alert");
  return alerts.length === 1 ? `${shown}: ${worst.severity}` : `${shown}, worst: ${worst.severity}`;
}
