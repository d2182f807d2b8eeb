/** The history that the array keeps: of an hour, a day, a month, a year. */
import { keepPreviousData, useQuery, type UseQueryResult } from "@tanstack/react-query";

import { get, own } from "./api";
import type { HistorySamples } from "./types";

const HOUR_MS = 3_600_000;

/** The time span and the length of samples of each view, for some hundred points. */
export const SPANS = {
  hour: { lengthMs: HOUR_MS, resolutionMs: 30_000 },
  day: { lengthMs: 24 * HOUR_MS, resolutionMs: 300_000 },
  month: { lengthMs: 31 * 24 * HOUR_MS, resolutionMs: 2 * HOUR_MS },
  year: { lengthMs: 366 * 24 * HOUR_MS, resolutionMs: 24 * HOUR_MS },
} as const;
export type Span = keyof typeof SPANS;

/** How often it is refreshed, in milliseconds. */
const AGAIN_MS = 30_000;

/** The object of a history: one of these, or the array if none is given. */
export interface Of {
  volume?: string;
  host?: string;
  host_group?: string;
  port?: number;
}

/** Requests the history of a time span up to now. */
export const history = (lengthMs: number, resolutionMs: number, of: Of = {}) =>
  get<HistorySamples>(
    own("history", { ...of, start_ms: Date.now() - lengthMs, resolution_ms: resolutionMs }),
  );

/** The history, refreshed while it is shown. */
export function useHistory(span: Span, of: Of): UseQueryResult<HistorySamples> {
  const { lengthMs, resolutionMs } = SPANS[span];
  return useQuery({
    queryKey: ["history", span, of],
    queryFn: () => history(lengthMs, resolutionMs, of),
    refetchInterval: AGAIN_MS,
    placeholderData: keepPreviousData,
  });
}
