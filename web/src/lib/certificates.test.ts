import { expect, test } from "vitest";

import { derOf, filled, fingerprintOf } from "./certificates";

const pem = (text: string) =>
  `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`;

test("a fingerprint is that of the first certificate's bytes", async () => {
  expect(derOf(pem("YWJj"))).toEqual(new Uint8Array([97, 98, 99]));
  const abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  expect(await fingerprintOf(pem("YWJj") + pem("eHl6"))).toBe(abc);
});

test("what is no certificate has no fingerprint", async () => {
  for (const text of ["", "abc", pem("="), pem("a")]) {
    expect(await fingerprintOf(text), text).toBeUndefined();
  }
});

test("what is not filled in is not asked for", () => {
  expect(filled({ a: "", b: "x", c: [], d: ["y"], e: undefined, f: 3 })).toEqual({
    b: "x",
    d: ["y"],
    f: 3,
  });
});
