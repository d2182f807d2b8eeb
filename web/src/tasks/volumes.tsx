/** Creating, resizing, renaming, cloning, restoring and overwriting volumes. */
import { useState } from "react";

import { own, request, rest } from "../lib/api";
import type { Source } from "../lib/choices";
import * as cli from "../lib/cli";
import { inPod, podOf, renamed } from "../lib/pods";
import { bytes, parseSize } from "../lib/size";
import { chosenOf, HOST, HOST_GROUP, SNAPSHOTS, TARGETS, VOLUMES } from "../lib/sources";
import type { RestSnapshot, RestVolume } from "../lib/types";
import { Chooser } from "../parts/chooser";
import { CheckField, ChoiceField, TextField } from "../parts/fields";
import { Notice } from "../parts/notice";
import { Task } from "../parts/task";
import { PodField } from "./pods";

interface Closing {
  close: () => void;
}

const NAME_HINT = "1 to 63 letters, digits, - and _.";
const SIZE_HINT = "Such as 512M, 10G or 1.5T, in binary units.";

/** Creates a volume with its connections in one request: all of it, or nothing. */
export function CreateVolume({ pod: ofPage = "", close }: Closing & { pod?: string | undefined }) {
  const [name, setName] = useState("");
  const [pod, setPod] = useState(ofPage);
  const [size, setSize] = useState("");
  const [chosen, setChosen] = useState<string[]>([]);
  const [block, setBlock] = useState("512");
  const [deduplication, setDeduplication] = useState(true);
  const [compression, setCompression] = useState(true);
  const sizeBytes = parseSize(size);
  const [hosts, hostGroups] = [chosenOf(chosen, HOST), chosenOf(chosen, HOST_GROUP)];
  const reduction = { deduplication, compression };
  const volume = inPod(pod, name.trim());
  const shown = { name: inPod(pod, cli.or(name, "NAME")), sizeBytes, blockBytes: Number(block) };
  const made = { ...shown, ...reduction, hosts, hostGroups };

  const run = async () => {
    await request("POST", own("volumes"), {
      name: volume,
      size_bytes: sizeBytes,
      block_bytes: made.blockBytes,
      ...reduction,
      connect: { hosts, host_groups: hostGroups },
    });
    const to = [...hosts, ...hostGroups].join(", ");
    return `Volume ${volume} was created${to === "" ? "" : ` and connected to ${to}`}.`;
  };

  return (
    <Task
      title="New volume"
      submit="Create volume"
      cli={[cli.volume.create(made)]}
      ready={name.trim() !== "" && sizeBytes !== undefined}
      run={run}
      close={close}
    >
      <TextField label="Name" hint={NAME_HINT} value={name} set={setName} />
      <PodField value={pod} set={setPod} />
      <TextField
        label="Size"
        hint={SIZE_HINT}
        value={size}
        set={setSize}
        invalid={size !== "" && sizeBytes === undefined}
      />
      <Chooser
        label="Connect to"
        sources={TARGETS}
        chosen={chosen}
        set={setChosen}
        none="No hosts yet. The volume can be connected later."
      />
      <details>
        <summary>More</summary>
        <ChoiceField
          label="Logical block"
          value={block}
          set={setBlock}
          choices={[
            ["512", "512 bytes"],
            ["4096", "4096 bytes (4Kn)"],
          ]}
        />
        <CheckField label="Deduplication" value={deduplication} set={setDeduplication} />
        <CheckField label="Compression" value={compression} set={setCompression} />
      </details>
    </Task>
  );
}

export function ResizeVolume({ volume, close }: Closing & { volume: RestVolume }) {
  const [size, setSize] = useState("");
  const [truncate, setTruncate] = useState(false);
  const sizeBytes = parseSize(size);
  const isSmaller = sizeBytes !== undefined && sizeBytes < volume.provisioned;
  const run = async () => {
    const path = rest("volumes", { names: volume.name, truncate: isSmaller && truncate });
    await request("PATCH", path, { provisioned: sizeBytes });
    return `The size of ${volume.name} is now ${bytes(sizeBytes)}.`;
  };
  return (
    <Task
      title={`Resize ${volume.name}`}
      submit="Resize"
      danger={isSmaller}
      cli={[cli.volume.resize(volume.name, sizeBytes, isSmaller && truncate)]}
      ready={sizeBytes !== undefined && (!isSmaller || truncate)}
      run={run}
      close={close}
    >
      <TextField
        label="New size"
        hint={`Now: ${bytes(volume.provisioned)}. ${SIZE_HINT}`}
        value={size}
        set={setSize}
        invalid={size !== "" && sizeBytes === undefined}
      />
      {isSmaller && (
        <CheckField
          label="Permanently discard all data beyond the new size"
          value={truncate}
          set={setTruncate}
        />
      )}
    </Task>
  );
}

export function RenameVolume({ name, close }: Closing & { name: string }) {
  const [next, setNext] = useState(name);
  const whole = renamed(name, cli.or(next, "NEW-NAME"));
  const run = async () => {
    await request("PATCH", rest("volumes", { names: name }), { name: whole });
    return `Volume ${name} was renamed to ${whole}.`;
  };
  return (
    <Task
      title={`Rename ${name}`}
      submit="Rename"
      cli={[cli.volume.rename(name, whole)]}
      ready={next.trim() !== "" && whole !== name}
      run={run}
      close={close}
    >
      <TextField label="New name" hint={NAME_HINT} value={next} set={setNext} />
    </Task>
  );
}

/** Clones a volume or a snapshot to a new volume. */
export function CloneVolume({ source, close }: Closing & { source: string }) {
  const [name, setName] = useState("");
  const [pod, setPod] = useState(podOf(source));
  const clone = inPod(pod, name.trim());
  const run = async () => {
    const body = { source: { name: source } };
    await request("POST", rest("volumes", { names: clone }), body);
    return `Volume ${clone} was cloned from ${source}.`;
  };
  return (
    <Task
      title={`Clone ${source}`}
      submit="Clone"
      cli={[cli.volume.clone(source, inPod(pod, cli.or(name, "NAME")))]}
      ready={name.trim() !== ""}
      run={run}
      close={close}
    >
      <TextField label="Name of the new volume" hint={NAME_HINT} value={name} set={setName} />
      <PodField value={pod} set={setPod} />
      <p className="muted">
        A clone is created at once, and uses no space until it or its source is written.
      </p>
    </Task>
  );
}

/** Restores a volume from one of its snapshots. */
export function RestoreVolume(props: Closing & { snapshot: RestSnapshot }) {
  const { snapshot, close } = props;
  const name = snapshot.source.name;
  const run = async () => {
    const path = rest("volumes", { names: name, overwrite: true });
    await request("POST", path, { source: { name: snapshot.name } });
    return `Volume ${name} was restored from ${snapshot.name}.`;
  };
  return (
    <Task
      title={`Restore ${name} from ${snapshot.name}`}
      submit="Restore"
      danger
      cli={[cli.volume.restore(name, snapshot.name)]}
      run={run}
      close={close}
    >
      <Notice kind="warning">
        Data written to {name} since then is lost, unless another snapshot holds it. Stop the hosts
        that use the volume first; they keep its LUN.
      </Notice>
    </Task>
  );
}

const otherThan = (name: string): Source => ({
  ...VOLUMES,
  taken: (row) => (row.name === name ? "the volume itself" : undefined),
});

/** Overwrites a volume with the content of another volume or a snapshot. */
export function OverwriteVolume({ name, close }: Closing & { name: string }) {
  const [chosen, setChosen] = useState<string[]>([]);
  const source = chosen[0] ?? "";
  const run = async () => {
    const path = rest("volumes", { names: name, overwrite: true });
    await request("POST", path, { source: { name: source } });
    return `Volume ${name} was overwritten from ${source}.`;
  };
  return (
    <Task
      title={`Overwrite ${name}`}
      submit="Overwrite"
      danger
      cli={[cli.volume.overwrite(name, source)]}
      ready={source !== ""}
      run={run}
      close={close}
    >
      <Chooser
        label="Source: a volume or a snapshot"
        sources={[otherThan(name), SNAPSHOTS]}
        chosen={chosen}
        set={setChosen}
        single
        none="No volumes yet."
      />
      <Notice kind="warning">The data of {name} is lost, unless a snapshot holds it.</Notice>
    </Task>
  );
}
