/** Setting the directory service whose users may log in. */
import { useState } from "react";

import { own, request } from "../lib/api";
import * as cli from "../lib/cli";
import { words } from "../lib/format";
import type { DirectoryServers, DirectorySettings } from "../lib/types";
import { AreaField, ChoiceField, TextField } from "../parts/fields";
import { Task } from "../parts/task";
import { ROLES } from "./users";

interface Setting {
  settings: DirectorySettings;
  close: () => void;
}

const PATH = own("directory");

export function EnableDirectory({ settings, close }: Setting) {
  const enabled = !settings.enabled;
  const run = async () => {
    await request("PATCH", PATH, { enabled });
    return enabled
      ? "Users of the directory service can log in."
      : "Users of the directory service can no longer log in. Their sessions have ended.";
  };
  const title = enabled ? "Enable the directory service" : "Disable the directory service";
  return (
    <Task
      title={title}
      submit={enabled ? "Enable" : "Disable"}
      cli={[cli.directory.set({ enabled })]}
      danger={!enabled}
      run={run}
      close={close}
    >
      <p>
        {enabled
          ? "Users of the directory get the role of their group. Local users log in as before."
          : "Users of the directory can no longer log in. Local users log in as before."}
      </p>
    </Task>
  );
}

export function EditDirectory({ settings, close }: Setting) {
  const [uris, setUris] = useState(settings.uris.join(", "));
  const [baseDn, setBaseDn] = useState(settings.base_dn);
  const [bindUser, setBindUser] = useState(settings.bind_user);
  const [password, setPassword] = useState("");
  const [certificate, setCertificate] = useState(settings.ca_certificate);
  const [userLogin, setUserLogin] = useState(settings.user_login);
  const [userClass, setUserClass] = useState(settings.user_class);
  const servers = words(uris);
  const isGiven = certificate.trim() !== "";
  const isNew = certificate.trim() !== settings.ca_certificate.trim();
  const run = async () => {
    await request("PATCH", PATH, {
      uris: servers,
      base_dn: baseDn.trim(),
      bind_user: bindUser.trim(),
      ...(password === "" ? {} : { bind_password: password }),
      ca_certificate: certificate.trim(),
      user_login: userLogin.trim(),
      user_class: userClass.trim(),
    });
    return servers.length > 0
      ? `Users are searched for at ${servers.join(", ")}.`
      : "No directory servers are configured.";
  };
  const line = cli.directory.set({
    uris: servers,
    baseDn: baseDn.trim(),
    bindUser: bindUser.trim(),
    hasPassword: password !== "",
    ...(isNew ? { certificate: isGiven ? ("given" as const) : ("none" as const) } : {}),
    userLogin: userLogin.trim(),
    userClass: userClass.trim(),
  });
  return (
    <Task
      title="Directory servers"
      submit="Change"
      cli={[line]}
      ready={servers.length <= 3}
      run={run}
      close={close}
    >
      <TextField
        label="Servers"
        hint="Up to three: ldaps://HOST, or ldap://HOST with StartTLS."
        value={uris}
        set={setUris}
        invalid={servers.length > 3}
      />
      <TextField
        label="Base DN"
        hint="Where users and groups are searched for."
        value={baseDn}
        set={setBaseDn}
      />
      <TextField
        label="Bind user"
        hint="Needs permission to read users and groups."
        value={bindUser}
        set={setBindUser}
      />
      <TextField
        label="Bind password"
        hint="Never shown. Required again if the servers or the bind user change."
        value={password}
        set={setPassword}
        secret
        complete="new-password"
      />
      <AreaField
        label="CA certificates (PEM)"
        hint="Of the servers, or of the authorities that issued theirs. Empty: those that the
          system trusts."
        value={certificate}
        set={setCertificate}
      />
      <TextField
        label="User login attribute"
        hint="Empty: uid or sAMAccountName."
        value={userLogin}
        set={setUserLogin}
      />
      <TextField
        label="User object class"
        hint="Empty: any."
        value={userClass}
        set={setUserClass}
      />
    </Task>
  );
}

export function EditDirectoryRole({ settings, close }: Setting) {
  const of = (role: string) => settings.roles.find((one) => one.role === role);
  const first = "readonly";
  const [role, setRole] = useState<string>(first);
  const [group, setGroup] = useState(of(first)?.group ?? "");
  const [base, setBase] = useState(of(first)?.group_base ?? "");
  const choose = (chosen: string) => {
    setRole(chosen);
    setGroup(of(chosen)?.group ?? "");
    setBase(of(chosen)?.group_base ?? "");
  };
  const wanted = { role, group: group.trim(), group_base: group.trim() && base.trim() };
  const run = async () => {
    await request("PATCH", PATH, { roles: [wanted] });
    return wanted.group === ""
      ? `No group has the role ${role}.`
      : `Members of ${wanted.group} now have the role ${role}.`;
  };
  return (
    <Task
      title="Group roles"
      submit="Change"
      cli={[cli.directory.role(role, wanted.group, wanted.group_base)]}
      run={run}
      close={close}
    >
      <ChoiceField label="Role" value={role} set={choose} choices={[...ROLES]} />
      <TextField
        label="Group"
        hint="Common name (cn) or DN. Empty: no group has the role."
        value={group}
        set={setGroup}
      />
      <TextField
        label="Group base"
        hint="A DN. The base DN can be left out."
        value={base}
        set={setBase}
      />
    </Task>
  );
}

export function TestDirectory({ close }: { close: () => void }) {
  const run = async () => {
    const tested = await request<DirectoryServers>("POST", own(["directory", "test"]));
    const failed = tested.servers.filter((one) => one.error !== null);
    if (failed.length > 0) {
      throw new Error(failed.map((one) => `${one.uri}: ${one.error}`).join("; "));
    }
    return `All servers passed the test. ${tested.servers[0]?.found ?? ""}`.trim();
  };
  return (
    <Task
      title="Test the directory service"
      submit="Test"
      cli={["holdfast directory test"]}
      run={run}
      close={close}
    >
      <p>Checks that the array can bind and search at each server, and finds the groups.</p>
    </Task>
  );
}
