/** Lists of volumes, and of destroyed ones: searched, sorted, page by page. */
import { useState } from "react";
import { Link } from "wouter";

import { count, duration, ratio, time } from "../lib/format";
import { useSelection } from "../lib/selection";
import { bytes } from "../lib/size";
import type { RestVolume } from "../lib/types";
import { Pager, Search, useList } from "../parts/list";
import { Loaded } from "../parts/notice";
import { Page } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { Tabs } from "../parts/tabs";
import { to } from "../routes";
import { VolumeActions } from "./volume-actions";

const name: Column<RestVolume> = {
  head: "Name",
  sort: "name",
  cell: (row) => <Link href={to("volumes", row.name)}>{row.name}</Link>,
};

const size: Column<RestVolume> = {
  head: "Size",
  sort: "provisioned",
  number: true,
  cell: (row) => bytes(row.provisioned),
};

const pod: Column<RestVolume> = {
  head: "Pod",
  sort: "pod.name",
  minor: true,
  cell: ({ pod: { name: of } }) =>
    of === undefined ? "–" : <Link href={to("pods", of)}>{of}</Link>,
};

const COLUMNS: Column<RestVolume>[] = [
  size,
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
  {
    head: "Hosts",
    sort: "connection_count",
    number: true,
    cell: (row) => count(row.connection_count),
  },
  { head: "Created", sort: "created", minor: true, cell: (row) => time(row.created) },
];

const DESTROYED: Column<RestVolume>[] = [
  size,
  {
    head: "Time remaining",
    cell: (row) => duration((row.time_remaining ?? 0) / 1000),
  },
];

const TABS = [
  ["live", "Volumes"],
  ["destroyed", "Destroyed"],
] as const;

export function Volumes() {
  return (
    <Page title="Volumes">
      <VolumeLists />
    </Page>
  );
}

/** The volumes of a pod; all volumes if none is given. */
export function VolumeLists({ pod: of }: { pod?: string }) {
  const [tab, setTab] = useState<"live" | "destroyed">("live");
  return (
    <>
      <Tabs label="Which volumes" tabs={TABS} chosen={tab} choose={setTab} />
      <VolumeList key={tab} of={of} areDestroyed={tab === "destroyed"} />
    </>
  );
}

function VolumeList({ of, areDestroyed }: { of: string | undefined; areDestroyed: boolean }) {
  const filter = of === undefined ? undefined : `pod.name='${of}'`;
  const list = useList<RestVolume>("volumes", { destroyed: areDestroyed, filter });
  const selection = useSelection(list.rows.map((row) => row.name));
  const chosen = list.rows.filter((row) => selection.isChosen(row.name));
  const first = of === undefined ? [name, pod] : [name];
  const none = of === undefined ? "No volumes yet." : "No volumes in this pod.";
  const nothing = areDestroyed ? "No destroyed volumes." : none;
  return (
    <>
      <VolumeActions
        volumes={chosen}
        areDestroyed={areDestroyed}
        withNew={!areDestroyed}
        pod={of}
      />
      <Search list={list} what="volumes" />
      <Loaded query={list.query} what="volumes">
        {() => (
          <Table
            caption={areDestroyed ? "Destroyed volumes" : "Volumes"}
            rows={list.rows}
            columns={[...first, ...(areDestroyed ? DESTROYED : COLUMNS)]}
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
