/** Settings of the whole array, and growing its pool. */
import { useState } from "react";

import { own, request } from "../lib/api";
import * as cli from "../lib/cli";
import { duration, parseDuration, words } from "../lib/format";
import { bytes, parseSize } from "../lib/size";
import type { ArraySettings, Offload, OffloadSettings, Pool } from "../lib/types";
import { CheckField, TextField } from "../parts/fields";
import { Task } from "../parts/task";

interface Closing {
  close: () => void;
}

/** The names of offloads in the standards, and in VMware or Windows. */
export const OFFLOAD_NAMES: Record<Offload, readonly [name: string, known: string]> = {
  compare_and_write: ["COMPARE AND WRITE", "ATS: locking of VMFS"],
  extended_copy: ["EXTENDED COPY", "Full Copy: clones and Storage vMotion"],
  write_same: ["WRITE SAME", "Block Zero: eager-zeroed disks"],
  unmap: ["UNMAP", "Reclaim: space that guests no longer use"],
  token_copy: ["POPULATE and WRITE USING TOKEN", "ODX: copies by Windows hosts"],
};

export const OFFLOAD_KEYS = Object.keys(OFFLOAD_NAMES) as Offload[];

/** The switches that have changed. */
function changed(before: OffloadSettings, after: OffloadSettings) {
  const keys = OFFLOAD_KEYS.filter((key) => before[key] !== after[key]);
  return Object.fromEntries(keys.map((key) => [key, after[key]]));
}

/** Switches of offloads and, for a volume, of reduction. */
export function EditOffloads(
  props: Closing & {
    /** The volume; all volumes if omitted. */
    name?: string;
    offloads: OffloadSettings;
    reduction?: { deduplication: boolean; compression: boolean };
  },
) {
  const { name, offloads, reduction, close } = props;
  const [next, setNext] = useState(offloads);
  const [deduplication, setDeduplication] = useState(reduction?.deduplication);
  const [compression, setCompression] = useState(reduction?.compression);
  const change = changed(offloads, next);
  const reduce = {
    deduplication: deduplication === reduction?.deduplication ? undefined : deduplication,
    compression: compression === reduction?.compression ? undefined : compression,
  };
  const isSame =
    Object.keys(change).length === 0 &&
    reduce.deduplication === undefined &&
    reduce.compression === undefined;
  const line =
    name === undefined ? cli.array.offloads(change) : cli.volume.set(name, change, reduce);
  const run = async () => {
    const path = name === undefined ? own("settings") : own(["volumes", name]);
    await request("PATCH", path, { offloads: change, ...reduce });
    return name === undefined
      ? "The offloads of the array were changed."
      : `The settings of ${name} were changed.`;
  };
  return (
    <Task
      title={name === undefined ? "Offloads of all volumes" : `Settings of ${name}`}
      submit="Change"
      cli={isSame ? [] : [line]}
      ready={!isSame}
      run={run}
      close={close}
    >
      {OFFLOAD_KEYS.map((key) => (
        <CheckField
          key={key}
          label={OFFLOAD_NAMES[key][0]}
          hint={OFFLOAD_NAMES[key][1]}
          value={next[key]}
          set={(on) => setNext({ ...next, [key]: on })}
        />
      ))}
      {deduplication !== undefined && (
        <CheckField label="Deduplication" value={deduplication} set={setDeduplication} />
      )}
      {compression !== undefined && (
        <CheckField label="Compression" value={compression} set={setCompression} />
      )}
    </Task>
  );
}

export function RenameArray({ settings, close }: Closing & { settings: ArraySettings }) {
  const [name, setName] = useState(settings.name);
  const run = async () => {
    await request("PATCH", own("settings"), { name: name.trim() });
    return `The array is now called ${name.trim()}.`;
  };
  return (
    <Task
      title="Name of the array"
      submit="Change"
      cli={[]}
      ready={name.trim() !== "" && name.trim() !== settings.name}
      run={run}
      close={close}
    >
      <TextField label="Name" value={name} set={setName} />
    </Task>
  );
}

export function EditDelay({ settings, close }: Closing & { settings: ArraySettings }) {
  const [text, setText] = useState("");
  const seconds = parseDuration(text);
  const run = async () => {
    await request("PATCH", own("settings"), { eradication_delay_s: seconds });
    return `Objects destroyed from now on can be recovered for ${duration(seconds ?? 0)}.`;
  };
  return (
    <Task
      title="Eradication delay"
      submit="Change"
      cli={[cli.array.delay(seconds)]}
      ready={seconds !== undefined && seconds > 0}
      run={run}
      close={close}
    >
      <TextField
        label="Destroyed objects can be recovered for"
        hint={`Such as 12h or 7d, at most 30d. Now: ${duration(settings.eradication_delay_s)}.
          Objects that are already destroyed keep their time.`}
        value={text}
        set={setText}
      />
    </Task>
  );
}

export function EditChapRequired({ settings, close }: Closing & { settings: ArraySettings }) {
  const [on, setOn] = useState(settings.chap_required);
  const run = async () => {
    await request("PATCH", own("settings"), { chap_required: on });
    return on ? "Hosts without CHAP are now rejected." : "Hosts without CHAP can log in.";
  };
  return (
    <Task
      title="CHAP"
      submit="Change"
      cli={[cli.array.chapRequired(on)]}
      ready={on !== settings.chap_required}
      run={run}
      close={close}
    >
      <CheckField
        label="Reject hosts without CHAP"
        hint="From their next login on. Existing sessions continue."
        value={on}
        set={setOn}
      />
    </Task>
  );
}

export function EditThresholds({ settings, close }: Closing & { settings: ArraySettings }) {
  const [text, setText] = useState(settings.space_thresholds.join(", "));
  const percents = words(text).map((word) => Number(word.replace(/%$/, "")));
  const isValid =
    percents.length <= 4 &&
    percents.every((one) => Number.isInteger(one) && one >= 1 && one <= 99);
  const run = async () => {
    await request("PATCH", own("settings"), { space_thresholds: percents });
    return percents.length > 0
      ? `Hosts are notified when ${percents.join(", ")}% of the pool is in use.`
      : "Hosts are not notified of space use.";
  };
  return (
    <Task
      title="Space thresholds"
      submit="Change"
      cli={isValid ? [cli.array.thresholds(percents)] : []}
      ready={isValid}
      run={run}
      close={close}
    >
      <TextField
        label="Percent of the pool in use"
        hint="Hosts are notified when one of these is reached. Up to four, 1 to 99. Empty: never."
        value={text}
        set={setText}
        invalid={!isValid}
      />
    </Task>
  );
}

export function GrowPool({ pool, close }: Closing & { pool: Pool }) {
  const [text, setText] = useState("");
  const capacity = parseSize(text);
  const run = async () => {
    await request("PATCH", own("pool"), { capacity_bytes: capacity });
    return `The capacity of the pool is now ${bytes(capacity)}.`;
  };
  return (
    <Task
      title="Grow the pool"
      submit="Grow"
      cli={[cli.pool.grow(capacity)]}
      ready={capacity !== undefined && capacity > pool.capacity_bytes}
      run={run}
      close={close}
    >
      <TextField
        label="New capacity"
        hint={`Now: ${bytes(pool.capacity_bytes)}. A file is extended; a device must already have
          this size.`}
        value={text}
        set={setText}
      />
    </Task>
  );
}
