/** The audit log, filtered by user, action and text. */
import { useState } from "react";

import { own } from "../lib/api";
import { time } from "../lib/format";
import { useGet } from "../lib/query";
import type { Audit, AuditEntry, Users } from "../lib/types";
import { ChoiceField, TextField } from "../parts/fields";
import { Pager, type Paged } from "../parts/list";
import { Loaded } from "../parts/notice";
import { Page } from "../parts/page";
import { type Column, Table } from "../parts/table";

/** The number of entries on a page. */
const ROWS = 25;

const ACTIONS = [
  ["", "All"],
  ["POST", "POST: create, start"],
  ["PUT", "PUT: replace"],
  ["PATCH", "PATCH: change"],
  ["DELETE", "DELETE: remove"],
] as const;

const COLUMNS: Column<AuditEntry>[] = [
  { head: "Time", cell: (row) => time(row.time_ms) },
  { head: "User", cell: (row) => row.user },
  { head: "Origin", minor: true, cell: (row) => row.origin },
  { head: "Request", cell: (row) => <code>{`${row.method} ${row.path}`}</code> },
  { head: "Names", minor: true, cell: (row) => row.names },
  {
    head: "Outcome",
    cell: (row) => <span className={row.outcome === "done" ? "good" : "bad"}>{row.outcome}</span>,
  },
];

interface Filter {
  user: string;
  action: string;
  text: string;
}

const ALL: Filter = { user: "", action: "", text: "" };

export function AuditLog() {
  const [filter, setFilter] = useState(ALL);
  /** The entry before which each page starts, except for the first page. */
  const [befores, setBefores] = useState<number[]>([]);
  const change = (part: Partial<Filter>) => {
    setBefores([]);
    setFilter({ ...filter, ...part });
  };
  const audit = useGet<Audit>(
    own("audit", {
      limit: ROWS,
      before: befores.at(-1),
      user: filter.user.trim() || undefined,
      action: filter.action || undefined,
      text: filter.text.trim() || undefined,
    }),
  );
  const last = audit.data?.more ? audit.data.entries.at(-1)?.number : undefined;
  const pages: Paged = {
    page: befores.length + 1,
    total: audit.data?.total,
    next: last === undefined ? undefined : () => setBefores([...befores, last]),
    back: befores.length > 0 ? () => setBefores(befores.slice(0, -1)) : undefined,
  };
  return (
    <Page title="Audit log">
      <p className="muted">All requested changes, newest first.</p>
      <Filters filter={filter} change={change} />
      <Loaded query={audit} what="the audit log">
        {(found) => (
          <Table
            caption="Audit log"
            rows={found.entries}
            columns={COLUMNS}
            name={(row) => String(row.number)}
            empty={filter === ALL ? "No changes yet." : "No matching entries."}
          />
        )}
      </Loaded>
      <Pager list={pages} />
    </Page>
  );
}

function Filters(props: { filter: Filter; change: (part: Partial<Filter>) => void }) {
  const { filter, change } = props;
  const users = useGet<Users>(own("users"));
  return (
    <div className="filters" role="search" aria-label="Filter the audit log">
      <TextField
        label="User"
        value={filter.user}
        set={(user) => change({ user })}
        suggestions={(users.data?.users ?? []).map((one) => one.name)}
      />
      <ChoiceField
        label="Action"
        value={filter.action}
        set={(action) => change({ action })}
        choices={[...ACTIONS]}
      />
      <TextField
        label="Text in request, names, origin or outcome"
        value={filter.text}
        set={(text) => change({ text })}
      />
    </div>
  );
}
