/** Every page, light and dark, wide and narrow: what axe says of it, and how it looks. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";

import sharp from "sharp";
import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk } from "./browser";
import { fill, work } from "./load";

const GIB = 1024 ** 3;
const PICTURES = "../docs/screenshots";
/** Whether pictures are kept, which `web/test-browser --screenshots` asks for. */
const keeps = process.env["SCREENSHOTS"] === "1";
const PICTURE_BYTES_MAX = 120 * 1024;

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let desk: Desk;
let busy = true;
/** An SNMP manager, so that no alert reports failed notifications. */
const manager = createSocket("udp4");
let working: Promise<void>;

const iqn = (host: string) => `iqn.2026-01.com.example:${host}`;

/** A small site: volumes, hosts, snapshots, a group, users. */
async function furnish(): Promise<void> {
  const { array } = desk;
  const rest = (method: string, path: string, body?: unknown) =>
    array.ask(method, `/api/2.26/${path}`, body);
  for (const host of ["esx-1", "esx-2", "backup"]) {
    await rest("POST", `hosts?names=${host}`, { iqns: [iqn(host)] });
  }
  const names = ["datastore-1", "datastore-2", "db-data", "db-log", "template"];
  for (const [at, name] of names.entries()) {
    await rest("POST", `volumes?names=${name}`, { provisioned: (at + 1) * 10 * GIB });
    await rest("POST", `connections?host_names=esx-1&volume_names=${name}`, {});
  }
  await rest("POST", "connections?host_names=esx-2&volume_names=datastore-1,datastore-2", {});
  await fill(array, iqn("esx-1"), 1, 96);
  await fill(array, iqn("esx-1"), 3, 48);
  await rest("POST", "volumes?names=db-test", { source: { name: "db-data" } });
  await rest("POST", "volume-snapshots?source_names=datastore-1", { suffix: "before-update" });
  await rest("POST", "volume-snapshots?source_names=datastore-1");
  await rest("POST", "host-groups?names=cluster");
  await rest("POST", "host-groups/hosts?group_names=cluster&member_names=backup");
  await rest("POST", "pods?names=team", {});
  await rest("POST", "volumes?names=team::scratch", { provisioned: GIB });
  manager.bind(0, "127.0.0.1");
  await once(manager, "listening");
  const host = `127.0.0.1:${manager.address().port}`;
  const v2c = { community: "lab" };
  await rest("POST", "snmp-managers?names=nms", { version: "v2c", host, v2c });
  await rest("POST", "protection-groups?names=database");
  const members = "group_names=database&member_names=db-data,db-log";
  await rest("POST", `protection-groups/volumes?${members}`);
  await rest("POST", "protection-group-snapshots?source_names=database", { suffix: "nightly" });
  await rest("POST", "admins?names=anna", { role: { name: "storage_admin" } });
  await array.ask("POST", "/v1/tokens", { name: "laptop", user: "anna" });
  await fill(array, iqn("esx-1"), 1, 32);
  await array.ask("POST", "/v1/pool/space");
}

beforeAll(async () => {
  desk = await Desk.open();
  await furnish();
  working = (async () => {
    while (busy) await work(desk.array, iqn("esx-1"));
  })();
});
afterAll(async () => {
  busy = false;
  await working;
  manager.close();
  await desk.close();
});

interface Finding {
  id: string;
  nodes: { html: string }[];
}

/** What axe finds, however little it matters. */
async function findings(): Promise<string[]> {
  await desk.page.evaluate(axe);
  const found = await desk.page.evaluate(async () => {
    const { axe: checker } = window as unknown as {
      axe: { run: () => Promise<{ violations: Finding[] }> };
    };
    return (await checker.run()).violations;
  });
  return found.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(" ")}`);
}

/** Whether nothing but tables is wider than the window. */
async function expectNoSideways(): Promise<void> {
  const over = await desk.page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    return scrollWidth - clientWidth;
  });
  expect(over).toBeLessThanOrEqual(0);
}

async function picture(name: string): Promise<void> {
  const taken = await desk.page.screenshot({ animations: "disabled", caret: "hide" });
  if (!keeps) return;
  const packed = await sharp(taken).png({ palette: true, colours: 96, effort: 10 }).toBuffer();
  expect(packed.length, name).toBeLessThan(PICTURE_BYTES_MAX);
  mkdirSync(PICTURES, { recursive: true });
  writeFileSync(`${PICTURES}/${name}.png`, packed);
}

const PLACES: [name: string, path: string, shown: string][] = [
  ["dashboard", "/", "Capacity by kind"],
  ["volumes", "/volumes", "datastore-1"],
  ["volume", "/volumes/datastore-1", "datastore-1.before-update"],
  ["pods", "/pods", "team"],
  ["pod", "/pods/team", "team::scratch"],
  ["snapshots", "/snapshots", "datastore-1.before-update"],
  ["datastores", "/datastores", "db-test"],
  ["hosts", "/hosts", "esx-2"],
  ["host", "/hosts/esx-1", "datastore-2"],
  ["host-groups", "/host-groups", "cluster"],
  ["host-group", "/host-groups/cluster", "backup"],
  ["protection", "/protection", "database"],
  ["protection-group", "/protection/database", "database.nightly"],
  ["health", "/health", "Scrubbing"],
  ["audit", "/audit", "admin"],
  ["settings", "/settings/array", "Company ID in NAA identifiers"],
  ["settings-offloads", "/settings/offloads", "Offloads of all volumes"],
  ["settings-network", "/settings/network", "Default domain"],
  ["settings-access", "/settings/access", "SHA-256 fingerprint"],
  ["settings-notifications", "/settings/notifications", "nms"],
  ["settings-users", "/settings/users", "laptop"],
  ["settings-directory", "/settings/directory", "User login attribute"],
  ["settings-about", "/settings/about", "iSCSI name"],
];

test.each(["light", "dark"])("every page in %s", async (theme) => {
  await desk.page.getByLabel("Theme").selectOption(theme);
  for (const [name, path, shown] of PLACES) {
    await desk.page.goto(path);
    await desk.page.getByText(shown, { exact: true }).first().waitFor();
    await desk.page.waitForLoadState("networkidle");
    if (name === "dashboard") {
      // Enough samples for lines, which a page that was loaded anew does not have.
      await desk.page.waitForFunction(
        () => document.querySelectorAll(".chart .uplot").length === 6,
      );
      await desk.page.waitForTimeout(keeps ? 60_000 : 7000);
    }
    expect(await findings(), name).toEqual([]);
    await expectNoSideways();
    await picture(`${name}-${theme}`);
  }
});

test("what matters little is found as well", async () => {
  await desk.page.goto("/volumes");
  await desk.page.getByText("datastore-1", { exact: true }).waitFor();
  expect(await findings()).toEqual([]);
  await desk.page.evaluate(() => {
    const stray = document.createElement("p");
    stray.textContent = "Outside of all landmarks";
    document.body.append(stray);
  });
  expect((await findings()).map((found) => found.split(":")[0])).toEqual(["region"]);
});

test("what the array kept is shown behind a click", async () => {
  await desk.page.goto("/");
  const choice = desk.page.getByRole("group", { name: "Time" });
  for (const view of ["Hour", "Year"]) {
    await choice.getByRole("button", { name: view }).click();
    await desk.page.getByRole("heading", { name: "Capacity over time" }).waitFor();
    await desk.page.getByText("Recorded by the array.").waitFor();
    expect(await desk.page.locator(".chart .uplot").count()).toBe(8);
    expect(await findings(), view).toEqual([]);
    await expectNoSideways();
  }
  await choice.getByRole("button", { name: "Now" }).click();
  await desk.page.getByText("The last half hour", { exact: false }).waitFor();
});

test("what a volume, a host, a host group and a port did is shown, with percentiles", async () => {
  const { array } = desk;
  await array.ask("POST", "/api/2.26/host-groups?names=busy");
  const member = "group_names=busy&member_names=esx-1";
  await array.ask("POST", `/api/2.26/host-groups/hosts?${member}`);
  // The array writes what it did twice a minute.
  const isKept = async () => {
    const path = "/v1/history?volume=datastore-2";
    const { samples } = await array.ask<{ samples: { commands: object }[] }>("GET", path);
    return samples.some(({ commands }) => "read" in commands);
  };
  await expect.poll(isKept, { timeout: 90_000, interval: 500 }).toBe(true);
  const row = desk.page.getByRole("row", { name: "Read p99" });
  for (const path of ["/volumes/datastore-2", "/hosts/esx-1", "/host-groups/busy"]) {
    await desk.page.goto(path);
    await row.getByText(/ (µs|ms|s)$/).first().waitFor();
    expect(await findings(), path).toEqual([]);
    await expectNoSideways();
  }
  await desk.page.goto("/");
  await desk.page.getByLabel("Activity of").selectOption("1");
  await desk.page.getByRole("group", { name: "Time" }).getByText("Hour").waitFor();
  expect(await desk.page.getByRole("heading", { name: "Capacity over time" }).count()).toBe(0);
  await row.getByText(/ (µs|ms|s)$/).first().waitFor();
  await array.ask("DELETE", `/api/2.26/host-groups/hosts?${member}`);
  await array.ask("DELETE", "/api/2.26/host-groups?names=busy");
}, 150_000);

/** How many pixels of a chart have the colour of a line. */
const pixelsOf = (title: string, colour: string) =>
  desk.page
    .locator(".chart", { has: desk.page.getByRole("heading", { name: title, exact: true }) })
    .locator("canvas")
    .evaluate((canvas: HTMLCanvasElement, property) => {
      const style = getComputedStyle(document.documentElement);
      const hex = style.getPropertyValue(property).trim().slice(1);
      const wanted = [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16));
      const context = canvas.getContext("2d");
      const found = context?.getImageData(0, 0, canvas.width, canvas.height).data ?? [];
      let pixels = 0;
      for (let at = 0; at < found.length; at += 4) {
        if (wanted.every((value, part) => found[at + part] === value)) pixels += 1;
      }
      return pixels;
    }, colour);

test("a single sample is seen", async () => {
  const history = "/v1/history?start_ms=0&resolution_ms=86400000";
  const { samples } = await desk.array.ask<{ samples: unknown[] }>("GET", history);
  // The array is minutes old: of days it has one, or two at midnight.
  expect(samples.length).toBeLessThan(3);
  await desk.page.goto("/");
  await desk.button("Year").click();
  await desk.page.getByRole("heading", { name: "Capacity over time" }).waitFor();
  await expect.poll(() => pixelsOf("Capacity over time", "--c1")).toBeGreaterThan(10);
});

test("the space of a volume, a host and a host group over time is shown", async () => {
  const { array } = desk;
  // While hosts are busy, the array accounts for space seldom by itself.
  await array.ask("POST", "/v1/pool/space");
  const isKept = async () => {
    const path = "/api/2.26/volumes/space?names=datastore-2&start_time=0";
    const { items } = await array.ask<{ items: { space: { virtual: number } }[] }>("GET", path);
    return items.some(({ space }) => space.virtual > 0);
  };
  await expect.poll(isKept, { timeout: 60_000, interval: 500 }).toBe(true);
  for (const [path, provisioned] of [
    ["/volumes/datastore-2", "20 GiB"],
    ["/hosts/esx-1", "150 GiB"],
    ["/host-groups/cluster", "0 B"],
  ] as const) {
    await desk.page.goto(path);
    for (const view of ["Hour", "Year"]) {
      await desk.button(view).click();
      await desk.page.getByRole("row", { name: `Provisioned ${provisioned}` }).waitFor();
      await expect.poll(() => pixelsOf("Size over time", "--c2")).toBeGreaterThan(10);
      expect(await findings(), `${path}: ${view}`).toEqual([]);
      await expectNoSideways();
    }
  }
}, 120_000);

test.each(["light", "dark"])("a dialog in %s", async (theme) => {
  await desk.page.getByLabel("Theme").selectOption(theme);
  await desk.go("Volumes");
  await desk.button("New volume").click();
  const dialog = desk.page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("datastore-3");
  await dialog.getByLabel("Size").fill("2T");
  await desk.pick(dialog, "Connect to", "esx-2");
  expect(await findings()).toEqual([]);
  await picture(`new-volume-${theme}`);
  await desk.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
});

test.each(["light", "dark"])("a signing request in %s", async (theme) => {
  await desk.page.getByLabel("Theme").selectOption(theme);
  const path = "/api/2.26/certificates?names=management";
  await desk.array.ask("PATCH", path, { country: "US" });
  await desk.section("Access");
  await desk.perform("Create signing request", "Create request", async () => {
    expect(await findings(), "the dialog").toEqual([]);
  });
  await desk.page.getByLabel("Signing request", { exact: true }).waitFor();
  expect(await findings(), "the request").toEqual([]);
  await expectNoSideways();
  await desk.array.ask("DELETE", path);
});

test.each(["light", "dark"])("a choice of volumes in %s, wide and narrow", async (theme) => {
  await desk.page.getByLabel("Theme").selectOption(theme);
  for (const width of [1280, 400]) {
    await desk.page.setViewportSize({ width, height: 900 });
    await desk.page.goto("/protection/database");
    await desk.button("Add volumes").click();
    const dialog = desk.page.getByRole("dialog");
    await desk.option(dialog, "db-log").getByText("in the group already").waitFor();
    expect(await findings(), `${width}: not typed yet`).toEqual([]);
    await desk.pick(dialog, "Volumes", "datastore-1", "template");
    await dialog.getByRole("combobox").fill("d");
    await desk.option(dialog, "datastore-2").waitFor();
    await dialog.getByText("5 matches", { exact: true }).waitFor();
    await dialog.getByRole("combobox").press("ArrowDown");
    expect(await findings(), `${width}: chosen`).toEqual([]);
    await expectNoSideways();
    const over = await dialog.evaluate((box) => box.scrollWidth - box.clientWidth);
    expect(over).toBeLessThanOrEqual(0);
    if (width > 1000) await picture(`add-volumes-${theme}`);
    await dialog.getByRole("combobox").fill("none such");
    await dialog.getByText("No name matches.").waitFor();
    expect(await findings(), `${width}: nothing found`).toEqual([]);
    await desk.page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
  await desk.page.setViewportSize({ width: 1280, height: 900 });
});

test.each(["light", "dark"])("what is seldom seen, in %s", async (theme) => {
  await desk.page.getByLabel("Theme").selectOption(theme);
  await desk.array.ask("PATCH", "/v1/settings", { space_thresholds: [1] });
  const count = desk.page.locator(".bar").getByRole("link", { name: "1 alert" });
  for (const path of ["/dashboard", "/health"]) {
    await desk.page.goto(path);
    await count.waitFor({ timeout: 40_000 });
    expect(await findings(), path).toEqual([]);
  }
  // More changes than a page of them.
  for (let at = 0; at < 26; at += 1) {
    await desk.array.ask("PATCH", "/v1/settings", { space_thresholds: [1] });
  }
  await desk.page.goto("/audit");
  await desk.button("Next").waitFor();
  expect(await findings(), "audit").toEqual([]);
  for (const path of ["/volumes", "/pods", "/snapshots", "/protection"]) {
    await desk.page.goto(path);
    await desk.button("Destroyed").click();
    await desk.page.getByText(/^No destroyed/).waitFor();
    expect(await findings(), path).toEqual([]);
  }
  for (const path of ["/volumes/none", "/hosts/none/none", "/settings/none"]) {
    await desk.page.goto(path);
    await desk.page.locator("main .notice").first().waitFor();
    expect(await findings(), path).toEqual([]);
  }
  const interfaces = ["**/v1/**", "**/api/**"];
  for (const path of interfaces) await desk.page.route(path, (route) => route.abort());
  await desk.page.getByText("The array can’t be reached.").waitFor();
  expect(await findings(), "away").toEqual([]);
  await desk.page.reload();
  await desk.page.getByText("The array does not answer.").waitFor();
  expect(await findings(), "away from the start").toEqual([]);
  for (const path of interfaces) await desk.page.unroute(path);
  await desk.page.getByText("There is no such section.").waitFor();
  await desk.array.ask("PATCH", "/v1/settings", { space_thresholds: [] });
});

test("every page in a small window", async () => {
  await desk.page.getByLabel("Theme").selectOption("light");
  await desk.page.setViewportSize({ width: 400, height: 800 });
  for (const [name, path, shown] of PLACES) {
    await desk.page.goto(path);
    await desk.page.getByText(shown, { exact: true }).first().waitFor();
    expect(await findings(), name).toEqual([]);
    await expectNoSideways();
    if (["dashboard", "volumes", "volume"].includes(name)) await picture(`${name}-small`);
  }
});

test("the login, in dark and light", async () => {
  await desk.page.setViewportSize({ width: 1280, height: 900 });
  for (const theme of ["dark", "light"]) {
    await desk.page.getByLabel("Theme").selectOption(theme);
    await desk.button("Log out").click();
    await desk.page.getByLabel("API token", { exact: true }).waitFor();
    expect(await findings(), theme).toEqual([]);
    if (theme === "light") await picture("login-light");
    else await desk.logIn(desk.array.token);
  }
});
