//! The types of the store's interface.

use block::{Frame, FrameMut, SectorCount, VolumeId};
use format::{Handling, Place};
use segments::Persist;
use smallvec::SmallVec;

use crate::handover::LogEnd;
use crate::tuning::Tuning;

/// Identifies a request: the sink for its answer, and its id there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// From [`crate::Engine::register_sink`].
    pub sink: SinkId,
    /// Any value; [`crate::Sink::complete`] gets it back.
    pub id: u64,
}

/// Identifies a registered [`crate::Sink`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SinkId(pub u16);

/// One device read.
#[derive(Debug)]
pub struct DiskRead {
    /// The location: whole blocks, within a segment.
    pub place: Place,
    /// The frames to fill.
    pub frames: Vec<FrameMut>,
    /// Set by the caller: whether the read failed.
    pub failed: bool,
}

/// Device reads of one request; usually one.
pub type DiskReads = SmallVec<[DiskRead; 1]>;

/// One write to the device, which makes all of its requests durable. Without frames it is only a
/// flush.
#[derive(Debug)]
pub struct Commit {
    /// The location: whole blocks, within a segment; ignored if there are no frames.
    pub place: Place,
    /// The data to write.
    pub frames: Vec<Frame>,
    /// What must be durable before the commit is finished. If each record becomes durable by
    /// itself, this one suffices; if only some are flushed, a flush covers all earlier ones.
    pub persist: Persist,
    /// The record's number.
    pub(crate) lsn: u64,
}

/// Changes by an administrator: one commit contains all of them, or none is made.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// The changes of volumes.
    pub volumes: Vec<VolumeChange>,
    /// What is put into (`Some`) or removed from (`None`) the durable key-value space of the layer
    /// above: names, hosts, connections. Keys have up to 255 bytes, values up to 64 KiB.
    pub config: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The same for what the layer above adds on its own and keeps only so much of, such as its log
    /// of changes: this may take the room that is left for ends.
    pub notes: Vec<(Vec<u8>, Option<Vec<u8>>)>,
}

impl Change {
    /// Returns whether it changes nothing.
    pub fn is_empty(&self) -> bool {
        self.volumes.is_empty() && self.config.is_empty() && self.notes.is_empty()
    }
}

/// A change of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VolumeChange {
    /// Creates an empty volume. The id must come from [`crate::Store::allocate_volume_id`].
    Create {
        /// Its id.
        id: VolumeId,
        /// Its size, a multiple of 8 sectors, up to 64 TiB.
        size: SectorCount,
    },
    /// Changes the size; what is beyond the new size is unmapped.
    Resize {
        /// The volume.
        id: VolumeId,
        /// Its new size, a multiple of 8 sectors, up to 64 TiB.
        size: SectorCount,
    },
    /// Creates a volume with the current content and size of another one. The cost does not depend
    /// on the content: both share all of it until one of them is changed.
    Clone {
        /// The source: a volume or a snapshot.
        source: VolumeId,
        /// The id of the new volume, from [`crate::Store::allocate_volume_id`].
        id: VolumeId,
        /// Whether it is a snapshot, which is never written to, and not counted as provisioned.
        snapshot: bool,
    },
    /// Replaces the content and size of a volume by those of another one. The cost does not depend
    /// on the content.
    Overwrite {
        /// The source: a volume or a snapshot.
        source: VolumeId,
        /// The volume that changes; not a snapshot.
        destination: VolumeId,
    },
    /// Sets how data written from here on is reduced. Stored data stays as it is.
    Handling {
        /// An existing volume, or one that the same change creates; not a snapshot.
        id: VolumeId,
        /// The kinds of reduction that are off.
        handling: Handling,
    },
    /// Deletes a volume or a snapshot; what only it referred to is freed afterwards
    /// ([`crate::Store::housekeep`]).
    Destroy {
        /// The volume.
        id: VolumeId,
    },
}

/// The state of the pool.
#[derive(Clone, Debug, Default)]
pub struct PoolStatus {
    /// The pool's permanent identity.
    pub pool_id: [u8; 16],
    /// The epoch: increases at each opening.
    pub epoch: u64,
    /// The size of the pool in bytes.
    pub capacity_bytes: u64,
    /// Bytes of volume data that are stored (after reduction, without metadata).
    pub data_bytes: u64,
    /// Bytes of segments in use: data, metadata, the log, and the dead bytes in them.
    pub allocated_bytes: u64,
    /// Bytes in use: see [`crate::Engine::space_use`].
    pub used_bytes: u64,
    /// The provisioned bytes of all volumes, without snapshots.
    pub provisioned_bytes: u64,
    /// The mapped bytes of all volumes, without snapshots.
    pub mapped_bytes: u64,
    /// Those of them that refer to stored data, before sharing: neither zeros nor a pattern.
    pub mapped_data_bytes: u64,
    /// The number of volumes, without snapshots.
    pub volume_count: u64,
    /// The number of snapshots.
    pub snapshot_count: u64,
    /// Bytes of log since the last checkpoint, which recovery would replay.
    pub log_bytes: u64,
    /// Commits since the store was opened.
    pub commit_count: u64,
    /// Checkpoints since the store was opened.
    pub checkpoint_count: u64,
    /// The use of memory.
    pub memory: MemoryStatus,
    /// What was written since the store was opened.
    pub written: WrittenBytes,
    /// The progress of upgrading the pool.
    pub upgrade: UpgradeStatus,
}

/// The progress of upgrading a pool to the latest version of the format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpgradeStatus {
    /// The pool's version.
    pub version: u32,
    /// The latest version that this program supports.
    pub latest_version: u32,
    /// Whether it also has all features that this program gives a new pool.
    pub is_latest: bool,
    /// Bytes of metadata in the form of an earlier version or without the new features, in a pool
    /// of the latest version.
    pub left_bytes: u64,
}

/// Bytes written since a store was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WrittenBytes {
    /// By hosts: whole 4 KiB blocks, before reduction.
    pub hosts_bytes: u64,
    /// To the log: reduced data of hosts, its metadata, and data moved by reclaim and the
    /// background pass.
    pub log_bytes: u64,
    /// The moved payload among those.
    pub moved_bytes: u64,
    /// By checkpoints.
    pub checkpoint_bytes: u64,
}

impl WrittenBytes {
    /// Returns the write amplification: bytes written to the device per byte that hosts have
    /// written. It is below 1 if reduction saves more than everything else costs; `None` before the
    /// first write.
    pub fn amplification(&self) -> Option<f64> {
        let device_bytes = self.log_bytes + self.checkpoint_bytes;
        (self.hosts_bytes > 0).then(|| device_bytes as f64 / self.hosts_bytes as f64)
    }
}

/// The use of memory by a store: see [`OpenOptions::memory_bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStatus {
    /// The limit for cached data, in bytes.
    pub data_cache_limit_bytes: u64,
    /// The limit for metadata, in bytes: map nodes, pages of tables, and their indexes.
    pub metadata_limit_bytes: u64,
    /// The limit for the deduplication index, in bytes.
    pub index_limit_bytes: u64,
    /// Bytes of cached data.
    pub data_cache_bytes: u64,
    /// Bytes of metadata.
    pub metadata_bytes: u64,
    /// Bytes of metadata that have changed since the last checkpoint, and can't be evicted before
    /// the next one.
    pub dirty_bytes: u64,
    /// Bytes of metadata that a checkpoint is writing.
    pub writing_bytes: u64,
    /// The number of table pages in memory.
    pub page_count: u64,
    /// The number of map nodes in memory.
    pub node_count: u64,
    /// How often a reader has found a page or a node in memory, since the store was opened. Two
    /// simultaneous hits may count as one.
    pub hits: u64,
    /// How often a page or a node was read from the device, since the store was opened.
    pub misses: u64,
    /// Pages and nodes evicted since the store was opened.
    pub evictions: u64,
}

/// The state of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeStatus {
    /// The volume.
    pub id: VolumeId,
    /// Its size.
    pub size: SectorCount,
    /// Mapped bytes: written and not unmapped since, including zeros and patterns.
    pub mapped_bytes: u64,
    /// Those of them that refer to stored data (neither zeros nor a pattern), before sharing.
    pub data_bytes: u64,
    /// Whether it is a snapshot.
    pub snapshot: bool,
    /// The kinds of reduction that are off.
    pub handling: Handling,
}

/// When a write may be acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Acknowledges only what is durable. WCE is 0.
    #[default]
    Commit,
    /// Acknowledges writes from memory; SYNCHRONIZE CACHE and FUA make them durable. WCE is 1.
    Flush,
}

/// The options for opening a store.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// When a write may be acknowledged.
    pub durability: Durability,
    /// Bytes of memory for cached data, metadata and the deduplication index together. Requests in
    /// flight need memory in addition: their frames, and the log records being written. A store
    /// works with any number, even 0.
    pub memory_bytes: u64,
    /// Bytes of log after a checkpoint that make the next one due.
    pub checkpoint_log_bytes: u64,
    /// Sizes that a simulator reduces; all others use the default.
    pub tuning: Tuning,
    /// Whether to upgrade a pool of an earlier version of the format to the latest. Earlier
    /// programs can't read it then.
    pub upgrade: bool,
    /// Whether the space of free segments is discarded on the device.
    pub discard: bool,
    /// The incarnation in which another controller served the pool until this takeover. If the pool
    /// still has this incarnation, it keeps it; if it was opened in between, the next one begins.
    /// `None`: this is a power on.
    pub takes_over: Option<u64>,
    /// Where the log ends, if the process that has just given the pool up has passed that on
    /// ([`crate::Store::log_end`]): what would show that records are lost is then not searched.
    pub log_end: Option<LogEnd>,
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
            log_end: None,
        }
    }
}
