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
    return `${flagged ? "Flagged" : "Marked as seen"}: ${many}.`;
  };
  return (
    <Task
      title={`${flagged ? "Flag" : "Mark as seen"}: ${many}`}
      submit={flagged ? "Flag" : "Mark as seen"}
      cli={[]}
      run={run}
      close={close}
    >
      <p>Others see that somebody {flagged ? "should look" : "has looked"} at it.</p>
    </Task>
  );
}

/** Closes alerts by hand, one at a time. */
export function CloseAlerts(props: { alerts: RestAlert[]; close: () => void }) {
  const { alerts, close } = props;
  const many = plural(alerts.length, "alert");
  const run = async () => {
    for (const number of numbers(alerts)) await request("POST", own(["alerts", number, "close"]));
    return `Closed: ${many}.`;
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
        What is wrong is not changed by that: an alert stays closed as long as it goes on, unless
        it becomes graver. Several are closed one after the other.
      </p>
    </Task>
  );
}
