import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk } from "./browser";

const VOLUMES = 10_000;
const AT_ONCE = 500;

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open();
  for (let from = 0; from < VOLUMES; from += AT_ONCE) {
    const numbers = Array.from({ length: AT_ONCE }, (_, at) => from + at);
    const names = numbers.map((number) => `v${String(number).padStart(5, "0")}`);
    const path = `/api/2.26/volumes?names=${names.join(",")}`;
    await desk.array.ask("POST", path, { provisioned: 1024 ** 3 });
  }
});
afterAll(async () => {
  await desk.close();
});

const rows = () => desk.page.getByRole("table", { name: "Volumes" }).locator("tbody tr");

test("ten thousand volumes are shown page by page, found and ordered", async () => {
  await desk.go("Volumes");
  await desk.page.getByRole("link", { name: "v00000" }).waitFor();
  expect(await rows().count()).toBe(25);
  await desk.page.getByText("10,000 in all").waitFor();
  await desk.button("Next").click();
  await desk.page.getByRole("link", { name: "v00025" }).waitFor();
  await desk.button("Next").click();
  await desk.page.getByRole("link", { name: "v00050" }).waitFor();
  await desk.button("Back").click();
  await desk.page.getByRole("link", { name: "v00025" }).waitFor();
  await desk.page.getByLabel("Find volumes by name").fill("9999");
  await desk.page.getByRole("link", { name: "v09999" }).waitFor();
  expect(await rows().count()).toBe(1);
  await desk.page.getByText("1 in all", { exact: true }).waitFor();
  await desk.page.getByLabel("Find volumes by name").fill("");
  await desk.button("Name").click();
  await desk.page.getByRole("link", { name: "v09999" }).waitFor();
});

test("the other pages stay short with them", async () => {
  await desk.go("Datastores");
  await desk.page.getByRole("link", { name: "v00024" }).waitFor();
  const table = desk.page.getByRole("table", { name: "Datastores" });
  expect(await table.locator("tbody tr").count()).toBe(25);
  await desk.go("Dashboard");
  await desk.page.getByRole("link", { name: "10,000" }).waitFor();
});

test("one of ten thousand volumes is chosen without loading them all", async () => {
  await desk.array.ask("POST", "/api/2.26/protection-groups?names=nightly");
  await desk.page.goto("/protection/nightly");
  const asked: URLSearchParams[] = [];
  desk.page.on("request", (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname.endsWith("/volumes") && searchParams.has("limit")) asked.push(searchParams);
  });
  await desk.perform("Add volumes", "Add", async (dialog) => {
    await desk.option(dialog, "v00024").waitFor();
    const field = dialog.getByRole("combobox", { name: "Volumes" });
    // The end of the list brings the next page.
    await field.press("ArrowUp");
    await desk.option(dialog, "v00049").waitFor();
    await field.pressSequentially("9998");
    await desk.option(dialog, "v09998").click();
    await field.fill("v0777");
    await dialog.getByText("10 matches", { exact: true }).waitFor();
    await desk.pick(dialog, "Volumes", "v07777");
  });
  const members = await desk.array.items<{ member: { name: string } }>("protection-groups/volumes");
  expect(members.map((one) => one.member.name)).toEqual(["v07777", "v09998"]);
  const pages = asked.filter((one) => !one.has("group_names"));
  expect(pages.length).toBeGreaterThan(3);
  expect(pages.length).toBeLessThan(12);
  expect([...new Set(pages.map((one) => one.get("limit")))]).toEqual(["25"]);
  // Typed in one go, it is searched for once.
  expect(pages.filter((one) => one.get("filter")?.includes("*9")).length).toBe(1);
});

test("counters of all paths are asked for only where they are shown", async () => {
  const asked: string[] = [];
  desk.page.on("request", (request) => {
    if (request.url().includes("/v1/counters")) asked.push(new URL(request.url()).search);
  });
  const reached = (end: string) =>
    desk.page.waitForRequest((request) => request.url().endsWith(end));
  for (const path of ["/", "/volumes"]) {
    const without = reached("/v1/counters?paths=false");
    await desk.page.goto(path);
    await without;
  }
  expect(asked).not.toContain("");
  const withPaths = reached("/v1/counters");
  await desk.page.goto("/volumes/v00000");
  await withPaths;
  await desk.page.getByText("No initiator has sent a command", { exact: false }).waitFor();
  const again = reached("/v1/counters?paths=false");
  await desk.go("Dashboard");
  await again;
});
