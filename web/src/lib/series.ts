/** Converts the history of the array to the data of charts. */
import type { ClassRate, Sample } from "./rates";
import type { HistorySamples } from "./types";

const NONE: ClassRate = { perSecond: 0, bytesPerSecond: 0, latencyUs: null, failedPerSecond: 0 };
const CLASSES = ["read", "write", "copy", "compare_and_write", "zero", "delete", "other"];

/** The samples as charts take them: classes that are not named did nothing. */
export function samplesOf(history: HistorySamples): Sample[] {
  return history.samples.map(({ time_ms, commands }) => {
    const classes: Record<string, ClassRate> = {};
    for (const name of CLASSES) {
      const found = commands[name];
      classes[name] =
        found === undefined
          ? NONE
          : {
              perSecond: found.per_s + found.failed_per_s,
              bytesPerSecond: found.bytes_per_s,
              latencyUs: found.latency_us,
              failedPerSecond: found.failed_per_s,
              p50Us: found.latency_us_p50 ?? null,
              p99Us: found.latency_us_p99 ?? null,
              peaks: {
                perSecond: found.per_s_max,
                bytesPerSecond: found.bytes_per_s_max,
                latencyUs: found.latency_us_max,
              },
            };
    }
    return { time: time_ms / 1000, classes };
  });
}

/** Inserts a time without values where samples are missing, so that no line is drawn there. */
export function withGaps<T extends { time: number }>(
  samples: T[],
  resolutionMs: number,
  gap: (time: number) => T,
): T[] {
  const step = resolutionMs / 1000;
  return samples.flatMap((sample, at) => {
    const before = samples[at - 1];
    const isGap = before !== undefined && sample.time - before.time > 1.5 * step;
    return isGap ? [gap(before.time + step), sample] : [sample];
  });
}

/** The indexes of isolated values: no line leads to them. */
export function alone(values: ArrayLike<number | null | undefined>): number[] {
  const isKnown = (at: number) => typeof values[at] === "number";
  const places = Array.from({ length: values.length }, (_, at) => at);
  return places.filter((at) => isKnown(at) && !isKnown(at - 1) && !isKnown(at + 1));
}
