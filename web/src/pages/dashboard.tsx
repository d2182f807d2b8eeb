/** The array at a glance: alerts, capacity, reduction and activity. */
import { Link } from "wouter";

import { byWeight } from "../lib/alerts";
import { own } from "../lib/api";
import { count, percent, plural, ratio, time } from "../lib/format";
import { useGet, useOpenAlerts } from "../lib/query";
import { bytes } from "../lib/size";
import type { PoolSpace, Status } from "../lib/types";
import { Capacity, type Part } from "../parts/capacity";
import { Loaded } from "../parts/notice";
import { Card, Figure, Page } from "../parts/page";
import { to } from "../routes";
import { Activity } from "./activity";

export function Dashboard() {
  const status = useGet<Status>(own("status"), 5000);
  const space = useGet<PoolSpace>(own(["pool", "space"]), 5000);
  return (
    <Page title="Dashboard">
      <OpenAlerts />
      <Loaded query={status} what="the status">
        {(found) => (
          <>
            <Figures status={found} />
            <Loaded query={space} what="capacity by kind">
              {(kinds) => <CapacityCard status={found} space={kinds} />}
            </Loaded>
          </>
        )}
      </Loaded>
      <Activity />
    </Page>
  );
}

/** The maximum number of alerts shown; the health page has all of them. */
const NAMED = 5;

/** The worst alerts; nothing while none is open, as the header says so. */
function OpenAlerts() {
  const alerts = useOpenAlerts();
  // Nor while that is unknown: a card that appears and disappears is only confusing.
  if (alerts.isPending || alerts.data?.length === 0) return null;
  return (
    <Card title="Open alerts" aside={<Link href={to("health")}>Recommended actions</Link>}>
      <Loaded query={alerts} what="alerts">
        {(all) => (
          <ul className="alert-names">
            {byWeight(all)
              .slice(0, NAMED)
              .map((alert) => (
                <li key={alert.name}>
                  <span className={alert.severity === "info" ? "" : "bad"}>{alert.severity}</span>
                  {": "}
                  {alert.summary} <span className="muted">since {time(alert.created)}</span>
                </li>
              ))}
            {all.length > NAMED && <li>And {plural(all.length - NAMED, "more", "more")}.</li>}
          </ul>
        )}
      </Loaded>
    </Card>
  );
}

function Figures({ status }: { status: Status }) {
  const { pool } = status;
  return (
    <div className="figures">
      <Figure
        label="In use"
        value={percent(pool.used_bytes, pool.capacity_bytes)}
        more={`${bytes(pool.used_bytes)} of ${bytes(pool.capacity_bytes)}`}
      />
      <Figure
        label="Data reduction"
        value={ratio(pool.data_reduction)}
        more={`${bytes(pool.mapped_bytes)} written, ${bytes(pool.data_bytes)} stored`}
      />
      <Figure
        label="Total reduction"
        value={ratio(pool.total_reduction)}
        more={`${bytes(pool.provisioned_bytes)} provisioned`}
      />
      <Figure
        label="Volumes"
        value={<Link href={to("volumes")}>{count(status.volumes)}</Link>}
        more={`${count(status.snapshots)} snapshots, ${count(status.destroyed)} destroyed`}
      />
      <Figure
        label="Hosts"
        value={<Link href={to("hosts")}>{count(status.hosts)}</Link>}
        more={`${count(status.connections)} connections`}
      />
    </div>
  );
}

function CapacityCard({ status, space }: { status: Status; space: PoolSpace }) {
  const { figures } = space;
  const { capacity_bytes: capacity, used_bytes: used } = status.pool;
  if (figures === null) {
    return (
      <Card title="Capacity">
        <Capacity
          caption="Capacity"
          whole={capacity}
          parts={[
            { label: "In use", colour: "c1", bytes: used },
            { label: "Free", colour: "free", bytes: Math.max(0, capacity - used) },
          ]}
        />
        <p className="muted">
          Capacity by kind is known after the first space accounting pass since the start.
        </p>
      </Card>
    );
  }
  // Used and free space are the same on the whole page; the figures of the last accounting pass are
  // older, and may be higher.
  const inUse = Math.max(used, figures.live_bytes);
  const parts: Part[] = [
    { label: "Unique to volumes", colour: "c1", bytes: figures.unique_bytes },
    { label: "Shared", colour: "c2", bytes: figures.shared_bytes },
    { label: "Snapshots", colour: "c3", bytes: figures.snapshots_bytes },
    { label: "System", colour: "c4", bytes: figures.system_bytes },
    { label: "Reclaimable", colour: "c5", bytes: Math.max(0, used - figures.live_bytes) },
    { label: "Free", colour: "free", bytes: Math.max(0, capacity - inUse) },
  ];
  return (
    <Card title="Capacity by kind">
      <Capacity caption="Capacity by kind" whole={capacity} parts={parts} />
      <p className="muted">
        Stored bytes after reduction, as of {time(figures.as_of_ms)}.{" "}
        {space.current ? "Nothing has changed since." : "Hosts have written since."}
      </p>
    </Card>
  );
}
