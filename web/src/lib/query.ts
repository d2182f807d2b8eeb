/** What the pages ask the array for, kept fresh while it is looked at. */
import {
  keepPreviousData,
  QueryClient,
  useQuery,
  type UseQueryResult,
} from "@tanstack/react-query";

import { all, get, type Query, Refused } from "./api";
import type { RestAlert } from "./types";

/** How often lists are asked for again, in milliseconds. */
const LIST_MS = 10_000;

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1000,
      // The array may be reachable even if the browser considers itself offline.
      networkMode: "always",
      // A request that the array refuses once is refused again.
      retry: (failures, error) =>
        failures < 2 && error instanceof Refused && (error.status === 0 || error.status >= 502),
    },
  },
});

/** After a change, everything that is shown is asked for again. */
export const refresh = (): Promise<void> => client.invalidateQueries();

/** An answer to a GET. */
export function useGet<T>(
  path: string | undefined,
  every: number | false = LIST_MS,
): UseQueryResult<T> {
  return useQuery({
    queryKey: [path],
    queryFn: () => get<T>(path ?? ""),
    enabled: path !== undefined,
    refetchInterval: every,
    placeholderData: keepPreviousData,
  });
}

/** All items of a short list of REST 2.x. */
export function useAll<T>(resource: string, query?: Query): UseQueryResult<T[]> {
  return useQuery({
    queryKey: [resource, query ?? null],
    queryFn: () => all<T>(resource, query),
    refetchInterval: LIST_MS,
  });
}

/** The alerts that are open: all who ask share one request. */
export const useOpenAlerts = (): UseQueryResult<RestAlert[]> =>
  useAll<RestAlert>("alerts", { filter: "state='open'" });
