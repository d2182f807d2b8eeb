/** What the interface answers of what hosts do, and did. */
import type { Bucket } from "./percentiles";

/** Commands of one class, since the start. */
export interface CommandCounters {
  ok: number;
  failed: number;
  bytes: number;
  ok_latency_us: number;
  /** How many took how long; only of the totals. */
  latencies?: Bucket[];
}

export type Commands = Record<string, CommandCounters>;

/** What one initiator did to one volume. */
export interface PathCounters {
  initiator: string;
  volume_id: number | null;
  volume: string | null;
  commands: Commands;
}

/** A port of the array. */
export interface Port {
  id: number;
  portal: string;
}

export interface Counters {
  wire: { received_bytes: number; sent_bytes: number; connections: number };
  totals: Commands;
  paths: PathCounters[];
  ports?: Port[];
}

/** What one class of commands did in a sample of the history. */
export interface CommandRates {
  per_s: number;
  failed_per_s: number;
  bytes_per_s: number;
  latency_us: number | null;
  latency_us_p50?: number | null;
  latency_us_p99?: number | null;
  per_s_max: number;
  bytes_per_s_max: number;
  latency_us_max: number;
}

/** How the pool stood in a sample of the history. */
export interface CapacitySample {
  used_bytes: number | null;
  unique_bytes: number | null;
  shared_bytes: number | null;
  snapshots_bytes: number | null;
  data_reduction: number | null;
  total_reduction: number | null;
}

export interface HistorySample {
  time_ms: number;
  covered_ms: number;
  /** By class; only what happened. */
  commands: Record<string, CommandRates>;
  capacity?: CapacitySample;
}

export interface HistorySamples {
  resolution_ms: number;
  samples: HistorySample[];
}
