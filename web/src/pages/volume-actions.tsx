/** Actions on the chosen volumes. */
import * as cli from "../lib/cli";
import { mayStore, useSession } from "../lib/session";
import type { RestVolume } from "../lib/types";
import { type Action, Actions } from "../parts/actions";
import { ConnectVolumes } from "../tasks/connections";
import { Destroy, Eradicate, Recover, recoverSome } from "../tasks/endings";
import { EditLimits } from "../tasks/limits";
import { MoveVolumes } from "../tasks/pods";
import { CreateGroup } from "../tasks/protection";
import { CreateSnapshot } from "../tasks/snapshots";
import {
  CloneVolume,
  CreateVolume,
  OverwriteVolume,
  RenameVolume,
  ResizeVolume,
} from "../tasks/volumes";

const KIND = { resource: "volumes", kind: "volume" };

function existing(volumes: RestVolume[]): Action[] {
  const names = volumes.map((one) => one.name);
  const [volume] = volumes;
  const name = volume?.name ?? "";
  const some = volumes.length > 0;
  const one = volumes.length === 1;
  return [
    {
      label: "Snapshot",
      on: some,
      task: (close) => <CreateSnapshot volumes={names} close={close} />,
    },
    {
      label: "Connect",
      on: some,
      task: (close) => <ConnectVolumes volumes={names} close={close} />,
    },
    { label: "Clone", on: one, task: (close) => <CloneVolume source={name} close={close} /> },
    {
      label: "Resize",
      on: one,
      task: (close) => volume && <ResizeVolume volume={volume} close={close} />,
    },
    { label: "Rename", on: one, task: (close) => <RenameVolume name={name} close={close} /> },
    {
      label: "Move",
      on: some,
      task: (close) => <MoveVolumes volumes={names} close={close} />,
    },
    {
      label: "Overwrite",
      on: one,
      task: (close) => <OverwriteVolume name={name} close={close} />,
    },
    ...(volume?.qos === undefined
      ? []
      : [
          {
            label: "Limits",
            on: one,
            task: (close: () => void) => <EditLimits volume={volume} close={close} />,
          },
        ]),
    {
      label: "Protect",
      on: some,
      task: (close) => <CreateGroup volumes={names} close={close} />,
    },
    {
      label: "Destroy",
      on: some,
      task: (close) => (
        <Destroy
          {...KIND}
          names={names}
          along="with snapshots"
          cli={names.map(cli.volume.destroy)}
          close={close}
        />
      ),
    },
  ];
}

function destroyed(names: string[]): Action[] {
  const on = names.length > 0;
  return [
    {
      label: "Recover",
      on,
      task: (close) => (
        <Recover {...KIND} names={names} cli={names.map(cli.volume.recover)} close={close} />
      ),
    },
    {
      label: "Eradicate",
      on,
      task: (close) => (
        <Eradicate {...KIND} names={names} cli={names.map(cli.volume.eradicate)} close={close} />
      ),
    },
  ];
}

export function VolumeActions(props: {
  volumes: RestVolume[];
  areDestroyed: boolean;
  /** Whether new volumes can be created here, too. */
  withNew?: boolean;
  /** The preselected pod of new volumes. */
  pod?: string | undefined;
}) {
  const { volumes, areDestroyed, withNew = false, pod } = props;
  const { role } = useSession();
  if (!mayStore(role)) return null;
  const make: Action = {
    label: "New volume",
    primary: true,
    task: (close) => <CreateVolume pod={pod} close={close} />,
  };
  const recover = recoverSome("volumes", "volumes", (names) => names.map(cli.volume.recover));
  const actions = areDestroyed ? destroyed(volumes.map((one) => one.name)) : existing(volumes);
  return <Actions label="Volumes" actions={withNew ? [make, ...actions, recover] : actions} />;
}
