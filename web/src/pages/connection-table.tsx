/** Connections of a volume, of a host or of a host group. */
import { Link } from "wouter";

import { useSelection } from "../lib/selection";
import { mayStore, useSession } from "../lib/session";
import type { RestConnection } from "../lib/types";
import { type Action, Actions } from "../parts/actions";
import { type Column, Table } from "../parts/table";
import { ConnectHost, Disconnect } from "../tasks/connections";
import { to } from "../routes";

const key = (one: RestConnection) =>
  [one.volume.name, one.host_group.name ?? one.host.name ?? ""].join(" to ");

const volume: Column<RestConnection> = {
  head: "Volume",
  cell: (one) => <Link href={to("volumes", one.volume.name)}>{one.volume.name}</Link>,
};

const host: Column<RestConnection> = {
  head: "Host",
  cell: ({ host: { name } }) =>
    name ? <Link href={to("hosts", name)}>{name}</Link> : "All hosts of the group",
};

const rest: Column<RestConnection>[] = [
  { head: "LUN", number: true, cell: (one) => one.lun },
  { head: "Host group", cell: (one) => one.host_group.name ?? "–" },
];

/** Connections of a group are listed once for each of its hosts: here once is enough. */
function distinct(connections: RestConnection[]): RestConnection[] {
  return [...new Map(connections.map((one) => [key(one), one])).values()];
}

export function ConnectionTable(props: {
  connections: RestConnection[];
  /** The side of the connection in the first column. */
  show: "volume" | "host";
  /** The host or host group that volumes can be connected to here. */
  side?: { name: string; isGroup?: boolean };
}) {
  const { connections, show, side } = props;
  const rows = distinct(connections);
  const selection = useSelection(rows.map(key));
  const chosen = rows.filter((one) => selection.isChosen(key(one)));
  const { role } = useSession();
  const connect: Action[] = side
    ? [{ label: "Connect volumes", task: (close) => <ConnectHost {...side} close={close} /> }]
    : [];
  const disconnect: Action = {
    label: "Disconnect",
    on: chosen.length > 0,
    task: (close) => <Disconnect connections={chosen} close={close} />,
  };
  return (
    <>
      {mayStore(role) && <Actions label="Connections" actions={[...connect, disconnect]} />}
      <Table
        caption="Connections"
        areAll
        rows={rows}
        columns={[show === "volume" ? volume : host, ...rest]}
        name={key}
        empty={show === "volume" ? "No connected volumes." : "Not connected to any host."}
        selection={selection}
      />
    </>
  );
}
