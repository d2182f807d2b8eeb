/** Creating and renaming pods, and placing volumes in them. */
import { useState } from "react";
import { useLocation } from "wouter";

import { request, rest } from "../lib/api";
import * as cli from "../lib/cli";
import { inPod, ownName, podOf } from "../lib/pods";
import { useAll } from "../lib/query";
import { volumesOutside } from "../lib/sources";
import type { RestPod } from "../lib/types";
import { Chooser } from "../parts/chooser";
import { ChoiceField, TextField } from "../parts/fields";
import { Notice } from "../parts/notice";
import { Task } from "../parts/task";
import { to } from "../routes";

interface Closing {
  close: () => void;
}

const NAME_HINT = "1 to 63 letters, digits, - and _.";

export function CreatePod({ close }: Closing) {
  const [name, setName] = useState("");
  const run = async () => {
    await request("POST", rest("pods", { names: name.trim() }), {});
    return `Pod ${name.trim()} was created.`;
  };
  return (
    <Task
      title="New pod"
      submit="Create pod"
      cli={[cli.pod.create(name)]}
      ready={name.trim() !== ""}
      run={run}
      close={close}
    >
      <TextField label="Name" hint={NAME_HINT} value={name} set={setName} />
    </Task>
  );
}

export function RenamePod({ name, close }: Closing & { name: string }) {
  const [next, setNext] = useState(name);
  const [location, navigate] = useLocation();
  const run = async () => {
    await request("PATCH", rest("pods", { names: name }), { name: next.trim() });
    // The pod's own page has its name in its address.
    if (location === to("pods", name)) navigate(to("pods", next.trim()), { replace: true });
    return `Pod ${name} was renamed to ${next.trim()}, with its volumes.`;
  };
  return (
    <Task
      title={`Rename ${name}`}
      submit="Rename"
      cli={[cli.pod.rename(name, next)]}
      ready={next.trim() !== "" && next.trim() !== name}
      run={run}
      close={close}
    >
      <TextField label="New name" hint={NAME_HINT} value={next} set={setNext} />
      <p className="muted">The names of its volumes change, too. Their connections remain.</p>
    </Task>
  );
}

const usePodNames = () => {
  const pods = useAll<RestPod>("pods", { destroyed: false });
  return pods.data?.map((one) => one.name);
};

/** The pod of a new volume, or none. Without pods, there is nothing to choose from. */
export function PodField(props: { value: string; set: (pod: string) => void }) {
  const { value, set } = props;
  const names = usePodNames() ?? [];
  // The pod that a page is about is a choice even before the list is known.
  const all = value === "" || names.includes(value) ? names : [value, ...names];
  if (all.length === 0) return null;
  return (
    <ChoiceField
      label="Pod"
      value={value}
      set={set}
      choices={[["", "None"], ...all.map((one) => [one, one] as const)]}
    />
  );
}

/** Moves volumes into a pod, on the page of the pod; they keep their own names. */
export function AddVolumes({ pod, close }: Closing & { pod: string }) {
  const [chosen, setChosen] = useState<string[]>([]);
  const target = (name: string) => inPod(pod, ownName(name));
  const run = async () => {
    await request("PATCH", rest("volumes", { names: chosen }), { pod: { name: pod } });
    return `Moved to ${pod}: ${chosen.join(", ")}.`;
  };
  return (
    <Task
      title={`Add volumes to ${pod}`}
      submit="Add"
      cli={chosen.map((name) => cli.volume.rename(name, target(name)))}
      ready={chosen.length > 0}
      run={run}
      close={close}
    >
      <Chooser
        label="Volumes"
        sources={[volumesOutside(pod)]}
        chosen={chosen}
        set={setChosen}
        none="No volumes yet."
      />
      <p className="muted">Their names change. Connections, snapshots and tags remain.</p>
    </Task>
  );
}

/** No name of a pod: nothing was chosen yet. */
const UNCHOSEN = "?";

/** Moves volumes into a pod, or out of theirs; they keep their own names. */
export function MoveVolumes({ volumes, close }: Closing & { volumes: string[] }) {
  const [pod, setPod] = useState(UNCHOSEN);
  const names = usePodNames();
  // Without a pod, a volume in a volume group stays there.
  const target = (name: string) =>
    pod === "" && podOf(name) === "" ? name : inPod(pod, ownName(name));
  const moved = pod === UNCHOSEN ? [] : volumes.filter((name) => target(name) !== name);
  const run = async () => {
    await request("PATCH", rest("volumes", { names: moved }), { pod: { name: pod } });
    return `Moved ${moved.map((name) => `${name} to ${target(name)}`).join(", ")}.`;
  };
  return (
    <Task
      title={`Move ${volumes.length === 1 ? volumes[0] : `${volumes.length} volumes`}`}
      submit="Move"
      cli={moved.map((name) => cli.volume.rename(name, target(name)))}
      ready={moved.length > 0}
      run={run}
      close={close}
    >
      {names?.length === 0 && <Notice>No pods yet: create one on the page “Pods”.</Notice>}
      <ChoiceField
        label="Pod"
        value={pod}
        set={setPod}
        choices={[
          [UNCHOSEN, "Choose…"],
          ["", "None"],
          ...(names ?? []).map((one) => [one, one] as const),
        ]}
      />
      <p className="muted">Connections, snapshots and tags remain.</p>
    </Task>
  );
}
