/** Users and their API tokens. */
import { useState } from "react";

import { own } from "../lib/api";
import { count, time } from "../lib/format";
import { useGet } from "../lib/query";
import { useSelection } from "../lib/selection";
import { mayAdminister, useSession } from "../lib/session";
import type { ApiToken, ApiTokens, User, Users } from "../lib/types";
import { Actions } from "../parts/actions";
import { Loaded, Notice } from "../parts/notice";
import { Card } from "../parts/page";
import { type Column, Table } from "../parts/table";
import {
  ChangeRole,
  CreateToken,
  CreateUser,
  DeleteToken,
  DeleteUser,
  ROLES,
  SetPassword,
} from "../tasks/users";

const USERS: Column<User>[] = [
  { head: "Name", cell: (row) => row.name },
  { head: "Role", cell: (row) => ROLES.find(([role]) => role === row.role)?.[1] ?? row.role },
  { head: "Tokens", number: true, cell: (row) => count(row.tokens) },
  { head: "Password", minor: true, cell: (row) => (row.password ? "Yes" : "No") },
  {
    head: "Created",
    minor: true,
    cell: (row) => (row.built_in ? "Built in" : time(row.created_ms)),
  },
];

const TOKENS: Column<ApiToken>[] = [
  { head: "Name", cell: (row) => row.name },
  { head: "User", cell: (row) => row.user },
  { head: "Created", minor: true, cell: (row) => time(row.created_ms) },
  {
    head: "Expires",
    cell: (row) => (row.expires_ms ? time(row.expires_ms) : "Never"),
  },
  { head: "Last used", minor: true, cell: (row) => time(row.last_used_ms) },
];

export function UsersCard() {
  const users = useGet<Users>(own("users"));
  const tokens = useGet<ApiTokens>(own("tokens"));
  const [secret, setSecret] = useState("");
  return (
    <>
      <Card title="Users">
        <Loaded query={users} what="users">
          {(found) => <UserTable users={found.users} made={setSecret} />}
        </Loaded>
        {secret !== "" && (
          <Notice kind="warning">
            The new API token, shown only once: <code className="secret">{secret}</code>{" "}
            <button type="button" className="quiet" onClick={() => setSecret("")}>
              Hide
            </button>
          </Notice>
        )}
      </Card>
      <Card title="API tokens">
        <Loaded query={tokens} what="API tokens">
          {(found) => <TokenTable tokens={found.tokens} />}
        </Loaded>
      </Card>
    </>
  );
}

function UserTable({ users, made }: { users: User[]; made: (token: string) => void }) {
  const { role } = useSession();
  const may = mayAdminister(role);
  const selection = useSelection(users.map((one) => one.name));
  const chosen = users.filter((one) => selection.isChosen(one.name));
  const [user] = chosen.length === 1 ? chosen : [];
  const on = user !== undefined;
  const isOther = on && !user.built_in;
  return (
    <>
      {may && (
        <Actions
          label="Users"
          actions={[
            {
              label: "New user",
              primary: true,
              task: (close) => <CreateUser close={close} />,
            },
            {
              label: "New token",
              on,
              task: (close) =>
                user && <CreateToken user={user.name} made={made} close={close} />,
            },
            {
              label: "Password",
              on,
              task: (close) => user && <SetPassword user={user} close={close} />,
            },
            {
              label: "Role",
              on: isOther,
              task: (close) => user && <ChangeRole user={user} close={close} />,
            },
            {
              label: "Remove",
              on: isOther,
              task: (close) => user && <DeleteUser user={user} close={close} />,
            },
          ]}
        />
      )}
      <Table
        caption="Users"
        areAll
        rows={users}
        columns={USERS}
        name={(row) => row.name}
        empty="No users."
        {...(may ? { selection } : {})}
      />
    </>
  );
}

const tokenKey = (token: ApiToken) => `${token.name} of ${token.user}`;

function TokenTable({ tokens }: { tokens: ApiToken[] }) {
  const { role } = useSession();
  const may = mayAdminister(role);
  const selection = useSelection(tokens.map(tokenKey));
  const chosen = tokens.filter((one) => selection.isChosen(tokenKey(one)));
  const [token] = chosen.length === 1 ? chosen : [];
  return (
    <>
      {may && (
        <Actions
          label="API tokens"
          actions={[
            {
              label: "Revoke",
              on: token !== undefined,
              task: (close) => token && <DeleteToken token={token} close={close} />,
            },
          ]}
        />
      )}
      <Table
        caption="API tokens"
        areAll
        rows={tokens}
        columns={TOKENS}
        name={tokenKey}
        empty="No API tokens."
        {...(may ? { selection } : {})}
      />
    </>
  );
}
