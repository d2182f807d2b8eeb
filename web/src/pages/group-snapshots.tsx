/** The snapshots of a protection group: of all of its volumes, as one. */
import { useState } from "react";

import { duration, time } from "../lib/format";
import { useSelection } from "../lib/selection";
import { mayStore, useSession } from "../lib/session";
import type { RestGroupSnapshot } from "../lib/types";
import { type Action, Actions } from "../parts/actions";
import { Pager, useList } from "../parts/list";
import { Loaded } from "../parts/notice";
import { type Column, Table } from "../parts/table";
import { Tabs } from "../parts/tabs";
import { Destroy, Eradicate, Recover } from "../tasks/endings";
import { CreateGroupSnapshot } from "../tasks/snapshots";

const KIND = { resource: "protection-group-snapshots", kind: "snapshot", cli: [] };

const TABS = [
  ["live", "Snapshots"],
  ["destroyed", "Destroyed"],
] as const;

export function GroupSnapshots({ group }: { group: string }) {
  const [tab, setTab] = useState<"live" | "destroyed">("live");
  return (
    <>
      <Tabs label="Which snapshots" tabs={TABS} chosen={tab} choose={setTab} />
      <Part key={tab} group={group} areDestroyed={tab === "destroyed"} />
    </>
  );
}

function Part({ group, areDestroyed }: { group: string; areDestroyed: boolean }) {
  const fixed = { source_names: group, destroyed: areDestroyed };
  const list = useList<RestGroupSnapshot>("protection-group-snapshots", fixed);
  const selection = useSelection(list.rows.map((row) => row.name));
  const { role } = useSession();
  const names = selection.chosen;
  const on = names.length > 0;
  const left: Column<RestGroupSnapshot> = {
    head: "Time remaining",
    cell: (row) => duration((row.time_remaining ?? 0) / 1000),
  };
  const live: Action[] = [
    {
      label: "New snapshot",
      primary: true,
      task: (close) => <CreateGroupSnapshot group={group} close={close} />,
    },
    {
      label: "Destroy snapshot",
      on,
      task: (close) => <Destroy {...KIND} names={names} close={close} />,
    },
  ];
  const gone: Action[] = [
    {
      label: "Recover snapshot",
      on,
      task: (close) => <Recover {...KIND} names={names} close={close} />,
    },
    {
      label: "Eradicate snapshot",
      on,
      task: (close) => <Eradicate {...KIND} names={names} close={close} />,
    },
  ];
  return (
    <>
      {mayStore(role) && <Actions label="Snapshots" actions={areDestroyed ? gone : live} />}
      <Loaded query={list.query} what="group snapshots">
        {() => (
          <Table
            caption={`Snapshots of ${group}`}
            rows={list.rows}
            columns={[
              { head: "Name", cell: (row) => row.name },
              { head: "Created", cell: (row) => time(row.created) },
              ...(areDestroyed ? [left] : []),
            ]}
            name={(row) => row.name}
            empty={areDestroyed ? "No destroyed snapshots." : "No snapshots yet."}
            selection={selection}
          />
        )}
      </Loaded>
      <Pager list={list} />
    </>
  );
}
