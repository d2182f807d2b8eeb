/** The one or two controllers of the array, and which of them owns the pool. */
import { own } from "../lib/api";
import { time } from "../lib/format";
import { useGet } from "../lib/query";
import type { Controller, Controllers } from "../lib/types";
import { Loaded } from "../parts/notice";
import { Card } from "../parts/page";
import { type Column, Table } from "../parts/table";

/** How often they are refreshed, in milliseconds. */
const LOOK_MS = 5000;

/** A secondary controller that is absent forwards nothing, and does not take over. */
function stateOf({ mode, status }: Controller) {
  const isReady = status === "ready";
  const what = mode === "primary" ? "owns the pool" : "forwards";
  return <span className={isReady ? "good" : "bad"}>{isReady ? what : status}</span>;
}

const COLUMNS: Column<Controller>[] = [
  { head: "Controller", cell: (controller) => controller.name },
  { head: "State", cell: stateOf },
  { head: "Version", cell: (controller) => controller.version || "–" },
  {
    head: "Started",
    minor: true,
    cell: ({ started_ms }) => (started_ms === 0 ? "–" : time(started_ms)),
  },
  { head: "Portals", cell: (controller) => controller.portals.join(", ") },
];

export function Controllers() {
  const controllers = useGet<Controllers>(own("controllers"), LOOK_MS);
  return (
    <Card title="Controllers">
      <Loaded query={controllers} what="the controllers">
        {(found) => (
          <Table
            caption="Controllers, and which of them owns the pool"
            rows={found.controllers}
            columns={COLUMNS}
            name={(controller) => controller.name}
            empty="No controllers."
          />
        )}
      </Loaded>
    </Card>
  );
}
