//! What may be asked of volumes, and the answers.
//!
//! A request is complete in itself, and is done wholly or not at all; see the invariants in
//! `docs/architecture.md`. Ranges are in 512-byte sectors whatever the volume's logical block is.

use crate::data::{DataIn, DataOut};
use crate::frame::Frame;
use crate::units::{Sector, SectorCount, SectorRange, VolumeId};

/// One range of a copy. Source and destination may be the same volume, and may overlap: the
/// destination gets what the source held before the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopySegment {
    /// The volume that is read.
    pub source: VolumeId,
    /// Where reading starts.
    pub source_start: Sector,
    /// The volume that is written.
    pub destination: VolumeId,
    /// Where writing starts.
    pub destination_start: Sector,
    /// How much.
    pub count: SectorCount,
}

/// What may be asked of volumes.
#[derive(Debug)]
pub enum VolumeRequest {
    /// Read a range. Answer: [`VolumeReply::Data`].
    Read {
        /// The volume.
        volume: VolumeId,
        /// What to read.
        range: SectorRange,
    },
    /// Write `data`, whose length is the range's. Durable when answered, unless the array runs
    /// with `durability = "flush"` and `fua` is false.
    Write {
        /// The volume.
        volume: VolumeId,
        /// Where to write.
        range: SectorRange,
        /// The bytes.
        data: DataOut,
        /// Force unit access: durable when answered, always.
        fua: bool,
    },
    /// Write `data` if the range holds `expected`, else change nothing and answer
    /// [`VolumeError::Miscompare`]. Atomic against everything else on the range.
    CompareAndWrite {
        /// The volume.
        volume: VolumeId,
        /// The range; both buffers have its length.
        range: SectorRange,
        /// What it must hold.
        expected: DataOut,
        /// What it holds then.
        data: DataOut,
        /// Force unit access.
        fua: bool,
    },
    /// Fill ranges with zeros. Costs no space, whatever the length.
    Zero {
        /// The volume.
        volume: VolumeId,
        /// What to fill.
        range: SectorRange,
        /// Force unit access.
        fua: bool,
    },
    /// Fill a range with one 4 KiB block, repeated: byte 0 of `pattern` stands at each multiple
    /// of 4 KiB of the volume. (A 512-byte pattern is repeated eight times by the caller.)
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
    /// Deallocate ranges, down to single sectors; they read as zeros. A few dozen ranges are
    /// all done or none; of more each 4 KiB block is.
    Unmap {
        /// The volume.
        volume: VolumeId,
        /// The ranges, in any order; they may overlap.
        ranges: Vec<SectorRange>,
    },
    /// Copy ranges, in their order, without moving data where that can be. All or none if it takes
    /// little; else each 4 KiB block is done or not, until it is answered.
    Copy {
        /// The ranges.
        segments: Vec<CopySegment>,
    },
    /// Make all that was answered durable (SYNCHRONIZE CACHE).
    Flush {
        /// The volume.
        volume: VolumeId,
    },
    /// Which parts of a range are mapped. Answer: [`VolumeReply::Extents`].
    Extents {
        /// The volume.
        volume: VolumeId,
        /// Where to look.
        range: SectorRange,
        /// At most so many extents.
        limit: usize,
    },
    /// How full the pool is. Answer: [`VolumeReply::Space`].
    Space {
        /// The volume.
        volume: VolumeId,
    },
}

/// Whether some sectors hold data (SBC-4, GET LBA STATUS).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LbaState {
    /// Written, whether or not it costs space: zeros and patterns are mapped.
    Mapped,
    /// Never written, or unmapped since.
    Deallocated,
}

/// A run of sectors in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LbaExtent {
    /// Where.
    pub range: SectorRange,
    /// The state.
    pub state: LbaState,
}

/// How full the pool is, and the volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpaceUse {
    /// Bytes that the pool can hold.
    pub pool_capacity_bytes: u64,
    /// Bytes of them in use.
    pub pool_used_bytes: u64,
    /// Bytes of the volume that were written and not unmapped since.
    pub volume_mapped_bytes: u64,
}

/// Answers of success.
#[derive(Debug)]
pub enum VolumeReply {
    /// It is done.
    Done,
    /// The bytes that were read.
    Data(DataIn),
    /// What [`VolumeRequest::Extents`] found: consecutive, from the start of its range.
    Extents(Vec<LbaExtent>),
    /// What [`VolumeRequest::Space`] found.
    Space(SpaceUse),
}

/// Why a request was not done. Nothing of it has happened then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VolumeError {
    /// No such volume (any more).
    NoSuchVolume(VolumeId),
    /// The range passes the end of the volume.
    OutOfRange,
    /// The range did not hold what COMPARE AND WRITE expected.
    Miscompare {
        /// The first byte that differs, from the start of the range.
        offset_bytes: usize,
    },
    /// The pool has no room for the new data. SCSI says 07/27/07.
    NoSpace,
    /// What was read does not match its checksum, or the device could not read it.
    Medium {
        /// The first sector that is lost.
        sector: Sector,
    },
    /// The device failed to write; the array takes no more writes until it was restarted.
    WriteFailed,
    /// The request is longer than the store takes at once (see `limits`).
    TooLong,
    /// The volume is a snapshot: what it holds does not change.
    Snapshot(VolumeId),
}

impl std::fmt::Display for VolumeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSuchVolume(id) => write!(f, "there is no volume with id {id}"),
            Self::OutOfRange => f.write_str("the range passes the end of the volume"),
            Self::Miscompare { offset_bytes } => write!(f, "miscompare at byte {offset_bytes}"),
            Self::NoSpace => f.write_str("the pool is full"),
            Self::Medium { sector } => write!(f, "unrecovered read error at sector {sector}"),
            Self::WriteFailed => f.write_str("the device failed to write"),
            Self::TooLong => f.write_str("the request is too long"),
            Self::Snapshot(id) => write!(f, "volume {id} is a snapshot, which nobody writes to"),
        }
    }
}

impl std::error::Error for VolumeError {}

/// Limits that protocols report and the store relies on.
pub mod limits {
    /// The largest volume.
    pub const VOLUME_BYTES_MAX: u64 = 64 << 40;
    /// The most data in one write: it must fit one log record with room to spare.
    pub const TRANSFER_BYTES_MAX: u64 = 4 << 20;
    /// The most data of one command of a host: it becomes several requests, one after the other.
    pub const COMMAND_BYTES_MAX: u64 = 32 << 20;
    /// The most data in one COMPARE AND WRITE: 255 blocks of 512 bytes, the field's maximum.
    pub const COMPARE_AND_WRITE_SECTORS_MAX: u64 = 255;
    /// The most ranges in one UNMAP: both ends of each may leave a block of data behind.
    pub const UNMAP_RANGES_MAX: usize = 512;
    /// The most segments in one EXTENDED COPY.
    pub const COPY_SEGMENTS_MAX: usize = 64;
    /// The map's leaf: what aligned copies graft.
    pub const LEAF_BYTES: u64 = 1 << 20;
}
