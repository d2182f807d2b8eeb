/** The health of the array: alerts, the pool, background work, and damage. */
import { own, request } from "../lib/api";
import * as cli from "../lib/cli";
import { count, percent, plural, time } from "../lib/format";
import { useGet } from "../lib/query";
import { mayAdminister, useSession } from "../lib/session";
import { bytes } from "../lib/size";
import type { DamageEntry, DamageList, Optimize, Pool, PoolSpace, Scrub } from "../lib/types";
import { Actions } from "../parts/actions";
import { Loaded, Notice } from "../parts/notice";
import { Card, Facts, Page } from "../parts/page";
import { type Column, Table } from "../parts/table";
import { Task } from "../parts/task";
import { Pass } from "../tasks/passes";
import { GrowPool } from "../tasks/settings";
import { Alerts } from "./alerts";
import { Controllers } from "./controllers";
import { Devices } from "./devices";

/** How often the progress of background work is refreshed, in milliseconds. */
const PASS_MS = 3000;

export function Health() {
  return (
    <Page title="Health">
      <Alerts />
      <PoolCard />
      <Controllers />
      <Devices />
      <ScrubCard />
      <DamageCard />
      <OptimizeCard />
    </Page>
  );
}

function RefreshSpace({ close }: { close: () => void }) {
  const run = async () => {
    await request("POST", own(["pool", "space"]));
    return "Space accounting has started.";
  };
  return (
    <Task
      title="Update space figures"
      submit="Start"
      cli={[cli.pool.refresh()]}
      run={run}
      close={close}
    >
      <p>
        Scans all metadata to find what each volume and snapshot uses. Host I/O continues.
      </p>
    </Task>
  );
}

function PoolCard() {
  const pool = useGet<Pool>(own("pool"));
  const space = useGet<PoolSpace>(own(["pool", "space"]), PASS_MS);
  const { role } = useSession();
  return (
    <Card
      title="Pool"
      aside={
        mayAdminister(role) && (
          <Actions
            label="Pool"
            actions={[
              {
                label: "Grow",
                on: pool.data !== undefined,
                task: (close) => pool.data && <GrowPool pool={pool.data} close={close} />,
              },
              { label: "Update space", task: (close) => <RefreshSpace close={close} /> },
            ]}
          />
        )
      }
    >
      <Loaded query={pool} what="the pool">
        {(found) => (
          <Facts
            facts={[
              [
                "In use",
                `${bytes(found.used_bytes)} of ${bytes(found.capacity_bytes)}
                  (${percent(found.used_bytes, found.capacity_bytes)})`,
              ],
              ["Allocated", bytes(found.allocated_bytes)],
              ["Log to replay after a failure", bytes(found.log_bytes)],
              ["Written by hosts since the start", bytes(found.written.hosts_bytes)],
              ["Write amplification", found.written.amplification?.toFixed(2) ?? "–"],
              ["Times opened", count(found.epoch)],
              ["ID", <code key="id">{found.id}</code>],
              [
                "Space figures as of",
                space.data?.pending
                  ? "Being updated"
                  : time(space.data?.figures?.as_of_ms),
              ],
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

function Progress({ label, done, total }: { label: string; done: number; total: number }) {
  return <progress aria-label={label} value={done} max={Math.max(1, total)} />;
}

function ScrubCard() {
  const scrub = useGet<Scrub>(own(["pool", "scrub"]), PASS_MS);
  const { role } = useSession();
  const running = scrub.data?.running ?? false;
  return (
    <Card
      title="Scrubbing"
      aside={
        mayAdminister(role) && (
          <Actions
            label="Scrubbing"
            actions={[
              {
                label: running ? "Stop scrubbing" : "Start scrubbing",
                on: scrub.data !== undefined,
                task: (close) => <Pass pass="scrub" running={running} close={close} />,
              },
            ]}
          />
        )
      }
    >
      <Loaded query={scrub} what="scrubbing">
        {(found) => (
          <>
            {found.running && (
              <Progress label="Scrub progress" done={found.done_bytes} total={found.total_bytes} />
            )}
            <Facts
              facts={[
                [
                  "Status",
                  found.running
                    ? `${bytes(found.done_bytes)} of ${bytes(found.total_bytes)} read`
                    : "Not running",
                ],
                ["Last complete pass", time(found.completed_ms)],
                ["Damage found since the start", count(found.findings)],
                ["Repaired since the start", count(found.repairs)],
                [
                  "Still damaged",
                  <span key="damaged" className={found.damaged > 0 ? "bad" : "good"}>
                    {found.damaged > 0 ? count(found.damaged) : "Nothing"}
                  </span>,
                ],
              ]}
            />
          </>
        )}
      </Loaded>
    </Card>
  );
}

const DAMAGE: Column<DamageEntry>[] = [
  { head: "Object", cell: (row) => row.what },
  { head: "Kind", cell: (row) => row.kind },
  { head: "Volume or snapshot", cell: (row) => row.volume ?? "–" },
  { head: "First LBA", number: true, cell: (row) => count(row.first_lba) },
  { head: "Blocks", number: true, cell: (row) => count(row.blocks) },
  { head: "Found", minor: true, cell: (row) => time(row.found_ms) },
  { head: "State", cell: (row) => (row.repaired ? "Repaired" : "Damaged") },
];

function DamageCard() {
  const path = own(["pool", "damage"]);
  const damage = useGet<DamageList>(path);
  return (
    <Card title="Damage">
      <Loaded query={damage} what="the damage list">
        {(found) => (
          <>
            <Table
              caption="Damage"
              rows={found.damage}
              columns={DAMAGE}
              name={(row) => `${row.what} ${row.volume ?? ""} ${row.first_lba ?? ""}`}
              empty="No known damage."
            />
            {found.more > 0 && <Notice kind="warning">And {count(found.more)} more.</Notice>}
            {found.unfreeable > 0 && (
              <Notice kind="warning">
                {plural(found.unfreeable, "part")} of eradicated volumes can’t be freed.
              </Notice>
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}

function OptimizeCard() {
  const optimize = useGet<Optimize>(own(["pool", "optimize"]), PASS_MS);
  const { role } = useSession();
  const running = optimize.data?.running ?? false;
  return (
    <Card
      title="Background reduction"
      aside={
        mayAdminister(role) && (
          <Actions
            label="Reduction"
            actions={[
              {
                label: running ? "Stop reduction" : "Start reduction",
                on: optimize.data !== undefined,
                task: (close) => <Pass pass="optimize" running={running} close={close} />,
              },
            ]}
          />
        )
      }
    >
      <Loaded query={optimize} what="background reduction">
        {(found) => (
          <>
            {found.running && (
              <Progress label="Reduction" done={found.rows_done} total={found.rows_total} />
            )}
            {found.failure !== undefined && <Notice kind="error">{found.failure}</Notice>}
            <Facts
              facts={[
                ["Status", found.running ? "Running" : "Not running"],
                ["Passes since the start", count(found.passes)],
                ["Deduplicated", plural(found.aliased_chunks, "chunk")],
                ["Recompressed", plural(found.rewritten_segments, "segment")],
              ]}
            />
          </>
        )}
      </Loaded>
    </Card>
  );
}
