/** The real program on a fresh pool, and what the tests ask it behind the back of the page. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";

import { type APIRequestContext, request } from "playwright-core";

const program = resolve(process.env["HOLDFAST"] ?? "../target/debug/holdfast");
const run = promisify(execFile);

interface Told {
  url: string;
  target_name: string;
  portals: string[];
}

export class ArrayUnderTest {
  private constructor(
    readonly pool: string,
    readonly told: Told,
    /** An API token of the built-in user. */
    readonly token: string,
    private readonly process: ChildProcess,
    private readonly http: APIRequestContext,
  ) {}

  static async start(capacity = "4G"): Promise<ArrayUnderTest> {
    const pool = mkdtempSync(join(tmpdir(), "holdfast-web-"));
    await run(program, ["pool", "create", pool, "--capacity", capacity]);
    const serve = ["serve", "--pool", pool, "--iscsi", "127.0.0.1:0", "--json"];
    const process = spawn(program, serve, { stdio: ["ignore", "pipe", "inherit"] });
    const told = await announced(process);
    const made = await run(program, ["token", "create", "web", "--pool", pool, "--json"]);
    const { token } = JSON.parse(made.stdout) as { token: string };
    const http = await request.newContext({
      baseURL: told.url,
      ignoreHTTPSErrors: true,
      extraHTTPHeaders: { authorization: `Bearer ${token}` },
    });
    return new ArrayUnderTest(pool, told, token, process, http);
  }

  /** Has it answer nothing, as a machine that hangs, until `goOn`. */
  hang(): void {
    this.process.kill("SIGSTOP");
  }

  goOn(): void {
    this.process.kill("SIGCONT");
  }

  async stop(): Promise<void> {
    await this.http.dispose();
    if (this.process.exitCode === null) {
      const ended = once(this.process, "exit");
      this.process.kill("SIGTERM");
      await ended;
    }
    rmSync(this.pool, { recursive: true, force: true });
  }

  /** The items of a list of REST 2.x; an object that is not there throws. */
  async items<T = Record<string, unknown>>(resource: string, query = ""): Promise<T[]> {
    const body = await this.ask<{ items: T[] }>("GET", `/api/2.26/${resource}?${query}`);
    return body.items;
  }

  async ask<T = unknown>(method: string, path: string, data?: unknown): Promise<T> {
    const answer = await this.http.fetch(path, data === undefined ? { method } : { method, data });
    const text = await answer.text();
    if (!answer.ok()) throw new Error(`${method} ${path}: ${answer.status()} ${text}`);
    return (text === "" ? undefined : JSON.parse(text)) as T;
  }

  /** What a path without a session answers: its status, headers and text. */
  async raw(path: string, headers: Record<string, string> = {}) {
    const context = await request.newContext({ ignoreHTTPSErrors: true });
    const answer = await context.fetch(this.told.url + path, { headers, maxRedirects: 0 });
    const found = {
      status: answer.status(),
      headers: answer.headers(),
      text: await answer.text(),
    };
    await context.dispose();
    return found;
  }
}

/** What the program says when hosts and verbs can come. */
async function announced(process: ChildProcess): Promise<Told> {
  let text = "";
  for await (const piece of process.stdout ?? []) {
    text += String(piece);
    try {
      return JSON.parse(text) as Told;
    } catch {
      // There is more to come.
    }
  }
  throw new Error(`the array did not start: ${text}`);
}

/**
 * Whether the program understands a line: asked of an array that nobody runs, it ends in 3 (no
 * array can be reached); what makes no sense ends in 2.
 */
export async function exitCodeOf(line: string): Promise<number> {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-line-"));
  const tokenFile = join(directory, "token");
  writeFileSync(tokenFile, "none");
  // A second secret, as the first one is read from standard input.
  writeFileSync(join(directory, "FILE"), "another-secret\n");
  const env = {
    ...process.env,
    PATH: `${dirname(program)}:${process.env["PATH"] ?? ""}`,
    HOLDFAST_API: "http://127.0.0.1:1",
    HOLDFAST_TOKEN_FILE: tokenFile,
  };
  const shell = spawn("bash", ["-c", line], {
    cwd: directory,
    env,
    stdio: ["pipe", "ignore", "ignore"],
  });
  // For the verbs that read a secret.
  shell.stdin.end("a-secret-of-chap\n");
  shell.stdin.on("error", () => undefined);
  const [code] = (await once(shell, "exit")) as [number];
  rmSync(directory, { recursive: true });
  return code;
}
