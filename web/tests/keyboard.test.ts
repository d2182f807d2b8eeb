import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk } from "./browser";

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open();
});
afterAll(async () => {
  await desk.close();
});

/** What has the focus: its text, or its label. */
const focused = () =>
  desk.page.evaluate(() => {
    const active = document.activeElement as HTMLInputElement | null;
    const label = active?.labels?.[0]?.innerText;
    return label ?? active?.getAttribute("aria-label") ?? active?.innerText ?? "";
  });

/** Presses Tab until that has the focus. */
async function tabTo(name: string): Promise<void> {
  const passed: string[] = [];
  for (let presses = 0; presses < 60; presses += 1) {
    await desk.page.keyboard.press("Tab");
    const now = (await focused()).trim();
    if (now === name) return;
    passed.push(now);
  }
  throw new Error(`no Tab leads to ${name}: ${passed.join(" | ")}`);
}

test("a volume is made, snapshotted and destroyed by keyboard only", async () => {
  const { keyboard } = desk.page;
  await tabTo("Volumes");
  await keyboard.press("Enter");
  await desk.heading("Volumes");
  await tabTo("New volume");
  await keyboard.press("Enter");
  // The first field has the focus already.
  await keyboard.type("keys");
  await tabTo("Size");
  await keyboard.type("2G");
  await keyboard.press("Enter");
  await desk.page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await desk.array.items("volumes", "names=keys")).toHaveLength(1);

  await desk.page.getByRole("link", { name: "keys" }).waitFor();
  await tabTo("Select keys");
  await keyboard.press("Space");
  await keyboard.press("Home");
  await desk.page.evaluate(() => (document.activeElement as HTMLElement).blur());
  await tabTo("Snapshot");
  await keyboard.press("Enter");
  await keyboard.press("Enter");
  await desk.page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await desk.array.items("volume-snapshots")).toMatchObject([{ name: "keys.1" }]);
});

test("volumes can be chosen by keyboard only, and a screen reader announces each", async () => {
  const { keyboard } = desk.page;
  for (const name of ["app-1", "app-2", "log"]) {
    await desk.array.ask("POST", "/v1/volumes", { name, size_bytes: 1024 ** 3 });
  }
  await desk.array.ask("POST", "/api/2.26/protection-groups?names=nightly");
  await desk.page.goto("/protection/nightly");
  await desk.button("Add volumes").focus();
  await keyboard.press("Enter");
  const dialog = desk.page.getByRole("dialog");
  const field = dialog.getByRole("combobox", { name: "Volumes" });
  const list = dialog.getByRole("listbox", { name: "Volumes" });
  expect(await field.getAttribute("aria-expanded")).toBe("true");
  expect(await field.getAttribute("aria-controls")).toBe(await list.getAttribute("id"));
  expect(await list.getAttribute("aria-multiselectable")).toBe("true");
  /** The option that a screen reader reads, while the focus stays in the field. */
  const active = async () => {
    const id = await field.getAttribute("aria-activedescendant");
    return id === null ? "" : dialog.locator(`[id="${id}"]`).innerText();
  };
  // The field has the focus already. Its list can be walked without a text.
  await desk.option(dialog, "app-1").waitFor();
  await keyboard.press("ArrowDown");
  await expect.poll(active).toContain("app-1");
  await keyboard.press("ArrowDown");
  await expect.poll(active).toContain("app-2");
  // Typed fast: what the text finds is chosen, never what the list showed before.
  await keyboard.type("log");
  await keyboard.press("Enter");
  expect(await desk.button("Remove app-2", dialog).count()).toBe(0);
  await dialog.getByText("1 match", { exact: true }).waitFor();
  await expect.poll(active).toContain("log");
  await keyboard.press("Enter");
  await desk.button("Remove log", dialog).waitFor();
  expect(await desk.option(dialog, "log").getAttribute("aria-selected")).toBe("true");
  expect(await dialog.count(), "Enter must not confirm while something is searched for").toBe(1);
  await keyboard.press("Enter");
  await desk.button("Remove log", dialog).waitFor({ state: "detached" });
  for (let at = 0; at < 3; at += 1) await keyboard.press("Backspace");
  await keyboard.type("app");
  await dialog.getByText("2 matches", { exact: true }).waitFor();
  await expect.poll(active).toContain("app-1");
  await keyboard.press("Enter");
  await keyboard.press("ArrowDown");
  await keyboard.press("Enter");
  await desk.button("Remove app-2", dialog).waitFor();
  await tabTo("Cancel");
  await tabTo("Add");
  await keyboard.press("Enter");
  await dialog.waitFor({ state: "detached" });
  const members = await desk.array.items("protection-groups/volumes");
  expect(members).toMatchObject([{ member: { name: "app-1" } }, { member: { name: "app-2" } }]);
  await desk.go("Volumes");
});

test("a dialog keeps the focus, ends by Escape and gives the focus back", async () => {
  const { keyboard } = desk.page;
  const opener = desk.button("New volume");
  await opener.focus();
  await keyboard.press("Enter");
  const dialog = desk.page.getByRole("dialog");
  await dialog.waitFor();
  for (let presses = 0; presses < 15; presses += 1) {
    await keyboard.press("Tab");
    const outside = await desk.page.evaluate(() => {
      const active = document.activeElement;
      return active !== null && active !== document.body && active.closest("dialog") === null;
    });
    expect(outside, "the focus left the dialog").toBe(false);
  }
  await keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  expect(await focused()).toBe("New volume");
});

test("what has the focus is seen", async () => {
  await desk.page.keyboard.press("Tab");
  const width = await desk.page.evaluate(() => {
    const style = getComputedStyle(document.activeElement ?? document.body);
    return style.outlineStyle === "none" ? "0px" : style.outlineWidth;
  });
  expect(width).toBe("3px");
});
