/** Hosts that do something: qemu's initiator, for figures that are not all zero. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import type { ArrayUnderTest } from "./array";

const run = promisify(execFile);
const MIB = 1 << 20;

/** How qemu finds a LUN, as the host with this initiator. */
function image(array: ArrayUnderTest, initiator: string, lun: number): string {
  const options = {
    driver: "raw",
    "file.driver": "iscsi",
    "file.transport": "tcp",
    "file.portal": array.told.portals[0] ?? "",
    "file.target": array.told.target_name,
    "file.lun": String(lun),
    "file.initiator-name": initiator,
  };
  return Object.entries(options)
    .map(([name, value]) => `${name}=${value}`)
    .join(",");
}

/** Runs commands of qemu-io. */
async function io(target: string, commands: string[]): Promise<void> {
  const words = commands.flatMap((command) => ["-c", command]);
  await run("qemu-io", ["-d", "unmap", "-t", "none", "--image-opts", target, ...words]);
}

/** Data that is half random, half zeros: some of it can be reduced. */
export async function fill(
  array: ArrayUnderTest,
  initiator: string,
  lun: number,
  mib: number,
): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-load-"));
  const file = join(directory, "data");
  const pieces = Array.from({ length: mib }, () =>
    Buffer.concat([randomBytes(MIB / 2), Buffer.alloc(MIB / 2, "holdfast ")]),
  );
  writeFileSync(file, Buffer.concat(pieces));
  await io(image(array, initiator, lun), [`write -s ${file} 0 ${mib}M`]);
  rmSync(directory, { recursive: true });
}

/** Reads, writes, zeroes and reclaims on LUN 2, and copies LUN 1 to it: once around. */
export async function work(array: ArrayUnderTest, initiator: string): Promise<void> {
  const [source, target] = [image(array, initiator, 1), image(array, initiator, 2)];
  const bench = ["bench", "-t", "none", "-d", "8", "-s", "8192", "-S", "262144", "--image-opts"];
  await run("qemu-img", [...bench, "-c", "3000", target]);
  await run("qemu-img", [...bench, "-w", "-c", "1500", target]);
  await io(target, ["write -z 64M 64M", "discard 64M 64M"]);
  // -C has the array copy, where it can.
  const copy = ["convert", "-n", "-C", "--target-is-zero", "--image-opts", source];
  await run("qemu-img", [...copy, "--target-image-opts", target]);
}

/** Has the array refuse the login of an initiator that has no host. */
export async function knock(array: ArrayUnderTest, initiator: string): Promise<void> {
  const portal = array.told.portals[0] ?? "";
  const came = run("iscsi-ls", ["-i", initiator, `iscsi://${portal}`]);
  await came.then(
    () => {
      throw new Error(`${initiator} was not refused`);
    },
    () => undefined,
  );
}

/** Has an initiator look at all volumes that it sees. */
export async function look(array: ArrayUnderTest, initiator: string): Promise<void> {
  await run("iscsi-ls", ["-s", "-i", initiator, `iscsi://${array.told.portals[0] ?? ""}`]);
}
