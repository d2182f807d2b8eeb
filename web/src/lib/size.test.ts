import { expect, test } from "vitest";

import { bytes, parseSize, sizeArgument } from "./size";

const GIB = 1024 ** 3;

test("sizes are binary, whatever the spelling", () => {
  const sizes: [string, number][] = [
    ["0", 0],
    ["4096", 4096],
    ["4096B", 4096],
    ["1k", 1024],
    ["10G", 10 * GIB],
    ["10GB", 10 * GIB],
    ["10 GiB", 10 * GIB],
    [" 64T ", 64 * 1024 * GIB],
    ["1.5T", 1.5 * 1024 * GIB],
    ["0.5K", 512],
  ];
  for (const [text, size] of sizes) expect(parseSize(text), text).toBe(size);
});

test("what is no size is none", () => {
  const words = ["", "G", "-1", "1.", ".5G", "1.2.3G", "10X", "10Gi", "10iB", "1e9"];
  for (const text of [...words, "0.3K", "9999P"]) expect(parseSize(text), text).toBeUndefined();
});

test("arguments are exact, in the largest unit that fits", () => {
  expect(sizeArgument(10 * GIB)).toBe("10G");
  expect(sizeArgument(1.5 * GIB)).toBe("1536M");
  expect(sizeArgument(4097)).toBe("4097");
  expect(sizeArgument(0)).toBe("0");
  for (const size of [1, 512, 4096, 3 * GIB + 4096, 64 * 1024 * GIB]) {
    expect(parseSize(sizeArgument(size))).toBe(size);
  }
});

test("sizes read well", () => {
  const sizes: [number | null, string][] = [
    [null, "–"],
    [0, "0 B"],
    [1023, "1023 B"],
    [10 * GIB, "10 GiB"],
    [1.5 * 1024 * GIB, "1.5 TiB"],
    [1.255 * GIB, "1.25 GiB"],
    [123.456 * GIB, "123.5 GiB"],
    [1536.7, "1.5 KiB"],
    [-2048, "-2 KiB"],
  ];
  for (const [size, text] of sizes) expect(bytes(size)).toBe(text);
});
