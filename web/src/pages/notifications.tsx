/** Who is told of alerts, as the pool keeps it. */
import { useAll } from "../lib/query";
import { useSelection } from "../lib/selection";
import { mayAdminister, useSession } from "../lib/session";
import type { RestRelay, RestSyslogServer, RestWatcher } from "../lib/types";
import { Actions } from "../parts/actions";
import { Loaded } from "../parts/notice";
import { Card, Facts } from "../parts/page";
import { type Column, Table } from "../parts/table";
import {
  AddSyslogServer,
  AddWatcher,
  EditRelay,
  EnableWatchers,
  MoveSyslogServer,
  RemoveReceivers,
  TestReceivers,
} from "../tasks/notifications";

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
  const { role } = useSession();
  const may = mayAdminister(role);
  const selection = useSelection(watchers.map((one) => one.name));
  const chosen = watchers.filter((one) => selection.isChosen(one.name));
  const names = chosen.map((one) => one.name);
  const on = chosen.length > 0;
  const enabled = chosen.every((one) => one.enabled);
  return (
    <>
      {may && (
        <Actions
          label="Who gets mail"
          actions={[
            { label: "New address", primary: true, task: (close) => <AddWatcher close={close} /> },
            {
              label: on && enabled ? "Switch off" : "Switch on",
              on,
              task: (close) => <EnableWatchers names={names} enabled={!enabled} close={close} />,
            },
            {
              label: "Test mail",
              on,
              task: (close) => (
                <TestReceivers resource="alert-watchers" names={names} close={close} />
              ),
            },
            {
              label: "Remove addresses",
              on,
              task: (close) => (
                <RemoveReceivers resource="alert-watchers" names={names} close={close} />
              ),
            },
          ]}
        />
      )}
      <Table
        caption="Who gets mail"
        areAll
        rows={watchers}
        columns={WATCHERS}
        name={(row) => row.name}
        empty="Nobody gets mail."
        {...(may ? { selection } : {})}
      />
    </>
  );
}

const SERVERS: Column<RestSyslogServer>[] = [
  { head: "Name", cell: (row) => row.name },
  { head: "Place", cell: (row) => row.uri },
];

function Servers({ servers }: { servers: RestSyslogServer[] }) {
  const { role } = useSession();
  const may = mayAdminister(role);
  const selection = useSelection(servers.map((one) => one.name));
  const chosen = servers.filter((one) => selection.isChosen(one.name));
  const names = chosen.map((one) => one.name);
  const on = chosen.length > 0;
  const [server] = chosen.length === 1 ? chosen : [];
  return (
    <>
      {may && (
        <Actions
          label="Syslog servers"
          actions={[
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
            {
              label: "Test syslog",
              on,
              task: (close) => (
                <TestReceivers resource="syslog-servers" names={names} close={close} />
              ),
            },
            {
              label: "Remove servers",
              on,
              task: (close) => (
                <RemoveReceivers resource="syslog-servers" names={names} close={close} />
              ),
            },
          ]}
        />
      )}
      <Table
        caption="Syslog servers"
        areAll
        rows={servers}
        columns={SERVERS}
        name={(row) => row.name}
        empty="No syslog server is told."
        {...(may ? { selection } : {})}
      />
    </>
  );
}
