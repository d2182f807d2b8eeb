/**
 * All volumes: each as its hosts see it, next to what the array stores for it.
 */
import { useQueries } from "@tanstack/react-query";
import { Link } from "wouter";

import { get, own } from "../lib/api";
import { percent, ratio } from "../lib/format";
import { useAll } from "../lib/query";
import { bytes } from "../lib/size";
import type { RestConnection, RestVolume, Volume } from "../lib/types";
import { Pager, Search, useList } from "../parts/list";
import { Loaded } from "../parts/notice";
import { Page } from "../parts/page";
import { to } from "../routes";
import { luns } from "./views";

export function Datastores() {
  const list = useList<RestVolume>("volumes", { destroyed: false });
  return (
    <Page title="Datastores">
      <p className="muted">
        Each volume as its hosts see it, next to what the array stores for it.
      </p>
      <Search list={list} what="volumes" />
      <Loaded query={list.query} what="volumes">
        {() => <Both volumes={list.rows} />}
      </Loaded>
      <Pager list={list} />
    </Page>
  );
}

/** REST 2.x lacks some fields of volumes: they are requested one by one, for one page only. */
function useVolumes(names: string[]): Map<string, Volume> {
  return useQueries({
    queries: names.map((name) => {
      const path = own(["volumes", name]);
      return { queryKey: [path], queryFn: () => get<Volume>(path), refetchInterval: 10_000 };
    }),
    combine: (answers) => {
      const found = answers.flatMap((one) => (one.data ? [one.data] : []));
      return new Map(found.map((one) => [one.name, one]));
    },
  });
}

function Both({ volumes }: { volumes: RestVolume[] }) {
  const names = volumes.map((one) => one.name);
  const details = useVolumes(names);
  const connections = useAll<RestConnection>("connections", { volume_names: names });
  if (volumes.length === 0) return <p className="muted empty">No volumes found.</p>;
  return (
    <div className="table" role="region" aria-label="Datastores" tabIndex={0}>
      <table className="both">
        <caption className="unseen">Datastores</caption>
        <thead>
          <tr>
            <td />
            <th scope="colgroup" colSpan={3}>
              As hosts see it
            </th>
            <th scope="colgroup" colSpan={5}>
              What the array stores
            </th>
          </tr>
          <tr>
            <th scope="col">Volume</th>
            <th scope="col" className="number">
              Size
            </th>
            <th scope="col">LUN</th>
            <th scope="col">NAA</th>
            <th scope="col" className="number">
              Written
            </th>
            <th scope="col" className="number">
              Unique
            </th>
            <th scope="col" className="number">
              Shared
            </th>
            <th scope="col" className="number">
              Snapshots
            </th>
            <th scope="col" className="number">
              Reduction
            </th>
          </tr>
        </thead>
        <tbody>
          {volumes.map((one) => (
            <Row
              key={one.name}
              volume={one}
              detail={details.get(one.name)}
              luns={luns(
                (connections.data ?? []).filter((found) => found.volume.name === one.name),
              )}
            />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Row(props: { volume: RestVolume; detail: Volume | undefined; luns: string }) {
  const { volume, detail } = props;
  const space = detail?.space ?? null;
  const shared = space === null ? null : Math.max(0, space.share_bytes - space.unique_bytes);
  const written = volume.space.virtual;
  return (
    <tr>
      <th scope="row">
        <Link href={to("volumes", volume.name)}>{volume.name}</Link>
      </th>
      <td className="number">{bytes(volume.provisioned)}</td>
      <td>{props.luns}</td>
      <td>
        <code>{detail?.naa ?? "…"}</code>
      </td>
      <td className="number">
        {bytes(written)} ({percent(written, volume.provisioned)})
      </td>
      <td className="number">{bytes(space?.unique_bytes)}</td>
      <td className="number">{bytes(shared)}</td>
      <td className="number">{detail?.snapshots ?? "…"}</td>
      <td className="number">{ratio(space?.data_reduction)}</td>
    </tr>
  );
}
