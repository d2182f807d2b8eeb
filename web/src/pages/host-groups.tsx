/** Host groups: hosts that see the same volumes, as the hosts of a cluster must. */
import { Link } from "wouter";

import { rest } from "../lib/api";
import { count } from "../lib/format";
import { useAll, useGet } from "../lib/query";
import { useSelection } from "../lib/selection";
import { mayStore, useSession } from "../lib/session";
import type { Items, RestConnection, RestHostGroup, RestMember } from "../lib/types";
import { type Action, Actions } from "../parts/actions";
import { Pager, Search, useList } from "../parts/list";
import { Loaded } from "../parts/notice";
import { Card, Page } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { CreateHostGroup, Delete, Rename } from "../tasks/hosts";
import { AddHosts, RemoveMembers } from "../tasks/protection";
import { to } from "../routes";
import { ActivityOf } from "./activity";
import { ConnectionTable } from "./connection-table";

const RESOURCE = "host-groups";

const COLUMNS: Column<RestHostGroup>[] = [
  {
    head: "Name",
    sort: "name",
    cell: (row) => <Link href={to("host-groups", row.name)}>{row.name}</Link>,
  },
  { head: "Hosts", number: true, cell: (row) => count(row.host_count) },
  { head: "Volumes", number: true, cell: (row) => count(row.connection_count) },
];

function actionsOf(names: string[]): Action[] {
  const [name = ""] = names;
  const one = names.length === 1;
  return [
    { label: "Add hosts", on: one, task: (close) => <AddHosts group={name} close={close} /> },
    {
      label: "Rename",
      on: one,
      task: (close) => <Rename resource={RESOURCE} kind="Host group" name={name} close={close} />,
    },
    {
      label: "Delete",
      on: names.length > 0,
      task: (close) => (
        <Delete
          resource={RESOURCE}
          names={names}
          lines={[]}
          what="A group with hosts or connections can’t be deleted: remove them first."
          close={close}
        />
      ),
    },
  ];
}

export function HostGroups() {
  const list = useList<RestHostGroup>(RESOURCE);
  const selection = useSelection(list.rows.map((row) => row.name));
  const { role } = useSession();
  const make: Action = {
    label: "New host group",
    primary: true,
    task: (close) => <CreateHostGroup close={close} />,
  };
  return (
    <Page title="Host groups">
      <p className="muted">
        Hosts that share the same volumes and LUNs, such as the hosts of a cluster.
      </p>
      <Loaded query={list.query} what="host groups">
        {() => (
          <>
            {mayStore(role) && (
              <Actions label="Host groups" actions={[make, ...actionsOf(selection.chosen)]} />
            )}
            <Search list={list} what="host groups" />
            <Table
              caption="Host groups"
              rows={list.rows}
              columns={COLUMNS}
              name={(row) => row.name}
              empty={list.text === "" ? "No host groups yet." : "No matching names."}
              selection={selection}
              sort={list.sort}
              onSort={list.setSort}
            />
            <Pager list={list} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

export function HostGroupPage({ name }: { name: string }) {
  const group = useGet<Items<RestHostGroup>>(rest(RESOURCE, { names: name }));
  const connections = useAll<RestConnection>("connections", { host_group_names: name });
  return (
    <Page title={name} aside={<Link href={to("host-groups")}>All host groups</Link>}>
      <Loaded query={group} what="host groups">
        {() => (
          <>
            <Card title="Hosts">
              <Members group={name} />
            </Card>
            <Card title="Connections">
              <Loaded query={connections} what="connections">
                {(all) => (
                  <ConnectionTable
                    connections={all.map((one) => ({ ...one, host: {} }))}
                    show="volume"
                    side={{ name, isGroup: true }}
                  />
                )}
              </Loaded>
            </Card>
            <ActivityOf of={{ host_group: name }} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Members({ group }: { group: string }) {
  const members = useAll<RestMember>("host-groups/hosts", { group_names: group });
  const names = (members.data ?? []).map((one) => one.member.name);
  const selection = useSelection(names);
  const { role } = useSession();
  const actions: Action[] = [
    { label: "Add hosts", task: (close) => <AddHosts group={group} close={close} /> },
    {
      label: "Remove hosts",
      on: selection.chosen.length > 0,
      task: (close) => (
        <RemoveMembers
          resource="host-groups/hosts"
          group={group}
          names={selection.chosen}
          lines={[]}
          close={close}
        />
      ),
    },
  ];
  return (
    <Loaded query={members} what="the hosts of groups">
      {() => (
        <>
          {mayStore(role) && <Actions label="Hosts of the group" actions={actions} />}
          <Table
            caption="Hosts of the group"
            areAll
            rows={names}
            columns={[
              { head: "Host", cell: (one) => <Link href={to("hosts", one)}>{one}</Link> },
            ]}
            name={(one) => one}
            empty="No hosts in this group."
            selection={selection}
          />
        </>
      )}
    </Loaded>
  );
}
