/** A real browser, logged in, and how tasks are done in it. */
import { type Browser, chromium, type Locator, type Page } from "playwright-core";
import { expect } from "vitest";

import { ArrayUnderTest, exitCodeOf } from "./array";
import { noteSteps } from "./steps";

const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export class Desk {
  /** What the browser complained about: policy, scripts. */
  readonly complaints: string[] = [];

  private constructor(
    readonly array: ArrayUnderTest,
    readonly browser: Browser,
    readonly page: Page,
    /** The steps taken so far: pages and dialogs opened, dialogs confirmed. */
    readonly steps: string[],
  ) {}

  /** A browser at the page of a fresh array, logged in. */
  static async open(capacity?: string): Promise<Desk> {
    const array = await ArrayUnderTest.start(capacity);
    const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
    const browser = await chromium.launch({ executablePath, args: FLAGS });
    const context = await browser.newContext({
      baseURL: array.told.url,
      ignoreHTTPSErrors: true,
      viewport: { width: 1280, height: 900 },
    });
    context.setDefaultTimeout(20_000);
    const page = await context.newPage();
    const desk = new Desk(array, browser, page, await noteSteps(page));
    desk.watch(page);
    await page.goto("/");
    await desk.logIn(array.token);
    return desk;
  }

  /** Notes complaints, and requests to anywhere else. */
  private watch(page: Page): void {
    page.on("pageerror", (error) => this.complaints.push(String(error)));
    page.on("console", (message) => {
      // A refusal is shown on the page, and checked there.
      const isRefusal = message.text().startsWith("Failed to load resource");
      if (message.type() === "error" && !isRefusal) this.complaints.push(message.text());
    });
    page.on("request", (request) => {
      const url = request.url();
      const isOwn = url.startsWith(this.array.told.url) || url.startsWith("data:");
      if (!isOwn) this.complaints.push(`a request to ${url}`);
    });
  }

  async close(): Promise<void> {
    await this.browser.close();
    await this.array.stop();
    expect(this.complaints).toEqual([]);
  }

  async logIn(token: string): Promise<void> {
    await this.page.getByLabel("API token", { exact: true }).fill(token);
    await this.page.getByRole("button", { name: "Log in" }).click();
    await this.page.getByRole("button", { name: "Log out" }).waitFor();
  }

  /** Goes to a page by its link. */
  async go(link: string): Promise<void> {
    await this.page
      .getByRole("navigation", { name: "Pages" })
      .getByRole("link", { name: link, exact: true })
      .click();
    await this.heading(link);
  }

  /** Goes to a section of the settings. */
  async section(name: string): Promise<void> {
    const sections = this.page.getByRole("navigation", { name: "Sections of the settings" });
    await sections.getByRole("link", { name, exact: true }).click();
    await sections.locator("[aria-current]", { hasText: name }).waitFor();
  }

  async heading(name: string): Promise<void> {
    await this.page.getByRole("heading", { level: 1, name, exact: true }).waitFor();
  }

  /** The button with exactly this name, in a part of the page or in all of it. */
  button(name: string, within: Locator | Page = this.page): Locator {
    return within.getByRole("button", { name, exact: true });
  }

  async choose(...names: string[]): Promise<void> {
    for (const name of names) {
      await this.page.getByRole("checkbox", { name: `Select ${name}`, exact: true }).check();
    }
  }

  /** Chooses objects in a dialog: types each name, and takes what is found. */
  async pick(dialog: Locator, label: string, ...names: string[]): Promise<void> {
    const field = dialog.getByRole("combobox", { name: label, exact: true });
    for (const name of names) {
      await field.fill(name);
      await this.option(dialog, name).click();
      await this.button(`Remove ${name}`, dialog).waitFor();
    }
  }

  /** An object that a dialog offers, by its whole name. */
  option(dialog: Locator, name: string): Locator {
    const named = this.page.locator(".option-name").getByText(name, { exact: true });
    return dialog.getByRole("option").filter({ has: named });
  }

  /**
   * Does a task: presses its button, fills the dialog, confirms. Every line that the dialog shows
   * is understood by the program. Gives what was told when it was done.
   */
  async perform(
    opener: Locator | string,
    confirm: string,
    fill: (dialog: Locator) => Promise<unknown> = () => Promise.resolve(),
  ): Promise<string> {
    await (typeof opener === "string" ? this.button(opener) : opener).click();
    const dialog = this.page.getByRole("dialog");
    await fill(dialog);
    await expectLines(dialog);
    await this.button(confirm, dialog).click();
    const refused = dialog.getByRole("alert");
    await Promise.race([dialog.waitFor({ state: "detached" }), refused.waitFor()]);
    if ((await dialog.count()) > 0) throw new Error(`refused: ${await refused.innerText()}`);
    return this.page.getByRole("status").innerText();
  }

  /** Chooses one in the list shown and destroys it; `task` names the button. */
  async destroy(name: string, task = "Destroy"): Promise<void> {
    await this.choose(name);
    await this.perform(task, "Destroy");
  }

  /** Chooses one in the list of what is destroyed, which must be shown, and recovers it. */
  async recover(name: string, task = "Recover"): Promise<void> {
    await this.choose(name);
    await this.perform(task, "Recover");
  }

  /** As `recover`, but eradicates it: the dialog wants a tick, as nothing brings it back. */
  async eradicate(name: string, task = "Eradicate"): Promise<void> {
    await this.choose(name);
    await this.perform(task, "Eradicate", (dialog) =>
      dialog.getByLabel("Eradicate permanently").check(),
    );
  }
}

/** The lines of the command line that a dialog shows. */
export async function linesOf(dialog: Locator): Promise<string[]> {
  const code = dialog.locator(".command code");
  if ((await code.count()) === 0) return [];
  return (await code.innerText()).split("\n");
}

async function expectLines(dialog: Locator): Promise<void> {
  for (const line of await linesOf(dialog)) {
    expect(await exitCodeOf(line), line).toBe(3);
  }
}
