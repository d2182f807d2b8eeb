/** Connecting volumes to hosts and host groups, and disconnecting them. */
import { useState } from "react";

import { request, rest } from "../lib/api";
import * as cli from "../lib/cli";
import { useAll } from "../lib/query";
import type { RestConnection, RestHost, RestHostGroup } from "../lib/types";
import { ChoiceField, TextField } from "../parts/fields";
import { Notice } from "../parts/notice";
import { Task } from "../parts/task";

/** The prefixes that distinguish hosts from host groups in a choice. */
const HOST = "host/";
const GROUP = "group/";

interface Closing {
  close: () => void;
}

/** Connects volumes to a host or a host group. */
export function ConnectVolumes({ volumes, close }: Closing & { volumes: string[] }) {
  const hosts = useAll<RestHost>("hosts");
  const groups = useAll<RestHostGroup>("host-groups");
  const [target, setTarget] = useState("");
  const [lun, setLun] = useState("");
  const choices = [
    ["", "Choose …"] as const,
    ...(hosts.data ?? []).map((one) => [HOST + one.name, one.name] as const),
    ...(groups.data ?? []).map((one) => [GROUP + one.name, `${one.name} (host group)`] as const),
  ];
  const isGroup = target.startsWith(GROUP);
  const name = target.slice(isGroup ? GROUP.length : HOST.length);
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
      ready={target !== ""}
      run={run}
      close={close}
    >
      {hosts.data?.length === 0 && <Notice>There is no host yet: make one on “Hosts”.</Notice>}
      <ChoiceField label="Host" value={target} set={setTarget} choices={choices} />
      {single && <Lun value={lun} set={setLun} />}
    </Task>
  );
}

function Lun({ value, set }: { value: string; set: (value: string) => void }) {
  return (
    <TextField
      label="LUN"
      hint="1 to 16383. Empty: one that is free."
      value={value}
      set={set}
      numeric
    />
  );
}

/** Connects a volume to a host, or to a host group. */
export function ConnectHost(props: Closing & { name: string; isGroup?: boolean }) {
  const { name, isGroup = false, close } = props;
  const [volume, setVolume] = useState("");
  const [lun, setLun] = useState("");
  const run = async () => {
    const side = isGroup ? { host_group_names: name } : { host_names: name };
    const body = lun.trim() === "" ? {} : { lun: Number(lun) };
    await request("POST", rest("connections", { ...side, volume_names: volume.trim() }), body);
    return `Connected to ${name}: ${volume.trim()}.`;
  };
  return (
    <Task
      title={`Connect a volume to ${name}`}
      submit="Connect"
      cli={isGroup ? [] : [cli.connect(volume, name, lun)]}
      ready={volume.trim() !== ""}
      run={run}
      close={close}
    >
      <TextField label="Volume" value={volume} set={setVolume} />
      <Lun value={lun} set={setLun} />
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
    return `Disconnected: ${connections.map(shown).join(", ")}.`;
  };
  const lines = connections.flatMap((one) =>
    one.host_group.name || !one.host.name ? [] : [cli.disconnect(one.volume.name, one.host.name)],
  );
  return (
    <Task
      title={connections.length === 1 ? "Disconnect" : `Disconnect ${connections.length}`}
      submit="Disconnect"
      danger
      cli={lines}
      run={run}
      close={close}
    >
      <p>{connections.map(shown).join(", ")}: the host loses the LUN at once.</p>
      {connections.some((one) => one.host_group.name) && (
        <Notice>A volume that is connected to a group is lost by all of its hosts.</Notice>
      )}
    </Task>
  );
}

const shown = (one: RestConnection) =>
  `${one.volume.name} from ${one.host_group.name ?? one.host.name}`;
