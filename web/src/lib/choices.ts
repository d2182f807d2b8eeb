/** Objects that a dialog offers to choose from: found by name, one page after the other. */
import {
  type InfiniteData,
  keepPreviousData,
  useInfiniteQuery,
  type UseInfiniteQueryResult,
} from "@tanstack/react-query";

import { all, filterText, get, type Query, rest } from "./api";
import type { Items, Named, RestConnection, RestHost, RestHostGroup, RestMember } from "./types";

/** The number of objects on a page. */
const ROWS = 25;

/** An object of a list, with the fields that say more about it. */
type Row = Partial<
  Named &
    Pick<RestHost, "host_group"> &
    Pick<RestHostGroup, "host_count"> &
    Pick<RestConnection, "volume"> & {
      provisioned: number;
      pod: { name?: string | null };
      time_remaining: number | null;
    }
>;

/** A list of REST 2.x to choose from. */
export interface Source {
  resource: string;
  /** Precedes names in values, if there are several lists to choose from. */
  prefix?: string;
  query?: Query;
  /** The field with the names, unless that is `name`. */
  field?: "volume.name";
  /** What is shown next to a name. */
  hint?: (row: Row) => string | undefined;
  /** Why an object can't be chosen; undefined if it can. */
  taken?: (row: Row) => string | undefined;
  /** What has been added already, and can't be chosen again. */
  members?: Members;
}

/** The list of existing members, which can't be added again. */
export interface Members {
  resource: string;
  query: Query;
  field: "member.name" | "volume.name";
  /** What is shown next to the names of members. */
  text: string;
}

export interface Choice {
  value: string;
  name: string;
  hint: string | undefined;
  taken: string | undefined;
}

/** A page of a source; `next` is where the following page starts. */
interface Page {
  choices: Choice[];
  next: Start | undefined;
}

interface Start {
  source: number;
  token: string | undefined;
}

const FIRST: Start = { source: 0, token: undefined };

/** The condition that a field has one of these values. */
const oneOf = (field: string, names: string[]) =>
  `${field}=(${names.map((name) => `'${name}'`).join(",")})`;

/** Which of these names are members: asked for these only, as a group may have thousands. */
async function membersAmong(members: Members, names: string[]): Promise<Set<string>> {
  if (names.length === 0) return new Set();
  const { resource, query, field } = members;
  const asked = { ...query, filter: oneOf(field, names) };
  const found = await all<Partial<RestMember & RestConnection>>(resource, asked);
  const part = field === "member.name" ? "member" : "volume";
  return new Set(found.flatMap((one) => one[part]?.name ?? []));
}

async function pageOf(sources: Source[], text: string, start: Start): Promise<Page> {
  const source = sources[start.source];
  if (source === undefined) return { choices: [], next: undefined };
  const { resource, prefix = "", query = {}, field = "name", hint, taken, members } = source;
  const filter = text === "" ? undefined : `${field}='*${text}*'`;
  const asked = { ...query, filter, limit: ROWS, continuation_token: start.token };
  const { items, ...page } = await get<Items<Row>>(rest(resource, asked));
  const nameOf = (row: Row) => (field === "name" ? row.name : row.volume?.name) ?? "";
  const names = items.map(nameOf);
  const added = members === undefined ? new Set() : await membersAmong(members, names);
  const choices = items.map((row) => {
    const name = nameOf(row);
    const why = added.has(name) ? members?.text : taken?.(row);
    return { value: prefix + name, name, hint: hint?.(row), taken: why };
  });
  const token = page.more_items_remaining ? (page.continuation_token ?? undefined) : undefined;
  if (token !== undefined) return { choices, next: { source: start.source, token } };
  const isLast = start.source + 1 >= sources.length;
  return { choices, next: isLast ? undefined : { source: start.source + 1, token } };
}

/** The objects whose names contain a text. */
export function useChoices(
  sources: Source[],
  text: string,
): UseInfiniteQueryResult<InfiniteData<Page>> {
  const wanted = filterText(text.trim());
  const lists = sources.map(({ resource, query, members }) => [resource, query, members]);
  return useInfiniteQuery({
    queryKey: ["choices", lists, wanted],
    queryFn: ({ pageParam }) => pageOf(sources, wanted, pageParam),
    initialPageParam: FIRST,
    getNextPageParam: (page) => page.next,
    // The list does not vanish while somebody types.
    placeholderData: keepPreviousData,
  });
}
