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
  await tabTo("Choose keys");
  await keyboard.press("Space");
  await keyboard.press("Home");
  await desk.page.evaluate(() => (document.activeElement as HTMLElement).blur());
  await tabTo("Snapshot");
  await keyboard.press("Enter");
  await keyboard.press("Enter");
  await desk.page.getByRole("dialog").waitFor({ state: "detached" });
  expect(await desk.array.items("volume-snapshots")).toMatchObject([{ name: "keys.1" }]);
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
