/**
 * The equivalent command lines of dialogs. They follow the verbs of
 * `crates/holdfast/src/cli/args*`; in the browser tests, the real program parses each of them.
 */
import { durationArgument } from "./format";
import { sizeArgument } from "./size";
import type { OffloadChange, RestRelay } from "./types";

/** A text, or its placeholder while it is empty. */
export function or(text: string, placeholder: string): string {
  return text.trim() === "" ? placeholder : text.trim();
}

/** A word, quoted for a shell if necessary. */
export function quoted(word: string): string {
  return /^[A-Za-z0-9_.,:=@%+/-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function line(...parts: (string | undefined)[]): string {
  const given = parts.filter((part): part is string => part !== undefined && part !== "");
  return ["holdfast", ...given.map(quoted)].join(" ");
}

const onOff = (on: boolean) => (on ? "on" : "off");

/** The names of offloads on the command line, in the order in which they are shown. */
export const OFFLOADS = {
  compare_and_write: "ats",
  extended_copy: "full-copy",
  write_same: "block-zero",
  unmap: "reclaim",
  token_copy: "odx",
} as const;

function offloads(change: OffloadChange): string[] {
  const keys = Object.keys(OFFLOADS) as (keyof typeof OFFLOADS)[];
  const switches = keys.flatMap((key) => {
    const on = change[key];
    return on === undefined ? [] : [`${OFFLOADS[key]}=${onOff(on)}`];
  });
  return switches.length > 0 ? ["--offload", switches.join(",")] : [];
}

/** The properties of a new volume. */
export interface NewVolume {
  name: string;
  sizeBytes: number | undefined;
  blockBytes: number;
  deduplication: boolean;
  compression: boolean;
  hosts: string[];
  hostGroups: string[];
}

/** An option with several values, if there are any. */
const several = (option: string, values: string[]) =>
  values.length > 0 ? [option, values.join(",")] : [];

export const volume = {
  create: (made: NewVolume) =>
    line(
      "volume",
      "create",
      or(made.name, "NAME"),
      "--size",
      made.sizeBytes === undefined ? "SIZE" : sizeArgument(made.sizeBytes),
      ...(made.blockBytes === 512 ? [] : ["--block-size", String(made.blockBytes)]),
      ...(made.deduplication ? [] : ["--deduplication", "off"]),
      ...(made.compression ? [] : ["--compression", "off"]),
      ...several("--host", made.hosts),
      ...several("--host-group", made.hostGroups),
    ),
  resize: (name: string, sizeBytes: number | undefined, truncate: boolean) =>
    line(
      "volume",
      "resize",
      name,
      "--size",
      sizeBytes === undefined ? "SIZE" : sizeArgument(sizeBytes),
      truncate ? "--truncate" : undefined,
    ),
  rename: (name: string, to: string) => line("volume", "rename", name, or(to, "NEW-NAME")),
  clone: (source: string, name: string) => line("volume", "clone", source, or(name, "NAME")),
  restore: (name: string, snapshot: string) => line("volume", "restore", name, snapshot),
  overwrite: (name: string, from: string) =>
    line("volume", "overwrite", name, "--from", or(from, "VOLUME-OR-SNAPSHOT")),
  destroy: (name: string) => line("volume", "destroy", name),
  recover: (name: string) => line("volume", "recover", name),
  eradicate: (name: string) => line("volume", "eradicate", name),
  set: (
    name: string,
    change: OffloadChange,
    reduction: { deduplication?: boolean | undefined; compression?: boolean | undefined },
  ) => {
    const { deduplication, compression } = reduction;
    return line(
      "volume",
      "set",
      name,
      ...offloads(change),
      ...(deduplication === undefined ? [] : ["--deduplication", onOff(deduplication)]),
      ...(compression === undefined ? [] : ["--compression", onOff(compression)]),
    );
  },
};

const suffixed = (suffix: string) => (suffix.trim() ? ["--suffix", suffix.trim()] : []);

export const snapshot = {
  create: (volumes: string[], suffix: string) =>
    line("snapshot", "create", ...volumes, ...suffixed(suffix)),
  ofGroup: (group: string, suffix: string) =>
    line("snapshot", "create", "--group", group, ...suffixed(suffix)),
  rename: (name: string, suffix: string) =>
    line("snapshot", "rename", name, or(suffix, "SUFFIX")),
  destroy: (names: string[]) => line("snapshot", "destroy", ...names),
  recover: (names: string[]) => line("snapshot", "recover", ...names),
  eradicate: (names: string[]) => line("snapshot", "eradicate", ...names),
};

export const pod = {
  create: (name: string) => line("pod", "create", or(name, "NAME")),
  rename: (name: string, to: string) => line("pod", "rename", name, or(to, "NEW-NAME")),
  destroy: (name: string, hasVolumes: boolean) =>
    line("pod", "destroy", name, hasVolumes ? "--with-volumes" : undefined),
  recover: (name: string) => line("pod", "recover", name),
  eradicate: (name: string) => line("pod", "eradicate", name, "--with-volumes"),
};

export const host = {
  create: (name: string, iqns: string[], chapUser: string) =>
    line(
      "host",
      "create",
      or(name, "NAME"),
      "--iqn",
      iqns.length > 0 ? iqns.join(",") : "IQN",
      ...(chapUser.trim() ? ["--chap-user", chapUser.trim(), "--chap-secret-file", "-"] : []),
    ),
  delete: (name: string) => line("host", "delete", name),
  check: (name: string) => line("host", "check", name),
};

export const connect = (volumeName: string, hostName: string, lun: string) =>
  line(
    "connect",
    or(volumeName, "VOLUME"),
    or(hostName, "HOST"),
    ...(lun.trim() ? ["--lun", lun.trim()] : []),
  );

export const disconnect = (volumeName: string, hostName: string) =>
  line("disconnect", volumeName, hostName);

export const group = {
  create: (name: string, volumes: string[]) =>
    line("group", "create", or(name, "NAME"), ...volumes),
  add: (name: string, volumes: string[]) =>
    line("group", "add", name, ...(volumes.length > 0 ? volumes : ["VOLUME"])),
  remove: (name: string, volumes: string[]) => line("group", "remove", name, ...volumes),
  schedule: (
    name: string,
    asked: {
      enabled: boolean;
      every: string;
      at: string | undefined;
      allFor: string;
      perDay: string;
      days: string;
    },
  ) =>
    line(
      "group",
      "set",
      name,
      "--schedule",
      asked.enabled ? "on" : "off",
      "--every",
      or(asked.every, "TIME"),
      ...(asked.at === undefined ? [] : ["--at", asked.at]),
      "--keep",
      or(asked.allFor, "TIME"),
      "--keep-per-day",
      or(asked.perDay, "COUNT"),
      "--keep-days",
      or(asked.days, "DAYS"),
    ),
  destroy: (name: string) => line("group", "destroy", name),
  recover: (name: string) => line("group", "recover", name),
  eradicate: (name: string) => line("group", "eradicate", name),
};

export const pool = {
  scrub: (verb: "start" | "stop") => line("pool", "scrub", verb),
  optimize: (verb: "start" | "stop") => line("pool", "optimize", verb),
  refresh: () => line("pool", "space", "--refresh"),
  grow: (capacityBytes: number | undefined) =>
    line(
      "pool",
      "grow",
      "--capacity",
      capacityBytes === undefined ? "SIZE" : sizeArgument(capacityBytes),
    ),
};

export const array = {
  delay: (seconds: number | undefined) =>
    line("array", "set", "--eradication-delay", seconds === undefined ? "SECONDS" : `${seconds}`),
  thresholds: (percents: number[]) =>
    line("array", "set", "--space-thresholds", percents.length > 0 ? percents.join(",") : "none"),
  offloads: (change: OffloadChange) => line("array", "set", ...offloads(change)),
  dns: (servers: string[], domain: string) =>
    line(
      "array",
      "set",
      "--name-servers",
      servers.length > 0 ? servers.join(",") : "none",
      "--domain",
      domain === "" ? "none" : domain,
    ),
  timeServers: (servers: string[]) =>
    line("array", "set", "--ntp-servers", servers.length > 0 ? servers.join(",") : "none"),
  banner: (text: string) => line("array", "set", "--banner", text === "" ? "none" : text),
  chapRequired: (on: boolean) => line("array", "set", "--chap-required", on ? "on" : "off"),
};

/** A request, for what has no verb of its own. */
export const api = (method: string, path: string, body?: object) =>
  line("api", method, path, ...(body === undefined ? [] : ["--data", JSON.stringify(body)]));

export const user = {
  create: (name: string, role: string) =>
    line("user", "create", or(name, "NAME"), "--role", role),
  set: (name: string, role: string) => line("user", "set", name, "--role", role),
  password: (name: string) => line("user", "password", name),
  delete: (name: string) => line("user", "delete", name),
};

/** A new SNMP manager; its secrets are in files. */
export interface NewManager {
  name: string;
  host: string;
  isInform: boolean;
  version: string;
  user: string;
  /** `SHA`, `MD5`, or empty for none. */
  auth: string;
  /** `AES`, or empty for none. */
  privacy: string;
}

const securityOf = ({ version, user, auth, privacy }: NewManager) =>
  version === "v2c"
    ? ["--community-file", "-"]
    : [
        "--user",
        or(user, "USER"),
        ...(auth === "MD5" ? ["--auth", "MD5"] : []),
        ...(auth === "" ? [] : ["--auth-passphrase-file", "-"]),
        ...(privacy === "" ? [] : ["--privacy-passphrase-file", "FILE"]),
      ];

/** A change to the directory service; a password and certificates are in files. */
export interface DirectoryChange {
  enabled?: boolean;
  uris?: string[];
  baseDn?: string;
  bindUser?: string;
  hasPassword?: boolean;
  certificate?: "given" | "none";
  userLogin?: string;
  userClass?: string;
}

const orNone = (option: string, text: string | undefined) =>
  text === undefined ? [] : [option, text === "" ? "none" : text];

export const directory = {
  set: (change: DirectoryChange) =>
    line(
      "directory",
      "set",
      ...(change.enabled === undefined ? [] : ["--enabled", onOff(change.enabled)]),
      ...orNone("--uri", change.uris?.join(",")),
      ...orNone("--base-dn", change.baseDn),
      ...orNone("--bind-user", change.bindUser),
      ...(change.hasPassword === true ? ["--bind-password-file", "-"] : []),
      ...(change.certificate === undefined
        ? []
        : ["--ca-certificate", change.certificate === "given" ? "FILE" : "none"]),
      ...orNone("--user-login", change.userLogin),
      ...orNone("--user-class", change.userClass),
    ),
  role: (role: string, group: string, base: string) =>
    group === ""
      ? line("directory", "role", role, "--none")
      : line("directory", "role", role, "--group", group, ...(base === "" ? [] : ["--base", base])),
};

export const notify = {
  mail: (relay: RestRelay, hasPassword: boolean) =>
    line(
      "notify",
      "mail",
      ...orNone("--relay", relay.relay_host),
      ...orNone("--sender-domain", relay.sender_domain),
      ...orNone("--sender", relay.sender_username),
      ...orNone("--encryption", relay.encryption_mode),
      ...orNone("--user", relay.user_name),
      ...(hasPassword ? ["--password-file", "-"] : []),
      ...orNone("--subject-prefix", relay.subject_prefix),
      ...orNone("--body-prefix", relay.body_prefix),
    ),
  watcher: (verb: "add" | "enable" | "disable", addresses: string[]) =>
    line("notify", "watcher", verb, ...(addresses.length > 0 ? addresses : ["ADDRESS"])),
  syslog: (verb: "add" | "set", name: string, uri: string) =>
    line("notify", "syslog", verb, or(name, "NAME"), or(uri, "URI")),
  snmp: (made: NewManager) =>
    line(
      "notify",
      "snmp",
      "add",
      or(made.name, "NAME"),
      or(made.host, "HOST"),
      ...securityOf(made),
      made.isInform ? "--inform" : undefined,
    ),
  remove: (kind: "watcher" | "syslog" | "snmp", names: string[]) =>
    line("notify", kind, "remove", ...names),
  test: (names: string[]) => line("notify", "test", ...names),
};

export const alert = {
  close: (number: string) => line("alert", "close", number),
};

export const token = {
  create: (name: string, owner: string, lifetimeS: number | undefined) =>
    line(
      "token",
      "create",
      or(name, "NAME"),
      "--user",
      owner,
      ...(lifetimeS === undefined ? [] : ["--expires", durationArgument(lifetimeS)]),
    ),
  delete: (name: string, owner: string) => line("token", "delete", name, "--user", owner),
};
