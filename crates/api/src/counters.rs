//! The front end's counters, as returned by the API.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::latency::{self, LatencyBucket};
use crate::{Optimize, PoolSpace, Scrub};

/// The array's counters, since its start.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Counters {
    /// The sockets.
    pub wire: WireCounters,
    /// The memory that `memory` in the configuration bounds.
    pub memory: MemoryCounters,
    /// Bytes written to the pool.
    #[serde(default)]
    #[schema(required = true)]
    pub written: Written,
    /// The commands of all initiators to all volumes, by class.
    pub totals: BTreeMap<String, CommandCounters>,
    /// The same for each initiator and volume.
    pub paths: Vec<PathCounters>,
    /// The same for each port of the target, over all initiators and volumes.
    #[serde(default)]
    #[schema(required = true)]
    pub ports: Vec<PortCounters>,
    /// Which objects the pool's bytes are stored for.
    #[serde(default)]
    #[schema(required = true)]
    pub space: PoolSpace,
    /// Scrubbing.
    #[serde(default)]
    #[schema(required = true)]
    pub integrity: Scrub,
    /// The background pass of reduction.
    #[serde(default)]
    #[schema(required = true)]
    pub optimize: Optimize,
}

/// The traffic of the sockets.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct WireCounters {
    /// Bytes of TCP payload received.
    pub received_bytes: u64,
    /// Bytes of TCP payload sent.
    pub sent_bytes: u64,
    /// Connections that are open now.
    pub connections: u64,
}

/// Bytes written to the pool since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Written {
    /// By hosts, in whole blocks of 4 KiB, before reduction.
    pub hosts_bytes: u64,
    /// To the log: hosts' data after reduction, the metadata that describes it, and moved data.
    pub log_bytes: u64,
    /// The part of the log bytes that reclaim and the background pass have moved.
    pub moved_bytes: u64,
    /// By checkpoints.
    pub checkpoint_bytes: u64,
    /// Write amplification: bytes of log and checkpoints for each byte that hosts write. Below 1 if
    /// reduction saves more than everything else costs; `null` before the first write.
    #[schema(required = true)]
    pub amplification: Option<f64>,
}

impl From<array::WrittenBytes> for Written {
    fn from(written: array::WrittenBytes) -> Self {
        Self {
            hosts_bytes: written.hosts_bytes,
            log_bytes: written.log_bytes,
            moved_bytes: written.moved_bytes,
            checkpoint_bytes: written.checkpoint_bytes,
            amplification: written.amplification(),
        }
    }
}

/// Memory: the limits, the use, and how often metadata was found in memory.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct MemoryCounters {
    /// The maximum size of the data cache, in bytes.
    pub data_cache_limit_bytes: u64,
    /// Bytes of data in the cache.
    pub data_cache_bytes: u64,
    /// The maximum size of metadata in memory, in bytes: map nodes and pages of tables.
    pub metadata_limit_bytes: u64,
    /// Bytes of metadata in memory.
    pub metadata_bytes: u64,
    /// Bytes of metadata that have changed since the last checkpoint. At half of the metadata limit
    /// the next checkpoint is due; at the limit writes wait for it.
    pub dirty_bytes: u64,
    /// Bytes of metadata that a checkpoint is writing.
    pub writing_bytes: u64,
    /// The maximum size of the deduplication index, in bytes.
    pub index_limit_bytes: u64,
    /// Pages of tables in memory.
    pub pages: u64,
    /// Map nodes in memory.
    pub nodes: u64,
    /// How often a reader found a page or a node in memory; nearly exact.
    pub hits: u64,
    /// How often a page or a node was read from the device.
    pub misses: u64,
    /// Pages and nodes evicted from memory to make room.
    pub evictions: u64,
}

/// Commands of one class. The mean latency is the sum of the latencies divided by the count.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CommandCounters {
    /// Commands that succeeded.
    pub ok: u64,
    /// Commands that failed, including ATS miscompares.
    pub failed: u64,
    /// Bytes of volumes that the successful ones read, wrote, copied, zeroed or deallocated.
    pub bytes: u64,
    /// The sum of the latencies of the successful ones.
    pub ok_latency_us: u64,
    /// The sum of the latencies of the others.
    pub failed_latency_us: u64,
    /// The bytes of the longest successful one.
    #[serde(default)]
    #[schema(required = true)]
    pub largest_bytes: u64,
    /// The distribution of the latencies of the successful ones: a histogram, from the shortest to
    /// the longest; empty buckets are omitted, except in the totals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latencies: Vec<LatencyBucket>,
}

/// The upper limit of a percentile: longer latencies are only known to be longer.
const LONGEST_US: u64 = 10_000_000;

impl CommandCounters {
    /// Adds other counters.
    pub fn add(&mut self, more: &Self) {
        self.ok += more.ok;
        self.failed += more.failed;
        self.bytes += more.bytes;
        self.ok_latency_us += more.ok_latency_us;
        self.failed_latency_us += more.failed_latency_us;
        self.largest_bytes = self.largest_bytes.max(more.largest_bytes);
        latency::add(&mut self.latencies, &more.latencies);
    }

    /// Returns the difference from `before`, except the largest command, which is of all time.
    /// `None` if a counter has decreased.
    pub fn since(&self, before: &Self) -> Option<Self> {
        Some(Self {
            ok: self.ok.checked_sub(before.ok)?,
            failed: self.failed.checked_sub(before.failed)?,
            bytes: self.bytes.checked_sub(before.bytes)?,
            ok_latency_us: self.ok_latency_us.checked_sub(before.ok_latency_us)?,
            failed_latency_us: self.failed_latency_us.checked_sub(before.failed_latency_us)?,
            largest_bytes: self.largest_bytes,
            latencies: latency::since(&before.latencies, &self.latencies)?,
        })
    }

    /// Returns the latency that `percent` percent of the successful commands did not exceed, in
    /// microseconds, by the upper bounds of buckets; 10 s also stands for longer latencies. `None`
    /// if there were none.
    pub fn percentile_us(&self, percent: u8) -> Option<u64> {
        latency::percentile_us(&self.latencies, percent, LONGEST_US)
    }
}

/// The commands of one initiator to one volume.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PathCounters {
    /// The iSCSI name of the initiator.
    pub initiator: String,
    /// The id of the volume; `null` for commands to a LUN without one, and for everything done to
    /// volumes that no longer exist.
    #[schema(required = true)]
    pub volume_id: Option<u64>,
    /// The name of the volume, if it still exists.
    #[schema(required = true)]
    pub volume: Option<String>,
    /// By class of command; only classes that occurred.
    pub commands: BTreeMap<String, CommandCounters>,
    /// Commands that locked the whole volume (RESERVE).
    #[serde(default)]
    #[schema(required = true)]
    pub reserves: u64,
    /// Bytes of zeros in writes of 64 KiB and more, for which one WRITE SAME would have done.
    #[serde(default)]
    #[schema(required = true)]
    pub zeros_written_bytes: u64,
    /// Copies that read the volume, whichever LUN the command was sent to.
    #[serde(default)]
    #[schema(required = true)]
    pub copied_from: Copied,
    /// Copies that wrote it.
    #[serde(default)]
    #[schema(required = true)]
    pub copied_to: Copied,
}

/// Copies that succeeded, and the bytes that they copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Copied {
    /// Commands.
    pub commands: u64,
    /// Bytes.
    pub bytes: u64,
}

/// The commands through one port.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct PortCounters {
    /// Its number, as in sessions of hosts and in the history: from 1.
    #[serde(default)]
    #[schema(required = true)]
    pub id: u16,
    /// Where it listens, as `ADDR:PORT`.
    pub portal: String,
    /// By class of command; only classes that occurred.
    pub commands: BTreeMap<String, CommandCounters>,
}
