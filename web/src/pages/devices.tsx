/** The devices of the pool, and how long hosts wait for them. */
import { own } from "../lib/api";
import { count, latency } from "../lib/format";
import { useGet } from "../lib/query";
import { bytes } from "../lib/size";
import { Loaded } from "../parts/notice";
import { Card } from "../parts/page";
import { type Column, Table } from "../parts/table";

/** How often they are asked for, in milliseconds. */
const LOOK_MS = 5000;

/** Transfers since the start. */
interface DeviceTransfers {
  under_way: number;
  ok: number;
  failed: number;
  bytes: number;
  ok_latency_us: number;
}

interface Device {
  name: string;
  reads: DeviceTransfers;
  commits: DeviceTransfers;
}

interface Row {
  device: Device;
  kind: string;
  transfers: DeviceTransfers;
}

const COLUMNS: Column<Row>[] = [
  { head: "Device", cell: (row) => <code>{row.device.name}</code> },
  { head: "Transfers", cell: (row) => row.kind },
  { head: "Done", number: true, cell: (row) => count(row.transfers.ok) },
  { head: "Moved", number: true, cell: (row) => bytes(row.transfers.bytes) },
  {
    head: "Latency",
    number: true,
    cell: ({ transfers }) =>
      latency(transfers.ok > 0 ? transfers.ok_latency_us / transfers.ok : undefined),
  },
  { head: "Under way", number: true, minor: true, cell: (row) => count(row.transfers.under_way) },
  {
    head: "Failed",
    number: true,
    cell: ({ transfers }) => (
      <span className={transfers.failed > 0 ? "bad" : "good"}>{count(transfers.failed)}</span>
    ),
  },
];

/** A device has a row for reads, and one for commits of the log. */
function rowsOf(devices: Device[]): Row[] {
  return devices.flatMap((device) => [
    { device, kind: "Reads", transfers: device.reads },
    { device, kind: "Commits", transfers: device.commits },
  ]);
}

export function Devices() {
  const devices = useGet<{ devices: Device[] }>(own("devices"), LOOK_MS);
  return (
    <Card title="Devices">
      <Loaded query={devices} what="the devices">
        {(found) => (
          <Table
            caption="Devices: what hosts waited for since the start"
            rows={rowsOf(found.devices)}
            columns={COLUMNS}
            name={(row) => `${row.device.name} ${row.kind}`}
            empty="No devices."
          />
        )}
      </Loaded>
    </Card>
  );
}
