import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk, linesOf } from "./browser";
import type { RestPod, RestVolume } from "../src/lib/types";

const GIB = 1024 ** 3;

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open();
});
afterAll(async () => {
  await desk.close();
});

const pods = (query = "") => desk.array.items<RestPod>("pods", query);
const volumes = async (query = "destroyed=false") =>
  (await desk.array.items<RestVolume>("volumes", query)).map((one) => one.name);

/** The cells of the row of a pod, without the choice. */
const cells = (name: string) =>
  desk.page
    .getByRole("row", { name })
    .locator(":is(th, td):not(.choice)")
    .allInnerTexts();

test("pods are created, and listed with their volumes", async () => {
  await desk.go("Pods");
  await desk.page.getByText("No pods yet.").waitFor();
  for (const name of ["team", "test"]) {
    await desk.perform("New pod", "Create pod", async (dialog) => {
      await dialog.getByLabel("Name").fill(name);
      expect(await linesOf(dialog)).toEqual([`holdfast pod create ${name}`]);
    });
  }
  for (const [name, size] of [["team::db", 2], ["team::log", 1]] as const) {
    await desk.array.ask("POST", "/v1/volumes", { name, size_bytes: size * GIB });
  }
  await desk.page.reload();
  await desk.page.getByRole("link", { name: "team" }).waitFor();
  expect((await cells("team")).slice(0, 4)).toEqual(["team", "2", "3 GiB", "0 B"]);
  expect((await cells("test")).slice(0, 4)).toEqual(["test", "0", "0 B", "0 B"]);
  await desk.button("Volumes", desk.page.getByRole("table")).click();
  await expect.poll(() => desk.page.locator("tbody th").allInnerTexts()).toEqual(["test", "team"]);
  await desk.page.getByLabel("Find pods by name").fill("te");
  await desk.page.getByText("2 in all").waitFor();
  await desk.page.getByLabel("Find pods by name").fill("tea");
  await desk.page.getByText("1 in all").waitFor();
  expect(await desk.page.locator("tbody th").allInnerTexts()).toEqual(["team"]);
});

test("a volume is created in the pod that was chosen, and shows it", async () => {
  await desk.go("Volumes");
  const told = await desk.perform("New volume", "Create volume", async (dialog) => {
    await dialog.getByLabel("Name").fill("app");
    await dialog.getByLabel("Pod").selectOption("test");
    await dialog.getByLabel("Size").fill("1G");
    expect(await linesOf(dialog)).toEqual(["holdfast volume create test::app --size 1G"]);
  });
  expect(told).toContain("test::app was created");
  await desk.page.getByRole("link", { name: "test::app" }).click();
  await desk.heading("test::app");
  await desk.page.getByRole("link", { name: "test", exact: true }).click();
  await desk.heading("test");
  // On a pod's page the pod is chosen already.
  await desk.perform("New volume", "Create volume", async (dialog) => {
    await dialog.getByLabel("Name").fill("tmp");
    await dialog.getByLabel("Size").fill("1G");
  });
  expect(await volumes()).toEqual(["team::db", "team::log", "test::app", "test::tmp"]);
  await desk.page.getByRole("link", { name: "test::tmp" }).waitFor();
  expect(await desk.page.locator("tbody th").allInnerTexts()).toEqual(["test::app", "test::tmp"]);
  await desk.page.getByLabel("Find volumes by name").fill("tm");
  await desk.page.getByText("1 in all").waitFor();
  expect(await desk.page.locator("tbody th").allInnerTexts()).toEqual(["test::tmp"]);
});

test("volumes of pods are renamed, cloned and moved", async () => {
  await desk.go("Volumes");
  await desk.choose("test::tmp");
  await desk.perform("Rename", "Rename", async (dialog) => {
    await dialog.getByLabel("New name").fill("cache");
    expect(await linesOf(dialog)).toEqual(["holdfast volume rename test::tmp test::cache"]);
  });
  await desk.choose("test::cache");
  await desk.perform("Clone", "Clone", async (dialog) => {
    await dialog.getByLabel("Name").fill("copy");
    expect(await dialog.getByLabel("Pod").inputValue()).toBe("test");
    expect(await linesOf(dialog)).toEqual(["holdfast volume clone test::cache test::copy"]);
  });
  await desk.choose("team::log", "test::copy");
  await desk.perform("Move", "Move", async (dialog) => {
    expect(await desk.button("Move", dialog).isEnabled()).toBe(false);
    await dialog.getByLabel("Pod").selectOption("team");
    expect(await linesOf(dialog)).toEqual(["holdfast volume rename test::copy team::copy"]);
  });
  await desk.choose("test::cache");
  await desk.perform("Move", "Move", async (dialog) => {
    await dialog.getByLabel("Pod").selectOption("None");
    expect(await linesOf(dialog)).toEqual(["holdfast volume rename test::cache cache"]);
  });
  expect(await volumes()).toEqual(["cache", "team::copy", "team::db", "team::log", "test::app"]);
  // From the side of the pod, too.
  await desk.go("Pods");
  await desk.choose("test");
  await desk.perform("Add volumes", "Add", async (dialog) => {
    await desk.option(dialog, "test::app").getByText("in the pod already").waitFor();
    await desk.pick(dialog, "Volumes", "cache");
    expect(await linesOf(dialog)).toEqual(["holdfast volume rename cache test::cache"]);
  });
  await desk.choose("test");
  await desk.perform("Add volumes", "Add", (dialog) =>
    desk.pick(dialog, "Volumes", "team::copy"),
  );
  const placed = ["team::db", "team::log", "test::app", "test::cache", "test::copy"];
  expect(await volumes()).toEqual(placed);
  await desk.array.ask("PATCH", "/api/2.26/volumes?names=test::copy", { pod: { name: "team" } });
  await desk.array.ask("PATCH", "/api/2.26/volumes?names=test::cache", { pod: { name: "" } });
});

test("a pod is renamed on its page, which moves with it", async () => {
  await desk.go("Pods");
  await desk.page.getByRole("link", { name: "test" }).click();
  await desk.heading("test");
  const rename = desk.page.getByRole("group", { name: "Pod", exact: true });
  await desk.perform(desk.button("Rename", rename), "Rename", async (dialog) => {
    await dialog.getByLabel("New name").fill("lab");
    expect(await linesOf(dialog)).toEqual(["holdfast pod rename test lab"]);
  });
  await desk.heading("lab");
  await desk.page.getByRole("link", { name: "lab::app" }).waitFor();
  expect(await volumes("filter=pod.name='lab'")).toEqual(["lab::app"]);
});

test("pods are destroyed with their volumes, recovered and eradicated", async () => {
  await desk.go("Pods");
  await desk.choose("team");
  await desk.perform("Destroy", "Destroy", async (dialog) => {
    await dialog.getByText("team, with 3 volumes, can be recovered").waitFor();
    expect(await linesOf(dialog)).toEqual(["holdfast pod destroy team --with-volumes"]);
  });
  expect(await volumes()).toEqual(["cache", "lab::app"]);
  await desk.button("Destroyed").click();
  await desk.recover("team");
  const back = await volumes("filter=pod.name='team'&destroyed=false");
  expect(back).toEqual(["team::copy", "team::db", "team::log"]);
  await desk.button("Pods").click();
  await desk.destroy("team");
  await desk.button("Destroyed").click();
  await desk.choose("team");
  await desk.perform("Eradicate", "Eradicate", async (dialog) => {
    const warning = "Eradicating team with all volumes and snapshots can’t be undone";
    await dialog.getByText(warning).waitFor();
    await dialog.getByLabel("Eradicate permanently").check();
    expect(await linesOf(dialog)).toEqual(["holdfast pod eradicate team --with-volumes"]);
  });
  expect((await pods()).map((one) => one.name)).toEqual(["lab"]);
  expect(await volumes("")).toEqual(["cache", "lab::app"]);
});

test("a pod with a connected volume is not destroyed, and the dialog says why", async () => {
  const iqns = ["iqn.2026-01.com.example:esx-1"];
  await desk.array.ask("POST", "/api/2.26/hosts?names=esx-1", { iqns });
  await desk.array.ask("POST", "/api/2.26/connections?host_names=esx-1&volume_names=lab::app", {});
  await desk.page.goto("/pods/lab");
  await desk.button("Destroy", desk.page.getByRole("group", { name: "Pod", exact: true })).click();
  const dialog = desk.page.getByRole("dialog");
  await desk.button("Destroy", dialog).click();
  await dialog.getByRole("alert").getByText("connect").waitFor();
  await desk.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  expect(await pods("destroyed=false")).toHaveLength(1);
});
