/** Configuring the recipients of alerts. */
import { useState } from "react";

import { request, rest } from "../lib/api";
import * as cli from "../lib/cli";
import { words } from "../lib/format";
import type { Items, RestRelay, RestSyslogServer, RestTested } from "../lib/types";
import { ChoiceField, TextField } from "../parts/fields";
import { Task } from "../parts/task";

interface Closing {
  close: () => void;
}

/** The lists of recipients in REST 2.x. */
export type ReceiverList = "alert-watchers" | "syslog-servers" | "snmp-managers";

const ENCRYPTIONS = [
  ["", "None; no password is sent"],
  ["starttls", "STARTTLS"],
  ["tls", "TLS"],
] as const;

export function EditRelay({ relay, close }: Closing & { relay: RestRelay }) {
  const [host, setHost] = useState(relay.relay_host);
  const [domain, setDomain] = useState(relay.sender_domain);
  const [sender, setSender] = useState(relay.sender_username);
  const [encryption, setEncryption] = useState(relay.encryption_mode);
  const [user, setUser] = useState(relay.user_name);
  const [password, setPassword] = useState("");
  const [subject, setSubject] = useState(relay.subject_prefix);
  const [body, setBody] = useState(relay.body_prefix);
  const wanted = {
    relay_host: host.trim(),
    sender_domain: domain.trim(),
    sender_username: sender.trim(),
    encryption_mode: encryption,
    user_name: user.trim(),
    subject_prefix: subject.trim(),
    body_prefix: body.trim(),
  };
  const isWhole = wanted.relay_host === "" || wanted.sender_domain !== "";
  const run = async () => {
    const change = password === "" ? wanted : { ...wanted, password };
    await request("PATCH", rest("smtp-servers"), change);
    const relayHost = wanted.relay_host;
    return relayHost === "" ? "No mail is sent." : `Mail is sent through ${relayHost}.`;
  };
  return (
    <Task
      title="Mail relay"
      submit="Change"
      cli={[cli.notify.mail(wanted, password !== "")]}
      ready={isWhole}
      run={run}
      close={close}
    >
      <TextField
        label="Server"
        hint="HOST or HOST:PORT. Empty: no mail is sent."
        value={host}
        set={setHost}
      />
      <TextField
        label="Sender domain"
        hint="Required for mail."
        value={domain}
        set={setDomain}
        invalid={!isWhole}
      />
      <TextField
        label="Sender"
        hint="The part before the @. Empty: the array’s name."
        value={sender}
        set={setSender}
      />
      <ChoiceField
        label="Encryption"
        value={encryption}
        set={setEncryption}
        choices={[...ENCRYPTIONS]}
      />
      <TextField label="User" hint="Empty: none." value={user} set={setUser} />
      <TextField
        label="Password"
        hint="Never shown. Required again if the server or the user changes."
        value={password}
        set={setPassword}
        secret
        complete="new-password"
      />
      <TextField label="Subject prefix" value={subject} set={setSubject} />
      <TextField label="Body prefix" value={body} set={setBody} />
    </Task>
  );
}

export function AddWatcher({ close }: Closing) {
  const [text, setText] = useState("");
  const names = words(text);
  const run = async () => {
    await request("POST", rest("alert-watchers", { names }), {});
    return `Mail recipients added: ${names.join(", ")}.`;
  };
  return (
    <Task
      title="Add mail recipients"
      submit="Add"
      cli={[cli.notify.watcher("add", names)]}
      ready={names.length > 0}
      run={run}
      close={close}
    >
      <TextField
        label="Addresses"
        hint="One or more, separated by spaces or commas. They receive alerts of severity warning or
          higher."
        value={text}
        set={setText}
      />
    </Task>
  );
}

export function EnableWatchers(props: Closing & { names: string[]; enabled: boolean }) {
  const { names, enabled, close } = props;
  const run = async () => {
    await request("PATCH", rest("alert-watchers", { names }), { enabled });
    return `Mail to ${names.join(", ")} is ${enabled ? "enabled" : "disabled"}.`;
  };
  return (
    <Task
      title={enabled ? "Enable mail" : "Disable mail"}
      submit={enabled ? "Enable" : "Disable"}
      cli={[cli.notify.watcher(enabled ? "enable" : "disable", names)]}
      run={run}
      close={close}
    >
      <p>{names.join(", ")}</p>
    </Task>
  );
}

export function AddSyslogServer({ close }: Closing) {
  const [name, setName] = useState("");
  const [uri, setUri] = useState("");
  const run = async () => {
    await request("POST", rest("syslog-servers", { names: [name.trim()] }), { uri: uri.trim() });
    return `Syslog server ${name.trim()} was added.`;
  };
  return (
    <Task
      title="New syslog server"
      submit="Add"
      cli={[cli.notify.syslog("add", name, uri)]}
      ready={name.trim() !== "" && uri.trim() !== ""}
      run={run}
      close={close}
    >
      <TextField
        label="Name"
        hint="1 to 63 letters, digits, - and _."
        value={name}
        set={setName}
      />
      <UriField uri={uri} set={setUri} />
    </Task>
  );
}

function UriField({ uri, set }: { uri: string; set: (uri: string) => void }) {
  const hint = "udp://HOST, tcp://HOST or tls://HOST, with :PORT if it is not the default.";
  return <TextField label="URI" hint={hint} value={uri} set={set} />;
}

export function MoveSyslogServer({ server, close }: Closing & { server: RestSyslogServer }) {
  const [uri, setUri] = useState(server.uri);
  const run = async () => {
    await request("PATCH", rest("syslog-servers", { names: [server.name] }), { uri: uri.trim() });
    return `The URI of ${server.name} is now ${uri.trim()}.`;
  };
  return (
    <Task
      title={`URI of ${server.name}`}
      submit="Change"
      cli={[cli.notify.syslog("set", server.name, uri)]}
      ready={uri.trim() !== ""}
      run={run}
      close={close}
    >
      <UriField uri={uri} set={setUri} />
    </Task>
  );
}

interface Named extends Closing {
  resource: ReceiverList;
  names: string[];
}

const KINDS = {
  "alert-watchers": "watcher",
  "syslog-servers": "syslog",
  "snmp-managers": "snmp",
} as const;

export function RemoveReceivers({ resource, names, close }: Named) {
  const run = async () => {
    await request("DELETE", rest(resource, { names }));
    return `Removed ${names.join(", ")}.`;
  };
  return (
    <Task
      title="Remove recipients"
      submit="Remove"
      cli={[cli.notify.remove(KINDS[resource], names)]}
      danger
      run={run}
      close={close}
    >
      <p>{names.join(", ")}: no longer notified after this.</p>
    </Task>
  );
}

export function TestReceivers({ resource, names, close }: Named) {
  const run = async () => {
    const path = rest(`${resource}/test`, { names });
    const { items } = await request<Items<RestTested>>("GET", path);
    const failed = items.filter((one) => !one.success);
    if (failed.length > 0) {
      throw new Error(failed.map((one) => `${one.destination}: ${one.result_details}`).join("; "));
    }
    return `A test message was sent to ${names.join(", ")}.`;
  };
  return (
    <Task
      title="Test notifications"
      submit="Send"
      cli={[cli.notify.test(names)]}
      run={run}
      close={close}
    >
      <p>{names.join(", ")}</p>
    </Task>
  );
}
