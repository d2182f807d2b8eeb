/** The recipients of alerts by SNMP, and the array as their sender. */
import { useAll } from "../lib/query";
import type { RestSnmpAgent, RestSnmpManager } from "../lib/types";
import { Loaded } from "../parts/notice";
import { Card, Facts } from "../parts/page";
import type { Column } from "../parts/table";
import { AddManager, EditManager } from "../tasks/snmp";
import { Receivers } from "./receivers";

export function SnmpCard() {
  const managers = useAll<RestSnmpManager>("snmp-managers");
  return (
    <Card title="SNMP managers">
      <Loaded query={managers} what="SNMP managers">
        {(found) => <Managers managers={found} />}
      </Loaded>
      <Engine />
    </Card>
  );
}

/** `v2c`, or the user of version 3 and how messages are protected. */
function securityText({ version, v3 }: RestSnmpManager): string {
  if (version === "v2c") return version;
  const protection = [v3.auth_protocol, v3.privacy_protocol].flatMap((one) => one ?? []);
  return [version, v3.user ?? "", ...protection].join(", ");
}

const COLUMNS: Column<RestSnmpManager>[] = [
  { head: "Name", cell: (row) => row.name },
  { head: "Host", cell: (row) => row.host },
  { head: "Sent as", cell: (row) => (row.notification === "inform" ? "Inform" : "Trap") },
  { head: "Security", cell: securityText },
];

function Managers({ managers }: { managers: RestSnmpManager[] }) {
  return (
    <Receivers
      resource="snmp-managers"
      caption="SNMP managers"
      rows={managers}
      columns={COLUMNS}
      empty="No SNMP managers yet."
      test="Test SNMP"
      remove="Remove managers"
      actions={(chosen) => {
        const [manager] = chosen.length === 1 ? chosen : [];
        return [
          { label: "New manager", primary: true, task: (close) => <AddManager close={close} /> },
          {
            label: "Change manager",
            on: manager !== undefined,
            task: (close) => manager && <EditManager manager={manager} close={close} />,
          },
        ];
      }}
    />
  );
}

/** What receivers of version 3 traps identify the array by. */
function Engine() {
  const agents = useAll<RestSnmpAgent>("snmp-agents");
  return (
    <Loaded query={agents} what="the SNMP engine ID">
      {([agent]) =>
        agent && (
          <>
            <Facts facts={[["Engine ID", <code key="id">0x{agent.engine_id}</code>]]} />
            <p className="muted">
              Managers need it to receive SNMPv3 traps. The array does not answer SNMP queries.
            </p>
          </>
        )
      }
    </Loaded>
  );
}
