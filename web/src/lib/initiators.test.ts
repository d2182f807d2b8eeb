import { expect, test } from "vitest";

import { cameText, strangers, toggled } from "./initiators";

const came = (name: string, time_ms: number, host: string | null = null) => ({
  name,
  host,
  sessions: 0,
  refused: { count: 1, time_ms, address: "192.0.2.7", status: 0x0203, why: "it is no host" },
});

test("who has no host is offered, the last that came first", () => {
  const all = [came("a", 1), came("b", 3), came("c", 2, "esx"), came("d", 2)];
  const here = { name: "e", host: null, sessions: 2, refused: null };
  expect(strangers([...all, here]).map((one) => one.name)).toEqual(["e", "b", "d", "a"]);
  expect(cameText(here)).toBe("logged in, with 2 sessions");
  expect(cameText(came("a", 1))).toMatch(/from 192\.0\.2\.7: it is no host$/);
});

test("a name that is picked is added, and taken out again", () => {
  expect(toggled("", "a")).toBe("a");
  expect(toggled("a, b", "c")).toBe("a\nb\nc");
  expect(toggled("a b", "a")).toBe("b");
});
