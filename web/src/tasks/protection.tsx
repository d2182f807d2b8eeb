/** What is done with protection groups: made, filled, scheduled. */
import { useState } from "react";

import { own, request, rest } from "../lib/api";
import * as cli from "../lib/cli";
import { duration, durationArgument, parseDuration, words } from "../lib/format";
import { retentionText } from "../lib/retention";
import type { RestGroup } from "../lib/types";
import { AreaField, CheckField, TextField } from "../parts/fields";
import { Task } from "../parts/task";

interface Closing {
  close: () => void;
}

const VOLUMES_HINT = "Their names, parted by blanks, commas or lines.";

export function CreateGroup({ volumes, close }: Closing & { volumes: string[] }) {
  const [name, setName] = useState("");
  const [members, setMembers] = useState(volumes.join(" "));
  const chosen = words(members);
  const run = async () => {
    // By `/v1`, which makes the group with its volumes in one commit.
    await request("POST", own("groups"), { name: name.trim(), volumes: chosen });
    return `Protection group ${name.trim()} was made.`;
  };
  return (
    <Task
      title="New protection group"
      submit="Make group"
      cli={[cli.group.create(name, chosen)]}
      ready={name.trim() !== ""}
      run={run}
      close={close}
    >
      <TextField
        label="Name"
        hint="1 to 63 letters, digits and -."
        value={name}
        set={setName}
      />
      <AreaField label="Volumes" hint={VOLUMES_HINT} value={members} set={setMembers} />
    </Task>
  );
}

export function AddMembers({ group, close }: Closing & { group: string }) {
  const [members, setMembers] = useState("");
  const chosen = words(members);
  const run = async () => {
    const pair = { group_names: group, member_names: chosen };
    await request("POST", rest("protection-groups/volumes", pair));
    return `Added to ${group}: ${chosen.join(", ")}.`;
  };
  return (
    <Task
      title={`Add volumes to ${group}`}
      submit="Add"
      cli={[cli.group.add(group, chosen)]}
      ready={chosen.length > 0}
      run={run}
      close={close}
    >
      <TextField label="Volumes" hint={VOLUMES_HINT} value={members} set={setMembers} />
    </Task>
  );
}

/** Adds hosts to a host group. */
export function AddHosts({ group, close }: Closing & { group: string }) {
  const [members, setMembers] = useState("");
  const chosen = words(members);
  const run = async () => {
    const pair = { group_names: group, member_names: chosen };
    await request("POST", rest("host-groups/hosts", pair));
    return `Added to ${group}: ${chosen.join(", ")}.`;
  };
  return (
    <Task
      title={`Add hosts to ${group}`}
      submit="Add"
      cli={[]}
      ready={chosen.length > 0}
      run={run}
      close={close}
    >
      <TextField label="Hosts" hint="Their names." value={members} set={setMembers} />
    </Task>
  );
}

/** Takes members out of a group. */
export function RemoveMembers(
  props: Closing & { resource: string; group: string; names: string[]; lines: string[] },
) {
  const { resource, group, names, lines, close } = props;
  const run = async () => {
    await request("DELETE", rest(resource, { group_names: group, member_names: names }));
    return `Taken out of ${group}: ${names.join(", ")}.`;
  };
  return (
    <Task
      title={`Take ${names.length === 1 ? names[0] : `${names.length} members`} out of ${group}`}
      submit="Take out"
      danger
      cli={lines}
      run={run}
      close={close}
    >
      <p>{names.join(", ")}: only its place in the group ends.</p>
    </Task>
  );
}

const seconds = (ms: number | null | undefined, otherwise: number) =>
  durationArgument(ms ? Math.round(ms / 1000) : otherwise);

/** When snapshots are made of a group, and how long they are kept. */
export function EditSchedule({ group, close }: Closing & { group: RestGroup }) {
  const { snapshot_schedule: schedule, source_retention: kept } = group;
  const [enabled, setEnabled] = useState(schedule.enabled);
  const [every, setEvery] = useState(seconds(schedule.frequency, 3600));
  const [allFor, setAllFor] = useState(durationArgument(kept?.all_for_sec ?? 86_400));
  const [perDay, setPerDay] = useState(String(kept?.per_day ?? 4));
  const [days, setDays] = useState(String(kept?.days ?? 7));
  const [frequencyS, allForS] = [parseDuration(every), parseDuration(allFor)];
  const isNumber = (text: string) => /^\d{1,5}$/.test(text.trim());
  const areNumbers = [perDay, days].every(isNumber);
  const isReady = frequencyS !== undefined && allForS !== undefined && areNumbers;
  const numbers = { perDay: Number(perDay), days: Number(days) };
  const run = async () => {
    await request("PATCH", rest("protection-groups", { names: group.name }), {
      snapshot_schedule: { enabled, frequency: (frequencyS ?? 0) * 1000 },
      source_retention: { all_for_sec: allForS, per_day: numbers.perDay, days: numbers.days },
    });
    return enabled
      ? `${group.name} is snapshotted every ${duration(frequencyS ?? 0)}.`
      : `${group.name} is not snapshotted by itself any more.`;
  };
  return (
    <Task
      title={`Schedule of ${group.name}`}
      submit="Change"
      cli={[cli.group.schedule(group.name, { enabled, every, allFor, perDay, days })]}
      ready={isReady}
      run={run}
      close={close}
    >
      <CheckField label="Make snapshots by itself" value={enabled} set={setEnabled} />
      <TextField label="Every" hint="Such as 30m, 6h or 1d." value={every} set={setEvery} />
      <TextField label="Keep all for" hint="Such as 1d." value={allFor} set={setAllFor} />
      <TextField
        label="Then keep so many of a day"
        value={perDay}
        set={setPerDay}
        numeric
      />
      <TextField label="For so many more days" value={days} set={setDays} numeric />
      <p aria-live="polite">
        {isReady && frequencyS > 0
          ? `${retentionText({ allForS, ...numbers, everyS: enabled ? frequencyS : null })}.`
          : "What is kept is said here when all is filled in."}
      </p>
    </Task>
  );
}
