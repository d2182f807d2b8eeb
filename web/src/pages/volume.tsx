/** A volume: as its hosts see it, what the array stores for it, its snapshots and connections. */
import type { ReactNode } from "react";
import { Link } from "wouter";

import { own, rest } from "../lib/api";
import { OFFLOADS } from "../lib/cli";
import { duration, time } from "../lib/format";
import { limitsText } from "../lib/limits";
import { useAll, useGet } from "../lib/query";
import { mayStore, useSession } from "../lib/session";
import type { Items, RestConnection, RestLimits, RestVolume, Volume } from "../lib/types";
import { Actions } from "../parts/actions";
import { Loaded, Notice } from "../parts/notice";
import { Card, Facts, Page } from "../parts/page";
import { EditOffloads, OFFLOAD_KEYS, OFFLOAD_NAMES } from "../tasks/settings";
import { to } from "../routes";
import { ActivityOf } from "./activity";
import { ConnectionTable } from "./connection-table";
import { PathTable } from "./path-table";
import { SnapshotList } from "./snapshot-list";
import { Views } from "./views";
import { VolumeActions } from "./volume-actions";

export function VolumePage({ name }: { name: string }) {
  const volume = useGet<Volume>(own(["volumes", name]));
  const listed = useGet<Items<RestVolume>>(rest("volumes", { names: name }));
  const back = <Link href={to("volumes")}>All volumes</Link>;
  const row = listed.data?.items.find((one) => one.name.toLowerCase() === name.toLowerCase());
  return (
    <Page title={name} aside={back}>
      <Loaded query={volume} what="this volume">
        {(found) => (
          <>
            {row?.pod.name !== undefined && (
              <p className="muted">
                In pod <Link href={to("pods", row.pod.name)}>{row.pod.name}</Link>
              </p>
            )}
            {row && <VolumeActions volumes={[row]} areDestroyed={row.destroyed} />}
            {row?.destroyed && (
              <Notice kind="warning">
                This volume is destroyed. It can be recovered for another
                {` ${duration((row.time_remaining ?? 0) / 1000)}`}.
              </Notice>
            )}
            <Parts volume={found} limits={row?.qos} />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Parts({ volume, limits }: { volume: Volume; limits: RestLimits | undefined }) {
  const { name } = volume;
  const isDestroyed = volume.eradicate_ms !== undefined;
  const connections = useAll<RestConnection>("connections", { volume_names: name });
  return (
    <>
      <Loaded query={connections} what="connections">
        {(found) => (
          <>
            <Views volume={volume} connections={found} />
            {!isDestroyed && (
              <Card title="Connections">
                <ConnectionTable connections={found} show="host" />
              </Card>
            )}
          </>
        )}
      </Loaded>
      <Card title="Snapshots">
        <SnapshotList volume={name} />
      </Card>
      <ActivityOf of={{ volume: name }} />
      <Card title="Paths">
        <PathTable fits={(path) => path.volume === name} show="initiator" />
      </Card>
      {!isDestroyed && <Switches volume={volume} limits={limits} />}
    </>
  );
}

function state(isOn: boolean, isSet: boolean): ReactNode {
  if (isOn) return <span className="good">On</span>;
  return <span className="muted">{isSet ? "Off for the whole array" : "Off"}</span>;
}

function Switches({ volume, limits }: { volume: Volume; limits: RestLimits | undefined }) {
  const { role } = useSession();
  const { offloads, offloads_in_effect: effective, deduplication, compression } = volume;
  const on = (is: boolean) => state(is, false);
  return (
    <Card
      title="Settings"
      aside={
        mayStore(role) && (
          <Actions
            label="Volume settings"
            actions={[
              {
                label: "Change settings",
                task: (close) => (
                  <EditOffloads
                    name={volume.name}
                    offloads={offloads}
                    reduction={{ deduplication, compression }}
                    close={close}
                  />
                ),
              },
            ]}
          />
        )
      }
    >
      <Facts
        facts={[
          ...OFFLOAD_KEYS.map(
            (key) =>
              [
                `${OFFLOAD_NAMES[key][0]} (${OFFLOADS[key]})`,
                state(effective[key], offloads[key]),
              ] as const,
          ),
          ["Deduplication", on(deduplication)],
          ["Compression", on(compression)],
          ...(limits === undefined ? [] : [["Limits", limitsText(limits)] as const]),
          ["Created", time(volume.created_ms)],
        ]}
      />
    </Card>
  );
}
