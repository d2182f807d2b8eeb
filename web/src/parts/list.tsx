/** Paged lists of REST 2.x: filter by name, sort order, next and previous page. */
import type { UseQueryResult } from "@tanstack/react-query";
import { useState } from "react";

import { filterText, type Query, rest } from "../lib/api";
import { count } from "../lib/format";
import { useGet } from "../lib/query";
import type { Items } from "../lib/types";

/** The number of rows on a page. */
const ROWS = 25;

export interface List<T> {
  query: UseQueryResult<Items<T>>;
  rows: T[];
  text: string;
  search: (text: string) => void;
  sort: string;
  setSort: (sort: string) => void;
  /** The number of this page, from 1. */
  page: number;
  /** The number of items on all pages, once it is known. */
  total: number | undefined;
  next: (() => void) | undefined;
  back: (() => void) | undefined;
}

/** A list; `fixed` are parameters that do not change, and may include a filter. */
export function useList<T>(resource: string, fixed: Query = {}): List<T> {
  const [text, setText] = useState("");
  const [sort, setSort] = useState("name");
  const [tokens, setTokens] = useState<string[]>([]);
  const wanted = filterText(text.trim());
  // The first rows of the natural order are found at once, but counting reads all rows, so the rows
  // do not wait for the count. A filtered or sorted list is read completely anyway.
  const filters = [fixed["filter"], wanted === "" ? undefined : `name='*${wanted}*'`];
  const filter = filters.filter((one) => one !== undefined).join(" and ");
  const isPlain = filter === "" && sort === "name";
  const counted = useGet<Items<T>>(
    isPlain ? rest(resource, { ...fixed, limit: 0, total_item_count: true }) : undefined,
  );
  const query = useGet<Items<T>>(
    rest(resource, {
      ...fixed,
      limit: ROWS,
      total_item_count: isPlain ? undefined : true,
      filter: filter === "" ? undefined : filter,
      // The natural order is by name, and needs no sorting.
      sort: sort === "name" ? undefined : sort,
      continuation_token: tokens.at(-1),
    }),
  );
  const token = query.data?.more_items_remaining ? query.data.continuation_token : null;
  const first = <V,>(set: (value: V) => void) => (value: V) => {
    setTokens([]);
    set(value);
  };
  return {
    query,
    rows: query.data?.items ?? [],
    text,
    search: first(setText),
    sort,
    setSort: first(setSort),
    page: tokens.length + 1,
    total: (isPlain ? counted : query).data?.total_item_count ?? undefined,
    next: token ? () => setTokens([...tokens, token]) : undefined,
    back: tokens.length > 0 ? () => setTokens(tokens.slice(0, -1)) : undefined,
  };
}

export function Search<T>({ list, what }: { list: List<T>; what: string }) {
  return (
    <input
      type="search"
      aria-label={`Find ${what} by name`}
      placeholder="Find by name"
      value={list.text}
      onChange={(event) => list.search(event.target.value)}
    />
  );
}

/** The position in a paged list. */
export type Paged = Pick<List<unknown>, "page" | "total" | "next" | "back">;

export function Pager({ list }: { list: Paged }) {
  const isOnePage = list.next === undefined && list.back === undefined;
  return (
    <div className="pager">
      {!isOnePage && (
        <nav className="pager" aria-label="Pages of the list">
          <button type="button" disabled={list.back === undefined} onClick={list.back}>
            Back
          </button>
          <span>Page {list.page}</span>
          <button type="button" disabled={list.next === undefined} onClick={list.next}>
            Next
          </button>
        </nav>
      )}
      <Total of={list.total} />
    </div>
  );
}

/** The length of a list. An empty list has its own text. */
export function Total({ of }: { of: number | undefined }) {
  if (of === undefined || of === 0) return null;
  return <p className="muted total">{count(of)} in all</p>;
}
