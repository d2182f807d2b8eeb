/** The form of requests and refusals: paths, parameters, messages. */

/** REST 2.x, as published clients speak it. */
const REST = "/api/2.26";
/** What is Holdfast's own. */
const OWN = "/v1";
export type Query = Record<string, string | number | boolean | string[] | undefined>;

/** Why a request was not done. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    message: string,
    /** What it is, for programs, where the array tells. */
    readonly code = "",
  ) {
    super(message);
    this.name = "Refused";
  }

  /** Whether this array lacks the part of the interface that was asked for, not an object. */
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

/** What a refusal says, in either form of the interface. */
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

/** What a filter of REST 2.x takes as text between single quotes. */
export function filterText(text: string): string {
  return text.replaceAll(/['\\*]/g, "");
}
