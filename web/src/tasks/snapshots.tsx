/** Creating and renaming snapshots. */
import { useState } from "react";

import { request, rest } from "../lib/api";
import * as cli from "../lib/cli";
import { plural } from "../lib/format";
import type { Items, RestSnapshot } from "../lib/types";
import { TextField } from "../parts/fields";
import { Task } from "../parts/task";

const SUFFIX_HINT = "Letters, digits and -, but not only digits. Empty: the next number.";

/** Creates snapshots of volumes, all at the same point in time. */
export function CreateSnapshot({ volumes, close }: { volumes: string[]; close: () => void }) {
  const [suffix, setSuffix] = useState("");
  const run = async () => {
    const body = suffix.trim() === "" ? {} : { suffix: suffix.trim() };
    const path = rest("volume-snapshots", { source_names: volumes });
    const made = await request<Items<RestSnapshot>>("POST", path, body);
    return `Created ${made.items.map((one) => one.name).join(", ")}.`;
  };
  const title =
    volumes.length === 1
      ? `Snapshot of ${volumes[0]}`
      : `Snapshots of ${plural(volumes.length, "volume")}, at the same moment`;
  return (
    <Task
      title={title}
      submit="Create snapshot"
      cli={[cli.snapshot.create(volumes, suffix)]}
      run={run}
      close={close}
    >
      <TextField label="Suffix" hint={SUFFIX_HINT} value={suffix} set={setSuffix} />
    </Task>
  );
}

/** Creates a snapshot of all volumes of a protection group. */
export function CreateGroupSnapshot({ group, close }: { group: string; close: () => void }) {
  const [suffix, setSuffix] = useState("");
  const run = async () => {
    const body = suffix.trim() === "" ? {} : { suffix: suffix.trim() };
    const path = rest("protection-group-snapshots", { source_names: group });
    const made = await request<Items<{ name: string }>>("POST", path, body);
    return `Created ${made.items.map((one) => one.name).join(", ")}.`;
  };
  return (
    <Task
      title={`Snapshot of ${group}`}
      submit="Create snapshot"
      cli={[cli.snapshot.ofGroup(group, suffix)]}
      run={run}
      close={close}
    >
      <TextField label="Suffix" hint={SUFFIX_HINT} value={suffix} set={setSuffix} />
    </Task>
  );
}

export function RenameSnapshot(props: { snapshot: RestSnapshot; close: () => void }) {
  const { snapshot, close } = props;
  const [suffix, setSuffix] = useState(snapshot.suffix);
  const run = async () => {
    const path = rest("volume-snapshots", { names: snapshot.name });
    await request("PATCH", path, { name: suffix.trim() });
    return `Snapshot ${snapshot.name} now has the suffix ${suffix.trim()}.`;
  };
  return (
    <Task
      title={`Rename ${snapshot.name}`}
      submit="Rename"
      cli={[cli.snapshot.rename(snapshot.name, suffix)]}
      ready={suffix.trim() !== "" && suffix.trim() !== snapshot.suffix}
      run={run}
      close={close}
    >
      <TextField label="New suffix" hint={SUFFIX_HINT} value={suffix} set={setSuffix} />
    </Task>
  );
}
