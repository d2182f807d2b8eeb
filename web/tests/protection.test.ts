import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk, linesOf } from "./browser";

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open();
  for (const name of ["app", "db", "gone", "log"]) {
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
  await desk.perform("Protect", "Create group", async (dialog) => {
    await dialog.getByLabel("Name").fill("daily");
    expect(await linesOf(dialog)).toEqual(["holdfast group create daily app db"]);
  });
  // A group that lacks one of its volumes is not left behind.
  await desk.choose("log");
  await desk.button("Protect").click();
  const dialog = desk.page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("half");
  await desk.pick(dialog, "Volumes", "gone");
  await desk.array.ask("PATCH", "/api/2.26/volumes?names=gone", { destroyed: true });
  await desk.array.ask("DELETE", "/api/2.26/volumes?names=gone");
  await desk.button("Create group", dialog).click();
  await dialog.getByRole("alert").getByText("Volume does not exist.").waitFor();
  await desk.page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  const groups = await desk.array.items<{ name: string }>("protection-groups");
  expect(groups.map((one) => one.name)).toEqual(["daily"]);
  await desk.go("Protection");
  await desk.choose("daily");
  await desk.perform("Add volumes", "Add", async (dialog) => {
    await desk.pick(dialog, "Volumes", "log");
    // What is in the group already is shown, and can't be chosen again.
    await dialog.getByRole("combobox", { name: "Volumes" }).fill("a");
    const member = desk.option(dialog, "app");
    await member.getByText("in the group already").waitFor();
    expect(await member.isDisabled()).toBe(true);
    expect(await linesOf(dialog)).toEqual(["holdfast group add daily log"]);
  });
  expect(await members()).toEqual(["app", "db", "log"]);
  await desk.page.getByRole("link", { name: "daily" }).click();
  await desk.heading("daily");
  await desk.choose("log");
  await desk.perform("Remove volumes", "Remove");
  expect(await members()).toEqual(["app", "db"]);
});

test("groups are snapshotted, and their snapshots end as one", async () => {
  await desk.page.goto("/protection/daily");
  await desk.perform("New snapshot", "Create snapshot", (dialog) =>
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

test("a schedule says what is kept in all, before it is set and after", async () => {
  const kept = "All for 7 d, then 4 per day for 7 d more: 14 d in total, about 196 snapshots";
  await desk.page.goto("/protection/daily");
  await desk.perform("Schedule", "Change", async (dialog) => {
    await dialog.getByLabel("Take snapshots on a schedule").check();
    await dialog.getByLabel("Every").fill("1h");
    await dialog.getByLabel("Keep all for").fill("7d");
    await dialog.getByText(`Every 1 h. ${kept}.`).waitFor();
    expect(await dialog.getByLabel("At (UTC)").count()).toBe(0);
    await dialog.getByLabel("For additional days").fill("0");
    await dialog.getByText("All for 7 d, about 168 snapshots.").waitFor();
    await dialog.getByLabel("For additional days").fill("x");
    await dialog.getByText("A summary appears here").waitFor();
    expect(await desk.button("Change", dialog).isEnabled()).toBe(false);
    await dialog.getByLabel("For additional days").fill("7");
    expect(await linesOf(dialog)).toEqual([
      "holdfast group set daily --schedule on --every 1h --keep 7d --keep-per-day 4 --keep-days 7",
    ]);
  });
  await desk.page.getByText(kept, { exact: true }).waitFor();
  const [group] = await desk.array.items("protection-groups", "names=daily");
  expect(group).toMatchObject({
    snapshot_schedule: { enabled: true, frequency: 3_600_000 },
    source_retention: { all_for_sec: 604_800, per_day: 4, days: 7 },
  });
  await desk.go("Protection");
  await desk.page.getByText(kept, { exact: true }).waitFor();
});

test("a schedule of days has a time of day, which hours clear with a word", async () => {
  const schedule = async () => {
    const [group] = await desk.array.items("protection-groups", "names=daily");
    return group?.["snapshot_schedule"];
  };
  const taken = "Every 1 d at 02:30 UTC";
  await desk.page.goto("/protection/daily");
  await desk.perform("Schedule", "Change", async (dialog) => {
    await dialog.getByLabel("Every").fill("1d");
    await dialog.getByLabel("At (UTC)").fill("25:00");
    expect(await desk.button("Change", dialog).isEnabled()).toBe(false);
    await dialog.getByLabel("At (UTC)").fill("2:30");
    await dialog.getByText(`${taken}. All for 14 d, about 14 snapshots.`).waitFor();
    expect((await linesOf(dialog))[0]).toContain("--every 1d --at 02:30 --keep 7d");
  });
  await desk.page.getByText(taken, { exact: true }).waitFor();
  expect(await schedule()).toEqual({ enabled: true, frequency: 86_400_000, at: 9_000_000 });
  await desk.perform("Schedule", "Change", async (dialog) => {
    expect(await dialog.getByLabel("At (UTC)").inputValue()).toBe("02:30");
    await dialog.getByLabel("Every").fill("6h");
    await dialog.getByText("Its time of day, 02:30 UTC, is cleared.").waitFor();
    expect((await linesOf(dialog))[0]).toContain("--every 6h --at none --keep 7d");
  });
  await desk.page.getByText("Every 6 h", { exact: true }).waitFor();
  expect(await schedule()).toEqual({ enabled: true, frequency: 21_600_000, at: null });
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
