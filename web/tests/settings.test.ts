import { afterAll, beforeAll, expect, test } from "vitest";

import { Desk, linesOf } from "./browser";

let desk: Desk;
beforeAll(async () => {
  desk = await Desk.open();
});
afterAll(async () => {
  await desk.close();
});

const settings = () => desk.array.ask("GET", "/v1/settings");

test("the array is named, its delay and thresholds are set, offloads switched", async () => {
  await desk.go("Settings");
  const card = desk.page.getByRole("group", { name: "Array", exact: true });
  await desk.perform(desk.button("Name", card), "Change", (dialog) =>
    dialog.getByLabel("Name").fill("vault"),
  );
  await desk.perform("Eradication delay", "Change", async (dialog) => {
    await dialog.getByLabel("Destroyed objects can be recovered for").fill("2d");
    expect(await linesOf(dialog)).toEqual(["holdfast array set --eradication-delay 172800"]);
  });
  await desk.perform("Space thresholds", "Change", (dialog) =>
    dialog.getByLabel("Percent of the pool").fill("70, 90%"),
  );
  await desk.perform(desk.button("CHAP", card), "Change", async (dialog) => {
    await dialog.getByLabel("Reject hosts without CHAP").check();
    expect(await linesOf(dialog)).toEqual(["holdfast array set --chap-required on"]);
  });
  // The notice of what was done says so too, in its sentence.
  await desk.page.getByText("Rejected at login", { exact: true }).waitFor();
  await desk.section("Offloads");
  await desk.perform("Change offloads", "Change", (dialog) => dialog.getByLabel("UNMAP").uncheck());
  expect(await settings()).toMatchObject({
    name: "vault",
    eradication_delay_s: 172_800,
    space_thresholds: [70, 90],
    chap_required: true,
    offloads: { unmap: false, extended_copy: true },
  });
  await desk.page.locator(".brand", { hasText: "vault" }).waitFor();
});

test("name servers are set and cleared", async () => {
  await desk.section("Network");
  await desk.perform("Name servers", "Change", async (dialog) => {
    await dialog.getByLabel("Addresses of name servers").fill("192.0.2.53, 192.0.2.54:5353");
    await dialog.getByLabel("Domain").fill("example.com");
    expect(await linesOf(dialog)).toEqual([
      "holdfast array set --name-servers 192.0.2.53,192.0.2.54:5353 --domain example.com",
    ]);
  });
  await desk.page.getByText("192.0.2.53, 192.0.2.54:5353", { exact: true }).waitFor();
  expect(await settings()).toMatchObject({
    name_servers: ["192.0.2.53", "192.0.2.54:5353"],
    domain: "example.com",
  });
  await desk.perform("Name servers", "Change", async (dialog) => {
    await dialog.getByLabel("Addresses of name servers").fill("");
    await dialog.getByLabel("Domain").fill("");
    expect(await linesOf(dialog)).toEqual(["holdfast array set --name-servers none --domain none"]);
  });
  await desk.page.getByText("None: the system’s are used", { exact: true }).waitFor();
});

test("time servers are set, asked and removed", async () => {
  await desk.section("Network");
  await desk.perform("Time servers", "Change", async (dialog) => {
    await dialog.getByLabel("Names or addresses of time servers").fill("127.0.0.1:9");
    expect(await linesOf(dialog)).toEqual(["holdfast array set --ntp-servers 127.0.0.1:9"]);
  });
  await desk.page.getByText("127.0.0.1:9: ").first().waitFor();
  expect(await settings()).toMatchObject({ ntp_servers: ["127.0.0.1:9"] });
  await desk.perform("Time servers", "Change", (dialog) =>
    dialog.getByLabel("Names or addresses of time servers").fill(""),
  );
  expect(await settings()).toMatchObject({ ntp_servers: [] });
});

test("who is told of alerts is set, tested and removed", async () => {
  await desk.section("Notifications");
  await desk.perform("Relay", "Change", async (dialog) => {
    await dialog.getByLabel("Server").fill("127.0.0.1:9");
    await dialog.getByLabel("Sender domain").fill("example.com");
    await dialog.getByLabel("Subject prefix").fill("LAB");
    expect(await linesOf(dialog)).toEqual([
      "holdfast notify mail --relay 127.0.0.1:9 --sender-domain example.com --sender none " +
        "--encryption none --user none --subject-prefix LAB --body-prefix none",
    ]);
  });
  await desk.perform("Add recipients", "Add", async (dialog) => {
    await dialog.getByLabel("Addresses").fill("anna@example.com");
    expect(await linesOf(dialog)).toEqual(["holdfast notify watcher add anna@example.com"]);
  });
  await desk.choose("anna@example.com");
  await desk.perform("Disable", "Disable");
  await desk.perform("New server", "Add", async (dialog) => {
    await dialog.getByLabel("Name").fill("log");
    await dialog.getByLabel("URI").fill("udp://127.0.0.1:9");
    expect(await linesOf(dialog)).toEqual(["holdfast notify syslog add log udp://127.0.0.1:9"]);
  });
  await desk.choose("log");
  await desk.perform("Change URI", "Change", (dialog) =>
    dialog.getByLabel("URI").fill("udp://127.0.0.1:10"),
  );
  await desk.choose("log");
  await desk.perform("Test syslog", "Send");
  const items = async (path: string) =>
    (await desk.array.ask<{ items: object[] }>("GET", `/api/2.26/${path}`)).items;
  expect(await items("alert-watchers")).toMatchObject([
    { name: "anna@example.com", enabled: false },
  ]);
  expect(await items("syslog-servers")).toMatchObject([{ name: "log", uri: "udp://127.0.0.1:10" }]);
  expect(await items("smtp-servers")).toMatchObject([{ subject_prefix: "LAB" }]);
  await desk.choose("log");
  await desk.perform("Remove servers", "Remove");
  await desk.choose("anna@example.com");
  await desk.perform("Remove recipients", "Remove");
  await desk.page.getByText("No mail recipients.", { exact: true }).waitFor();
});

test("SNMP managers are added, changed, tested and removed; secrets are never shown", async () => {
  const managers = () => desk.array.items("snmp-managers");
  const [{ engine_id: engine } = { engine_id: "" }] = await desk.array.items<{
    engine_id: string;
  }>("snmp-agents");
  await desk.section("Notifications");
  await desk.page.getByText(`0x${engine}`, { exact: true }).waitFor();
  await desk.perform("New manager", "Add", async (dialog) => {
    await dialog.getByLabel("Name").fill("nms");
    await dialog.getByLabel("Host").fill("127.0.0.1:9");
    await dialog.getByLabel("User").fill("array");
    await dialog.getByLabel("Authentication passphrase").fill("correct horse");
    expect(await desk.button("Add", dialog).isEnabled()).toBe(false);
    await dialog.getByLabel("Encryption passphrase").fill("battery staple");
    expect(await linesOf(dialog)).toEqual([
      "holdfast notify snmp add nms 127.0.0.1:9 --user array --auth-passphrase-file - " +
        "--privacy-passphrase-file FILE",
    ]);
  });
  await desk.page.getByText("v3, array, SHA, AES", { exact: true }).waitFor();
  await desk.perform("New manager", "Add", async (dialog) => {
    await dialog.getByLabel("Name").fill("old");
    await dialog.getByLabel("Host").fill("127.0.0.1:10");
    await dialog.getByLabel("Request confirmations").check();
    await dialog.getByLabel("Version").selectOption("v2c");
    await dialog.getByLabel("Community").fill("in the clear");
    expect(await linesOf(dialog)).toEqual([
      "holdfast notify snmp add old 127.0.0.1:10 --community-file - --inform",
    ]);
  });
  await desk.choose("nms");
  await desk.perform("Change manager", "Change", async (dialog) => {
    expect(await dialog.getByLabel("Authentication passphrase").inputValue()).toBe("");
    await dialog.getByLabel("Host").fill("127.0.0.1:11");
    await dialog.getByLabel("Authentication", { exact: true }).selectOption("MD5");
    await dialog.getByLabel("Encryption", { exact: true }).selectOption("None");
  });
  await desk.choose("old");
  await desk.button("Change manager").click();
  const dialog = desk.page.getByRole("dialog");
  await dialog.getByLabel("Host").fill("127.0.0.1:12");
  expect(await desk.button("Change", dialog).isEnabled()).toBe(false);
  await dialog.getByLabel("Community").fill("again");
  await desk.button("Change", dialog).click();
  await dialog.waitFor({ state: "detached" });
  const hidden = "****";
  expect(await managers()).toMatchObject([
    {
      name: "nms",
      host: "127.0.0.1:11",
      notification: "trap",
      v3: { user: "array", auth_protocol: "MD5", auth_passphrase: hidden },
    },
    { name: "old", host: "127.0.0.1:12", notification: "inform", v2c: { community: hidden } },
  ]);
  expect((await managers())[0]?.["v3"]).not.toHaveProperty("privacy_protocol");
  await desk.choose("nms");
  await desk.perform("Test SNMP", "Send", async (shown) =>
    expect(await linesOf(shown)).toEqual(["holdfast notify test nms"]),
  );
  await desk.choose("nms", "old");
  await desk.perform("Remove managers", "Remove", async (shown) =>
    expect(await linesOf(shown)).toEqual(["holdfast notify snmp remove nms old"]),
  );
  await desk.page.getByText("No SNMP managers yet.", { exact: true }).waitFor();
  expect(await managers()).toEqual([]);
});

test("a directory service is set, tested, given roles and enabled", async () => {
  await desk.section("Directory");
  await desk.perform("Servers", "Change", async (dialog) => {
    await dialog.getByLabel("Servers").fill("ldap://127.0.0.1:9");
    await dialog.getByLabel("Base DN").fill("dc=x");
    await dialog.getByLabel("Bind user").fill("cn=array");
    await dialog.getByLabel("Bind password").fill("horse");
    expect(await linesOf(dialog)).toEqual([
      "holdfast directory set --uri ldap://127.0.0.1:9 --base-dn dc=x --bind-user cn=array " +
        "--bind-password-file - --user-login none --user-class none",
    ]);
  });
  await desk.perform("Roles", "Change", async (dialog) => {
    await dialog.getByLabel("Role").selectOption("readonly");
    await dialog.getByLabel("Group", { exact: true }).fill("ops");
    await dialog.getByLabel("Group base").fill("ou=groups");
    expect(await linesOf(dialog)).toEqual([
      "holdfast directory role readonly --group ops --base ou=groups",
    ]);
  });
  await desk.page.getByText("ops in ou=groups", { exact: true }).waitFor();
  await desk.button("Test").click();
  const dialog = desk.page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Test", exact: true }).click();
  await dialog.getByText("ldap://127.0.0.1:9: ").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await desk.perform("Enable", "Enable");
  await desk.page.getByText("Enabled", { exact: true }).waitFor();
  expect(await desk.array.ask("GET", "/v1/directory")).toMatchObject({
    enabled: true,
    uris: ["ldap://127.0.0.1:9"],
    has_bind_password: true,
    roles: [{ role: "readonly", group: "ops", group_base: "ou=groups" }],
  });
  await desk.perform("Disable", "Disable");
  await desk.page.getByText("Disabled", { exact: true }).waitFor();
});

test("users and tokens come and go; a role sees only what it may do", async () => {
  await desk.section("Users and tokens");
  await desk.perform("New user", "Create user", async (dialog) => {
    await dialog.getByLabel("Name").fill("anna");
    await dialog.getByLabel("Role").selectOption("storage_admin");
  });
  await desk.choose("anna");
  await desk.perform("Role", "Change", (dialog) =>
    dialog.getByLabel("Role").selectOption("readonly"),
  );
  await desk.choose("anna");
  await desk.perform("New token", "Create token", async (dialog) => {
    await dialog.getByLabel("Name").fill("laptop");
    await dialog.getByLabel("Lifetime").fill("90d");
  });
  const token = await desk.page.locator(".secret").innerText();
  expect(await desk.array.ask("GET", "/v1/users/anna")).toMatchObject({
    role: "readonly",
    tokens: 1,
  });

  await desk.button("Log out").click();
  await desk.logIn(token);
  await desk.go("Volumes");
  expect(await desk.button("New volume").count()).toBe(0);
  await desk.section("Users and tokens");
  await desk.page.getByText("2 in all").first().waitFor();
  expect(await desk.button("New user").count()).toBe(0);
  await desk.button("Log out").click();
  await desk.logIn(desk.array.token);

  await desk.section("Users and tokens");
  await desk.choose("laptop of anna");
  await desk.perform("Revoke", "Revoke");
  await desk.choose("anna");
  await desk.perform("Remove", "Remove");
  const users = await desk.array.ask<{ users: { name: string }[] }>("GET", "/v1/users");
  expect(users.users.map((one) => one.name)).toEqual(["admin"]);
});

test("each section of the settings has an address", async () => {
  await desk.page.goto("/settings");
  await desk.page.waitForURL("**/settings/array");
  const hasTwo = ["users", "access"];
  for (const [address, card] of [
    ["offloads", "Offloads of all volumes"],
    ["network", "Network"],
    ["access", "Certificate"],
    ["users", "API tokens"],
    ["about", "About"],
    ["array", "Array"],
  ]) {
    await desk.page.goto(`/settings/${address}`);
    await desk.page.getByRole("heading", { level: 2, name: card ?? "", exact: true }).waitFor();
    const cards = hasTwo.includes(address ?? "") ? 2 : 1;
    await expect.poll(() => desk.page.locator("main .card").count()).toBe(cards);
  }
  await desk.page.goto("/settings/none");
  await desk.page.getByText("There is no such section.").waitFor();
});

test("passes are started, and the pool grows", async () => {
  await desk.go("Health");
  await desk.perform("Start scrubbing", "Start");
  const scrub = await desk.array.ask<{ pass: number }>("GET", "/v1/pool/scrub");
  expect(scrub.pass).toBeGreaterThan(0);
  await desk.perform("Update space", "Start");
  await desk.perform("Grow", "Grow", (dialog) =>
    dialog.getByLabel("New capacity").fill("5G"),
  );
  // Whole segments behind the superblocks, and so a little less.
  const pool = await desk.array.ask<{ capacity_bytes: number }>("GET", "/v1/pool");
  expect(pool.capacity_bytes / 1024 ** 3).toBeCloseTo(5, 1);
});

test("a session that has ended leads back to the login, and then to the same page", async () => {
  await desk.page.goto("/hosts");
  await desk.heading("Hosts");
  await desk.page.evaluate(() => sessionStorage.setItem("holdfast-session", "of-yesterday"));
  await desk.page.reload();
  await desk.page.getByText("The session has ended").waitFor();
  await desk.logIn(desk.array.token);
  await desk.heading("Hosts");
});

test("a user gets a password, and logs in with it", async () => {
  const carla = "/api/2.26/admins?names=carla";
  await desk.array.ask("POST", carla, { role: { name: "readonly" } });
  await desk.section("Users and tokens");
  await desk.choose("carla");
  await desk.perform("Password", "Set password", async (dialog) => {
    await dialog.getByLabel("New password").fill("correct horse");
    await dialog.getByLabel("Repeat the password").fill("correct horse");
  });
  await desk.button("Log out").click();
  await desk.button("With a password").click();
  await desk.page.getByLabel("User", { exact: true }).fill("carla");
  await desk.page.getByLabel("Password", { exact: true }).fill("wrong horse");
  await desk.button("Log in").click();
  await desk.page.getByText("The user or the password is wrong.").waitFor();
  await desk.page.getByLabel("Password", { exact: true }).fill("correct horse");
  await desk.button("Log in").click();
  await desk.page.getByText("carla (readonly)").waitFor();
  await desk.button("Log out").click();
  await desk.logIn(desk.array.token);
  await desk.array.ask("DELETE", carla);
});

test("a wrong token is refused on the page", async () => {
  await desk.button("Log out").click();
  await desk.page.getByLabel("API token", { exact: true }).fill("wrong");
  await desk.button("Log in").click();
  await desk.page.getByRole("alert").waitFor();
  await desk.logIn(desk.array.token);
});
