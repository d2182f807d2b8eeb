/** A datastore in two views: as its hosts see it, and what the array stores for it. */
import { count, percent, plural, ratio, time } from "../lib/format";
import { bytes } from "../lib/size";
import type { RestConnection, Volume } from "../lib/types";
import { Facts } from "../parts/page";

export function Views(props: { volume: Volume; connections: RestConnection[] }) {
  const { volume, connections } = props;
  const { space } = volume;
  const reduced = space?.data_reduction ?? null;
  return (
    <div className="views">
      <section className="card">
        <h2>As hosts see it</h2>
        <Facts
          facts={[
            ["Size", bytes(volume.size_bytes)],
            ["Logical block", `${count(volume.block_bytes)} bytes`],
            ["LUN", luns(connections)],
            ["NAA", <code key="naa">{volume.naa}</code>],
            ["Serial", <code key="serial">{volume.serial}</code>],
          ]}
        />
      </section>
      <section className="card">
        <h2>What the array stores for it</h2>
        <Facts
          facts={[
            [
              "Written by hosts",
              `${bytes(volume.mapped_bytes)} (${percent(volume.mapped_bytes, volume.size_bytes)})`,
            ],
            ["Unique", bytes(space?.unique_bytes)],
            ["Its share of shared data", bytes(shared(volume))],
            ["Data reduction", ratio(reduced)],
            ["Total reduction", ratio(space?.total_reduction)],
            ["Snapshots", plural(volume.snapshots, "snapshot")],
          ]}
        />
        <p className="muted">
          {space === null
            ? "Stored bytes are known after the next space accounting pass."
            : `Stored bytes as of ${time(space.as_of_ms)}.`}
        </p>
      </section>
    </div>
  );
}

/** Its share of the data that it has in common with others. */
function shared(volume: Volume): number | null {
  const { space } = volume;
  return space === null ? null : Math.max(0, space.share_bytes - space.unique_bytes);
}

/** `1 (esx-1, esx-2), 7 (backup)`. */
export function luns(connections: RestConnection[]): string {
  const hosts = new Map<number, string[]>();
  for (const one of connections) {
    const seer = one.host.name ?? one.host_group.name ?? "";
    hosts.set(one.lun, [...(hosts.get(one.lun) ?? []), seer]);
  }
  const shown = [...hosts].map(([lun, names]) => {
    const more = names.length > 3 ? ` and ${names.length - 3} more` : "";
    return `${lun} (${names.slice(0, 3).join(", ")}${more})`;
  });
  return shown.length > 0 ? shown.join(", ") : "Not connected";
}
