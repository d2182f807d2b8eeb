/** The space of a volume, a host or a host group over time, as the array keeps it. */
import { keepPreviousData, useQuery, type UseQueryResult } from "@tanstack/react-query";

import { get, rest } from "./api";
import { type Of, type Span, SPANS } from "./history";
import type { Items, RestHostSpace, RestVolumeSpace } from "./types";

/** The finest samples, and how often they are refreshed, in milliseconds. */
const FINEST_MS = 300_000;
const AGAIN_MS = 60_000;

/** A sample: `space` is absent where there is none. */
export interface SpaceSample {
  /** In seconds since 1970. */
  time: number;
  space?: RestVolumeSpace["space"] | RestHostSpace["space"];
}

/** The length of the samples of space in a view. */
export const spaceResolution = (span: Span): number =>
  Math.max(SPANS[span].resolutionMs, FINEST_MS);

/** The list that has the space of an object, and the object's name; none for others. */
export function spaceList(of: Of): readonly [string, string] | undefined {
  if (of.volume !== undefined) return ["volumes/space", of.volume];
  if (of.host !== undefined) return ["hosts/space", of.host];
  if (of.host_group !== undefined) return ["host-groups/space", of.host_group];
  return undefined;
}

async function read([list, name]: readonly [string, string], span: Span): Promise<SpaceSample[]> {
  type Row = RestVolumeSpace | RestHostSpace;
  const start_time = Date.now() - SPANS[span].lengthMs;
  const query = { names: name, start_time, resolution: spaceResolution(span) };
  const { items } = await get<Items<Row>>(rest(list, query));
  return items.map(({ time, space }) => ({ time: (time ?? 0) / 1000, space }));
}

/** The samples of a time span up to now, refreshed while they are shown. */
export function useSpaceHistory(
  span: Span,
  list: readonly [string, string],
): UseQueryResult<SpaceSample[]> {
  return useQuery({
    queryKey: ["space-history", span, list],
    queryFn: () => read(list, span),
    refetchInterval: AGAIN_MS,
    placeholderData: keepPreviousData,
  });
}
