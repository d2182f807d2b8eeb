//! Requests to volumes, and their replies.
//!
//! A request is self-contained, and is done completely or not at all; see the invariants in
//! `docs/architecture.md`. Ranges are in 512-byte sectors, regardless of the volume's logical block
//! size.

use std::sync::Arc;

use crate::data::{DataIn, DataOut};
use crate::frame::Frame;
use crate::units::{Sector, SectorCount, SectorRange, VolumeId};

/// One range of a copy. Source and destination may be the same volume, and may overlap: the
/// destination gets what the source held before the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopySegment {
    /// The volume that is read.
    pub source: VolumeId,
    /// Where reading begins.
    pub source_start: Sector,
    /// The volume that is written.
    pub destination: VolumeId,
    /// Where writing begins.
    pub destination_start: Sector,
    /// The length.
    pub count: SectorCount,
}

/// Identifies who sent a COMPARE AND WRITE, and when, so that the command is recognised if the host
/// sends it again in a new session because the response was lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// The name of the I_T nexus, which consists of both port names.
    pub nexus: Arc<str>,
    /// The number of the session, unique while the array runs.
    pub session: u64,
    /// The number of the command, unique while the array runs.
    pub command: u64,
    /// The time of arrival, in milliseconds since 1970. It never decreases while the array runs.
    pub at_ms: u64,
}

/// A request to a volume.
#[derive(Debug)]
pub enum VolumeRequest {
    /// Read a range. Reply: [`VolumeReply::Data`].
    Read {
        /// The volume.
        volume: VolumeId,
        /// What to read.
        range: SectorRange,
    },
    /// Write `data`, whose length is the range's. Durable when acknowledged, unless the array runs
    /// with `durability = "flush"` and `fua` is false.
    Write {
        /// The volume.
        volume: VolumeId,
        /// Where to write.
        range: SectorRange,
        /// The bytes.
        data: DataOut,
        /// Force unit access: always durable when acknowledged.
        fua: bool,
    },
    /// Write `data` if the range contains `expected`; otherwise change nothing and return
    /// [`VolumeError::Miscompare`]. Atomic with respect to all other access to the range.
    CompareAndWrite {
        /// The volume.
        volume: VolumeId,
        /// The range; both buffers have its length.
        range: SectorRange,
        /// The bytes to compare with.
        expected: DataOut,
        /// The bytes to write if the comparison succeeds.
        data: DataOut,
        /// Force unit access.
        fua: bool,
        /// The sender of a host's command. If the same command was executed before, in another
        /// session of the same nexus, and its response was lost, it succeeds. `None`: never treated
        /// as a repetition.
        sender: Option<Box<Sender>>,
    },
    /// Fill ranges with zeros. Takes no space at any length.
    Zero {
        /// The volume.
        volume: VolumeId,
        /// What to fill.
        range: SectorRange,
        /// Force unit access.
        fua: bool,
    },
    /// Fill a range with one 4 KiB block, repeated: byte 0 of `pattern` is at each multiple of 4
    /// KiB of the volume. (The caller repeats a 512-byte pattern eight times.)
    Fill {
        /// The volume.
        volume: VolumeId,
        /// What to fill.
        range: SectorRange,
        /// The block.
        pattern: Frame,
        /// Force unit access.
        fua: bool,
    },
    /// Deallocate ranges, down to single sectors; they read as zeros. A few dozen ranges are atomic
    /// together; with more, each 4 KiB block is atomic.
    Unmap {
        /// The volume.
        volume: VolumeId,
        /// The ranges, in any order; they may overlap.
        ranges: Vec<SectorRange>,
    },
    /// Copy ranges in order, without moving data if possible. A small copy is atomic. In a larger
    /// one each 4 KiB block is, and until it is acknowledged some blocks may be copied before
    /// others.
    Copy {
        /// The ranges.
        segments: Vec<CopySegment>,
    },
    /// Make everything acknowledged so far durable (SYNCHRONIZE CACHE).
    Flush {
        /// The volume.
        volume: VolumeId,
    },
    /// Return which parts of a range are mapped. Reply: [`VolumeReply::Extents`].
    Extents {
        /// The volume.
        volume: VolumeId,
        /// The range to examine.
        range: SectorRange,
        /// The most extents to return, at most [`limits::EXTENTS_MAX`].
        limit: usize,
    },
    /// Return how full the pool is. Reply: [`VolumeReply::Space`].
    Space {
        /// The volume.
        volume: VolumeId,
    },
}

/// The provisioning status of sectors (SBC-4, GET LBA STATUS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LbaState {
    /// Written, whether or not that takes space: zeros and patterns are mapped.
    Mapped,
    /// Never written, or unmapped since.
    Deallocated,
}

/// A run of sectors in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LbaExtent {
    /// The sectors.
    pub range: SectorRange,
    /// The state.
    pub state: LbaState,
}

/// How full the pool and the volume are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceUse {
    /// The capacity of the pool, in bytes.
    pub pool_capacity_bytes: u64,
    /// The bytes in use.
    pub pool_used_bytes: u64,
    /// Bytes of the volume that were written and not unmapped since.
    pub volume_mapped_bytes: u64,
}

/// Replies to successful requests.
#[derive(Debug)]
pub enum VolumeReply {
    /// The request is done.
    Done,
    /// The bytes that were read.
    Data(DataIn),
    /// The result of [`VolumeRequest::Extents`]: consecutive extents from the start of its range.
    Extents(Vec<LbaExtent>),
    /// The result of [`VolumeRequest::Space`].
    Space(SpaceUse),
}

/// The reason why a request failed. A failed request has had no effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeError {
    /// The volume does not exist, or no longer exists.
    NoSuchVolume(VolumeId),
    /// The range exceeds the volume.
    OutOfRange,
    /// The range did not contain what COMPARE AND WRITE expected.
    Miscompare {
        /// The offset of the first byte that differs, from the start of the range.
        offset_bytes: usize,
    },
    /// The pool has no space for the new data. In SCSI: 07/27/07.
    NoSpace,
    /// The data does not match its checksum, or the device could not read it.
    Medium {
        /// The first lost sector.
        sector: Sector,
    },
    /// The device failed to write; the array accepts no more writes until it is restarted.
    WriteFailed,
    /// The request is longer than the store accepts (see `limits`).
    TooLong,
    /// The volume is a snapshot, which can't be written.
    Snapshot(VolumeId),
}

impl std::fmt::Display for VolumeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSuchVolume(id) => write!(f, "there is no volume with id {id}"),
            Self::OutOfRange => f.write_str("the range exceeds the volume"),
            Self::Miscompare { offset_bytes } => write!(f, "miscompare at byte {offset_bytes}"),
            Self::NoSpace => f.write_str("the pool is full"),
            Self::Medium { sector } => write!(f, "unrecovered read error at sector {sector}"),
            Self::WriteFailed => f.write_str("the device failed to write"),
            Self::TooLong => f.write_str("the request is too long"),
            Self::Snapshot(id) => write!(f, "volume {id} is a snapshot, which can't be written"),
        }
    }
}

impl std::error::Error for VolumeError {}

/// Limits that protocols report and the store relies on.
pub mod limits {
    /// The largest volume.
    pub const VOLUME_BYTES_MAX: u64 = 64 << 40;
    /// The most data of one write: it must fit into one log record together with its entries.
    pub const TRANSFER_BYTES_MAX: u64 = 4 << 20;
    /// The most data of one host command, which is executed as several consecutive requests.
    pub const COMMAND_BYTES_MAX: u64 = 32 << 20;
    /// The most data of one COMPARE AND WRITE: 255 blocks of 512 bytes, the field's maximum.
    pub const COMPARE_AND_WRITE_SECTORS_MAX: u64 = 255;
    /// The most ranges of one UNMAP: each end of a range may leave a block with data.
    pub const UNMAP_RANGES_MAX: usize = 512;
    /// The most segments of one EXTENDED COPY.
    pub const COPY_SEGMENTS_MAX: usize = 64;
    /// The most extents that one request returns: those of the longest GET LBA STATUS response
    /// (65,536 descriptors), one that continues the last of them, and one after it.
    pub const EXTENTS_MAX: usize = 65_538;
    /// The range of a map leaf, the unit that aligned copies share.
    pub const LEAF_BYTES: u64 = 1 << 20;
}
