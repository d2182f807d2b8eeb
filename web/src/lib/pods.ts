/** The names of volumes in pods: `POD::VOLUME`. */

const SEPARATOR = "::";

/** The name of a volume in a pod; an empty pod is none. */
export const inPod = (pod: string, volume: string): string =>
  pod === "" ? volume : pod + SEPARATOR + volume;

/** The pod of a volume or a snapshot, such as `POD::VOLUME` or `GROUP.SUFFIX.POD::VOLUME`. */
export function podOf(name: string): string {
  const [before = "", after] = name.split(SEPARATOR);
  return after === undefined ? "" : before.slice(before.lastIndexOf(".") + 1);
}

/** The name of a volume without its pod or volume group. */
export const ownName = (volume: string): string =>
  volume.slice(Math.max(volume.lastIndexOf(":"), volume.lastIndexOf("/")) + 1);

/** A new name of a volume: without a pod or volume group, it stays in that of the old name. */
export function renamed(volume: string, next: string): string {
  const isWhole = ownName(next) !== next;
  return isWhole ? next : volume.slice(0, volume.length - ownName(volume).length) + next;
}
