/** Creating protection groups, and changing the members of groups. */
import { useState } from "react";

import { request, rest } from "../lib/api";
import * as cli from "../lib/cli";
import { FREE_HOSTS, VOLUMES, volumesFor } from "../lib/sources";
import { Chooser } from "../parts/chooser";
import { TextField } from "../parts/fields";
import { Task } from "../parts/task";

interface Closing {
  close: () => void;
}

const NO_VOLUMES = "No volumes yet.";

export function CreateGroup({ volumes, close }: Closing & { volumes: string[] }) {
  const [name, setName] = useState("");
  const [chosen, setChosen] = useState(volumes);
  const run = async () => {
    const made = rest("protection-groups", { names: name.trim() });
    await request("POST", made);
    if (chosen.length > 0) {
      const pair = { group_names: name.trim(), member_names: chosen };
      try {
        await request("POST", rest("protection-groups/volumes", pair));
      } catch (error) {
        // A group without its volumes is not what was requested.
        await request("PATCH", made, { destroyed: true });
        await request("DELETE", made);
        throw error;
      }
    }
    return `Protection group ${name.trim()} was created.`;
  };
  return (
    <Task
      title="New protection group"
      submit="Create group"
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
      <Chooser
        label="Volumes"
        sources={[VOLUMES]}
        chosen={chosen}
        set={setChosen}
        none={NO_VOLUMES}
      />
    </Task>
  );
}

export function AddMembers({ group, close }: Closing & { group: string }) {
  const [chosen, setChosen] = useState<string[]>([]);
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
      <Chooser
        label="Volumes"
        sources={[volumesFor(group)]}
        chosen={chosen}
        set={setChosen}
        none={NO_VOLUMES}
      />
    </Task>
  );
}

/** Adds hosts to a host group. */
export function AddHosts({ group, close }: Closing & { group: string }) {
  const [chosen, setChosen] = useState<string[]>([]);
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
      <Chooser
        label="Hosts"
        sources={[FREE_HOSTS]}
        chosen={chosen}
        set={setChosen}
        none="No hosts yet."
      />
    </Task>
  );
}

/** Removes members from a group. */
export function RemoveMembers(
  props: Closing & { resource: string; group: string; names: string[]; lines: string[] },
) {
  const { resource, group, names, lines, close } = props;
  const run = async () => {
    await request("DELETE", rest(resource, { group_names: group, member_names: names }));
    return `Removed from ${group}: ${names.join(", ")}.`;
  };
  return (
    <Task
      title={`Remove ${names.length === 1 ? names[0] : `${names.length} members`} from ${group}`}
      submit="Remove"
      danger
      cli={lines}
      run={run}
      close={close}
    >
      <p>{names.join(", ")}: removed from the group only, not deleted.</p>
    </Task>
  );
}
