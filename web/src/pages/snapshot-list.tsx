/** Snapshots of one volume or of all volumes, and actions on them. */
import { useState } from "react";
import { Link } from "wouter";

import * as cli from "../lib/cli";
import { duration, time } from "../lib/format";
import { useSelection } from "../lib/selection";
import { mayStore, useSession } from "../lib/session";
import { bytes } from "../lib/size";
import type { RestSnapshot } from "../lib/types";
import { type Action, Actions } from "../parts/actions";
import { Pager, Search, useList } from "../parts/list";
import { Loaded } from "../parts/notice";
import { type Column, Table } from "../parts/table";
import { Tabs } from "../parts/tabs";
import { Destroy, Eradicate, Recover, recoverSome } from "../tasks/endings";
import { CreateSnapshot, RenameSnapshot } from "../tasks/snapshots";
import { CloneVolume, RestoreVolume } from "../tasks/volumes";
import { to } from "../routes";

const KIND = { resource: "volume-snapshots", kind: "snapshot" };

const name: Column<RestSnapshot> = { head: "Name", sort: "name", cell: (row) => row.name };

/** The volume of a snapshot, in a list for several volumes. */
const volumeOf: Column<RestSnapshot> = {
  head: "Volume",
  cell: ({ source }) => <Link href={to("volumes", source.name)}>{source.name}</Link>,
};

const made: Column<RestSnapshot> = {
  head: "Created",
  sort: "created",
  cell: (row) => time(row.created),
};

const COLUMNS: Column<RestSnapshot>[] = [
  made,
  {
    head: "Size",
    sort: "provisioned",
    number: true,
    minor: true,
    cell: (row) => bytes(row.provisioned),
  },
  {
    head: "Written",
    sort: "space.virtual",
    number: true,
    minor: true,
    cell: (row) => bytes(row.space.virtual),
  },
  {
    head: "Unique",
    sort: "space.unique",
    number: true,
    cell: (row) => bytes(row.space.unique),
  },
];

const DESTROYED: Column<RestSnapshot>[] = [
  made,
  {
    head: "Time remaining",
    cell: (row) => duration((row.time_remaining ?? 0) / 1000),
  },
];

const TABS = [
  ["live", "Snapshots"],
  ["destroyed", "Destroyed"],
] as const;

/** The snapshots of a volume; of all volumes if none is given. */
export function SnapshotList({ volume }: { volume?: string }) {
  const [tab, setTab] = useState<"live" | "destroyed">("live");
  return (
    <>
      <Tabs label="Which snapshots" tabs={TABS} chosen={tab} choose={setTab} />
      <Part key={tab} volume={volume} areDestroyed={tab === "destroyed"} />
    </>
  );
}

function Part({ volume, areDestroyed }: { volume: string | undefined; areDestroyed: boolean }) {
  const fixed = { source_names: volume, destroyed: areDestroyed };
  const list = useList<RestSnapshot>("volume-snapshots", fixed);
  const selection = useSelection(list.rows.map((row) => row.name));
  const chosen = list.rows.filter((row) => selection.isChosen(row.name));
  const { role } = useSession();
  const actions = areDestroyed ? destroyed(selection.chosen) : existing(volume, chosen);
  const first = volume === undefined ? [name, volumeOf] : [name];
  const nothing = volume === undefined ? "No snapshots yet." : "No snapshots of this volume.";
  const none = areDestroyed ? "No destroyed snapshots." : nothing;
  return (
    <>
      {mayStore(role) && <Actions label="Snapshots" actions={actions} />}
      <Search list={list} what="snapshots" />
      <Loaded query={list.query} what="snapshots">
        {() => (
          <Table
            caption={volume === undefined ? "Snapshots" : `Snapshots of ${volume}`}
            rows={list.rows}
            columns={[...first, ...(areDestroyed ? DESTROYED : COLUMNS)]}
            name={(row) => row.name}
            empty={list.text === "" ? none : "No matching names."}
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

function existing(volume: string | undefined, chosen: RestSnapshot[]): Action[] {
  const names = chosen.map((one) => one.name);
  const [snapshot] = chosen;
  const recover: Action[] =
    volume === undefined
      ? [recoverSome("volume-snapshots", "snapshots", (some) => [cli.snapshot.recover(some)])]
      : [];
  const one = chosen.length === 1;
  // Not in the list of all snapshots: the volumes of a new one are chosen in the list of volumes.
  const make: Action[] =
    volume === undefined
      ? []
      : [
          {
            label: "New snapshot",
            primary: true,
            task: (close) => <CreateSnapshot volumes={[volume]} close={close} />,
          },
        ];
  return [
    ...make,
    {
      label: "Clone to volume",
      on: one,
      task: (close) => snapshot && <CloneVolume source={snapshot.name} close={close} />,
    },
    {
      label: "Restore",
      on: one,
      task: (close) => snapshot && <RestoreVolume snapshot={snapshot} close={close} />,
    },
    {
      label: "Rename snapshot",
      on: one,
      task: (close) => snapshot && <RenameSnapshot snapshot={snapshot} close={close} />,
    },
    {
      label: "Destroy snapshot",
      on: chosen.length > 0,
      task: (close) => (
        <Destroy {...KIND} names={names} cli={[cli.snapshot.destroy(names)]} close={close} />
      ),
    },
    ...recover,
  ];
}

function destroyed(names: string[]): Action[] {
  const on = names.length > 0;
  return [
    {
      label: "Recover snapshot",
      on,
      task: (close) => (
        <Recover {...KIND} names={names} cli={[cli.snapshot.recover(names)]} close={close} />
      ),
    },
    {
      label: "Eradicate snapshot",
      on,
      task: (close) => (
        <Eradicate {...KIND} names={names} cli={[cli.snapshot.eradicate(names)]} close={close} />
      ),
    },
  ];
}
