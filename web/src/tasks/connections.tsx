/** Connecting volumes to hosts and host groups, and disconnecting them. */
import { useState } from "react";

import { request, rest } from "../lib/api";
import * as cli from "../lib/cli";
import { chosenOf, connectedTo, HOST, HOST_GROUP, TARGETS, volumesOf } from "../lib/sources";
import type { RestConnection } from "../lib/types";
import { Chooser } from "../parts/chooser";
import { TextField } from "../parts/fields";
import { Notice } from "../parts/notice";
import { Task } from "../parts/task";

interface Closing {
  close: () => void;
}

/** Connects volumes to a host or a host group. */
export function ConnectVolumes({ volumes, close }: Closing & { volumes: string[] }) {
  const [chosen, setChosen] = useState<string[]>([]);
  const [lun, setLun] = useState("");
  const [group] = chosenOf(chosen, HOST_GROUP);
  const isGroup = group !== undefined;
  const name = group ?? chosenOf(chosen, HOST)[0] ?? "";
  const single = volumes.length === 1;
  const run = async () => {
    const side = isGroup ? { host_group_names: name } : { host_names: name };
    const body = single && lun.trim() !== "" ? { lun: Number(lun) } : {};
    await request("POST", rest("connections", { ...side, volume_names: volumes }), body);
    return `Connected to ${name}: ${volumes.join(", ")}.`;
  };
  return (
    <Task
      title={single ? `Connect ${volumes[0]}` : `Connect ${volumes.length} volumes`}
      submit="Connect"
      cli={isGroup ? [] : volumes.map((one) => cli.connect(one, name, single ? lun : ""))}
      ready={name !== ""}
      run={run}
      close={close}
    >
      <Chooser
        label="Host or host group"
        sources={TARGETS}
        chosen={chosen}
        set={setChosen}
        single
        none="No hosts yet: create one on the page “Hosts”."
      />
      {single && <Lun value={lun} set={setLun} />}
    </Task>
  );
}

function Lun({ value, set }: { value: string; set: (value: string) => void }) {
  return (
    <TextField
      label="LUN"
      hint="1 to 16383. Empty: the next free one."
      value={value}
      set={set}
      numeric
    />
  );
}

/** Connects volumes to a host, or to a host group. */
export function ConnectHost(props: Closing & { name: string; isGroup?: boolean }) {
  const { name, isGroup = false, close } = props;
  const [volumes, setVolumes] = useState<string[]>([]);
  const [lun, setLun] = useState("");
  const single = volumes.length <= 1;
  const run = async () => {
    const side = isGroup ? { host_group_names: name } : { host_names: name };
    const body = single && lun.trim() !== "" ? { lun: Number(lun) } : {};
    await request("POST", rest("connections", { ...side, volume_names: volumes }), body);
    return `Connected to ${name}: ${volumes.join(", ")}.`;
  };
  const lines = volumes.length === 0 ? [""] : volumes;
  return (
    <Task
      title={`Connect volumes to ${name}`}
      submit="Connect"
      cli={isGroup ? [] : lines.map((one) => cli.connect(one, name, single ? lun : ""))}
      ready={volumes.length > 0}
      run={run}
      close={close}
    >
      <Chooser
        label="Volumes"
        sources={[volumesOf(name, isGroup)]}
        chosen={volumes}
        set={setVolumes}
        none="No volumes yet."
      />
      {single && <Lun value={lun} set={setLun} />}
    </Task>
  );
}

/** Disconnects volumes from a host, which are chosen in the dialog. */
export function DisconnectHost({ name, close }: Closing & { name: string }) {
  const [volumes, setVolumes] = useState<string[]>([]);
  const run = async () => {
    await request("DELETE", rest("connections", { host_names: name, volume_names: volumes }));
    return `Disconnected from ${name}: ${volumes.join(", ")}.`;
  };
  return (
    <Task
      title={`Disconnect volumes from ${name}`}
      submit="Disconnect"
      danger
      cli={(volumes.length > 0 ? volumes : ["VOLUME"]).map((one) => cli.disconnect(one, name))}
      ready={volumes.length > 0}
      run={run}
      close={close}
    >
      <Chooser
        label="Volumes"
        sources={[connectedTo(name)]}
        chosen={volumes}
        set={setVolumes}
        none="No connected volumes."
      />
      <p className="muted">The host loses access at once.</p>
    </Task>
  );
}

/** Disconnects volumes from hosts. */
export function Disconnect(props: Closing & { connections: RestConnection[] }) {
  const { connections, close } = props;
  const run = async () => {
    for (const one of connections) {
      const side = one.host_group.name
        ? { host_group_names: one.host_group.name }
        : { host_names: one.host.name };
      await request("DELETE", rest("connections", { ...side, volume_names: one.volume.name }));
    }
    return `Disconnected ${connections.map(shown).join(", ")}.`;
  };
  const lines = connections.flatMap((one) =>
    one.host_group.name || !one.host.name ? [] : [cli.disconnect(one.volume.name, one.host.name)],
  );
  return (
    <Task
      title={connections.length === 1 ? "Disconnect" : `Disconnect ${connections.length} volumes`}
      submit="Disconnect"
      danger
      cli={lines}
      run={run}
      close={close}
    >
      <p>{connections.map(shown).join(", ")}: hosts lose access at once.</p>
      {connections.some((one) => one.host_group.name) && (
        <Notice>
          A volume connected through a host group is disconnected from all hosts of the group.
        </Notice>
      )}
    </Task>
  );
}

const shown = (one: RestConnection) =>
  `${one.volume.name} from ${one.host_group.name ?? one.host.name}`;
