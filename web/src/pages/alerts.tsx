/** The open alerts, with their remedies. */
import { byWeight } from "../lib/alerts";
import { time } from "../lib/format";
import { useOpenAlerts } from "../lib/query";
import { useSelection } from "../lib/selection";
import { mayStore, useSession } from "../lib/session";
import type { RestAlert } from "../lib/types";
import { Actions } from "../parts/actions";
import { Loaded } from "../parts/notice";
import { Card } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { CloseAlerts, Flag } from "../tasks/alerts";

const COLUMNS: Column<RestAlert>[] = [
  { head: "Alert", cell: (row) => row.summary },
  {
    head: "Severity",
    cell: (row) => <span className={row.severity === "info" ? "" : "bad"}>{row.severity}</span>,
  },
  { head: "Actual", minor: true, cell: (row) => row.actual || "–" },
  { head: "Expected", minor: true, cell: (row) => row.expected || "–" },
  { head: "Opened", cell: (row) => time(row.created) },
  { head: "Recommended action", cell: (row) => row.description },
  { head: "Flagged", minor: true, cell: (row) => (row.flagged ? "Yes" : "No") },
];

export function Alerts() {
  const alerts = useOpenAlerts();
  const found = alerts.data ?? [];
  const selection = useSelection(found.map((alert) => alert.name));
  const { role } = useSession();
  const chosen = found.filter((alert) => selection.isChosen(alert.name));
  const on = chosen.length > 0;
  const flagged = chosen.every((alert) => alert.flagged);
  return (
    <Card
      title="Alerts"
      aside={
        mayStore(role) &&
        found.length > 0 && (
          <Actions
            label="Alerts"
            actions={[
              {
                label: flagged ? "Clear flag" : "Flag",
                on,
                task: (close) => <Flag alerts={chosen} flagged={!flagged} close={close} />,
              },
              {
                label: "Close",
                on,
                task: (close) => <CloseAlerts alerts={chosen} close={close} />,
              },
            ]}
          />
        )
      }
    >
      <Loaded query={alerts} what="alerts">
        {(all) => (
          <Table
            caption="Open alerts"
            areAll
            rows={byWeight(all)}
            columns={COLUMNS}
            name={(row) => row.name}
            empty="No open alerts."
            selection={selection}
          />
        )}
      </Loaded>
    </Card>
  );
}
