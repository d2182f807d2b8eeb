import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk } from "./browser";
import type { HostCheck, RestAlert } from "../src/lib/types";

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open("1G");
  // Of so small a pool the array itself takes more than that: it fills up, and an alert opens.
  await desk.array.ask("PATCH", "/v1/settings", { space_thresholds: [1] });
  await desk.array.ask("POST", "/api/2.26/hosts?names=esx-1", {
    iqns: ["iqn.2026-01.com.example:esx-1"],
  });
});
afterAll(async () => {
  await desk.close();
});

const alerts = (state: string) => desk.array.items<RestAlert>("alerts", `filter=state='${state}'`);

/** The cells of a table on the page, row by row. */
async function cellsOf(caption: string): Promise<string[][]> {
  const table = desk.page.getByRole("table", { name: caption });
  await table.waitFor();
  const rows = await table.locator("tbody tr").all();
  return Promise.all(rows.map((row) => row.locator("th, td").allInnerTexts()));
}

test("an alert says what to do, is marked as seen, and closed", async () => {
  await expect.poll(() => alerts("open"), { timeout: 30_000 }).toHaveLength(1);
  const [open] = await alerts("open");
  if (open === undefined) throw new Error("no alert is open");
  expect(open.flagged).toBe(true);
  await desk.go("Health");
  const shown = (await cellsOf("Open alerts")).flat().join("\n");
  expect(shown).toContain(open.summary);
  expect(shown).toContain("eradicate");

  await desk.choose(open.name);
  await desk.perform("Clear flag", "Clear flag");
  expect(await alerts("open")).toMatchObject([{ name: open.name, flagged: false }]);

  await desk.choose(open.name);
  const actions = desk.page.getByRole("group", { name: "Alerts" });
  await desk.perform(desk.button("Close", actions), "Close");
  expect(await alerts("open")).toEqual([]);
  expect(await alerts("closed")).toMatchObject([{ name: open.name }]);
  await desk.page.getByText("No open alerts.").waitFor();
});

test("the device of the pool is shown with what hosts wait for", async () => {
  await desk.go("Health");
  const { devices } = await desk.array.ask<{ devices: { name: string }[] }>("GET", "/v1/devices");
  const cells = await cellsOf("I/O that hosts waited for, since the start");
  const name = devices[0]?.name;
  expect(cells.map((row) => row.slice(0, 2))).toEqual([
    [name, "Reads"],
    [name, "Commits"],
  ]);
});

test("controllers say which of them has the pool, and whether the other is there", async () => {
  const caption = "Controllers, and which of them owns the pool";
  await desk.go("Health");
  const alone = await cellsOf(caption);
  expect(alone.map((row) => row.slice(0, 2))).toEqual([["CT0", "owns the pool"]]);
  // Of two, made up from what the array says: tests-peer has two that are real.
  await desk.page.route("**/v1/controllers", async (route) => {
    const answer = await route.fetch();
    const { controllers } = (await answer.json()) as { controllers: object[] };
    const other = { mode: "secondary", version: "", started_ms: 0, portals: ["192.0.2.9:3260"] };
    const others = [
      { ...other, name: "CT1", status: "ready" },
      { ...other, name: "CT2", status: "not ready" },
    ];
    await route.fulfill({ json: { controllers: [...controllers, ...others] } });
  });
  await desk.page.reload();
  await desk.page.getByText("192.0.2.9:3260").first().waitFor();
  const shown = await cellsOf(caption);
  expect(shown.map((row) => row.slice(0, 2))).toEqual([
    ["CT0", "owns the pool"],
    ["CT1", "forwards"],
    ["CT2", "not ready"],
  ]);
  await desk.page.unroute("**/v1/controllers");
});

test("a device that is lost or leaves says how long that takes yet", async () => {
  // Made up from what the array says: a real one takes minutes to tell.
  await desk.page.route("**/v1/devices", async (route) => {
    const answer = await route.fetch();
    const { devices } = (await answer.json()) as { devices: object[] };
    const parts = { all: 9, used: 3, is_emptied: false, left_s: 7500 };
    const lost = { ...devices[0], number: 1, state: "missing", name: "", parts };
    const leaving = { ...lost, number: 2, state: "in", parts: { ...parts, is_emptied: true } };
    const together = { ...devices[0], name: "pool" };
    const json = { devices: [...devices, lost, leaving], together };
    await route.fulfill({ response: answer, json });
  });
  await desk.page.goto("/health");
  const cells = await cellsOf("Devices of the pool");
  await desk.page.unrouteAll({ behavior: "wait" });
  expect(cells.map((row) => row[2])).toEqual([
    "In use",
    "Missing: rebuilt on other devices in 2 h 5 min",
    "In use: its data moves to other devices, 2 h 5 min left",
  ]);
});

test("a host is checked, and what is seen stands beside what is best", async () => {
  await desk.go("Hosts");
  await desk.page.getByRole("link", { name: "esx-1" }).click();
  await desk.heading("esx-1");
  const check = await desk.array.ask<HostCheck>("GET", "/v1/hosts/esx-1/check");
  const cells = await cellsOf("Check of the host");
  const names = { good: "Good", improve: "Improve", unseen: "Not seen yet" };
  const wanted = check.rows.map((row) => [
    row.check.replaceAll("_", " "),
    row.unreported ? "Check on the host" : names[row.verdict],
    row.seen,
    row.best,
  ]);
  expect(cells.map((row) => row.slice(0, 4))).toEqual(wanted);
  expect(wanted.length).toBeGreaterThan(9);
  // Timers, which hosts do not tell: what they should be is shown for each host.
  const timers = check.rows.findIndex((row) => row.check === "no_path_timeout");
  expect(cells[timers]?.[6]).toContain("PDORemovePeriod");
  const { good, improve, unseen } = check;
  const sum = `${good} good, ${improve} to improve, ${unseen} not seen yet`;
  await desk.page.getByText(sum).waitFor();
  await desk.page.getByText("holdfast host check esx-1").waitFor();
});
