/** The recipients of alerts that are stored in the pool. */
import { useAll } from "../lib/query";
import { mayAdminister, useSession } from "../lib/session";
import type { RestRelay, RestSyslogServer, RestWatcher } from "../lib/types";
import { Actions } from "../parts/actions";
import { Loaded } from "../parts/notice";
import { Card, Facts } from "../parts/page";
import type { Column } from "../parts/table";
import {
  AddSyslogServer,
  AddWatcher,
  EditRelay,
  EnableWatchers,
  MoveSyslogServer,
} from "../tasks/notifications";
import { Receivers } from "./receivers";
import { SnmpCard } from "./snmp";

export function NotificationCards() {
  const relays = useAll<RestRelay>("smtp-servers");
  const watchers = useAll<RestWatcher>("alert-watchers");
  const servers = useAll<RestSyslogServer>("syslog-servers");
  return (
    <>
      <Loaded query={relays} what="the relay of mail">
        {(found) => <>{found[0] && <RelayCard relay={found[0]} />}</>}
      </Loaded>
      <Card title="Who gets mail">
        <Loaded query={watchers} what="who gets mail">
          {(found) => <Watchers watchers={found} />}
        </Loaded>
      </Card>
      <Card title="Syslog servers">
        <Loaded query={servers} what="syslog servers">
          {(found) => <Servers servers={found} />}
        </Loaded>
      </Card>
      <SnmpCard />
    </>
  );
}

function RelayCard({ relay }: { relay: RestRelay }) {
  const { role } = useSession();
  return (
    <Card
      title="Relay of mail"
      aside={
        mayAdminister(role) && (
          <Actions
            label="Relay of mail"
            actions={[
              { label: "Relay", task: (close) => <EditRelay relay={relay} close={close} /> },
            ]}
          />
        )
      }
    >
      <Facts
        facts={[
          ["Server", relay.relay_host || "None: no mail is sent"],
          ["Domain of the sender", relay.sender_domain || "None"],
          ["Sender", relay.sender_username || "The name of the array"],
          ["Encryption", relay.encryption_mode || "None"],
          ["User there", relay.user_name || "None"],
          ["Before each subject", relay.subject_prefix || "Nothing"],
          ["Before each text", relay.body_prefix || "Nothing"],
        ]}
      />
    </Card>
  );
}

const WATCHERS: Column<RestWatcher>[] = [
  { head: "Address", cell: (row) => row.name },
  { head: "Mail", cell: (row) => (row.enabled ? "On" : "Off") },
];

function Watchers({ watchers }: { watchers: RestWatcher[] }) {
  return (
    <Receivers
      resource="alert-watchers"
      caption="Who gets mail"
      rows={watchers}
      columns={WATCHERS}
      empty="Nobody gets mail."
      test="Test mail"
      remove="Remove addresses"
      actions={(chosen, names) => {
        const enabled = chosen.every((one) => one.enabled);
        const on = chosen.length > 0;
        return [
          { label: "New address", primary: true, task: (close) => <AddWatcher close={close} /> },
          {
            label: on && enabled ? "Switch off" : "Switch on",
            on,
            task: (close) => <EnableWatchers names={names} enabled={!enabled} close={close} />,
          },
        ];
      }}
    />
  );
}

const SERVERS: Column<RestSyslogServer>[] = [
  { head: "Name", cell: (row) => row.name },
  { head: "Place", cell: (row) => row.uri },
];

function Servers({ servers }: { servers: RestSyslogServer[] }) {
  return (
    <Receivers
      resource="syslog-servers"
      caption="Syslog servers"
      rows={servers}
      columns={SERVERS}
      empty="No syslog server is told."
      test="Test syslog"
      remove="Remove servers"
      actions={(chosen) => {
        const [server] = chosen.length === 1 ? chosen : [];
        return [
          {
            label: "New server",
            primary: true,
            task: (close) => <AddSyslogServer close={close} />,
          },
          {
            label: "Place",
            on: server !== undefined,
            task: (close) => server && <MoveSyslogServer server={server} close={close} />,
          },
        ];
      }}
    />
  );
}
