/**
 * Types of responses: names for the types that `npm run types` generates from `openapi.json`, the
 * program's own description.
 */
import type { components } from "./openapi";

export type * from "./outside";

type Schemas = components["schemas"];

/** A page of a list of REST 2.x. */
export type Items<T> = Omit<Schemas["Items"], "items"> & { items: T[] };

export type Named = Schemas["Named"];
export type RestSpace = Schemas["RestSpace"];
export type RestVolumeSpace = Schemas["RestVolumeSpace"];
export type RestHostSpace = Schemas["RestHostSpace"];
export type RestVolume = Schemas["RestVolume"];
export type RestLimits = Schemas["RestQos"];
/** The source of a snapshot has a name; that of a volume may have none. */
export type RestSnapshot = Schemas["RestSnapshot"] & { source: Named };
export type RestPod = Schemas["RestPod"];
export type RestHost = Schemas["RestHost"];
export type RestHostGroup = Schemas["RestHostGroup"];
export type RestConnection = Schemas["RestConnection"];
export type RestMember = Schemas["RestMember"];
export type RestSchedule = Schemas["RestSchedule"];
export type RestRetention = Schemas["RestRetention"];
export type RestGroup = Schemas["RestProtectionGroup"];
export type RestGroupSnapshot = Schemas["RestGroupSnapshot"];
export type RestAlert = Schemas["RestAlert"];

export type HostCheckRow = Schemas["HostCheckRow"];
export type HostCheck = Schemas["HostCheck"];
export type HostSession = Schemas["HostSession"];
export type HostSessions = Schemas["HostSessions"];
export type Initiator = Schemas["Initiator"];
export type Initiators = Schemas["Initiators"];

export type OffloadSettings = Schemas["OffloadSettings"];
export type Offload = keyof OffloadSettings;
export type OffloadChange = Partial<OffloadSettings>;

export type Space = Schemas["Space"];
export type Volume = Schemas["Volume"];
export type Pool = Schemas["Pool"];
export type Version = Schemas["Version"];
export type Status = Schemas["Status"];
export type SpaceFigures = Schemas["SpaceFigures"];
export type PoolSpace = Schemas["PoolSpace"];
export type Scrub = Schemas["Scrub"];
export type Optimize = Schemas["Optimize"];
export type DamageEntry = Schemas["DamageEntry"];
export type DamageList = Schemas["DamageList"];
export type ArraySettings = Schemas["ArraySettings"];
export type TimeServers = Schemas["TimeServers"];

export type Device = Schemas["Device"];
export type DeviceTransfers = Schemas["DeviceTransfers"];
export type Devices = Schemas["Devices"];
export type Controller = Schemas["Controller"];
export type Controllers = Schemas["Controllers"];

export type Role = Schemas["Role"];
export type Session = Schemas["Session"];
export type User = Schemas["User"];
export type Users = Schemas["Users"];
export type ApiToken = Schemas["ApiToken"];
export type ApiTokenMade = Schemas["ApiTokenMade"];
export type ApiTokens = Schemas["ApiTokens"];
export type AuditEntry = Schemas["AuditEntry"];
export type Audit = Schemas["Audit"];

/** The counters of a class of commands, as far as the page uses them. */
export type CommandCounters = Pick<
  Schemas["CommandCounters"],
  "ok" | "failed" | "bytes" | "ok_latency_us" | "latencies"
>;
export type Commands = Record<string, CommandCounters>;
/** The counters of one initiator and one volume, and of all. */
export type PathCounters = Pick<Schemas["PathCounters"], "initiator" | "volume_id" | "volume"> & {
  commands: Commands;
};
export type Port = Schemas["PortCounters"];
export type Counters = Pick<Schemas["Counters"], "wire" | "ports"> & {
  totals: Commands;
  paths: PathCounters[];
};
export type CommandRates = Schemas["CommandRates"];
export type CapacitySample = Schemas["CapacitySample"];
export type HistorySample = Schemas["HistorySample"];
export type HistorySamples = Schemas["HistorySamples"];
export type Bucket = Schemas["LatencyBucket"];
