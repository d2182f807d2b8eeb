/** Flagging and closing alerts. */
import { own, request, rest } from "../lib/api";
import * as cli from "../lib/cli";
import { plural } from "../lib/format";
import type { RestAlert } from "../lib/types";
import { Task } from "../parts/task";

const numbers = (alerts: RestAlert[]) => alerts.map((alert) => alert.name);

/** Sets or clears the flag of alerts that still need attention. */
export function Flag(props: { alerts: RestAlert[]; flagged: boolean; close: () => void }) {
  const { alerts, flagged, close } = props;
  const many = plural(alerts.length, "alert");
  const run = async () => {
    await request("PATCH", rest("alerts", { names: numbers(alerts) }), { flagged });
    return flagged ? `Flagged ${many}.` : `Cleared the flag of ${many}.`;
  };
  return (
    <Task
      title={flagged ? `Flag ${many}` : `Clear the flag of ${many}`}
      submit={flagged ? "Flag" : "Clear flag"}
      cli={[]}
      run={run}
      close={close}
    >
      <p>
        {flagged
          ? "A flag tells other users that an alert still needs attention."
          : "Other users see that somebody has dealt with it."}
      </p>
    </Task>
  );
}

/** Closes alerts by hand, one at a time. */
export function CloseAlerts(props: { alerts: RestAlert[]; close: () => void }) {
  const { alerts, close } = props;
  const many = plural(alerts.length, "alert");
  const run = async () => {
    for (const number of numbers(alerts)) await request("POST", own(["alerts", number, "close"]));
    return `Closed ${many}.`;
  };
  return (
    <Task
      title={`Close ${many}`}
      submit="Close"
      cli={numbers(alerts).map(cli.alert.close)}
      run={run}
      close={close}
    >
      <p>
        Closing an alert does not remove its cause. It stays closed while the cause persists,
        unless its severity rises. Several alerts are closed one after the other.
      </p>
    </Task>
  );
}
