/** How a host uses the array compared with best practice, and its sessions. */
import { own } from "../lib/api";
import * as cli from "../lib/cli";
import { count } from "../lib/format";
import { useGet } from "../lib/query";
import type { HostCheck, HostCheckRow, HostSession, HostSessions } from "../lib/types";
import { Command } from "../parts/command";
import { Loaded } from "../parts/notice";
import { Card } from "../parts/page";
import { type Column, Table } from "../parts/table";

const VERDICTS = { good: "Good", improve: "Improve", unseen: "Not seen yet" } as const;
const CLASSES = { good: "good", improve: "bad", unseen: "muted" } as const;

const verdict = ({ unreported, verdict: found }: HostCheckRow) =>
  unreported ? "Check on the host" : VERDICTS[found];
const isAdvised = (row: HostCheckRow) => row.verdict === "improve" || row.unreported;

const named = (check: string) => check.replaceAll("_", " ");

const ROWS: Column<HostCheckRow>[] = [
  { head: "Check", cell: (row) => named(row.check) },
  {
    head: "Verdict",
    cell: (row) => <span className={CLASSES[row.verdict]}>{verdict(row)}</span>,
  },
  { head: "Observed", cell: (row) => row.seen },
  { head: "Recommended", minor: true, cell: (row) => row.best },
  { head: "On ESXi", minor: true, cell: (row) => isAdvised(row) && row.esxi },
  { head: "On Linux", minor: true, cell: (row) => isAdvised(row) && row.linux },
  { head: "On Windows", minor: true, cell: (row) => isAdvised(row) && row.windows },
];

export function HostCheckCard({ name }: { name: string }) {
  const check = useGet<HostCheck>(own(["hosts", name, "check"]));
  return (
    <Card title="Best practice">
      <Loaded query={check} what="the check of this host">
        {(found) => (
          <>
            <p>
              {found.good} good, {found.improve} to improve, {found.unseen} not seen yet, by what
              the array has observed since its start.
            </p>
            <Table
              caption="Check of the host"
              rows={found.rows}
              columns={ROWS}
              name={(row) => row.check}
              empty="No checks."
            />
          </>
        )}
      </Loaded>
      <Command lines={[cli.host.check(name)]} />
    </Card>
  );
}

const SESSIONS: Column<HostSession>[] = [
  { head: "Portal", cell: (row) => row.portal_address },
  { head: "Address", cell: (row) => row.peer },
  { head: "Initiator", minor: true, cell: (row) => row.initiator },
  { head: "Commands", number: true, cell: (row) => count(row.commands) },
  { head: "Maximum in flight", number: true, minor: true, cell: (row) => count(row.queue_most) },
  {
    head: "MaxBurstLength",
    number: true,
    minor: true,
    cell: (row) => count(row.terms.burst_bytes),
  },
];

export function HostSessionsCard({ name }: { name: string }) {
  const sessions = useGet<HostSessions>(own("host-sessions"));
  return (
    <Card title="Sessions">
      <Loaded query={sessions} what="sessions">
        {(found) => (
          <Table
            caption="Sessions of the host"
            areAll
            rows={found.sessions.filter((session) => session.host === name)}
            columns={SESSIONS}
            name={(row) => `${row.initiator} ${row.isid} ${row.portal}`}
            empty="No sessions: the host is not logged in."
          />
        )}
      </Loaded>
    </Card>
  );
}
