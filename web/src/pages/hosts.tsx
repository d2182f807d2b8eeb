/** The list of hosts, and the page of a host with its connections and paths. */
import { Link } from "wouter";

import { rest } from "../lib/api";
import * as cli from "../lib/cli";
import { count, rate } from "../lib/format";
import { useAll, useGet } from "../lib/query";
import { pathKey } from "../lib/rates";
import { usePaths } from "../lib/sampler";
import { useSelection } from "../lib/selection";
import { mayStore, useSession } from "../lib/session";
import type { Items, PathCounters, RestConnection, RestHost } from "../lib/types";
import { type Action, Actions } from "../parts/actions";
import { Pager, Search, useList } from "../parts/list";
import { Loaded } from "../parts/notice";
import { Card, Facts, Page } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { ConnectHost, DisconnectHost } from "../tasks/connections";
import { CreateHost, Delete, EditChap, EditInitiators, Rename } from "../tasks/hosts";
import { to } from "../routes";
import { ActivityOf } from "./activity";
import { ConnectionTable } from "./connection-table";
import { HostCheckCard, HostSessionsCard } from "./host-check";
import { PathTable } from "./path-table";

function actionsOf(hosts: RestHost[]): Action[] {
  const [host] = hosts;
  const names = hosts.map((one) => one.name);
  const one = hosts.length === 1;
  return [
    {
      label: "Connect volumes",
      on: one,
      task: (close) => host && <ConnectHost name={host.name} close={close} />,
    },
    {
      label: "Disconnect volumes",
      on: one && host !== undefined && host.connection_count > 0,
      task: (close) => host && <DisconnectHost name={host.name} close={close} />,
    },
    {
      label: "Initiators",
      on: one,
      task: (close) => host && <EditInitiators host={host} close={close} />,
    },
    { label: "CHAP", on: one, task: (close) => host && <EditChap host={host} close={close} /> },
    {
      label: "Rename",
      on: one,
      task: (close) =>
        host && <Rename resource="hosts" kind="Host" name={host.name} close={close} />,
    },
    {
      label: "Delete",
      on: hosts.length > 0,
      task: (close) => (
        <Delete
          resource="hosts"
          names={names}
          lines={names.map(cli.host.delete)}
          what="A host with connections can’t be deleted: disconnect its volumes first."
          close={close}
        />
      ),
    },
  ];
}

/** The current rate of a host, over all of its paths. */
function useNow(): (host: RestHost) => number {
  const { paths, pathRates } = usePaths();
  return (host) => {
    const own = paths.filter((path) => host.iqns.includes(path.initiator));
    const rates = own.map((path) => pathRates.get(pathKey(path))?.perSecond ?? 0);
    return rates.reduce((sum, one) => sum + one, 0);
  };
}

export function Hosts() {
  const list = useList<RestHost>("hosts");
  const selection = useSelection(list.rows.map((row) => row.name));
  const { role } = useSession();
  const now = useNow();
  const make: Action = {
    label: "New host",
    primary: true,
    task: (close) => <CreateHost close={close} />,
  };
  const columns: Column<RestHost>[] = [
    {
      head: "Name",
      sort: "name",
      cell: (row) => <Link href={to("hosts", row.name)}>{row.name}</Link>,
    },
    { head: "Initiators", cell: (row) => row.iqns.join(", ") || "None" },
    { head: "Host group", minor: true, cell: (row) => row.host_group.name ?? "–" },
    { head: "CHAP", minor: true, cell: (row) => row.chap.host_user ?? "–" },
    {
      head: "Volumes",
      sort: "connection_count",
      number: true,
      cell: (row) => count(row.connection_count),
    },
    {
      head: "IOPS now",
      number: true,
      cell: (row) => {
        const perSecond = now(row);
        return perSecond > 0 ? <span className="good">{rate(perSecond)}</span> : "Idle";
      },
    },
  ];
  const chosen = list.rows.filter((row) => selection.isChosen(row.name));
  return (
    <Page title="Hosts">
      {mayStore(role) && <Actions label="Hosts" actions={[make, ...actionsOf(chosen)]} />}
      <Search list={list} what="hosts" />
      <Loaded query={list.query} what="hosts">
        {() => (
          <Table
            caption="Hosts"
            rows={list.rows}
            columns={columns}
            name={(row) => row.name}
            empty={list.text === "" ? "No hosts yet." : "No matching names."}
            selection={selection}
            sort={list.sort}
            onSort={list.setSort}
          />
        )}
      </Loaded>
      <Pager list={list} />
    </Page>
  );
}

export function HostPage({ name }: { name: string }) {
  const host = useGet<Items<RestHost>>(rest("hosts", { names: name }));
  const connections = useAll<RestConnection>("connections", { host_names: name });
  const { role } = useSession();
  return (
    <Page title={name} aside={<Link href={to("hosts")}>All hosts</Link>}>
      <Loaded query={host} what="this host">
        {({ items: [found] }) =>
          found && (
            <>
              {mayStore(role) && <Actions label="Host" actions={actionsOf([found]).slice(2)} />}
              <Card title="Host">
                <HostFacts host={found} />
              </Card>
              <Card title="Connections">
                <Loaded query={connections} what="connections">
                  {(all) => (
                    <ConnectionTable connections={all} show="volume" side={{ name: found.name }} />
                  )}
                </Loaded>
              </Card>
              <ActivityOf of={{ host: found.name }} />
              <HostSessionsCard name={found.name} />
              <Card title="Paths">
                <PathTable
                  fits={(path: PathCounters) => found.iqns.includes(path.initiator)}
                  show="both"
                />
              </Card>
              <HostCheckCard name={found.name} />
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function HostFacts({ host }: { host: RestHost }) {
  const group = host.host_group.name;
  return (
    <Facts
      facts={[
        [
          "Initiators",
          host.iqns.map((iqn) => (
            <code key={iqn} className="block">
              {iqn}
            </code>
          )),
        ],
        ["CHAP user", host.chap.host_user ?? "None: it logs in by its iSCSI name"],
        ["Mutual CHAP user", host.chap.target_user ?? "None"],
        ["Host group", group ? <Link href={to("host-groups", group)}>{group}</Link> : "None"],
      ]}
    />
  );
}
