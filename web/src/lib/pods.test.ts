import { expect, test } from "vitest";

import { inPod, ownName, podOf, renamed } from "./pods";

test("the name of a volume includes its pod", () => {
  expect(inPod("team", "db")).toBe("team::db");
  expect(inPod("", "db")).toBe("db");
  expect(podOf("team::db")).toBe("team");
  expect(podOf("team::db.monday")).toBe("team");
  expect(podOf("daily.1.team::db")).toBe("team");
  expect(podOf("vg/db")).toBe("");
  expect(ownName("team::db")).toBe("db");
  expect(ownName("vg/db")).toBe("db");
  expect(ownName("db")).toBe("db");
});

test("a renamed volume stays where it is, unless the new name says otherwise", () => {
  expect(renamed("team::db", "log")).toBe("team::log");
  expect(renamed("vg/db", "log")).toBe("vg/log");
  expect(renamed("db", "log")).toBe("log");
  expect(renamed("team::db", "other::log")).toBe("other::log");
  expect(renamed("team::db", "vg/log")).toBe("vg/log");
});
