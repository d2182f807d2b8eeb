/** The interface of the array: requests, and the session that they carry. */
import type { Items, Session } from "./types";
import { codeOf, messageOf, own, type Query, Refused, rest } from "./wire";

export { filterText, own, type Query, Refused, rest } from "./wire";

/** Where the session is kept while the tab is open. */
const KEY = "holdfast-session";

let session: string | null = sessionStorage.getItem(KEY);
const listeners = new Set<() => void>();
let farewell = "";

/** Whether there is a session, for `useSyncExternalStore`. */
export const sessions = {
  subscribe: (listener: () => void): (() => void) => {
    listeners.add(listener);
    return () => listeners.delete(listener);
  },
  isOpen: () => session !== null,
  /** Why the last one ended, where it was not asked for. */
  farewell: () => farewell,
};

function keep(next: string | null, why = ""): void {
  session = next;
  farewell = why;
  if (next === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, next);
  for (const listener of listeners) listener();
}

/** Turns an API token into a session. */
export async function logIn(token: string): Promise<void> {
  const headers = { "api-token": token };
  const answer = await fetch(rest("login"), { method: "POST", headers });
  const given = answer.headers.get("x-auth-token");
  if (!answer.ok || given === null) throw await refusal(answer);
  keep(given);
}

/** Ends the session, here and at the array. */
export async function logOut(): Promise<void> {
  try {
    await request("POST", rest("logout"));
  } finally {
    keep(null);
  }
}

/** Sends a request and gives what is answered; an empty answer is undefined. */
export async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = {};
  const used = session;
  if (used !== null) headers["x-auth-token"] = used;
  if (body !== undefined) headers["content-type"] = "application/json";
  const text = body === undefined ? null : JSON.stringify(body);
  let answer: Response;
  try {
    answer = await fetch(path, { method, headers, body: text, cache: "no-store" });
  } catch {
    throw new Refused(0, "The array does not answer.");
  }
  if (answer.status === 401 && used !== null && used === session) {
    keep(null, "The session has ended. Log in again.");
  }
  if (!answer.ok) throw await refusal(answer);
  const content = await answer.text();
  return (content === "" ? undefined : JSON.parse(content)) as T;
}

export const get = <T>(path: string): Promise<T> => request<T>("GET", path);

/** Who is logged in. */
export const whoAmI = (): Promise<Session> => get<Session>(own("session"));

async function refusal(answer: Response): Promise<Refused> {
  let body: unknown;
  try {
    body = await answer.json();
  } catch {
    body = undefined;
  }
  const message = messageOf(body) ?? `The array answers ${answer.status}.`;
  return new Refused(answer.status, message, codeOf(body));
}

/** All items of a list whose pages are short enough to be read at once. */
export async function all<T>(resource: string, query: Query = {}): Promise<T[]> {
  const found: T[] = [];
  let token: string | undefined;
  do {
    const asked = { ...query, limit: 1000, continuation_token: token };
    const page = await get<Items<T>>(rest(resource, asked));
    found.push(...page.items);
    token = page.more_items_remaining ? (page.continuation_token ?? undefined) : undefined;
  } while (token !== undefined);
  return found;
}
