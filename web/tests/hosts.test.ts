import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk, linesOf } from "./browser";
import { knock } from "./load";
import type { RestHost } from "../src/lib/types";

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open();
  for (const name of ["vm-1", "vm-2"]) {
    const body = { provisioned: 1024 ** 3 };
    await desk.array.ask("POST", `/api/2.26/volumes?names=${name}`, body);
  }
});
afterAll(async () => {
  await desk.close();
});

const hosts = (query = "") => desk.array.items<RestHost>("hosts", query);
const connections = async () => {
  const found = await desk.array.items<{
    host: { name: string };
    volume: { name: string };
    lun: number;
  }>("connections");
  return found.map((one) => [one.host.name, one.volume.name, one.lun]);
};

test("who was refused is offered as a new host", async () => {
  const [first, second] = ["iqn.2026-01.com.example:came", "iqn.2026-01.com.example:came-too"];
  await knock(desk.array, first);
  await knock(desk.array, second);
  await desk.go("Hosts");
  await desk.perform("New host", "Create host", async (dialog) => {
    await dialog.getByLabel("Name").fill("found");
    const told = dialog.getByText(/from 127\.0\.0\.1: it is not a known host, or has no CHAP/);
    await told.first().waitFor();
    expect(await told.count()).toBe(2);
    await dialog.getByLabel(first, { exact: true }).check();
    await dialog.getByLabel(second, { exact: true }).check();
    await dialog.getByLabel(second, { exact: true }).uncheck();
    expect(await linesOf(dialog)).toEqual([`holdfast host create found --iqn ${first}`]);
  });
  expect(await hosts()).toMatchObject([{ name: "found", iqns: [first] }]);
  // Who has a host is not offered again.
  await desk.button("New host").click();
  const dialog = desk.page.getByRole("dialog");
  await dialog.getByLabel(second, { exact: true }).waitFor();
  expect(await dialog.getByLabel(first, { exact: true }).count()).toBe(0);
  await desk.page.keyboard.press("Escape");
  await desk.array.ask("DELETE", "/api/2.26/hosts?names=found");
});

test("hosts are made, with CHAP or without", async () => {
  await desk.go("Hosts");
  await desk.perform("New host", "Create host", async (dialog) => {
    await dialog.getByLabel("Name").fill("esx-1");
    const iqns = ["iqn.2026-01.com.example:a", "iqn.2026-01.com.example:b"];
    await dialog.getByLabel("Initiators").fill(iqns.join("\n"));
    await dialog.getByText("CHAP", { exact: true }).click();
    await dialog.getByLabel("CHAP user").fill("chap user");
    await dialog.getByLabel("CHAP secret").fill("secret-of-esx-1");
    const [line] = await linesOf(dialog);
    expect(line).toContain("--chap-user 'chap user' --chap-secret-file -");
    expect(line).not.toContain("secret-of-esx-1");
  });
  expect(await hosts()).toMatchObject([
    {
      name: "esx-1",
      iqns: ["iqn.2026-01.com.example:a", "iqn.2026-01.com.example:b"],
      chap: { host_user: "chap user" },
    },
  ]);
});

test("hosts are changed and renamed", async () => {
  await desk.go("Hosts");
  await desk.choose("esx-1");
  await desk.perform("Initiators", "Change", (dialog) =>
    dialog.getByLabel("Initiators").fill("iqn.2026-01.com.example:c"),
  );
  await desk.choose("esx-1");
  await desk.perform("CHAP", "Change", (dialog) => dialog.getByLabel("Remove CHAP").check());
  await desk.choose("esx-1");
  await desk.perform("Rename", "Rename", (dialog) => dialog.getByLabel("New name").fill("esx-9"));
  expect(await hosts()).toMatchObject([
    { name: "esx-9", iqns: ["iqn.2026-01.com.example:c"], chap: { host_user: null } },
  ]);
});

test("volumes are connected from either side, and disconnected", async () => {
  await desk.go("Volumes");
  await desk.choose("vm-1");
  await desk.perform("Connect", "Connect", async (dialog) => {
    await desk.pick(dialog, "Host or host group", "esx-9");
    await dialog.getByLabel("LUN").fill("7");
  });
  await desk.go("Hosts");
  await desk.choose("esx-9");
  await desk.perform("Connect volumes", "Connect", async (dialog) => {
    const taken = desk.option(dialog, "vm-1").getByText("connected already");
    await taken.waitFor();
    await desk.pick(dialog, "Volumes", "vm-2");
    expect(await linesOf(dialog)).toEqual(["holdfast connect vm-2 esx-9"]);
  });
  expect(await connections()).toEqual([
    ["esx-9", "vm-2", 1],
    ["esx-9", "vm-1", 7],
  ]);
  await desk.page.getByRole("link", { name: "esx-9" }).click();
  await desk.heading("esx-9");
  await desk.choose("vm-1 to esx-9", "vm-2 to esx-9");
  await desk.perform("Disconnect", "Disconnect");
  expect(await connections()).toEqual([]);
});

test("hosts are deleted", async () => {
  await desk.go("Hosts");
  await desk.choose("esx-9");
  await desk.perform("Delete", "Delete");
  expect(await hosts()).toEqual([]);
});
