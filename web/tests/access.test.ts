/** The banner before a login, and the certificate of the management address. */
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk, linesOf } from "./browser";

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open("1G");
});
afterAll(async () => {
  await desk.close();
});

const settings = () => desk.array.ask("GET", "/v1/settings");

/** A certificate of another maker, with its key. */
function pair(name: string): { certificate: string; key: string } {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-certificate-"));
  const [out, keyout] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  const asked = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "9"];
  const files = ["-subj", `/CN=${name}`, "-out", out, "-keyout", keyout];
  execFileSync("openssl", [...asked, ...files], { stdio: "ignore" });
  const made = { certificate: readFileSync(out, "utf8"), key: readFileSync(keyout, "utf8") };
  rmSync(directory, { recursive: true });
  return made;
}

test("a banner is shown before the login", async () => {
  await desk.section("Access");
  await desk.page.getByText("No banner is shown before a login.").waitFor();
  await desk.perform("Change banner", "Change", async (dialog) => {
    await dialog.getByLabel("Text").fill("For members of staff only.");
    expect(await linesOf(dialog)).toEqual([
      "holdfast array set --banner 'For members of staff only.'",
    ]);
  });
  await desk.page.getByText("For members of staff only.", { exact: true }).waitFor();
  const banner = "For members of staff only.\nAll access is logged.";
  await desk.array.ask("PATCH", "/v1/settings", { banner });
  await desk.button("Log out").click();
  await desk.page.getByLabel("API token", { exact: true }).waitFor();
  const shown = desk.page.locator(".login .banner");
  await expect.poll(() => shown.innerText()).toBe(banner);
  await desk.logIn(desk.array.token);
  await desk.section("Access");
  await desk.perform("Change banner", "Change", async (dialog) => {
    await dialog.getByLabel("Text").fill("");
    expect(await linesOf(dialog)).toEqual(["holdfast array set --banner none"]);
  });
  expect(await settings()).toMatchObject({ banner: "" });
});

test("a certificate is created, imported and removed", async () => {
  interface Certificate {
    certificate: string;
    common_name: string;
    source: string;
    status: string;
    valid_to: number;
  }
  const management = async () => {
    const found = await desk.array.items<Certificate>("certificates", "names=management");
    if (found[0] === undefined) throw new Error("there is no certificate");
    return found[0];
  };
  const printed = (pem: string) =>
    new X509Certificate(pem).fingerprint256.replaceAll(":", "").toLowerCase();
  const [before, shown] = [await management(), (text: string) => desk.page.getByText(text)];
  await desk.section("Access");
  await shown(printed(before.certificate)).waitFor();
  expect(await desk.button("Remove certificate").isEnabled()).toBe(false);
  await desk.perform("Create certificate", "Create certificate", async (dialog) => {
    await dialog.getByLabel("Common name").fill("array.example.com");
    await dialog.getByLabel("Organization").fill("Example");
    await dialog.getByLabel("Valid for (days)").fill("30");
    const [line] = await linesOf(dialog);
    expect(line).toContain("holdfast api PATCH");
  });
  const made = await management();
  expect(made).toMatchObject({ common_name: "array.example.com", source: "pool" });
  expect(made.valid_to - Date.now()).toBeLessThan(31 * 86_400_000);
  await shown(printed(made.certificate)).waitFor();
  await desk.page.getByText("The pool", { exact: true }).waitFor();

  const { certificate, key } = pair("imported.example.com");
  await desk.button("Import certificate").click();
  const dialog = desk.page.getByRole("dialog");
  await dialog.getByLabel("Certificate (PEM)", { exact: true }).fill(certificate);
  await desk.button("Import", dialog).click();
  await dialog.getByRole("alert").waitFor();
  await dialog.getByLabel("Private key (PEM)").fill(key);
  await desk.button("Import", dialog).click();
  await dialog.waitFor({ state: "detached" });
  expect(await management()).toMatchObject({ status: "imported" });
  await shown(printed(certificate)).waitFor();
  await desk.page.getByText("Imported", { exact: true }).waitFor();

  await desk.perform("Remove certificate", "Remove");
  expect(await management()).toMatchObject({ source: "files", certificate: before.certificate });
  await shown(printed(before.certificate)).waitFor();
});
