/** The banner before a login, and the certificate of the management address. */
import { execFileSync } from "node:child_process";
import { X509Certificate } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
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

/** Runs openssl in a directory of its own, with these files. Gives what it prints. */
function openssl(files: Record<string, string>, line: string): string {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-certificate-"));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  const printed = execFileSync("openssl", line.split(" "), {
    cwd: directory,
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  rmSync(directory, { recursive: true });
  return printed;
}

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

test("a signing request is created, signed, and its certificate imported", async () => {
  interface Certificate {
    issued_by: string;
    status: string;
  }
  await desk.section("Access");
  await desk.page.getByText("A signing request needs a key in the pool").waitFor();
  expect(await desk.button("Create signing request").isEnabled()).toBe(false);
  await desk.perform("Create certificate", "Create certificate", async (dialog) => {
    await dialog.getByLabel("Common name").fill("array.example.com");
    await dialog.getByLabel("Organization").fill("Example");
  });
  await desk.perform("Create signing request", "Create request", async (dialog) => {
    expect(await dialog.getByLabel("Common name").inputValue()).toBe("array.example.com");
    await dialog.getByLabel("Country").fill("Switzerland");
    expect(await desk.button("Create request", dialog).isEnabled()).toBe(false);
    await dialog.getByLabel("Country").fill("ch");
    await dialog.getByLabel("Locality").fill("Bern");
    await dialog.getByLabel("Organization", { exact: true }).fill("");
    await dialog.getByLabel("Alternative names").fill("array.example.com, 192.0.2.7");
    const [line] = await linesOf(dialog);
    expect(line).toContain("certificates/certificate-signing-requests");
  });
  const box = desk.page.getByLabel("Signing request", { exact: true });
  const request = await box.inputValue();
  const read = openssl({ "a.csr": request }, "req -in a.csr -noout -text -nameopt RFC2253");
  for (const text of ["CN=array.example.com", "C=CH", "L=Bern", "IP Address:192.0.2.7"]) {
    expect(read).toContain(text);
  }
  expect(read).not.toContain("O=Example");
  const saving = desk.page.waitForEvent("download");
  await desk.page.getByRole("link", { name: "Download" }).click();
  const saved = await saving;
  expect(saved.suggestedFilename()).toBe("holdfast.csr");
  expect(readFileSync(await saved.path(), "utf8")).toBe(request);

  const authority = pair("authority.example.com");
  const signed = openssl(
    {
      "a.csr": request,
      "ca.pem": authority.certificate,
      "ca.key": authority.key,
      names: "subjectAltName=DNS:array.example.com",
    },
    "x509 -req -in a.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 9 -extfile names",
  );
  await desk.perform("Import certificate", "Import", async (dialog) => {
    await dialog.getByLabel("Certificate (PEM)", { exact: true }).fill(signed);
  });
  const [found] = await desk.array.items<Certificate>("certificates", "names=management");
  expect(found?.status).toBe("imported");
  expect(found?.issued_by).toContain("authority.example.com");
  await desk.button("Hide").click();
  await box.waitFor({ state: "detached" });
  await desk.perform("Remove certificate", "Remove");
});
