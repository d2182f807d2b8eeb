/** Users and their API tokens. */
import { useState } from "react";

import { own, request, rest } from "../lib/api";
import * as cli from "../lib/cli";
import { parseDuration } from "../lib/format";
import type { ApiToken, ApiTokenMade, Role, User } from "../lib/types";
import { ChoiceField, TextField } from "../parts/fields";
import { Task } from "../parts/task";

interface Closing {
  close: () => void;
}

export const ROLES: readonly (readonly [Role, string])[] = [
  ["readonly", "Read only"],
  ["storage_admin", "Storage admin"],
  ["array_admin", "Array admin"],
];

const NAME_HINT = "1 to 63 letters, digits, - and _.";

export function CreateUser({ close }: Closing) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<string>("storage_admin");
  const run = async () => {
    await request("POST", rest("admins", { names: name.trim() }), { role: { name: role } });
    return `User ${name.trim()} was created. An API token or a password is needed to log in.`;
  };
  return (
    <Task
      title="New user"
      submit="Create user"
      cli={[cli.user.create(name, role)]}
      ready={name.trim() !== ""}
      run={run}
      close={close}
    >
      <TextField label="Name" hint={NAME_HINT} value={name} set={setName} />
      <ChoiceField label="Role" value={role} set={setRole} choices={[...ROLES]} />
    </Task>
  );
}

export function ChangeRole({ user, close }: Closing & { user: User }) {
  const [role, setRole] = useState<string>(user.role);
  const run = async () => {
    await request("PATCH", rest("admins", { names: user.name }), { role: { name: role } });
    return `User ${user.name} now has the role ${role}.`;
  };
  return (
    <Task
      title={`Role of ${user.name}`}
      submit="Change"
      cli={[cli.user.set(user.name, role)]}
      ready={role !== user.role}
      run={run}
      close={close}
    >
      <ChoiceField label="Role" value={role} set={setRole} choices={[...ROLES]} />
    </Task>
  );
}

/** The minimum length of a password, in characters. */
const PASSWORD_CHARS_MIN = 8;

export function SetPassword({ user, close }: Closing & { user: User }) {
  const [password, setPassword] = useState("");
  const [again, setAgain] = useState("");
  const run = async () => {
    await request("PATCH", rest("admins", { names: user.name }), { password });
    return `User ${user.name} has a new password. All other sessions of the user have ended.`;
  };
  return (
    <Task
      title={`Password of ${user.name}`}
      submit="Set password"
      cli={[cli.user.password(user.name)]}
      ready={password.length >= PASSWORD_CHARS_MIN && password === again}
      run={run}
      close={close}
    >
      <TextField
        label="New password"
        hint="8 to 128 characters."
        value={password}
        set={setPassword}
        complete="new-password"
        secret
      />
      <TextField
        label="Repeat the password"
        value={again}
        set={setAgain}
        complete="new-password"
        invalid={again !== "" && again !== password}
        secret
      />
    </Task>
  );
}

export function DeleteUser({ user, close }: Closing & { user: User }) {
  const run = async () => {
    await request("DELETE", rest("admins", { names: user.name }));
    return `User ${user.name} was removed.`;
  };
  return (
    <Task
      title={`Remove ${user.name}`}
      submit="Remove"
      danger
      cli={[cli.user.delete(user.name)]}
      run={run}
      close={close}
    >
      <p>The API tokens and sessions of the user end, too.</p>
    </Task>
  );
}

export function CreateToken(props: Closing & { user: string; made: (token: string) => void }) {
  const { user, made, close } = props;
  const [name, setName] = useState("");
  const [lifetime, setLifetime] = useState("");
  const seconds = lifetime.trim() === "" ? undefined : parseDuration(lifetime);
  const isValid = lifetime.trim() === "" || (seconds !== undefined && seconds > 0);
  const run = async () => {
    const body = { name: name.trim(), user, lifetime_s: seconds };
    const answer = await request<ApiTokenMade>("POST", own("tokens"), body);
    made(answer.token);
    return `API token ${name.trim()} of ${user} was created.`;
  };
  return (
    <Task
      title={`New API token of ${user}`}
      submit="Create token"
      cli={[cli.token.create(name, user, seconds)]}
      ready={name.trim() !== "" && isValid}
      run={run}
      close={close}
    >
      <TextField
        label="Name"
        hint={`What it is for. ${NAME_HINT}`}
        value={name}
        set={setName}
      />
      <TextField
        label="Lifetime"
        hint="Such as 90d. Empty: until it is revoked."
        value={lifetime}
        set={setLifetime}
        invalid={!isValid}
      />
    </Task>
  );
}

export function DeleteToken({ token, close }: Closing & { token: ApiToken }) {
  const run = async () => {
    await request("DELETE", own(["tokens", token.user, token.name]));
    return `API token ${token.name} of ${token.user} was revoked.`;
  };
  return (
    <Task
      title={`Revoke ${token.name} of ${token.user}`}
      submit="Revoke"
      danger
      cli={[cli.token.delete(token.name, token.user)]}
      run={run}
      close={close}
    >
      <p>Requests with this token are refused from now on, and its sessions end.</p>
    </Task>
  );
}
