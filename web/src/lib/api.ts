/** Requests to the array, and the session that they use. */
import type { Items } from "./types";
import { heard } from "./reach";
import { codeOf, messageOf, own, type Query, Refused, rest } from "./wire";

export { filterText, own, type Query, Refused, rest } from "./wire";

/** The key of the session in the storage of the tab. */
const KEY = "holdfast-session";

/** Timeouts of requests, in milliseconds. A change may have to wait for the device. */
const READ_MS = 15_000;
const CHANGE_MS = 120_000;

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
  /** Why the last session ended, unless the user ended it. */
  farewell: () => farewell,
};

function keep(next: string | null, why = ""): void {
  session = next;
  farewell = why;
  if (next === null) sessionStorage.removeItem(KEY);
  else sessionStorage.setItem(KEY, next);
  for (const listener of listeners) listener();
}

/** Logs in with an API token. */
export async function logIn(token: string): Promise<void> {
  const headers = { "api-token": token };
  const { answer, text } = await send(rest("login"), { method: "POST", headers }, READ_MS);
  const given = answer.headers.get("x-auth-token");
  if (!answer.ok || given === null) throw refusal(answer.status, text);
  keep(given);
}

/** Logs in with a user and a password. */
export async function logInByPassword(user: string, password: string): Promise<void> {
  const headers = { "content-type": "application/json" };
  const body = JSON.stringify({ user, password });
  const init = { method: "POST", headers, body };
  const { answer, text } = await send(own("session"), init, READ_MS);
  const given = answer.headers.get("x-auth-token");
  if (!answer.ok || given === null) throw refusal(answer.status, text);
  keep(given);
}

/** Ends the session, here and on the array. */
export async function logOut(): Promise<void> {
  try {
    await request("POST", rest("logout"));
  } finally {
    keep(null);
  }
}

/** Sends a request, and returns the response with its whole text. */
async function send(path: string, init: RequestInit, deadlineMs: number) {
  try {
    const answer = await fetch(path, { ...init, signal: AbortSignal.timeout(deadlineMs) });
    const text = await answer.text();
    heard();
    return { answer, text };
  } catch (error) {
    const isLate = error instanceof DOMException && error.name === "TimeoutError";
    const waited = `The array has not answered within ${deadlineMs / 1000} s.`;
    const isChange = init.method !== "GET";
    const later = "The change may still take effect: check again later.";
    if (isLate && isChange) throw new Refused(0, `${waited} ${later}`);
    throw new Refused(0, isLate ? waited : "The array does not answer.");
  }
}

/** Sends a request, and returns the body of the response; undefined if it is empty. */
export async function request<T>(method: string, path: string, body?: unknown): Promise<T> {
  const headers: Record<string, string> = {};
  const used = session;
  if (used !== null) headers["x-auth-token"] = used;
  if (body !== undefined) headers["content-type"] = "application/json";
  const sent = body === undefined ? null : JSON.stringify(body);
  const init: RequestInit = { method, headers, body: sent, cache: "no-store" };
  const { answer, text } = await send(path, init, method === "GET" ? READ_MS : CHANGE_MS);
  if (answer.status === 401 && used !== null && used === session) {
    keep(null, "The session has ended. Log in again.");
  }
  if (!answer.ok) throw refusal(answer.status, text);
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

export const get = <T>(path: string): Promise<T> => request<T>("GET", path);

function refusal(status: number, text: string): Refused {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    body = undefined;
  }
  const message = messageOf(body) ?? `The array answered with status ${status}.`;
  return new Refused(status, message, codeOf(body));
}

/** All items of a list that is short enough to be read completely. */
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
