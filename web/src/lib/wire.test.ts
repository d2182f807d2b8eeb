import { expect, test } from "vitest";

import { codeOf, filterText, messageOf, own, Refused, rest } from "./wire";

test("paths carry their parameters, lists by commas", () => {
  expect(rest("volumes")).toBe("/api/2.26/volumes");
  const query = { names: ["a", "b"], destroyed: false, limit: 25, sort: undefined };
  expect(rest("volumes", query)).toBe("/api/2.26/volumes?names=a%2Cb&destroyed=false&limit=25");
  expect(own("status")).toBe("/v1/status");
  expect(own(["volumes", "../a b?"])).toBe("/v1/volumes/..%2Fa%20b%3F");
});

test("both forms of refusals are told", () => {
  expect(messageOf({ code: "volume_exists", message: "It exists." })).toBe("It exists.");
  const faults = [
    { context: "vm-1", message: "Volume vm-1 exists." },
    { context: "vm-2", message: "No such volume." },
    { context: "", message: "No such volume." },
  ];
  const told = "Volume vm-1 exists. vm-2: No such volume. No such volume.";
  expect(messageOf({ errors: faults })).toBe(told);
  for (const other of [null, "text", {}, { errors: [] }, { errors: 1 }, { message: 1 }]) {
    expect(messageOf(other)).toBeUndefined();
  }
});

test("what the array does not have is told apart from what it refuses", () => {
  expect([404, 405, 501].every((status) => new Refused(status, "").isMissing)).toBe(true);
  expect(new Refused(404, "", "no_such_path").isMissing).toBe(true);
  expect(new Refused(404, "", "no_such_volume").isMissing).toBe(false);
  expect([codeOf({ code: "full" }), codeOf({ code: 1 }), codeOf(null)]).toEqual(["full", "", ""]);
  expect([0, 400, 401, 403, 409, 500].some((status) => new Refused(status, "").isMissing)).toBe(
    false,
  );
});

test("text of a filter can't end its quotes, nor be a pattern of its own", () => {
  expect(filterText("a'b*c\\")).toBe("abc");
  expect(filterText("vm-1_x.y")).toBe("vm-1_x.y");
});
