/** What the array kept of what it did: for an hour, a day, a month, a year. */
import { keepPreviousData, useQuery, type UseQueryResult } from "@tanstack/react-query";

import { get, own } from "./api";
import type { HistorySamples } from "./types";

const HOUR_MS = 3_600_000;

/** How far back, and in samples of which length: some hundred points each. */
export const SPANS = {
  hour: { lengthMs: HOUR_MS, resolutionMs: 30_000 },
  day: { lengthMs: 24 * HOUR_MS, resolutionMs: 300_000 },
  month: { lengthMs: 31 * 24 * HOUR_MS, resolutionMs: 2 * HOUR_MS },
  year: { lengthMs: 366 * 24 * HOUR_MS, resolutionMs: 24 * HOUR_MS },
} as const;
export type Span = keyof typeof SPANS;

/** How often it is asked for again, in milliseconds. */
const AGAIN_MS = 30_000;

/** Asks for the history of the array, from so long ago on. */
export const history = (lengthMs: number, resolutionMs: number): Promise<HistorySamples> =>
  get<HistorySamples>(
    own("history", { start_ms: Date.now() - lengthMs, resolution_ms: resolutionMs }),
  );

/** The history of the array, asked for again while it is looked at. */
export function useHistory(span: Span): UseQueryResult<HistorySamples> {
  const { lengthMs, resolutionMs } = SPANS[span];
  return useQuery({
    queryKey: ["history", span],
    queryFn: () => history(lengthMs, resolutionMs),
    refetchInterval: AGAIN_MS,
    placeholderData: keepPreviousData,
  });
}
