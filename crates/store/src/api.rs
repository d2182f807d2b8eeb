//! What the store's callers see.

use block::{Frame, FrameMut, SectorCount, VolumeId};
use format::{Handling, Place};
use segments::Persist;
use smallvec::SmallVec;

use crate::tuning::Tuning;

/// Which sink an answer goes to, and what it is called there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// From [`crate::Engine::register_sink`].
    pub sink: SinkId,
    /// Anything; it comes back in [`crate::Sink::complete`].
    pub id: u64,
}

/// Names a registered [`crate::Sink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SinkId(pub u16);

/// One device read.
#[derive(Debug)]
pub struct DiskRead {
    /// Where: whole blocks, inside of a segment.
    pub place: Place,
    /// What to fill.
    pub frames: Vec<FrameMut>,
    /// Set by the caller: whether the device filled the frames.
    pub failed: bool,
}

/// Device reads of one request: most of the time there is one.
pub type DiskReads = SmallVec<[DiskRead; 1]>;

/// One write to the device, which makes all of its requests durable. Without frames it is a flush
/// and nothing else.
#[derive(Debug)]
pub struct Commit {
    /// Where: whole blocks, inside of a segment; nowhere if there is nothing to write.
    pub place: Place,
    /// What to write.
    pub frames: Vec<Frame>,
    /// What must be durable before it is finished. Where each record becomes durable by itself it
    /// is enough that this one does; where only some are flushed, a flush covers all before it.
    pub persist: Persist,
    /// The record's number.
    pub(crate) lsn: u64,
}

/// Changes that an administrator makes: all of them in one commit, or none.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// What happens to volumes.
    pub volumes: Vec<VolumeChange>,
    /// What is put into (`Some`) or taken out of (`None`) the durable key-value space that belongs
    /// to the layer above: names, hosts, connections. Keys up to 255 bytes, values up to 64 KiB.
    pub config: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

/// What happens to a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeChange {
    /// A new, empty volume. The id must come from [`crate::Store::allocate_volume_id`].
    Create {
        /// Its id.
        id: VolumeId,
        /// Its size, a multiple of 8 sectors, up to 64 TiB.
        size: SectorCount,
    },
    /// A new size; what is behind it is unmapped.
    Resize {
        /// Which.
        id: VolumeId,
        /// Its new size, a multiple of 8 sectors, up to 64 TiB.
        size: SectorCount,
    },
    /// A new volume that holds what another holds at this moment, and has its size. It costs the
    /// same whatever that is: both share all of it until one of them is changed.
    Clone {
        /// Of which: a volume or a snapshot.
        source: VolumeId,
        /// The new one's id, from [`crate::Store::allocate_volume_id`].
        id: VolumeId,
        /// Whether it is a snapshot: nothing writes to it, and it is not counted as provisioned.
        snapshot: bool,
    },
    /// A volume becomes what another is at this moment, its size too; what it held is gone. It
    /// costs the same whatever that is.
    Overwrite {
        /// What it becomes: a volume or a snapshot.
        source: VolumeId,
        /// Which changes; not a snapshot.
        destination: VolumeId,
    },
    /// What reduction leaves alone of what is written from here on. What is stored stays as it is.
    Handling {
        /// Which: one that was there, or that the same change has created; not a snapshot.
        id: VolumeId,
        /// What it leaves alone.
        handling: Handling,
    },
    /// The end of a volume or of a snapshot; what only it held is freed afterwards
    /// ([`crate::Store::housekeep`]).
    Destroy {
        /// Which.
        id: VolumeId,
    },
}

/// How the pool stands.
#[derive(Clone, Debug, Default)]
pub struct PoolStatus {
    /// The pool's own name, for ever.
    pub pool_id: [u8; 16],
    /// The epoch: one more at each opening.
    pub epoch: u64,
    /// Bytes that the pool can hold.
    pub capacity_bytes: u64,
    /// Bytes of volume data that are stored (after reduction, without metadata).
    pub data_bytes: u64,
    /// Bytes of segments that can't be written: data, metadata, the log, and what is dead in them.
    pub allocated_bytes: u64,
    /// Bytes that are in use: see [`crate::Engine::space_use`].
    pub used_bytes: u64,
    /// Bytes that volumes are provisioned for, together; snapshots are not counted.
    pub provisioned_bytes: u64,
    /// Bytes that hosts have mapped in all volumes, together, without snapshots.
    pub mapped_bytes: u64,
    /// Of those, bytes that name stored data, before sharing: neither zeros nor a pattern.
    pub mapped_data_bytes: u64,
    /// How many volumes there are, without snapshots.
    pub volume_count: u64,
    /// How many snapshots.
    pub snapshot_count: u64,
    /// Bytes of log since the last checkpoint: what recovery would replay.
    pub log_bytes: u64,
    /// Commits since the store was opened.
    pub commit_count: u64,
    /// Checkpoints since the store was opened.
    pub checkpoint_count: u64,
    /// How its memory stands.
    pub memory: MemoryStatus,
    /// What was written since the store was opened.
    pub written: WrittenBytes,
    /// How far it is of the latest version of the format.
    pub upgrade: UpgradeStatus,
}

/// How far a pool is of the latest version of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpgradeStatus {
    /// The number of its version.
    pub version: u32,
    /// The number of the latest one that this program knows.
    pub latest_version: u32,
    /// Whether it has all features as well that this program gives a pool.
    pub is_latest: bool,
    /// Bytes of metadata that are still as the version or the features before had them, of a pool
    /// of the latest version.
    pub left_bytes: u64,
}

/// Bytes that were written since a store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenBytes {
    /// By hosts, whole 4 KiB blocks, before reduction.
    pub hosts_bytes: u64,
    /// To the log: what hosts' blocks were reduced to, what describes them, and what reclaim and
    /// the background pass have moved.
    pub log_bytes: u64,
    /// Of those, the payload that was moved.
    pub moved_bytes: u64,
    /// By checkpoints.
    pub checkpoint_bytes: u64,
}

impl WrittenBytes {
    /// Bytes written to the device for each that hosts have written; below 1 where reduction saves
    /// more than all else costs. `None` before the first write.
    pub fn amplification(&self) -> Option<f64> {
        let device_bytes = self.log_bytes + self.checkpoint_bytes;
        (self.hosts_bytes > 0).then(|| device_bytes as f64 / self.hosts_bytes as f64)
    }
}

/// How the memory of a store stands: see [`OpenOptions::memory_bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatus {
    /// Bytes that blocks of data may take.
    pub data_cache_limit_bytes: u64,
    /// Bytes that metadata may take: map nodes, pages of tables, and what finds them.
    pub metadata_limit_bytes: u64,
    /// Bytes that the deduplication index may take.
    pub index_limit_bytes: u64,
    /// Bytes of data that are in the cache.
    pub data_cache_bytes: u64,
    /// Bytes that metadata takes.
    pub metadata_bytes: u64,
    /// Bytes of metadata that have changed since the last checkpoint, and can't leave before the
    /// next one.
    pub dirty_bytes: u64,
    /// Bytes of metadata that a checkpoint is writing.
    pub writing_bytes: u64,
    /// Pages of tables in memory.
    pub page_count: u64,
    /// Map nodes in memory.
    pub node_count: u64,
    /// How often a reader has found a page or a node in memory, since the store was opened. Two at
    /// the same moment may count as one.
    pub hits: u64,
    /// How often a page or a node was read from the device, since the store was opened.
    pub misses: u64,
    /// Pages and nodes that have left memory to make room, since the store was opened.
    pub evictions: u64,
}

/// How a volume stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeStatus {
    /// Which.
    pub id: VolumeId,
    /// Its size.
    pub size: SectorCount,
    /// Bytes mapped: written and not unmapped since, zeros and patterns too.
    pub mapped_bytes: u64,
    /// Bytes of them that name stored data (neither zeros nor a pattern), before sharing.
    pub data_bytes: u64,
    /// Whether it is a snapshot.
    pub snapshot: bool,
    /// What reduction leaves alone of what is written to it.
    pub handling: Handling,
}

/// When an answer may be given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Only what is on the medium is answered. WCE is 0.
    #[default]
    Commit,
    /// Writes are answered from memory; SYNCHRONIZE CACHE and FUA make them durable. WCE is 1.
    Flush,
}

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// When an answer may be given.
    pub durability: Durability,
    /// Bytes of memory for data that is kept for reading, for metadata and for the deduplication
    /// index together. What is under way comes on top: the frames of requests, and the log's
    /// records in flight. A store works with any, also with 0.
    pub memory_bytes: u64,
    /// Bytes of log behind a checkpoint that make the next one due.
    pub checkpoint_log_bytes: u64,
    /// Sizes that a simulator makes small; everybody else takes the default.
    pub tuning: Tuning,
    /// Whether a pool of an earlier version of the format becomes one of the latest. Earlier
    /// programs don't read it any more then.
    pub upgrade: bool,
    /// Whether the device gets the space of free segments back.
    pub discard: bool,
    /// The incarnation in which another controller has served until now, from which this one takes
    /// over. If the pool is still of it, it stays so; if anybody else has opened it since, the next
    /// one begins. `None`: this is a power on.
    pub takes_over: Option<u64>,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self {
            durability: Durability::Commit,
            memory_bytes: 1 << 30,
            checkpoint_log_bytes: 512 << 20,
            tuning: Tuning::DEFAULT,
            upgrade: true,
            discard: false,
            takes_over: None,
        }
    }
}
