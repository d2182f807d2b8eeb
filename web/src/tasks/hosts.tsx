/** Creating, changing and deleting hosts and host groups. */
import { useState } from "react";

import { own, request, rest } from "../lib/api";
import * as cli from "../lib/cli";
import { words } from "../lib/format";
import { cameText, strangers, toggled } from "../lib/initiators";
import { useGet } from "../lib/query";
import { FREE_HOSTS } from "../lib/sources";
import type { Initiators, RestHost } from "../lib/types";
import { Chooser } from "../parts/chooser";
import { AreaField, CheckField, TextField } from "../parts/fields";
import { Task } from "../parts/task";

interface Closing {
  close: () => void;
}

const NAME_HINT = "1 to 63 letters, digits and -.";
const IQNS_HINT = "iSCSI names of the host’s initiators, separated by spaces, commas or new lines.";
const IQN_EXAMPLE = "iqn.2026-01.com.example:client";
const SECRET_HINT = "12 to 255 characters. The command line reads it from standard input.";

export function CreateHost({ close }: Closing) {
  const [name, setName] = useState("");
  const [iqns, setIqns] = useState("");
  const [user, setUser] = useState("");
  const [secret, setSecret] = useState("");
  const names = words(iqns);
  const run = async () => {
    const chap = user.trim() && { chap: { host_user: user.trim(), host_password: secret } };
    const body = { iqns: names, ...chap };
    await request("POST", rest("hosts", { names: name.trim() }), body);
    return `Host ${name.trim()} was created.`;
  };
  return (
    <Task
      title="New host"
      submit="Create host"
      cli={[cli.host.create(name, names, user)]}
      ready={name.trim() !== "" && names.length > 0 && (user.trim() === "") === (secret === "")}
      run={run}
      close={close}
    >
      <TextField label="Name" hint={NAME_HINT} value={name} set={setName} />
      <AreaField
        label="Initiators"
        hint={IQNS_HINT}
        value={iqns}
        set={setIqns}
        placeholder={IQN_EXAMPLE}
      />
      <Came chosen={names} toggle={(one) => setIqns(toggled(iqns, one))} />
      <details>
        <summary>CHAP</summary>
        <TextField label="CHAP user" value={user} set={setUser} />
        <TextField label="CHAP secret" hint={SECRET_HINT} value={secret} set={setSecret} secret />
      </details>
    </Task>
  );
}

/** Initiators that tried to log in and have no host, offered instead of typing their names. */
function Came({ chosen, toggle }: { chosen: string[]; toggle: (name: string) => void }) {
  const came = useGet<Initiators>(own("initiators"));
  const found = strangers(came.data?.initiators ?? []);
  if (found.length === 0) return null;
  return (
    <fieldset>
      <legend>Initiators that tried to log in and have no host</legend>
      {found.map((one) => (
        <CheckField
          key={one.name}
          label={one.name}
          hint={cameText(one)}
          value={chosen.includes(one.name)}
          set={() => toggle(one.name)}
        />
      ))}
    </fieldset>
  );
}

export function EditInitiators({ host, close }: Closing & { host: RestHost }) {
  const [iqns, setIqns] = useState(host.iqns.join("\n"));
  const run = async () => {
    await request("PATCH", rest("hosts", { names: host.name }), { iqns: words(iqns) });
    return `The initiators of host ${host.name} were changed.`;
  };
  return (
    <Task
      title={`Initiators of ${host.name}`}
      submit="Change"
      cli={[]}
      run={run}
      close={close}
    >
      <AreaField label="Initiators" hint={IQNS_HINT} value={iqns} set={setIqns} />
    </Task>
  );
}

export function EditChap({ host, close }: Closing & { host: RestHost }) {
  const [user, setUser] = useState(host.chap.host_user ?? "");
  const [secret, setSecret] = useState("");
  const [off, setOff] = useState(false);
  const run = async () => {
    const chap = off
      ? { host_user: "", host_password: "" }
      : { host_user: user.trim(), host_password: secret };
    await request("PATCH", rest("hosts", { names: host.name }), { chap });
    return `Host ${host.name} now logs in ${off ? "without" : "with"} CHAP.`;
  };
  return (
    <Task
      title={`CHAP of ${host.name}`}
      submit="Change"
      cli={[]}
      ready={off || (user.trim() !== "" && secret !== "")}
      run={run}
      close={close}
    >
      {host.chap.host_user !== null && (
        <CheckField label="Remove CHAP" value={off} set={setOff} />
      )}
      {!off && (
        <>
          <TextField label="CHAP user" value={user} set={setUser} />
          <TextField
            label="CHAP secret"
            hint="12 to 255 characters."
            value={secret}
            set={setSecret}
            secret
          />
        </>
      )}
    </Task>
  );
}

/** Renames a host or a host group. */
export function Rename(props: Closing & { resource: string; kind: string; name: string }) {
  const { resource, kind, name, close } = props;
  const [next, setNext] = useState(name);
  const run = async () => {
    await request("PATCH", rest(resource, { names: name }), { name: next.trim() });
    return `${kind} ${name} was renamed to ${next.trim()}.`;
  };
  return (
    <Task
      title={`Rename ${name}`}
      submit="Rename"
      cli={[]}
      ready={next.trim() !== "" && next.trim() !== name}
      run={run}
      close={close}
    >
      <TextField label="New name" hint={NAME_HINT} value={next} set={setNext} />
    </Task>
  );
}

/** Deletes hosts, host groups or protection groups. */
export function Delete(
  props: Closing & { resource: string; names: string[]; lines: string[]; what: string },
) {
  const { resource, names, lines, what, close } = props;
  const run = async () => {
    await request("DELETE", rest(resource, { names }));
    return `Deleted ${names.join(", ")}.`;
  };
  return (
    <Task
      title={`Delete ${names.join(", ")}`}
      submit="Delete"
      danger
      cli={lines}
      run={run}
      close={close}
    >
      <p>{what}</p>
    </Task>
  );
}

export function CreateHostGroup({ close }: Closing) {
  const [name, setName] = useState("");
  const [members, setMembers] = useState<string[]>([]);
  const run = async () => {
    const group = name.trim();
    await request("POST", rest("host-groups", { names: group }), {});
    if (members.length === 0) return `Host group ${group} was created.`;
    try {
      const pair = { group_names: group, member_names: members };
      await request("POST", rest("host-groups/hosts", pair));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return `Host group ${group} was created, but without hosts: ${why}`;
    }
    return `Host group ${group} was created with ${members.join(", ")}.`;
  };
  return (
    <Task
      title="New host group"
      submit="Create host group"
      cli={[]}
      ready={name.trim() !== ""}
      run={run}
      close={close}
    >
      <TextField label="Name" hint={NAME_HINT} value={name} set={setName} />
      <Chooser
        label="Hosts"
        sources={[FREE_HOSTS]}
        chosen={members}
        set={setMembers}
        none="No hosts yet. They can be added later."
      />
    </Task>
  );
}
