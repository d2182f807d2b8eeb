/** Queries to the array, refreshed while their results are shown. */
import {
  keepPreviousData,
  QueryClient,
  useQuery,
  type UseQueryResult,
} from "@tanstack/react-query";

import { all, get, type Query, Refused } from "./api";
import type { RestAlert } from "./types";

/** How often lists are refreshed, in milliseconds. */
const LIST_MS = 10_000;

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 1000,
      // The array may be reachable even if the browser considers itself offline.
      networkMode: "always",
      // Retrying a request that the array has refused is pointless.
      retry: (failures, error) =>
        failures < 2 && error instanceof Refused && (error.status === 0 || error.status >= 502),
    },
  },
});

/** Refreshes everything that is shown, after a change. */
export const refresh = (): Promise<void> => client.invalidateQueries();

/** The response to a GET request. */
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

/** The open alerts. All callers share one request. */
export const useOpenAlerts = (): UseQueryResult<RestAlert[]> =>
  useAll<RestAlert>("alerts", { filter: "state='open'" });
