/** Limits of a volume per second. In REST 2.x, the highest value means no limit. */
import { rate } from "./format";
import { bytes } from "./size";
import type { RestLimits } from "./types";

export const NO_LIMITS: RestLimits = {
  bandwidth_limit: 512 * 1024 ** 3,
  iops_limit: 100_000_000,
};

/** `100 MiB/s, 2,000 IOPS`, or `None`. */
export function limitsText(limits: RestLimits): string {
  const { bandwidth_limit: bandwidth, iops_limit: iops } = limits;
  const told = [
    ...(bandwidth < NO_LIMITS.bandwidth_limit ? [`${bytes(bandwidth)}/s`] : []),
    ...(iops < NO_LIMITS.iops_limit ? [`${rate(iops)} IOPS`] : []),
  ];
  return told.join(", ") || "None";
}
