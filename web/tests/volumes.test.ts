import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk, linesOf } from "./browser";
import type { RestVolume } from "../src/lib/types";

const GIB = 1024 ** 3;

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open();
});
afterAll(async () => {
  await desk.close();
});

const volumes = (query = "destroyed=false") => desk.array.items<RestVolume>("volumes", query);
const names = async (resource: string, query = "") =>
  (await desk.array.items<{ name: string }>(resource, query)).map((one) => one.name);

test("volumes are made, with hosts and host groups at once if wanted", async () => {
  const iqns = ["iqn.2026-01.com.example:esx-1"];
  await desk.array.ask("POST", "/api/2.26/hosts?names=esx-1", { iqns });
  await desk.array.ask("POST", "/api/2.26/hosts?names=esx-2", {});
  await desk.array.ask("POST", "/api/2.26/host-groups?names=cluster");
  const member = "group_names=cluster&member_names=esx-2";
  await desk.array.ask("POST", `/api/2.26/host-groups/hosts?${member}`);
  await desk.go("Volumes");
  const told = await desk.perform("New volume", "Create volume", async (dialog) => {
    await dialog.getByLabel("Name").fill("vm-1");
    await dialog.getByLabel("Size").fill("10G");
    await desk.pick(dialog, "Connect to", "esx-1", "cluster");
    expect(await linesOf(dialog)).toEqual([
      "holdfast volume create vm-1 --size 10G --host esx-1 --host-group cluster",
    ]);
  });
  expect(told).toContain("vm-1 was created and connected to esx-1, cluster");
  const [made] = await volumes();
  expect(made).toMatchObject({ name: "vm-1", provisioned: 10 * GIB, connection_count: 2 });
  // What the array refuses of it leaves no volume behind.
  await desk.button("New volume").click();
  const dialog = desk.page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("half");
  await dialog.getByLabel("Size").fill("1G");
  await desk.pick(dialog, "Connect to", "cluster", "esx-2");
  await desk.button("Create volume", dialog).click();
  const refusal = "Host esx-2 is in a host group that is also named.";
  await dialog.getByRole("alert").getByText(refusal).waitFor();
  await desk.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  expect(await volumes()).toHaveLength(1);

  await desk.perform("New volume", "Create volume", async (dialog) => {
    await dialog.getByLabel("Name").fill("vm-2");
    await dialog.getByLabel("Size").fill("1.5G");
    await dialog.getByText("More", { exact: true }).click();
    await dialog.getByLabel("Logical block").selectOption("4096");
    await dialog.getByLabel("Compression").uncheck();
  });
  expect(await desk.array.ask("GET", "/v1/volumes/vm-2")).toMatchObject({
    size_bytes: 1.5 * GIB,
    block_bytes: 4096,
    compression: false,
    deduplication: true,
  });
});

test("a volume in a volume group has a page, and is changed there", async () => {
  await desk.array.ask("POST", "/api/2.26/volume-groups?names=team", {});
  await desk.array.ask("POST", "/v1/volumes", { name: "team/db", size_bytes: GIB });
  await desk.go("Volumes");
  await desk.page.getByRole("link", { name: "team/db", exact: true }).click();
  await desk.heading("team/db");
  await desk.page.reload();
  await desk.heading("team/db");
  await desk.page.getByText("naa.6").first().waitFor();
  await desk.array.ask("PATCH", "/api/2.26/volume-groups?names=team", { destroyed: true });
  await desk.array.ask("DELETE", "/api/2.26/volume-groups?names=team");
  expect(await names("volumes", "filter=name='team/*'")).toEqual([]);
});

test("what the array refuses is told in the dialog", async () => {
  await desk.go("Volumes");
  await desk.button("New volume").click();
  const dialog = desk.page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("vm-1");
  await dialog.getByLabel("Size").fill("1G");
  await desk.button("Create volume", dialog).click();
  expect(await dialog.getByRole("alert").innerText()).toContain("already exists");
  await desk.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
});

test("volumes are renamed, resized and cloned", async () => {
  await desk.go("Volumes");
  await desk.choose("vm-2");
  await desk.perform("Rename", "Rename", (dialog) => dialog.getByLabel("New name").fill("vm-two"));
  await desk.choose("vm-two");
  await desk.perform("Resize", "Resize", (dialog) => dialog.getByLabel("New size").fill("2G"));
  await desk.choose("vm-two");
  await desk.perform("Resize", "Resize", async (dialog) => {
    await dialog.getByLabel("New size").fill("1G");
    await dialog.getByLabel("Permanently discard").check();
    expect(await linesOf(dialog)).toEqual(["holdfast volume resize vm-two --size 1G --truncate"]);
  });
  expect(await volumes("names=vm-two")).toMatchObject([{ provisioned: GIB }]);
  await desk.choose("vm-1");
  await desk.perform("Clone", "Clone", (dialog) => dialog.getByLabel("Name").fill("vm-3"));
  expect(await volumes("names=vm-3")).toMatchObject([{ provisioned: 10 * GIB }]);
  await desk.choose("vm-3");
  await desk.perform("Resize", "Resize", (dialog) => dialog.getByLabel("New size").fill("12G"));
  await desk.choose("vm-3");
  await desk.perform("Overwrite", "Overwrite", (dialog) =>
    desk.pick(dialog, "Source: a volume or a snapshot", "vm-1"),
  );
  expect(await volumes("names=vm-3")).toMatchObject([{ provisioned: 10 * GIB }]);
});

test("snapshots are made of several at one moment, renamed, restored, cloned", async () => {
  await desk.go("Volumes");
  await desk.choose("vm-1", "vm-3");
  await desk.perform("Snapshot", "Create snapshot", (dialog) =>
    dialog.getByLabel("Suffix").fill("before"),
  );
  expect(await names("volume-snapshots")).toEqual(["vm-1.before", "vm-3.before"]);

  await desk.page.getByRole("link", { name: "vm-1", exact: true }).click();
  await desk.heading("vm-1");
  await desk.perform("New snapshot", "Create snapshot");
  expect(await names("volume-snapshots", "source_names=vm-1")).toEqual(["vm-1.1", "vm-1.before"]);
  await desk.choose("vm-1.1");
  await desk.perform("Rename snapshot", "Rename", (dialog) =>
    dialog.getByLabel("New suffix").fill("later"),
  );
  await desk.choose("vm-1.later");
  await desk.perform("Restore", "Restore");
  await desk.choose("vm-1.later");
  await desk.perform("Clone to volume", "Clone", (dialog) =>
    dialog.getByLabel("Name").fill("vm-4"),
  );
  expect(await volumes("names=vm-4")).toHaveLength(1);
});

test("snapshots are destroyed, recovered and eradicated", async () => {
  await desk.page.goto("/volumes/vm-1");
  await desk.destroy("vm-1.later", "Destroy snapshot");
  await desk.page
    .getByRole("group", { name: "Which snapshots" })
    .getByRole("button", { name: "Destroyed" })
    .click();
  await desk.recover("vm-1.later", "Recover snapshot");
  expect(await names("volume-snapshots", "names=vm-1.later&destroyed=false")).toHaveLength(1);
  await desk.button("Snapshots").click();
  await desk.destroy("vm-1.later", "Destroy snapshot");
  await desk.button("Destroyed").click();
  await desk.eradicate("vm-1.later", "Eradicate snapshot");
  expect(await names("volume-snapshots", "source_names=vm-1")).toEqual(["vm-1.before"]);
});

test("switches of a volume are shown and turned", async () => {
  await desk.page.goto("/volumes/vm-1");
  const opener = desk.page.getByRole("group", { name: "Volume settings" }).getByRole("button");
  await desk.perform(opener, "Change", async (dialog) => {
    await dialog.getByLabel("EXTENDED COPY").uncheck();
    await dialog.getByLabel("Compression").uncheck();
    expect(await linesOf(dialog)).toEqual([
      "holdfast volume set vm-1 --offload full-copy=off --compression off",
    ]);
  });
  expect(await desk.array.ask("GET", "/v1/volumes/vm-1")).toMatchObject({
    offloads: { extended_copy: false, unmap: true },
    compression: false,
  });
});

test("volumes are destroyed, recovered and eradicated", async () => {
  await desk.go("Volumes");
  await desk.choose("vm-3", "vm-4");
  await desk.perform("Destroy", "Destroy");
  expect((await volumes("destroyed=true")).map((one) => one.name)).toEqual(["vm-3", "vm-4"]);
  await desk.button("Destroyed").click();
  await desk.recover("vm-3");
  await desk.eradicate("vm-4");
  const left = (await volumes("")).map((one) => [one.name, one.destroyed]);
  expect(left).toEqual([
    ["vm-1", false],
    ["vm-3", false],
    ["vm-two", false],
  ]);
});

test("a volume that is not there is told, not shown", async () => {
  await desk.page.goto("/volumes/nothing");
  const told = await desk.page.getByRole("alert").innerText();
  expect(told).toContain("nothing");
  expect(told).not.toContain("support");
});
