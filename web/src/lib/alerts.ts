/** The open alerts, as the header, the dashboard and the page of health show them. */
import { plural } from "./format";
import type { RestAlert } from "./types";

/** From the least to the worst. */
const SEVERITIES: readonly RestAlert["severity"][] = ["info", "warning", "critical"];

/** What the order of alerts depends on. */
type Weighed = Pick<RestAlert, "severity" | "created">;

const rank = (alert: Weighed) => SEVERITIES.indexOf(alert.severity);

/** The worst first, and of those the newest. */
export const byWeight = <T extends Weighed>(alerts: T[]): T[] =>
  [...alerts].sort((one, other) => rank(other) - rank(one) || other.created - one.created);

/** `No alerts`, `1 alert: warning`, `3 alerts, worst: critical`. */
export function alertsText(alerts: Weighed[]): string {
  const [worst] = byWeight(alerts);
  if (worst === undefined) return "No alerts";
  const shown = plural(alerts.length, "alert");
  return alerts.length === 1 ? `${shown}: ${worst.severity}` : `${shown}, worst: ${worst.severity}`;
}
