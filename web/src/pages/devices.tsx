/** The devices of the pool: their states and latencies. */
import { own } from "../lib/api";
import { stateText } from "../lib/devices";
import { count, latency } from "../lib/format";
import { useGet } from "../lib/query";
import { bytes } from "../lib/size";
import type { Device, Devices, DeviceTransfers } from "../lib/types";
import { Loaded } from "../parts/notice";
import { Card } from "../parts/page";
import { type Column, Table } from "../parts/table";

/** How often they are refreshed, in milliseconds. */
const LOOK_MS = 5000;

interface Row {
  device: Device;
  kind: string;
  transfers: DeviceTransfers;
}

const TRANSFERS: Column<Row>[] = [
  { head: "Device", cell: (row) => <code>{row.device.name}</code> },
  { head: "Operation", cell: (row) => row.kind },
  { head: "Completed", number: true, cell: (row) => count(row.transfers.ok) },
  { head: "Bytes", number: true, cell: (row) => bytes(row.transfers.bytes) },
  {
    head: "Mean latency",
    number: true,
    cell: ({ transfers }) =>
      latency(transfers.ok > 0 ? transfers.ok_latency_us / transfers.ok : undefined),
  },
  { head: "In flight", number: true, minor: true, cell: (row) => count(row.transfers.under_way) },
  {
    head: "Failed",
    number: true,
    cell: ({ transfers }) => (
      <span className={transfers.failed > 0 ? "bad" : "good"}>{count(transfers.failed)}</span>
    ),
  },
];

const LONGEST: Column<Row> = {
  head: "Maximum latency",
  number: true,
  minor: true,
  cell: ({ transfers }) => latency(transfers.ok > 0 ? transfers.ok_latency_us_max : undefined),
};

/** Reads that other devices answered, in the row of reads. */
const ELSEWHERE: Column<Row> = {
  head: "Served by others",
  number: true,
  minor: true,
  cell: ({ device, kind }) => (kind === "Reads" ? count(device.calls.reads_elsewhere) : ""),
};

const CALLS = [...TRANSFERS, LONGEST, ELSEWHERE];

function stateOf(device: Device) {
  const isLost = device.state === "out" || device.state === "missing";
  return <span className={isLost ? "bad" : "good"}>{stateText(device)}</span>;
}

const MEMBERS: Column<Device>[] = [
  { head: "Number", number: true, cell: (device) => device.number },
  { head: "Device", cell: (device) => <code>{device.name || "-"}</code> },
  { head: "State", cell: stateOf },
  { head: "Size", number: true, minor: true, cell: (device) => bytes(device.len_bytes) },
  { head: "Read errors", number: true, cell: (device) => count(device.read_errors) },
  { head: "Write errors", number: true, cell: (device) => count(device.write_errors) },
  { head: "Repaired", number: true, minor: true, cell: (device) => count(device.mended) },
];

/** The health that the device reports, or why it reports none. */
function soundnessOf({ health }: Device) {
  if (!health) return "–";
  if (health.passed === null) return health.trouble ?? "–";
  const [look, text] = health.passed ? ["good", "Passed"] : ["bad", "Failed"];
  return <span className={look}>{text}</span>;
}

const withUnit = (value: number | null | undefined, unit: string) =>
  typeof value === "number" ? `${count(value)}${unit}` : "–";

const HEALTH: Column<Device>[] = [
  { head: "Number", number: true, cell: (device) => device.number },
  { head: "Device", cell: (device) => <code>{device.name || "-"}</code> },
  { head: "Health", cell: soundnessOf },
  { head: "Wear", number: true, cell: ({ health }) => withUnit(health?.wear_percent, "%") },
  {
    head: "Temperature",
    number: true,
    minor: true,
    cell: ({ health }) => withUnit(health?.temperature_c, " °C"),
  },
  { head: "Media errors", number: true, cell: ({ health }) => count(health?.media_errors) },
  {
    head: "Power-on time",
    number: true,
    minor: true,
    cell: ({ health }) => withUnit(health?.power_on_hours, " h"),
  },
];

/** A device has a row for reads, and one for commits of the log. */
function rowsOf(devices: Device[]): Row[] {
  return devices.flatMap((device) => [
    { device, kind: "Reads", transfers: device.reads },
    { device, kind: "Commits", transfers: device.commits },
  ]);
}

/** A device has a row for each kind of call. */
function callsOf(devices: Device[]): Row[] {
  return devices.flatMap((device) => [
    { device, kind: "Reads", transfers: device.calls.reads },
    { device, kind: "Writes", transfers: device.calls.writes },
    { device, kind: "Flushes", transfers: device.calls.flushes },
  ]);
}

export function Devices() {
  const devices = useGet<Devices>(own("devices"), LOOK_MS);
  return (
    <Card title="Devices">
      <Loaded query={devices} what="the devices">
        {(found) => (
          <>
            {found.together && (
              <Table
                caption="Devices of the pool"
                rows={found.devices}
                columns={MEMBERS}
                name={(device) => String(device.number)}
                empty="No devices."
              />
            )}
            <Table
              caption="I/O that hosts waited for, since the start"
              rows={rowsOf(found.together ? [found.together] : found.devices)}
              columns={TRANSFERS}
              name={(row) => `${row.device.name} ${row.kind}`}
              empty="No devices."
            />
            <Table
              caption="All I/O of each device, since the start"
              rows={callsOf(found.devices)}
              columns={CALLS}
              name={(row) => `${row.device.number} ${row.kind}`}
              empty="No devices."
            />
            {found.devices.some((device) => device.health) && (
              <Table
                caption="Health that the devices report"
                rows={found.devices}
                columns={HEALTH}
                name={(device) => String(device.number)}
                empty="No devices."
              />
            )}
          </>
        )}
      </Loaded>
    </Card>
  );
}
