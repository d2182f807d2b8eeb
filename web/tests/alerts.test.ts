/** What every page says: how many alerts are open, and whether the array answers. */
import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk } from "./browser";
import type { RestAlert } from "../src/lib/types";

/** That it is said at all, on a machine however busy: `lib/reach.test.ts` adds up how soon. */
const WITHIN_MS = 30_000;

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open("1G");
});
afterAll(async () => {
  desk.array.goOn();
  await desk.close();
});

const openAlerts = () => desk.array.items<RestAlert>("alerts", "filter=state='open'");
const counted = () => desk.page.locator(".bar").getByRole("link");
const away = () => desk.page.getByText("The array can’t be reached.");

/** All pages that have a link. */
async function links(): Promise<string[]> {
  return desk.page
    .getByRole("navigation", { name: "Pages" })
    .getByRole("link")
    .allInnerTexts();
}

test("open alerts are counted on every page, with the worst severity", async () => {
  await counted().filter({ hasText: "No alerts" }).waitFor();
  await desk.page.goto("/dashboard");
  expect(await desk.page.getByRole("heading", { name: "Open alerts" }).count()).toBe(0);
  // Of so small a pool the array itself takes more than that: it fills up, and an alert opens.
  await desk.array.ask("PATCH", "/v1/settings", { space_thresholds: [1] });
  await expect.poll(openAlerts, { timeout: 30_000 }).toHaveLength(1);
  const [alert] = await openAlerts();
  if (alert === undefined) throw new Error("no alert is open");
  for (const page of await links()) {
    await desk.go(page);
    const text = `1 alert: ${alert.severity}`;
    await counted().filter({ hasText: text }).waitFor();
  }
  await desk.go("Dashboard");
  const named = desk.page.locator(".alert-names");
  expect(await named.innerText()).toContain(`${alert.severity}: ${alert.summary}`);
  await counted().click();
  await desk.heading("Health");
  await desk.choose(alert.name);
  const actions = desk.page.getByRole("group", { name: "Alerts" });
  await desk.perform(desk.button("Close", actions), "Close");
  await counted().filter({ hasText: "No alerts" }).waitFor();
});

test("every page says in time that the array is away, and when it is back", async () => {
  await desk.go("Volumes");
  await desk.page.getByText("No volumes yet.").waitFor();
  expect(await away().count()).toBe(0);
  desk.array.hang();
  await away().waitFor({ timeout: WITHIN_MS });
  for (const page of await links()) {
    await desk.go(page);
    expect(await away().isVisible(), page).toBe(true);
  }
  desk.array.goOn();
  await away().waitFor({ state: "detached", timeout: WITHIN_MS });
  // What could not be asked for is asked for again.
  await desk.go("Volumes");
  await desk.page.getByText("No volumes yet.").waitFor();
});

test("a page that is opened while the array is away finds it later", async () => {
  const interfaces = ["**/v1/**", "**/api/**"];
  for (const path of interfaces) await desk.page.route(path, (route) => route.abort());
  await desk.page.reload();
  await away().waitFor({ timeout: WITHIN_MS });
  await desk.page.getByText("The array does not answer.").waitFor();
  expect(await desk.button("Log out").count()).toBe(0);
  for (const path of interfaces) await desk.page.unroute(path);
  await desk.heading("Volumes");
  await away().waitFor({ state: "detached" });
  await desk.page.getByText("No volumes yet.").waitFor();
});

test("the login says so too", async () => {
  await desk.button("Log out").click();
  await desk.page.getByLabel("API token", { exact: true }).waitFor();
  desk.array.hang();
  await away().waitFor({ timeout: WITHIN_MS });
  desk.array.goOn();
  await away().waitFor({ state: "detached", timeout: WITHIN_MS });
  await desk.logIn(desk.array.token);
});
