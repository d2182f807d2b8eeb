import { readdirSync } from "node:fs";

import { afterAll, beforeAll, expect, test } from "vitest";

import { ArrayUnderTest } from "./array";
import { PAGES } from "../src/routes";

let array: ArrayUnderTest;
beforeAll(async () => {
  array = await ArrayUnderTest.start("1G");
});
afterAll(async () => {
  await array.stop();
});

test("every page has an address of its own, and deep ones lead to it", async () => {
  const index = await array.raw("/");
  expect(index.status).toBe(200);
  expect(index.text).toContain('<div id="root">');
  expect(index.headers["content-security-policy"]).toContain("default-src 'none'");
  expect(index.headers["content-security-policy"]).not.toContain("unsafe");
  expect(index.headers["x-content-type-options"]).toBe("nosniff");
  for (const page of PAGES) {
    for (const path of [`/${page}`, `/${page}/some.name`]) {
      const found = await array.raw(path);
      expect([found.status, found.text], path).toEqual([200, index.text]);
    }
  }
});

test("nothing of the interface is shadowed", async () => {
  const paths = ["/v1/volumes", "/v1/nothing", "/api/2.26/volumes", "/api/nothing", "/nothing"];
  for (const path of paths) {
    const found = await array.raw(path);
    expect(found.status, path).toBeGreaterThanOrEqual(400);
    expect(found.headers["content-type"], path).toContain("application/json");
  }
  expect((await array.raw("/api/api_version")).status).toBe(200);
});

test("files are compressed, kept by their hashes, and nothing else is served", async () => {
  const names = readdirSync("dist/assets").filter((name) => !name.endsWith(".gz"));
  expect(names.length).toBeGreaterThan(2);
  for (const name of names) {
    const found = await array.raw(`/assets/${name}`);
    expect(found.status, name).toBe(200);
    expect(found.headers["cache-control"]).toContain("immutable");
    const tag = found.headers["etag"] ?? "";
    expect(tag).toMatch(/^"[0-9a-f]{32}"$/);
    if (name.endsWith(".js")) expect(found.headers["content-encoding"]).toBe("gzip");
    const again = await array.raw(`/assets/${name}`, { "if-none-match": tag });
    expect([again.status, again.text], name).toEqual([304, ""]);
  }
  expect((await array.raw("/licenses.txt")).text).toContain("react-dom");
  for (const path of ["/assets/", "/assets/none.js", "/%2e%2e/package.json", "/index.html.gz"]) {
    expect((await array.raw(path)).status, path).toBeGreaterThanOrEqual(400);
  }
});
