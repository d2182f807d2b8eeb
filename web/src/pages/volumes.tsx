/** All volumes: found, ordered, page by page; and those that are destroyed. */
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

const COLUMNS: Column<RestVolume>[] = [
  name,
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
  { head: "Made", sort: "created", minor: true, cell: (row) => time(row.created) },
];

const DESTROYED: Column<RestVolume>[] = [
  name,
  size,
  {
    head: "Can be recovered for",
    cell: (row) => duration((row.time_remaining ?? 0) / 1000),
  },
];

const TABS = [
  ["live", "Volumes"],
  ["destroyed", "Destroyed"],
] as const;

export function Volumes() {
  const [tab, setTab] = useState<"live" | "destroyed">("live");
  return (
    <Page title="Volumes">
      <Tabs label="Which volumes" tabs={TABS} chosen={tab} choose={setTab} />
      <VolumeList key={tab} areDestroyed={tab === "destroyed"} />
    </Page>
  );
}

function VolumeList({ areDestroyed }: { areDestroyed: boolean }) {
  const list = useList<RestVolume>("volumes", { destroyed: areDestroyed });
  const selection = useSelection(list.rows.map((row) => row.name));
  const chosen = list.rows.filter((row) => selection.isChosen(row.name));
  const nothing = areDestroyed ? "Nothing is destroyed." : "There is no volume yet.";
  return (
    <>
      <VolumeActions volumes={chosen} areDestroyed={areDestroyed} withNew={!areDestroyed} />
      <Search list={list} what="volumes" />
      <Loaded query={list.query} what="volumes">
        {() => (
          <Table
            caption={areDestroyed ? "Destroyed volumes" : "Volumes"}
            rows={list.rows}
            columns={areDestroyed ? DESTROYED : COLUMNS}
            name={(row) => row.name}
            empty={list.text === "" ? nothing : "No name fits."}
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
