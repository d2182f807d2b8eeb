/** Pods: name spaces of volumes, which are renamed and destroyed together. */
import { useState } from "react";
import { Link } from "wouter";

import { rest } from "../lib/api";
import * as cli from "../lib/cli";
import { count, duration, plural, ratio } from "../lib/format";
import { useGet } from "../lib/query";
import { useSelection } from "../lib/selection";
import { mayStore, useSession } from "../lib/session";
import { bytes } from "../lib/size";
import type { Items, RestPod } from "../lib/types";
import { type Action, Actions } from "../parts/actions";
import { Pager, Search, useList } from "../parts/list";
import { Loaded, Notice } from "../parts/notice";
import { Card, Facts, Page } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { Tabs } from "../parts/tabs";
import { Destroy, Eradicate, Recover, recoverSome } from "../tasks/endings";
import { AddVolumes, CreatePod, RenamePod } from "../tasks/pods";
import { to } from "../routes";
import { VolumeLists } from "./volumes";

const name: Column<RestPod> = {
  head: "Name",
  sort: "name",
  cell: (row) => <Link href={to("pods", row.name)}>{row.name}</Link>,
};

const COLUMNS: Column<RestPod>[] = [
  name,
  {
    head: "Volumes",
    sort: "volume_count",
    number: true,
    cell: (row) => count(row.volume_count),
  },
  {
    head: "Size",
    sort: "space.total_provisioned",
    number: true,
    cell: (row) => bytes(row.space.total_provisioned),
  },
  {
    head: "Written",
    sort: "space.virtual",
    number: true,
    cell: (row) => bytes(row.space.virtual),
  },
  {
    head: "Unique",
    sort: "space.unique",
    number: true,
    minor: true,
    cell: (row) => bytes(row.space.unique),
  },
  {
    head: "Reduction",
    number: true,
    minor: true,
    cell: (row) => ratio(row.space.data_reduction),
  },
];

const DESTROYED: Column<RestPod>[] = [
  name,
  {
    head: "Time remaining",
    cell: (row) => duration((row.time_remaining ?? 0) / 1000),
  },
];

const TABS = [
  ["live", "Pods"],
  ["destroyed", "Destroyed"],
] as const;

const KIND = { resource: "pods", kind: "pod" };

function existing(pods: RestPod[]): Action[] {
  const names = pods.map((one) => one.name);
  const [pod] = pods;
  const volumes = pods.reduce((sum, one) => sum + one.volume_count, 0);
  // Without volumes, the request does not permit any: one added meanwhile is not destroyed.
  const along = volumes === 0 ? {} : { along: `with ${plural(volumes, "volume")}` };
  const lines = pods.map((one) => cli.pod.destroy(one.name, one.volume_count > 0));
  return [
    {
      label: "Add volumes",
      on: pods.length === 1,
      task: (close) => pod && <AddVolumes pod={pod.name} close={close} />,
    },
    {
      label: "Rename",
      on: pods.length === 1,
      task: (close) => pod && <RenamePod name={pod.name} close={close} />,
    },
    {
      label: "Destroy",
      on: pods.length > 0,
      task: (close) => (
        <Destroy
          {...KIND}
          {...along}
          names={names}
          query={{ destroy_contents: volumes > 0 }}
          cli={lines}
          close={close}
        />
      ),
    },
  ];
}

function destroyed(names: string[]): Action[] {
  const on = names.length > 0;
  const given = { ...KIND, names };
  const [recover, eradicate] = [names.map(cli.pod.recover), names.map(cli.pod.eradicate)];
  return [
    { label: "Recover", on, task: (close) => <Recover {...given} cli={recover} close={close} /> },
    {
      label: "Eradicate",
      on,
      task: (close) => (
        <Eradicate
          {...given}
          along="with all volumes and snapshots"
          query={{ eradicate_contents: true }}
          cli={eradicate}
          close={close}
        />
      ),
    },
  ];
}

export function Pods() {
  const [tab, setTab] = useState<"live" | "destroyed">("live");
  return (
    <Page title="Pods">
      <p className="muted">
        Namespaces of volumes (POD::VOLUME) that are renamed and destroyed together.
      </p>
      <Tabs label="Which pods" tabs={TABS} chosen={tab} choose={setTab} />
      <PodList key={tab} areDestroyed={tab === "destroyed"} />
    </Page>
  );
}

function PodList({ areDestroyed }: { areDestroyed: boolean }) {
  const list = useList<RestPod>("pods", { destroyed: areDestroyed });
  const selection = useSelection(list.rows.map((row) => row.name));
  const { role } = useSession();
  const make: Action = {
    label: "New pod",
    primary: true,
    task: (close) => <CreatePod close={close} />,
  };
  const recover = recoverSome("pods", "pods", (names) => names.map(cli.pod.recover));
  const chosen = list.rows.filter((row) => selection.isChosen(row.name));
  const actions = areDestroyed ? destroyed(selection.chosen) : [make, ...existing(chosen), recover];
  const nothing = areDestroyed ? "No destroyed pods." : "No pods yet.";
  return (
    <>
      {mayStore(role) && <Actions label="Pods" actions={actions} />}
      <Search list={list} what="pods" />
      <Loaded query={list.query} what="pods">
        {() => (
          <Table
            caption={areDestroyed ? "Destroyed pods" : "Pods"}
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

export function PodPage({ name: of }: { name: string }) {
  const pod = useGet<Items<RestPod>>(rest("pods", { names: of }));
  const { role } = useSession();
  return (
    <Page title={of} aside={<Link href={to("pods")}>All pods</Link>}>
      <Loaded query={pod} what="this pod">
        {({ items: [found] }) =>
          found && (
            <>
              {mayStore(role) && (
                <Actions
                  label="Pod"
                  actions={found.destroyed ? destroyed([found.name]) : existing([found])}
                />
              )}
              {found.destroyed && (
                <Notice kind="warning">
                  This pod is destroyed. It can be recovered for another
                  {` ${duration((found.time_remaining ?? 0) / 1000)}`}.
                </Notice>
              )}
              <SpaceCard pod={found} />
              <Card title="Volumes">
                <VolumeLists pod={found.name} />
              </Card>
            </>
          )
        }
      </Loaded>
    </Page>
  );
}

function SpaceCard({ pod: { volume_count: volumes, space } }: { pod: RestPod }) {
  return (
    <Card title="Space">
      <Facts
        facts={[
          ["Volumes", count(volumes)],
          ["Size of all volumes", bytes(space.total_provisioned)],
          ["Written by hosts", bytes(space.virtual)],
          ["Unique to its volumes", bytes(space.unique)],
          ["Snapshots", bytes(space.snapshots)],
          ["Data reduction", ratio(space.data_reduction)],
        ]}
      />
    </Card>
  );
}
