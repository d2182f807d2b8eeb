/** Configuring the recipients of alerts by SNMP. Secrets can be set, and are never shown. */
import { useState } from "react";

import { request, rest } from "../lib/api";
import * as cli from "../lib/cli";
import type { RestSnmpManager } from "../lib/types";
import { CheckField, ChoiceField, TextField } from "../parts/fields";
import { Task } from "../parts/task";

interface Closing {
  close: () => void;
}

const HOST_HINT = "HOST or HOST:PORT; the default port is 162.";
const KEPT = "Empty: unchanged.";

/** What a form contains; an empty protocol is none. */
interface Form {
  host: string;
  isInform: boolean;
  version: string;
  community: string;
  user: string;
  auth: string;
  authPassphrase: string;
  privacy: string;
  privacyPassphrase: string;
}

const NEW: Form = {
  host: "",
  isInform: false,
  version: "v3",
  community: "",
  user: "",
  auth: "SHA",
  authPassphrase: "",
  privacy: "AES",
  privacyPassphrase: "",
};

/** A form with the settings of a manager, without its secrets, which the array does not show. */
const formOf = ({ host, notification, version, v3 }: RestSnmpManager): Form => ({
  ...NEW,
  host,
  isInform: notification === "inform",
  version,
  user: v3.user ?? "",
  auth: v3.auth_protocol ?? "",
  privacy: v3.privacy_protocol ?? "",
});

/** Which secrets must be given: those that the array does not have yet. */
function missing(form: Form, before: Form | undefined): boolean {
  if (form.version === "v2c") {
    // A community is sent in the clear: the array does not send it to a host that it was not for.
    return form.community === "" && form.host.trim() !== before?.host;
  }
  const isAuthNew = form.auth !== "" && (before?.auth ?? "") === "";
  const isPrivacyNew = form.privacy !== "" && (before?.privacy ?? "") === "";
  return (
    form.user.trim() === "" ||
    (isAuthNew && form.authPassphrase === "") ||
    (isPrivacyNew && form.privacyPassphrase === "")
  );
}

const given = (secret: string) => (secret === "" ? undefined : secret);

/** The body of the request; secrets that are not given do not change. */
function bodyOf(form: Form) {
  const { host, isInform, version, community, user, auth, privacy } = form;
  const common = { host: host.trim(), notification: isInform ? "inform" : "trap", version };
  if (version === "v2c") return { ...common, v2c: { community: given(community) } };
  const v3 = {
    user: user.trim(),
    auth_protocol: auth,
    auth_passphrase: auth === "" ? undefined : given(form.authPassphrase),
    privacy_protocol: privacy,
    privacy_passphrase: privacy === "" ? undefined : given(form.privacyPassphrase),
  };
  return { ...common, v3 };
}

interface FieldsProps {
  form: Form;
  set: (change: Partial<Form>) => void;
  /** Whether the array has secrets already, which remain unless others are given. */
  isKept: boolean;
}

function Fields({ form, set, isKept }: FieldsProps) {
  return (
    <>
      <TextField
        label="Host"
        hint={HOST_HINT}
        value={form.host}
        set={(host) => set({ host })}
      />
      <CheckField
        label="Request confirmations"
        hint="Sends informs instead of traps."
        value={form.isInform}
        set={(isInform) => set({ isInform })}
      />
      {!isKept && (
        <ChoiceField
          label="Version"
          value={form.version}
          set={(version) => set({ version })}
          choices={[
            ["v3", "SNMPv3: authenticated and encrypted"],
            ["v2c", "SNMPv2c: in clear text"],
          ]}
        />
      )}
      {form.version === "v2c" ? (
        <TextField
          label="Community"
          hint={isKept ? `${KEPT} Required again for a new host.` : "1 to 32 characters."}
          value={form.community}
          set={(community) => set({ community })}
          secret
          complete="new-password"
        />
      ) : (
        <V3Fields form={form} set={set} isKept={isKept} />
      )}
    </>
  );
}

function V3Fields({ form, set, isKept }: FieldsProps) {
  const length = "8 to 63 characters.";
  const hint = isKept ? `${length} ${KEPT}` : length;
  return (
    <>
      <TextField label="User" value={form.user} set={(user) => set({ user })} />
      <ChoiceField
        label="Authentication"
        value={form.auth}
        // Encryption needs authentication.
        set={(auth) => set(auth === "" ? { auth, privacy: "" } : { auth })}
        choices={[
          ["SHA", "SHA"],
          ["MD5", "MD5"],
          ["", "None"],
        ]}
      />
      {form.auth !== "" && (
        <>
          <TextField
            label="Authentication passphrase"
            hint={hint}
            value={form.authPassphrase}
            set={(authPassphrase) => set({ authPassphrase })}
            secret
            complete="new-password"
          />
          <ChoiceField
            label="Encryption"
            value={form.privacy}
            set={(privacy) => set({ privacy })}
            choices={[
              ["AES", "AES"],
              ["", "None"],
            ]}
          />
        </>
      )}
      {form.privacy !== "" && (
        <TextField
          label="Encryption passphrase"
          hint={hint}
          value={form.privacyPassphrase}
          set={(privacyPassphrase) => set({ privacyPassphrase })}
          secret
          complete="new-password"
        />
      )}
    </>
  );
}

export function AddManager({ close }: Closing) {
  const [name, setName] = useState("");
  const [form, setForm] = useState(NEW);
  const run = async () => {
    await request("POST", rest("snmp-managers", { names: [name.trim()] }), bodyOf(form));
    return `SNMP manager ${name.trim()} was added.`;
  };
  return (
    <Task
      title="New SNMP manager"
      submit="Add"
      cli={[cli.notify.snmp({ ...form, name })]}
      ready={name.trim() !== "" && form.host.trim() !== "" && !missing(form, undefined)}
      run={run}
      close={close}
    >
      <TextField
        label="Name"
        hint="1 to 63 letters, digits, - and _."
        value={name}
        set={setName}
      />
      <Fields form={form} set={(change) => setForm({ ...form, ...change })} isKept={false} />
    </Task>
  );
}

export function EditManager({ manager, close }: Closing & { manager: RestSnmpManager }) {
  const before = formOf(manager);
  const [form, setForm] = useState(before);
  const run = async () => {
    await request("PATCH", rest("snmp-managers", { names: [manager.name] }), bodyOf(form));
    return `SNMP manager ${manager.name} was changed.`;
  };
  return (
    <Task
      title={`SNMP manager ${manager.name}`}
      submit="Change"
      cli={[]}
      ready={form.host.trim() !== "" && !missing(form, before)}
      run={run}
      close={close}
    >
      <Fields form={form} set={(change) => setForm({ ...form, ...change })} isKept />
    </Task>
  );
}
