import { expect, test } from "vitest";

import * as cli from "./cli";

const GIB = 1024 ** 3;
const made = {
  name: "vm-1",
  sizeBytes: 10 * GIB,
  blockBytes: 512,
  deduplication: true,
  compression: true,
  hosts: [],
  hostGroups: [],
};

test("what is the default is not said", () => {
  expect(cli.volume.create(made)).toBe("holdfast volume create vm-1 --size 10G");
  const other = { ...made, blockBytes: 4096, deduplication: false, compression: false };
  expect(cli.volume.create(other)).toBe(
    "holdfast volume create vm-1 --size 10G --block-size 4096" +
      " --deduplication off --compression off",
  );
  expect(cli.volume.create({ ...made, hosts: ["a", "b"], hostGroups: ["g"] })).toBe(
    "holdfast volume create vm-1 --size 10G --host a,b --host-group g",
  );
  expect(cli.volume.resize("vm-1", 20 * GIB, false)).toBe("holdfast volume resize vm-1 --size 20G");
  expect(cli.snapshot.create(["a", "b"], " ")).toBe("holdfast snapshot create a b");
  expect(cli.connect("vm-1", "esx", "")).toBe("holdfast connect vm-1 esx");
  expect(cli.connect("vm-1", "esx", "7")).toBe("holdfast connect vm-1 esx --lun 7");
});

test("what was not typed yet has a name in capitals", () => {
  expect(cli.volume.create({ ...made, name: " ", sizeBytes: undefined })).toBe(
    "holdfast volume create NAME --size SIZE",
  );
  expect(cli.host.create("", [], "")).toBe("holdfast host create NAME --iqn IQN");
});

test("words are fit for a shell", () => {
  expect(cli.quoted("iqn.2026-01.com.example:a")).toBe("iqn.2026-01.com.example:a");
  expect(cli.quoted("a b")).toBe("'a b'");
  expect(cli.quoted("a'; rm")).toBe("'a'\\''; rm'");
  expect(cli.quoted("$(x)")).toBe("'$(x)'");
});

test("switches say only what changes", () => {
  const change = { unmap: false, compare_and_write: true };
  expect(cli.volume.set("vm-1", change, {})).toBe(
    "holdfast volume set vm-1 --offload ats=on,reclaim=off",
  );
  expect(cli.volume.set("vm-1", {}, { compression: false })).toBe(
    "holdfast volume set vm-1 --compression off",
  );
  expect(cli.array.thresholds([])).toBe("holdfast array set --space-thresholds none");
  expect(cli.array.chapRequired(true)).toBe("holdfast array set --chap-required on");
  expect(cli.array.chapRequired(false)).toBe("holdfast array set --chap-required off");
  expect(cli.array.thresholds([70, 90])).toBe("holdfast array set --space-thresholds 70,90");
});
