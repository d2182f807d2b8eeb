/** Protection groups: volumes that are snapshotted together, by hand or by a schedule. */
import { useState } from "react";
import { Link } from "wouter";

import { rest } from "../lib/api";
import * as cli from "../lib/cli";
import { count, duration } from "../lib/format";
import { useAll, useGet } from "../lib/query";
import { policyOf, retentionText } from "../lib/retention";
import { scheduleText } from "../lib/schedule";
import { useSelection } from "../lib/selection";
import { mayStore, useSession } from "../lib/session";
import type { Items, RestGroup, RestMember } from "../lib/types";
import { type Action, Actions } from "../parts/actions";
import { Pager, Search, useList } from "../parts/list";
import { Loaded } from "../parts/notice";
import { Card, Facts, Page } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { Tabs } from "../parts/tabs";
import { Destroy, Eradicate, Recover, recoverSome } from "../tasks/endings";
import { AddMembers, CreateGroup, RemoveMembers } from "../tasks/protection";
import { EditSchedule } from "../tasks/schedule";
import { CreateGroupSnapshot } from "../tasks/snapshots";
import { to } from "../routes";
import { GroupSnapshots } from "./group-snapshots";

const madeText = (group: RestGroup) => scheduleText(group.snapshot_schedule);

const keptText = (group: RestGroup) => retentionText(policyOf(group));

const COLUMNS: Column<RestGroup>[] = [
  {
    head: "Name",
    sort: "name",
    cell: (row) => <Link href={to("protection", row.name)}>{row.name}</Link>,
  },
  { head: "Volumes", number: true, cell: (row) => count(row.volume_count) },
  { head: "Schedule", cell: madeText },
  { head: "Retention", minor: true, cell: keptText },
];

const KIND = { resource: "protection-groups", kind: "group" };

const DESTROYED: Column<RestGroup>[] = [
  { head: "Name", cell: (row) => row.name },
  { head: "Volumes", number: true, cell: (row) => count(row.volume_count) },
  {
    head: "Time remaining",
    cell: (row) => duration((row.time_remaining ?? 0) / 1000),
  },
];

const TABS = [
  ["live", "Groups"],
  ["destroyed", "Destroyed"],
] as const;

/** Destroys groups, which can be recovered for a time. */
function ending(groups: RestGroup[]): Action {
  const names = groups.map((one) => one.name);
  const lines = names.map(cli.group.destroy);
  return {
    label: "Destroy",
    on: groups.length > 0,
    task: (close) => <Destroy {...KIND} names={names} cli={lines} close={close} />,
  };
}

/** Actions on destroyed groups. */
function destroyed(names: string[]): Action[] {
  const on = names.length > 0;
  const given = { ...KIND, names };
  const [recover, eradicate] = [names.map(cli.group.recover), names.map(cli.group.eradicate)];
  return [
    { label: "Recover", on, task: (close) => <Recover {...given} cli={recover} close={close} /> },
    {
      label: "Eradicate",
      on,
      task: (close) => <Eradicate {...given} cli={eradicate} close={close} />,
    },
  ];
}

function actionsOf(groups: RestGroup[]): Action[] {
  const [group] = groups;
  const one = groups.length === 1;
  const schedules: Action = {
    label: "Schedule",
    on: one,
    task: (close) => group && <EditSchedule group={group} close={close} />,
  };
  // An array without schedules returns no frequency.
  const keepsSchedules = group?.snapshot_schedule.frequency !== undefined;
  return [
    {
      label: "Snapshot",
      on: one,
      task: (close) => group && <CreateGroupSnapshot group={group.name} close={close} />,
    },
    {
      label: "Add volumes",
      on: one,
      task: (close) => group && <AddMembers group={group.name} close={close} />,
    },
    ...(keepsSchedules ? [schedules] : []),
    ending(groups),
  ];
}

export function Protection() {
  const [tab, setTab] = useState<"live" | "destroyed">("live");
  return (
    <Page title="Protection">
      <p className="muted">Groups of volumes whose snapshots are taken at the same moment.</p>
      <Tabs label="Which groups" tabs={TABS} chosen={tab} choose={setTab} />
      <GroupList key={tab} areDestroyed={tab === "destroyed"} />
    </Page>
  );
}

function GroupList({ areDestroyed }: { areDestroyed: boolean }) {
  const list = useList<RestGroup>("protection-groups", { destroyed: areDestroyed });
  const selection = useSelection(list.rows.map((row) => row.name));
  const { role } = useSession();
  const make: Action = {
    label: "New group",
    primary: true,
    task: (close) => <CreateGroup volumes={[]} close={close} />,
  };
  const recover = recoverSome("protection-groups", "groups", (names) =>
    names.map(cli.group.recover),
  );
  const chosen = list.rows.filter((row) => selection.isChosen(row.name));
  const actions = areDestroyed
    ? destroyed(selection.chosen)
    : [make, ...actionsOf(chosen), recover];
  const nothing = areDestroyed ? "No destroyed protection groups." : "No protection groups yet.";
  return (
    <>
      {mayStore(role) && <Actions label="Protection groups" actions={actions} />}
      <Search list={list} what="protection groups" />
      <Loaded query={list.query} what="protection groups">
        {() => (
          <Table
            caption="Protection groups"
            rows={list.rows}
            columns={areDestroyed ? DESTROYED : COLUMNS}
            name={(row) => row.name}
            empty={list.text === "" ? nothing : "No matching names."}
            selection={selection}
            sort={list.sort}
            onSort={list.setSort}
          />
        )}
      </Loaded>
      <Pager list={list} />
    </>
  );
}

export function GroupPage({ name }: { name: string }) {
  const group = useGet<Items<RestGroup>>(rest("protection-groups", { names: name }));
  const { role } = useSession();
  return (
    <Page title={name} aside={<Link href={to("protection")}>All groups</Link>}>
      <Loaded query={group} what="this group">
        {({ items: [found] }) =>
          found && (
            <>
              {mayStore(role) && <Actions label="Group" actions={actionsOf([found])} />}
              <Card title="Schedule and retention">
                <Facts
                  facts={[
                    ["Schedule", madeText(found)],
                    ["Retention", keptText(found)],
                  ]}
                />
              </Card>
              <Card title="Volumes">
                <Members group={found.name} />
              </Card>
              <Card title="Snapshots">
                <GroupSnapshots group={found.name} />
              </Card>
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function Members({ group }: { group: string }) {
  const members = useAll<RestMember>("protection-groups/volumes", { group_names: group });
  const names = (members.data ?? []).map((one) => one.member.name);
  const selection = useSelection(names);
  const { role } = useSession();
  const remove: Action = {
    label: "Remove volumes",
    on: selection.chosen.length > 0,
    task: (close) => (
      <RemoveMembers
        resource="protection-groups/volumes"
        group={group}
        names={selection.chosen}
        lines={[cli.group.remove(group, selection.chosen)]}
        close={close}
      />
    ),
  };
  return (
    <Loaded query={members} what="members">
      {() => (
        <>
          {mayStore(role) && <Actions label="Volumes of the group" actions={[remove]} />}
          <Table
            caption="Volumes of the group"
            areAll
            rows={names}
            columns={[
              { head: "Volume", cell: (one) => <Link href={to("volumes", one)}>{one}</Link> },
            ]}
            name={(one) => one}
            empty="No volumes in this group."
            selection={selection}
          />
        </>
      )}
    </Loaded>
  );
}
