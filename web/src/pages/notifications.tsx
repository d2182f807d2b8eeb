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
      <Loaded query={relays} what="the mail relay">
        {(found) => <>{found[0] && <RelayCard relay={found[0]} />}</>}
      </Loaded>
      <Card title="Mail recipients">
        <Loaded query={watchers} what="mail recipients">
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
      title="Mail relay"
      aside={
        mayAdminister(role) && (
          <Actions
            label="Mail relay"
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
          ["Sender domain", relay.sender_domain || "None"],
          ["Sender", relay.sender_username || "The array’s name"],
          ["Encryption", relay.encryption_mode || "None"],
          ["User", relay.user_name || "None"],
          ["Subject prefix", relay.subject_prefix || "None"],
          ["Body prefix", relay.body_prefix || "None"],
        ]}
      />
    </Card>
  );
}

const WATCHERS: Column<RestWatcher>[] = [
  { head: "Address", cell: (row) => row.name },
  { head: "Status", cell: (row) => (row.enabled ? "Enabled" : "Disabled") },
];

function Watchers({ watchers }: { watchers: RestWatcher[] }) {
  return (
    <Receivers
      resource="alert-watchers"
      caption="Mail recipients"
      rows={watchers}
      columns={WATCHERS}
      empty="No mail recipients."
      test="Test mail"
      remove="Remove recipients"
      actions={(chosen, names) => {
        const enabled = chosen.every((one) => one.enabled);
        const on = chosen.length > 0;
        return [
          { label: "Add recipients", primary: true, task: (close) => <AddWatcher close={close} /> },
          {
            label: on && enabled ? "Disable" : "Enable",
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
  { head: "URI", cell: (row) => row.uri },
];

function Servers({ servers }: { servers: RestSyslogServer[] }) {
  return (
    <Receivers
      resource="syslog-servers"
      caption="Syslog servers"
      rows={servers}
      columns={SERVERS}
      empty="No syslog servers."
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
            label: "Change URI",
            on: server !== undefined,
            task: (close) => server && <MoveSyslogServer server={server} close={close} />,
          },
        ];
      }}
    />
  );
}
