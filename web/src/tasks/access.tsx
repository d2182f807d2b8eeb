/** The banner before a login, and the certificate of the management address. */
import { useState } from "react";

import { own, request, rest } from "../lib/api";
import { filled, MANAGEMENT } from "../lib/certificates";
import * as cli from "../lib/cli";
import { words } from "../lib/format";
import type { ArraySettings, RestCertificate } from "../lib/types";
import { AreaField, CheckField, TextField } from "../parts/fields";
import { Notice } from "../parts/notice";
import { Task } from "../parts/task";

interface Closing {
  close: () => void;
}

/** The maximum length of a banner, in characters. */
const BANNER_CHARS_MAX = 2000;

export function EditBanner({ settings, close }: Closing & { settings: ArraySettings }) {
  const [text, setText] = useState(settings.banner);
  const banner = text.trim();
  const run = async () => {
    await request("PATCH", own("settings"), { banner });
    return banner === "" ? "The login banner was removed." : "The login banner was changed.";
  };
  return (
    <Task
      title="Login banner"
      submit="Change"
      cli={[cli.array.banner(banner)]}
      ready={banner !== settings.banner && Array.from(banner).length <= BANNER_CHARS_MAX}
      run={run}
      close={close}
    >
      <AreaField
        label="Text"
        hint="Anybody who opens the page reads it before logging in. Up to 2,000 characters, in one
          line or several. Empty: none."
        value={text}
        set={setText}
      />
    </Task>
  );
}

const PATH = rest("certificates", { names: MANAGEMENT });

/** What happens to this page when the certificate changes. */
function Reload() {
  return (
    <Notice kind="warning">
      The certificate is in force at once. The browser may ask about it again: reload the page if
      it can’t reach the array.
    </Notice>
  );
}

export function CreateCertificate(props: Closing & { certificate: RestCertificate }) {
  const { certificate, close } = props;
  const [name, setName] = useState(certificate.common_name);
  const [organization, setOrganization] = useState(certificate.organization);
  const [names, setNames] = useState("");
  const [days, setDays] = useState("");
  const [isNewKey, setNewKey] = useState(false);
  const isValid = days.trim() === "" || /^[1-9]\d{0,4}$/.test(days.trim());
  const body = {
    status: "self-signed",
    ...filled({
      common_name: name.trim(),
      organization: organization.trim(),
      subject_alternative_names: words(names),
      days: days.trim() === "" ? undefined : Number(days),
    }),
  };
  const path = isNewKey
    ? rest("certificates", { names: MANAGEMENT, generate_new_key: true })
    : PATH;
  const run = async () => {
    await request("PATCH", path, body);
    return "A self-signed certificate was created. It is in force.";
  };
  return (
    <Task
      title="New self-signed certificate"
      submit="Create certificate"
      cli={[cli.api("PATCH", path, body)]}
      ready={isValid}
      run={run}
      close={close}
    >
      <TextField
        label="Common name"
        hint="Such as array.example.com. Empty: unchanged."
        value={name}
        set={setName}
      />
      <TextField
        label="Organization"
        hint="Empty: unchanged."
        value={organization}
        set={setOrganization}
      />
      <TextField
        label="Alternative names"
        hint="Further names and addresses, separated by spaces or commas. Those of the array are
          added. Empty: unchanged."
        value={names}
        set={setNames}
      />
      <TextField
        label="Valid for (days)"
        hint="1 to 36,500. Empty: 3,650."
        value={days}
        set={setDays}
        numeric
        invalid={!isValid}
      />
      <CheckField label="Generate a new key" value={isNewKey} set={setNewKey} />
      <Reload />
    </Task>
  );
}

export function ImportCertificate({ close }: Closing) {
  const [certificate, setCertificate] = useState("");
  const [intermediate, setIntermediate] = useState("");
  const [key, setKey] = useState("");
  const run = async () => {
    const given = filled({
      certificate: certificate.trim(),
      intermediate_certificate: intermediate.trim(),
      key: key.trim(),
    });
    await request("PATCH", PATH, { status: "imported", ...given });
    return "The certificate was imported. It is in force.";
  };
  return (
    <Task
      title="Import a certificate"
      submit="Import"
      cli={[]}
      ready={certificate.trim() !== ""}
      run={run}
      close={close}
    >
      <AreaField
        label="Certificate (PEM)"
        value={certificate}
        set={setCertificate}
        placeholder="-----BEGIN CERTIFICATE-----"
      />
      <AreaField
        label="Intermediate certificates (PEM)"
        hint="Those between the certificate and its authority. Empty: none."
        value={intermediate}
        set={setIntermediate}
      />
      <AreaField
        label="Private key (PEM)"
        hint="Without a passphrase; never shown again. Empty: the certificate is for the key that
          the array has."
        value={key}
        set={setKey}
      />
      <Reload />
    </Task>
  );
}

export function RemoveCertificate({ close }: Closing) {
  const run = async () => {
    await request("DELETE", PATH);
    return "The certificate was removed. The one in the files of the array is in force.";
  };
  return (
    <Task
      title="Remove the certificate"
      submit="Remove"
      danger
      cli={[cli.api("DELETE", PATH)]}
      run={run}
      close={close}
    >
      <p>The certificate in the files of the array is used instead.</p>
      <Reload />
    </Task>
  );
}
