/** The form of requests and refusals: paths, parameters, messages. */

/** REST 2.x, as published clients use it. */
const REST = "/api/2.26";
/** Holdfast's own interface. */
const OWN = "/v1";
export type Query = Record<string, string | number | boolean | string[] | undefined>;

/** Why a request was refused or failed. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** The code of the refusal, for programs; empty if there is none. */
    readonly code = "",
  ) {
    super(message);
    this.name = "Refused";
  }

  /** Whether this array lacks the requested part of the interface, rather than an object. */
  get isMissing(): boolean {
    const isPath = this.code === "" || this.code === "no_such_path";
    return this.status === 405 || this.status === 501 || (this.status === 404 && isPath);
  }
}

/** A path of REST 2.x with its parameters; lists are joined by commas. */
export function rest(resource: string, query: Query = {}): string {
  return withQuery(`${REST}/${resource}`, query);
}

/** A path of Holdfast's own interface. */
export function own(parts: string | string[], query: Query = {}): string {
  const path = [parts].flat().map(encodeURIComponent).join("/");
  return withQuery(`${OWN}/${path}`, query);
}

function withQuery(path: string, query: Query): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) {
      parameters.set(name, Array.isArray(value) ? value.join(",") : String(value));
    }
  }
  const text = parameters.toString();
  return text === "" ? path : `${path}?${text}`;
}

/** The message of a refusal, in either form of the interface. */
export function messageOf(body: unknown): string | undefined {
  if (typeof body !== "object" || body === null) return undefined;
  if ("message" in body && typeof body.message === "string") return body.message;
  if (!("errors" in body) || !Array.isArray(body.errors)) return undefined;
  const faults = body.errors as { context?: string; message?: string }[];
  const told = faults.map(({ context = "", message = "" }) =>
    context !== "" && !message.includes(context) ? `${context}: ${message}` : message,
  );
  return told.length > 0 ? [...new Set(told)].join(" ") : undefined;
}

/** The code of a refusal; REST 2.x has none. */
export function codeOf(body: unknown): string {
  if (typeof body !== "object" || body === null || !("code" in body)) return "";
  return typeof body.code === "string" ? body.code : "";
}

/** A text without the characters that are special between the quotes of a REST 2.x filter. */
export function filterText(text: string): string {
  return text.replaceAll(/['\\*]/g, "");
}
