//! Every durable byte: layout, encoding, checksums, versions. No I/O.
//!
//! The byte tables at the top of each module are the source of `docs/on-disk-format.md`; assertions
//! next to them check sizes and offsets. All integers are little endian and of fixed width.
//! Decoding untrusted bytes returns an error, and never panics.
//!
//! ```text
//! pool      | segment 0: superblocks | segment 1 | segment 2 | …       all of one size
//! log       | record | record | …                 chained from segment to segment
//! record    | header, entries, those of the previous record | payload |     4 KiB aligned
//! metadata  | nodes, pages, streams | second copy of all of it |          written by checkpoints
//! ```

pub mod brought;
pub mod checksum;
mod chunk_row;
pub mod codec;
pub mod compared;
pub mod entry;
mod entry_decode;
mod features;
pub mod geometry;
pub mod key_space;
pub mod label;
pub mod log;
pub mod map;
pub mod page;
mod part;
pub mod parts_map;
pub mod record_places;
pub mod row;
pub mod segment_row;
pub mod superblock;
pub mod target_state;

pub use brought::{Brought, Shape};
pub use checksum::{Fingerprint, Keys, Seal};
pub use compared::Compared;
pub use entry::{Entry, StoreFlags};
pub use geometry::{Geometry, PLACE_UNIT_BYTES, Place};
pub use key_space::LeafRow;
pub use label::{DeviceId, Label};
pub use log::{LogPosition, RecordHeader, RecordVersion};
pub use map::{ChunkId, MapEntry, NodeId};
pub use parts_map::{Part, PartsMap, PartsMapRef};
pub use record_places::RecordPlaces;
pub use row::{ChunkRow, Codec, Handling, NodeRow, VolumeRow};
pub use segment_row::{SegmentRow, SegmentState};
pub use superblock::{Features, FormatVersion, Superblock};
pub use target_state::{HostState, StateKey};

/// The bytes do not follow the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}")]
pub struct FormatError {
    /// What is wrong.
    pub what: &'static str,
    /// Where, from the start of the structure.
    pub offset: usize,
}
