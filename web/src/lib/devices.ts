/** The state of a device in its pool, in words. */
import { duration } from "./format";
import { bytes } from "./size";
import type { Device } from "./types";

/** The state of a device in its pool. */
export type DeviceStanding = Pick<Device, "state" | "why_out" | "catching_up" | "parts">;

const STATES = { in: "In use", catching_up: "Catching up", out: "Out of use", missing: "Missing" };

/** `Catching up: 1 GiB of 4 GiB, 2 h 5 min left`, `Out of use: a write failed; rebuilt …`. */
export function stateText(device: DeviceStanding): string {
  const { catching_up: progress, parts, why_out: why } = device;
  const left = (seconds: number | null) => (seconds === null ? "" : `, ${duration(seconds)} left`);
  const told: string[] = [];
  if (progress !== null) {
    const { done_bytes: done, all_bytes: all } = progress;
    told.push(`${bytes(done)} of ${bytes(all)}${left(progress.left_s)}`);
  } else if (why !== null) {
    told.push(why);
  }
  if (parts?.is_emptied) {
    told.push(`its data moves to other devices${left(parts.left_s)}`);
  } else if (parts && parts.left_s !== null) {
    told.push(`rebuilt on other devices in ${duration(parts.left_s)}`);
  }
  return [STATES[device.state], ...(told.length > 0 ? [told.join("; ")] : [])].join(": ");
}
