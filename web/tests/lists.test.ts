/** The lists of all snapshots, and of all changes. */
import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk } from "./browser";

/** More than a page of them, two of each volume. */
const VOLUMES = 16;

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open();
  const { array } = desk;
  const names = Array.from({ length: VOLUMES }, (_, at) => `v${String(at).padStart(2, "0")}`);
  const path = `/api/2.26/volumes?names=${names.join(",")}`;
  await array.ask("POST", path, { provisioned: 1024 ** 3 });
  for (const suffix of ["early", "late"]) {
    const sources = `volume-snapshots?source_names=${names.join(",")}`;
    await array.ask("POST", `/api/2.26/${sources}`, { suffix });
  }
  await array.ask("POST", "/api/2.26/admins?names=anna", { role: { name: "storage_admin" } });
});
afterAll(async () => {
  await desk.close();
});

/** The cells of a column, from 0, of the only table. */
const column = (at: number) =>
  desk.page.locator(`.table tbody tr > :nth-child(${at + 1})`).allInnerTexts();

const snapshots = (query: string) =>
  desk.array.items<{ name: string }>("volume-snapshots", query);

test("the snapshots of all volumes are in one list, found and ordered", async () => {
  await desk.go("Snapshots");
  await desk.page.getByText("v00.early", { exact: true }).waitFor();
  expect(await column(1)).toHaveLength(25);
  expect((await column(1)).slice(0, 3)).toEqual(["v00.early", "v00.late", "v01.early"]);
  await desk.button("Next").click();
  await desk.page.getByText("v15.late", { exact: true }).waitFor();
  expect(await column(1)).toHaveLength(2 * VOLUMES - 25);
  await desk.page.getByText("32 in all").waitFor();
  await desk.page.getByLabel("Find snapshots by name").fill("late");
  await desk.page.getByText("v00.late", { exact: true }).waitFor();
  await desk.page.getByText("v00.early", { exact: true }).waitFor({ state: "detached" });
  expect(await column(1)).toHaveLength(VOLUMES);
  await desk.button("Name").click();
  await expect.poll(async () => (await column(1))[0]).toBe("v15.late");
  await desk.page.getByRole("link", { name: "v15", exact: true }).click();
  await desk.heading("v15");
});

test("snapshots of several volumes end and come back at once", async () => {
  await desk.page.goto("/snapshots");
  await desk.choose("v00.early", "v01.late");
  await desk.perform("Destroy snapshot", "Destroy");
  expect(await snapshots("destroyed=true")).toMatchObject([
    { name: "v00.early" },
    { name: "v01.late" },
  ]);
  await desk.button("Destroyed").click();
  await desk.choose("v00.early", "v01.late");
  await desk.perform("Recover snapshot", "Recover");
  expect(await snapshots("destroyed=true")).toEqual([]);
  await desk.page.getByText("No destroyed snapshots.").waitFor();
});

test("the audit log is filtered by user, action and text, and goes on over pages", async () => {
  const asAnna = await desk.array.ask<{ token: string }>("POST", "/v1/tokens", {
    name: "of-anna",
    user: "anna",
  });
  const { told } = desk.array;
  for (let at = 0; at < 30; at += 1) {
    const gone = await desk.page.request.patch(`${told.url}/v1/volumes/none-${at}`, {
      headers: { authorization: `Bearer ${asAnna.token}` },
      data: {},
    });
    expect(gone.status()).toBe(404);
  }
  await desk.go("Audit log");
  await desk.page.getByText("PATCH /v1/volumes/none-29", { exact: true }).waitFor();
  await desk.page.getByLabel("User").fill("admin");
  await expect.poll(async () => [...new Set(await column(1))]).toEqual(["admin"]);

  await desk.page.getByLabel("User").fill("anna");
  await expect.poll(async () => (await column(3))[0]).toBe("PATCH /v1/volumes/none-29");
  expect(await column(3)).toHaveLength(25);
  await desk.button("Next").click();
  await desk.page.getByText("PATCH /v1/volumes/none-0", { exact: true }).waitFor();
  expect(await column(3)).toHaveLength(5);
  await desk.page.getByLabel("Text in request").fill("NONE-2");
  await expect.poll(() => column(3)).toHaveLength(11);
  await desk.page.getByText("11 in all").waitFor();
  await desk.page.getByLabel("Action").selectOption("POST");
  await desk.page.getByText("No matching entries.").waitFor();
});

test("who may not read the audit log is not led to it", async () => {
  const { token } = await desk.array.ask<{ token: string }>("POST", "/v1/tokens", {
    name: "look",
    user: "anna",
  });
  await desk.button("Log out").click();
  await desk.logIn(token);
  await desk.go("Snapshots");
  const navigation = desk.page.getByRole("navigation", { name: "Pages" }).first();
  expect(await navigation.getByRole("link", { name: "Audit log" }).count()).toBe(0);
});
