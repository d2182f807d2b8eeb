import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk, linesOf } from "./browser";

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open();
  for (const name of ["app", "db", "log"]) {
    const body = { provisioned: 1024 ** 3 };
    await desk.array.ask("POST", `/api/2.26/volumes?names=${name}`, body);
  }
});
afterAll(async () => {
  await desk.close();
});

const members = async () => {
  const found = await desk.array.items<{ member: { name: string } }>("protection-groups/volumes");
  return found.map((one) => one.member.name);
};
const snapshots = (query: string) =>
  desk.array.items<{ name: string }>("protection-group-snapshots", query);

test("groups are made of volumes, which come and go", async () => {
  await desk.go("Volumes");
  await desk.choose("app", "db");
  await desk.perform("Protect", "Make group", async (dialog) => {
    await dialog.getByLabel("Name").fill("daily");
    expect(await linesOf(dialog)).toEqual(["holdfast group create daily app db"]);
  });
  await desk.go("Protection");
  await desk.choose("daily");
  await desk.perform("Add volumes", "Add", (dialog) => dialog.getByLabel("Volumes").fill("log"));
  expect(await members()).toEqual(["app", "db", "log"]);
  await desk.page.getByRole("link", { name: "daily" }).click();
  await desk.heading("daily");
  await desk.choose("log");
  await desk.perform("Take out", "Take out");
  expect(await members()).toEqual(["app", "db"]);
});

test("groups are snapshotted, and their snapshots end as one", async () => {
  await desk.page.goto("/protection/daily");
  await desk.perform("New snapshot", "Make snapshot", (dialog) =>
    dialog.getByLabel("Suffix").fill("monday"),
  );
  expect(await snapshots("")).toMatchObject([{ name: "daily.monday" }]);
  await desk.destroy("daily.monday", "Destroy snapshot");
  await desk.button("Destroyed").click();
  await desk.recover("daily.monday", "Recover snapshot");
  expect(await snapshots("destroyed=false")).toHaveLength(1);
  await desk.button("Snapshots").click();
  await desk.destroy("daily.monday", "Destroy snapshot");
  await desk.button("Destroyed").click();
  await desk.eradicate("daily.monday", "Eradicate snapshot");
  expect(await snapshots("")).toEqual([]);
});

test("groups are destroyed, recovered and eradicated; their volumes stay", async () => {
  const groups = (query: string) => desk.array.items("protection-groups", query);
  await desk.go("Protection");
  await desk.destroy("daily");
  expect(await groups("destroyed=false")).toEqual([]);
  await desk.button("Destroyed").click();
  await desk.recover("daily");
  expect(await groups("destroyed=false")).toHaveLength(1);
  await desk.button("Groups").click();
  await desk.destroy("daily");
  await desk.button("Destroyed").click();
  await desk.eradicate("daily");
  expect(await groups("")).toEqual([]);
  expect(await desk.array.items("volumes")).toHaveLength(3);
});
