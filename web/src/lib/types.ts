/** What the interface answers, as far as the page reads it. */

export type * from "./measures";
export type * from "./outside";

/** A page of a list of REST 2.x. */
export interface Items<T> {
  items: T[];
  more_items_remaining: boolean;
  continuation_token: string | null;
  total_item_count: number | null;
}

export interface Named {
  name: string;
}

/** Stored bytes of the array, a volume or a snapshot; 0 before the first pass of accounting. */
export interface RestSpace {
  data_reduction: number;
  total_reduction: number;
  total_provisioned: number;
  total_physical: number;
  unique: number;
  snapshots: number;
  shared: number | null;
  system: number | null;
  virtual: number;
}

export interface RestVolume {
  name: string;
  connection_count: number;
  created: number;
  destroyed: boolean;
  time_remaining: number | null;
  provisioned: number;
  serial: string;
  space: RestSpace;
  /** What hosts may do with it in a second; an array that limits nothing does not tell. */
  qos?: RestLimits;
}

/** The most that can be set is no limit. */
export interface RestLimits {
  bandwidth_limit: number;
  iops_limit: number;
}

export interface RestSnapshot {
  name: string;
  created: number;
  destroyed: boolean;
  time_remaining: number | null;
  provisioned: number;
  source: Named;
  suffix: string;
  space: RestSpace;
}

export interface RestHost {
  name: string;
  chap: { host_user: string | null; target_user: string | null };
  connection_count: number;
  host_group: Partial<Named>;
  iqns: string[];
}

export interface RestHostGroup {
  name: string;
  connection_count: number;
  host_count: number;
}

export interface RestConnection {
  host: Partial<Named>;
  host_group: Partial<Named>;
  lun: number;
  volume: Named;
}

/** A group and one of its members. */
export interface RestMember {
  group: Named;
  member: Named;
}

/** When snapshots are made; an array that runs none says only that it is not enabled. */
export interface RestSchedule {
  enabled: boolean;
  frequency?: number | null;
  at?: number | null;
}

/** How long snapshots that a schedule has made are kept. */
export interface RestRetention {
  all_for_sec?: number | null;
  days?: number | null;
  per_day?: number | null;
}

export interface RestGroup {
  name: string;
  destroyed: boolean;
  time_remaining?: number | null;
  volume_count: number;
  host_count: number;
  host_group_count: number;
  snapshot_schedule: RestSchedule;
  source_retention?: RestRetention | null;
}

export interface RestGroupSnapshot {
  name: string;
  created: number;
  destroyed: boolean;
  time_remaining: number | null;
  source: Named;
  suffix: string;
}

export interface RestAlert {
  /** Its number. */
  name: string;
  severity: "info" | "warning" | "critical";
  state: "open" | "closing" | "closed";
  summary: string;
  /** What to do. */
  description: string;
  actual: string | null;
  expected: string | null;
  created: number;
  flagged: boolean;
  component_name: string;
}

/** One practice of a host. */
export interface HostCheckRow {
  check: string;
  verdict: "good" | "improve" | "unseen";
  seen: string;
  best: string;
  esxi: string;
  linux: string;
  /** Empty where nothing is known of it. */
  windows: string;
  /** Hosts do not report it: check the host itself. */
  unreported: boolean;
}

/** How a host uses the array. */
export interface HostCheck {
  host: string;
  good: number;
  improve: number;
  unseen: number;
  rows: HostCheckRow[];
}

/** A session of a host. */
export interface HostSession {
  initiator: string;
  host: string | null;
  isid: string;
  portal: number;
  portal_address: string;
  peer: string;
  terms: { burst_bytes: number };
  commands: number;
  queue_most: number;
}

export interface HostSessions {
  sessions: HostSession[];
}

export type Offload =
  "compare_and_write" | "extended_copy" | "write_same" | "unmap" | "token_copy";
export type OffloadSettings = Record<Offload, boolean>;
export type OffloadChange = Partial<OffloadSettings>;

/** What is stored for a volume, as of the last pass of accounting. */
export interface Space {
  as_of_ms: number;
  unique_bytes: number;
  share_bytes: number;
  data_reduction: number | null;
  total_reduction: number | null;
}

/** A volume in Holdfast's own words. */
export interface Volume {
  name: string;
  size_bytes: number;
  block_bytes: number;
  serial: string;
  naa: string;
  created_ms: number;
  mapped_bytes: number;
  data_bytes: number;
  space: Space | null;
  offloads: OffloadSettings;
  offloads_in_effect: OffloadSettings;
  deduplication: boolean;
  compression: boolean;
  connections: number;
  snapshots: number;
  eradicate_ms?: number;
}

export interface Pool {
  id: string;
  epoch: number;
  capacity_bytes: number;
  allocated_bytes: number;
  used_bytes: number;
  data_bytes: number;
  provisioned_bytes: number;
  mapped_bytes: number;
  mapped_data_bytes: number;
  data_reduction: number | null;
  reduction_without_zeros: number | null;
  reduction_to_allocated: number | null;
  total_reduction: number | null;
  log_bytes: number;
  written: { hosts_bytes: number; log_bytes: number; amplification: number | null };
}

export interface Status {
  name: string;
  version: string;
  target_name: string;
  portals: string[];
  durability: string;
  started_ms: number;
  volumes: number;
  snapshots: number;
  destroyed: number;
  hosts: number;
  connections: number;
  pool: Pool;
}

export interface SpaceFigures {
  as_of_ms: number;
  unique_bytes: number;
  snapshots_bytes: number;
  shared_bytes: number;
  system_bytes: number;
  live_bytes: number;
}

export interface PoolSpace {
  figures: SpaceFigures | null;
  current: boolean;
  pending: boolean;
}

export interface Scrub {
  running: boolean;
  pass: number;
  started_ms: number;
  completed_ms: number;
  done_bytes: number;
  total_bytes: number;
  findings: number;
  repairs: number;
  damaged: number;
}

export interface Optimize {
  running: boolean;
  passes: number;
  failed_passes: number;
  failure?: string;
  rows_done: number;
  rows_total: number;
  segments_done: number;
  segments_total: number;
  aliased_chunks: number;
  rewritten_segments: number;
}

export interface DamageEntry {
  kind: string;
  what: string;
  volume: string | null;
  first_lba: number | null;
  blocks: number;
  ranges_more: number;
  found_ms: number;
  repaired: boolean;
}

export interface ArraySettings {
  name: string;
  target_name: string;
  company_id: string;
  offloads: OffloadSettings;
  space_thresholds: number[];
  eradication_delay_s: number;
  chap_required: boolean;
  name_servers: string[];
  domain: string;
  ntp_servers: string[];
}

export interface TimeServers {
  time_servers: { server: string; offset_s: number | null; error: string | null }[];
}

export type Role = "array_admin" | "storage_admin" | "readonly";

export interface Session {
  user: string;
  role: Role;
}

export interface User {
  name: string;
  role: Role;
  built_in: boolean;
  created_ms: number | null;
  tokens: number;
  password: boolean;
}

export interface ApiToken {
  user: string;
  name: string;
  created_ms: number;
  expires_ms: number | null;
  last_used_ms: number | null;
}

export interface AuditEntry {
  number: number;
  time_ms: number;
  user: string;
  role: string;
  origin: string;
  method: string;
  path: string;
  names: string;
  outcome: string;
}

/** A part of the audit log, the newest entry first. */
export interface Audit {
  entries: AuditEntry[];
  more: boolean;
  /** How many the filter wants, on whatever page. */
  total: number;
}
