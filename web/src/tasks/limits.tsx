/** Limits on the I/O of hosts to a volume. */
import { useState } from "react";

import { request, rest } from "../lib/api";
import { limitsText, NO_LIMITS } from "../lib/limits";
import { parseSize, sizeArgument } from "../lib/size";
import type { RestVolume } from "../lib/types";
import { TextField } from "../parts/fields";
import { Task } from "../parts/task";

/** The text of a limit in a field; empty if there is no limit. */
const shown = (limit: number, none: number, show: (value: number) => string) =>
  limit < none ? show(limit) : "";

export function EditLimits({ volume, close }: { volume: RestVolume; close: () => void }) {
  const before = volume.qos;
  const [bandwidth, setBandwidth] = useState(
    shown(before.bandwidth_limit, NO_LIMITS.bandwidth_limit, sizeArgument),
  );
  const [iops, setIops] = useState(shown(before.iops_limit, NO_LIMITS.iops_limit, String));
  const bandwidthBytes =
    bandwidth.trim() === "" ? NO_LIMITS.bandwidth_limit : parseSize(bandwidth);
  const iopsLimit = iops.trim() === "" ? NO_LIMITS.iops_limit : Number(iops);
  const isValid = bandwidthBytes !== undefined && Number.isSafeInteger(iopsLimit);
  const run = async () => {
    const qos = { bandwidth_limit: bandwidthBytes ?? 0, iops_limit: iopsLimit };
    await request("PATCH", rest("volumes", { names: volume.name }), { qos });
    return `Limits of ${volume.name}: ${limitsText(qos)}.`;
  };
  return (
    <Task
      title={`Limits of ${volume.name}`}
      submit="Change"
      cli={[]}
      ready={isValid}
      run={run}
      close={close}
    >
      <TextField
        label="Bandwidth limit"
        hint="Bytes per second, 1M to 512G. Empty: no limit."
        value={bandwidth}
        set={setBandwidth}
      />
      <TextField
        label="IOPS limit"
        hint="100 to 100,000,000. Empty: no limit."
        value={iops}
        set={setIops}
        numeric
      />
    </Task>
  );
}
