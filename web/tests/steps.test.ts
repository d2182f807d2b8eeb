/** Every daily task takes three steps at most, from the dashboard on (docs/web.md: Tasks). */
import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk } from "./browser";
import { knock } from "./load";
import type { RestAlert } from "../src/lib/types";

const GIB = 1024 ** 3;
const STEPS_MAX = 3;
const CAME = "iqn.2026-01.com.example:came";

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open("1G");
  const { array } = desk;
  for (const name of ["app", "db", "log", "old"]) {
    await array.ask("POST", "/v1/volumes", { name, size_bytes: GIB });
  }
  await rest("POST", "hosts?names=esx-1", { iqns: ["iqn.2026-01.com.example:esx-1"] });
  await rest("POST", "host-groups?names=cluster");
  await rest("POST", "protection-groups?names=daily");
  await rest("POST", "volume-snapshots?source_names=db", { suffix: "before" });
  await rest("PATCH", "volumes?names=db", { provisioned: 2 * GIB });
  await knock(array, CAME);
  // Of so small a pool the array itself takes more than that: it fills up, and an alert opens.
  await array.ask("PATCH", "/v1/settings", { space_thresholds: [1] });
});
afterAll(async () => {
  await desk.close();
});

const rest = (method: string, path: string, body?: unknown) =>
  desk.array.ask(method, `/api/2.26/${path}`, body);
const items = (list: string) => desk.array.items(list);
const alerts = (state: string) => desk.array.items<RestAlert>("alerts", `filter=state='${state}'`);
const members = async (list: string) => {
  const found = await desk.array.items<{ member: { name: string } }>(list);
  return found.map((one) => one.member.name);
};
const connections = async () => {
  type Pair = { host: { name: string }; volume: { name: string } };
  const found = await desk.array.items<Pair>("connections");
  return found.map((one) => `${one.volume.name} to ${one.host.name}`);
};

/** How each task is done, and what must be true then. */
interface Task {
  does: () => Promise<unknown>;
  then: () => Promise<void>;
}

/** Opens a page, chooses rows of its list, and performs a task. */
const onPage =
  (page: string, rows: string[], ...task: Parameters<Desk["perform"]>) =>
  async () => {
    await desk.go(page);
    await desk.choose(...rows);
    await desk.perform(...task);
  };

const holds = (list: string, wanted: object) => async () => {
  expect(await items(list)).toEqual(expect.arrayContaining([expect.objectContaining(wanted)]));
};

const TASKS: Record<string, Task> = {
  "create a volume and connect it to a host": {
    does: onPage("Volumes", [], "New volume", "Create volume", async (dialog) => {
      await dialog.getByLabel("Name").fill("vm-1");
      await dialog.getByLabel("Size").fill("2G");
      await desk.pick(dialog, "Connect to", "esx-1");
    }),
    then: async () => expect(await connections()).toEqual(["vm-1 to esx-1"]),
  },
  "grow a volume": {
    does: onPage("Volumes", ["vm-1"], "Resize", "Resize", (dialog) =>
      dialog.getByLabel("New size").fill("3G"),
    ),
    then: holds("volumes", { name: "vm-1", provisioned: 3 * GIB }),
  },
  "rename a volume": {
    does: onPage("Volumes", ["old"], "Rename", "Rename", (dialog) =>
      dialog.getByLabel("New name").fill("archive"),
    ),
    then: holds("volumes", { name: "archive" }),
  },
  "take a snapshot": {
    does: onPage("Volumes", ["vm-1"], "Snapshot", "Create snapshot"),
    then: holds("volume-snapshots", { name: "vm-1.1" }),
  },
  "clone a volume": {
    does: onPage("Volumes", ["vm-1"], "Clone", "Clone", (dialog) =>
      dialog.getByLabel("Name").fill("vm-2"),
    ),
    then: holds("volumes", { name: "vm-2" }),
  },
  "clone a snapshot": {
    does: onPage("Snapshots", ["db.before"], "Clone to volume", "Clone", (dialog) =>
      dialog.getByLabel("Name").fill("db-test"),
    ),
    then: holds("volumes", { name: "db-test" }),
  },
  "restore a volume from a snapshot": {
    does: onPage("Snapshots", ["db.before"], "Restore", "Restore"),
    // The snapshot is from before it grew.
    then: holds("volumes", { name: "db", provisioned: GIB }),
  },
  "set limits of a volume": {
    does: onPage("Volumes", ["vm-1"], "Limits", "Change", (dialog) =>
      dialog.getByLabel("IOPS limit").fill("2000"),
    ),
    then: holds("volumes", {
      name: "vm-1",
      qos: expect.objectContaining({ iops_limit: 2000 }) as object,
    }),
  },
  "connect a volume": {
    does: onPage("Volumes", ["db"], "Connect", "Connect", (dialog) =>
      desk.pick(dialog, "Host or host group", "esx-1"),
    ),
    then: async () => expect(await connections()).toContain("db to esx-1"),
  },
  "connect several volumes to a host": {
    does: onPage("Hosts", ["esx-1"], "Connect volumes", "Connect", (dialog) =>
      desk.pick(dialog, "Volumes", "app", "log"),
    ),
    then: async () =>
      expect(await connections()).toEqual(expect.arrayContaining(["app to esx-1", "log to esx-1"])),
  },
  "disconnect volumes from a host": {
    does: onPage("Hosts", ["esx-1"], "Disconnect volumes", "Disconnect", (dialog) =>
      desk.pick(dialog, "Volumes", "app", "db", "log", "vm-1"),
    ),
    then: async () => expect(await connections()).toEqual([]),
  },
  "create a host from an initiator that was refused": {
    does: onPage("Hosts", [], "New host", "Create host", async (dialog) => {
      await dialog.getByLabel("Name").fill("esx-2");
      await dialog.getByLabel(CAME, { exact: true }).check();
    }),
    then: holds("hosts", { name: "esx-2", iqns: [CAME] }),
  },
  "add hosts to a host group": {
    does: onPage("Host groups", ["cluster"], "Add hosts", "Add", (dialog) =>
      desk.pick(dialog, "Hosts", "esx-1", "esx-2"),
    ),
    then: async () => expect(await members("host-groups/hosts")).toEqual(["esx-1", "esx-2"]),
  },
  "protect volumes": {
    does: onPage("Volumes", ["app", "db"], "Protect", "Create group", (dialog) =>
      dialog.getByLabel("Name").fill("site"),
    ),
    then: async () =>
      expect(await members("protection-groups/volumes")).toEqual(["app", "db"]),
  },
  "add volumes to a protection group": {
    does: onPage("Protection", ["daily"], "Add volumes", "Add", (dialog) =>
      desk.pick(dialog, "Volumes", "vm-1", "log"),
    ),
    then: async () =>
      expect(await members("protection-groups/volumes")).toEqual(
        expect.arrayContaining(["log", "vm-1"]),
      ),
  },
  "set a schedule": {
    does: onPage("Protection", ["daily"], "Schedule", "Change", async (dialog) => {
      await dialog.getByLabel("Take snapshots on a schedule").check();
      await dialog.getByLabel("Every").fill("6h");
    }),
    then: holds("protection-groups", {
      name: "daily",
      snapshot_schedule: expect.objectContaining({ enabled: true }) as object,
    }),
  },
  "take a snapshot of a protection group": {
    does: onPage("Protection", ["site"], "Snapshot", "Create snapshot"),
    then: holds("protection-group-snapshots", { name: "site.1" }),
  },
  "add a pod": {
    does: onPage("Pods", [], "New pod", "Create pod", (dialog) =>
      dialog.getByLabel("Name").fill("team"),
    ),
    then: holds("pods", { name: "team" }),
  },
  "move volumes into a pod": {
    does: onPage("Pods", ["team"], "Add volumes", "Add", (dialog) =>
      desk.pick(dialog, "Volumes", "vm-2"),
    ),
    then: holds("volumes", { name: "team::vm-2" }),
  },
  "destroy a volume": {
    does: onPage("Volumes", ["archive"], "Destroy", "Destroy"),
    then: holds("volumes", { name: "archive", destroyed: true }),
  },
  "recover a volume": {
    does: onPage("Volumes", [], "Recover volumes", "Recover", (dialog) =>
      desk.pick(dialog, "Destroyed volumes", "archive"),
    ),
    then: holds("volumes", { name: "archive", destroyed: false }),
  },
  "destroy a snapshot": {
    does: onPage("Snapshots", ["db.before"], "Destroy snapshot", "Destroy"),
    then: holds("volume-snapshots", { name: "db.before", destroyed: true }),
  },
  "recover a snapshot": {
    does: onPage("Snapshots", [], "Recover snapshots", "Recover", (dialog) =>
      desk.pick(dialog, "Destroyed snapshots", "db.before"),
    ),
    then: holds("volume-snapshots", { name: "db.before", destroyed: false }),
  },
  "acknowledge an alert": {
    does: async () => {
      await expect.poll(() => alerts("open"), { timeout: 30_000 }).toHaveLength(1);
      const [alert] = await alerts("open");
      await onPage("Health", [alert?.name ?? ""], "Clear flag", "Clear flag")();
    },
    then: holds("alerts", { state: "open", flagged: false }),
  },
  "close an alert": {
    does: async () => {
      const [alert] = await alerts("open");
      const close = desk.button("Close", desk.page.getByRole("group", { name: "Alerts" }));
      await onPage("Health", [alert?.name ?? ""], close, "Close")();
    },
    then: async () => expect(await alerts("open")).toEqual([]),
  },
  "start scrubbing": {
    does: onPage("Health", [], "Start scrubbing", "Start"),
    then: async () =>
      expect(await desk.array.ask("GET", "/v1/pool/scrub")).not.toMatchObject({ pass: 0 }),
  },
  "add a user": {
    does: async () => {
      await desk.section("Users and tokens");
      await desk.perform("New user", "Create user", (dialog) =>
        dialog.getByLabel("Name").fill("anna"),
      );
    },
    then: holds("admins", { name: "anna" }),
  },
  "add a recipient of alerts": {
    does: async () => {
      await desk.section("Notifications");
      await desk.perform("Add recipients", "Add", (dialog) =>
        dialog.getByLabel("Addresses").fill("anna@example.com"),
      );
    },
    then: holds("alert-watchers", { name: "anna@example.com" }),
  },
};

/** Starts at the dashboard, from where no step has been taken yet. */
async function start(): Promise<void> {
  await desk.page.goto("/dashboard");
  await desk.heading("Dashboard");
  desk.steps.length = 0;
}

test.each(Object.entries(TASKS))("%s", async (_name, { does, then }) => {
  await start();
  await does();
  await then();
  const steps = [...desk.steps];
  // A task without them was not done in the browser.
  expect(steps.at(0)).toMatch(/^page /);
  expect(steps.at(-1)).toBe("confirm");
  expect(steps.length, steps.join("; ")).toBeLessThanOrEqual(STEPS_MAX);
});

test("detours are counted: views, pages and dialogs that were not needed", async () => {
  await rest("POST", "volumes?names=spare", { provisioned: GIB });
  await rest("PATCH", "volumes?names=spare", { destroyed: true });
  await start();
  await desk.go("Pods");
  await desk.button("New pod").click();
  await desk.page.keyboard.press("Escape");
  await desk.go("Volumes");
  await desk.button("Destroyed").click();
  await desk.recover("spare");
  expect(desk.steps).toEqual([
    "page /pods",
    "dialog New pod",
    "page /volumes",
    "view Destroyed",
    "dialog Recover spare",
    "confirm",
  ]);
});
