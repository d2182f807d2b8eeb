/** The name servers and time servers of the array. */
import { own } from "../lib/api";
import { useGet } from "../lib/query";
import { mayAdminister, useSession } from "../lib/session";
import type { ArraySettings, TimeServers } from "../lib/types";
import { Actions } from "../parts/actions";
import { Card, Facts } from "../parts/page";
import { EditDns, EditTimeServers } from "../tasks/network";

/** The last clock offset that a time server reported. */
function said(server: string, known: TimeServers | undefined): string {
  const one = known?.time_servers.find((found) => found.server === server);
  if (one === undefined) return "not queried yet";
  if (one.offset_s === null) return one.error ?? "no answer";
  const way = one.offset_s < 0 ? "ahead" : "behind";
  return `the clock is ${Math.abs(one.offset_s).toFixed(3)} s ${way}`;
}

export function NetworkCard({ settings }: { settings: ArraySettings }) {
  const { role } = useSession();
  const known = useGet<TimeServers>(own("time-servers")).data;
  const servers = settings.ntp_servers.map((one) => `${one}: ${said(one, known)}`);
  return (
    <Card
      title="Network"
      aside={
        mayAdminister(role) && (
          <Actions
            label="Network"
            actions={[
              {
                label: "Name servers",
                task: (close) => <EditDns settings={settings} close={close} />,
              },
              {
                label: "Time servers",
                task: (close) => <EditTimeServers settings={settings} close={close} />,
              },
            ]}
          />
        )
      }
    >
      <Facts
        facts={[
          ["Name servers", settings.name_servers.join(", ") || "None: the system’s are used"],
          ["Default domain", settings.domain || "None"],
          ["Time servers", servers.join("; ") || "None"],
        ]}
      />
    </Card>
  );
}
