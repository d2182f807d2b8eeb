/** Paths: the I/O of each initiator to each volume, now and since the array was started. */
import { count, latency, rate } from "../lib/format";
import { pathKey, sumOf } from "../lib/rates";
import { usePaths } from "../lib/sampler";
import { bytes } from "../lib/size";
import type { PathCounters } from "../lib/types";
import { type Column, Table } from "../parts/table";

export function PathTable(props: {
  fits: (path: PathCounters) => boolean;
  show: "initiator" | "both";
}) {
  const { fits, show } = props;
  const { paths, hasPaths, pathRates } = usePaths();
  const rows = paths.filter(fits);
  const rateOf = (path: PathCounters) => pathRates.get(pathKey(path));
  const volume: Column<PathCounters> = {
    head: "Volume",
    cell: (path) => path.volume ?? (path.volume_id === null ? "No LUN" : "Deleted"),
  };
  const columns: Column<PathCounters>[] = [
    { head: "Initiator", cell: (path) => path.initiator },
    ...(show === "both" ? [volume] : []),
    {
      head: "IOPS now",
      number: true,
      cell: (path) => {
        const now = rateOf(path)?.perSecond ?? 0;
        return now > 0 ? <span className="good">{rate(now)}</span> : "Idle";
      },
    },
    {
      head: "Bandwidth",
      number: true,
      minor: true,
      cell: (path) => `${bytes(rateOf(path)?.bytesPerSecond ?? 0)}/s`,
    },
    {
      head: "Latency",
      number: true,
      minor: true,
      cell: (path) => latency(rateOf(path)?.latencyUs),
    },
    { head: "Commands", number: true, cell: (path) => count(sumOf(path.commands).ok) },
    {
      head: "Failed",
      number: true,
      minor: true,
      cell: (path) => count(sumOf(path.commands).failed),
    },
  ];
  return (
    <>
      <Table
        caption="Paths"
        rows={rows}
        columns={columns}
        name={pathKey}
        empty={
          hasPaths
            ? "No initiator has sent a command since the array was started."
            : "Loading…"
        }
      />
      {rows.length > 0 && (
        <p className="muted">
          Commands are counted since the array was started; rates are current.
        </p>
      )}
    </>
  );
}
