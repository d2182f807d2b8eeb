//! Redo entries: the operations in a log record. They are logical, so that an offload of any size
//! is about 40 bytes, and replication can ship the same entries.
//!
//! ```text
//! tag  entry           fields after the tag (1 byte)
//!  1   Store           first chunk 8, offset in the payload 4 (units of 64), count 4, flags 1
//!                      (1 uncompressed, 2 unshared, 4 stays without a reference), then 16 bytes
//!                      of fingerprint a block
//!  2   StoreGroup      first chunk 8, offset 4, stored length 2 (units), codec 1, blocks 1,
//!                      flags 1, then 16 bytes of fingerprint a block
//!  3   Map             volume 8, first block 8, count 4, first chunk 8
//!  4   Fill            volume 8, first block 8, count 8, map entry 8 (hole, zeros, pattern, chunk)
//!  5   Copy            source 8, from block 8, destination 8, to block 8, count 8
//!  6   VolumeCreate    volume 8, size in blocks 8
//!  7   VolumeResize    volume 8, size in blocks 8
//!  8   VolumeDestroy   volume 8
//!  9   VolumeClone     source 8, new volume 8, flags 1 (1: a snapshot)
//! 10   Config          key length 1, value length 4 (2^32-1: removed), key, value
//! 11   Relocate        first chunk 8, offset 4, count 4, then 16 bytes of fingerprint a block
//! 12   Release         first chunk 8, count 4: chunks that stayed without a reference
//! 13   VolumeHandling  volume 8, handling 1 (1 uncompressed, 2 unshared)
//! 14   RelocateGroup   offset 4, stored length 2 (units), codec 1, blocks 1, then 8 bytes of chunk
//!                      and 16 of fingerprint a block
//! 15   Alias           chunk 8, its original 8
//! 16   VolumeOverwrite source 8, volume 8
//! 17   Compared        volume 8, first sector 8, sectors 1, nexus 16, fingerprints of the bytes
//!                      compared 16 and written 16, session 8, command 8, milliseconds since 1970 8
//! 18   TargetState     key length 1, value length 4 (2^32-1: removed), key, value: a key of the
//!                      target's state
//! ```
//!
//! Each entry is preceded by the length of tag and fields, 4 bytes (in records of version 2 by
//! nothing). Pools created before an entry existed can be read. A version that does not know an
//! entry refuses the log that contains it, unless the tag is 128 or more: then it skips the entry.

use block::VolumeId;

use crate::checksum::Fingerprint;
use crate::compared::{COMPARED_BYTES, Compared};
use crate::map::{ChunkId, MapEntry};
use crate::row::{Codec, Handling};

/// The maximum bytes of a value of the key-value space.
pub const CONFIG_VALUE_BYTES_MAX: usize = 64 << 10;
pub(crate) const CONFIG_REMOVED: u32 = u32::MAX;
/// Bytes of an entry's length, before its tag.
pub const ENTRY_LENGTH_BYTES: usize = 4;
/// Programs may skip unknown entries with this tag or a higher one.
pub(crate) const PASSED_OVER_TAG: u8 = 128;

/// The properties of stored chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreFlags {
    /// What reduction skips.
    pub handling: Handling,
    /// They stay although no entry of this record refers to them.
    pub staged: bool,
}

impl StoreFlags {
    fn encode(self) -> u8 {
        self.handling.encode() | u8::from(self.staged) << 2
    }

    pub(crate) fn decode(raw: u8) -> Option<Self> {
        let handling = Handling::decode(raw & 3)?;
        (raw < 8).then_some(Self { handling, staged: raw & 4 != 0 })
    }
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Blocks came with this record, uncompressed, one chunk each with consecutive ids.
    Store {
        /// The id of the first.
        first: ChunkId,
        /// Where in the record's payload, in units of 64 bytes.
        payload_units: u32,
        /// The properties of all of them.
        flags: StoreFlags,
        /// The fingerprints, one for each block.
        fingerprints: Vec<Fingerprint>,
    },
    /// A group of blocks came with this record, compressed together.
    StoreGroup {
        /// The id of the first.
        first: ChunkId,
        /// Where in the record's payload, in units of 64 bytes.
        payload_units: u32,
        /// Its length there, in units of 64 bytes.
        stored_units: u16,
        /// How it is compressed.
        codec: Codec,
        /// The properties of all of them.
        flags: StoreFlags,
        /// The blocks' fingerprints, 1 to 8.
        fingerprints: Vec<Fingerprint>,
    },
    /// Consecutive blocks of a volume now refer to consecutive chunks.
    Map {
        /// The volume.
        volume: VolumeId,
        /// The first block.
        start: u64,
        /// How many.
        count: u32,
        /// The chunk of the first.
        first: ChunkId,
    },
    /// Blocks of a volume now all have the same entry.
    Fill {
        /// The volume.
        volume: VolumeId,
        /// The first block.
        start: u64,
        /// How many.
        count: u64,
        /// A hole, zeros, a pattern or a chunk.
        entry: MapEntry,
    },
    /// Blocks are now the same as others.
    Copy {
        /// The volume that was read.
        source: VolumeId,
        /// The first block there.
        source_start: u64,
        /// The volume that changed.
        destination: VolumeId,
        /// The first block there.
        destination_start: u64,
        /// How many.
        count: u64,
    },
    /// A volume was created.
    VolumeCreate {
        /// Its id.
        volume: VolumeId,
        /// Its size.
        size_blocks: u64,
    },
    /// A volume was resized.
    VolumeResize {
        /// The volume.
        volume: VolumeId,
        /// Its new size.
        size_blocks: u64,
    },
    /// A volume was destroyed.
    VolumeDestroy {
        /// The volume.
        volume: VolumeId,
    },
    /// A volume was made as a clone of another.
    VolumeClone {
        /// The source.
        source: VolumeId,
        /// The new one.
        volume: VolumeId,
        /// Whether it is a snapshot, which hosts can't write to.
        snapshot: bool,
    },
    /// A volume was overwritten with another, including its size.
    VolumeOverwrite {
        /// The source.
        source: VolumeId,
        /// The one that changed.
        volume: VolumeId,
    },
    /// A key of the key-value space was changed.
    Config {
        /// Up to 255 bytes.
        key: Vec<u8>,
        /// The new value, up to 64 KiB; `None` if the key was removed.
        value: Option<Vec<u8>>,
    },
    /// A key of the target's state was changed: a part of the key-value space of its own
    /// ([`crate::target_state`]).
    TargetState {
        /// Which: it begins with [`crate::target_state::TARGET_STATE_KEY`].
        key: Vec<u8>,
        /// The new value, up to 64 KiB; `None` if the key was removed.
        value: Option<Vec<u8>>,
    },
    /// Chunks were moved to this record's payload.
    Relocate {
        /// The first; the others follow it.
        first: ChunkId,
        /// Where in the record's payload, in units of 64 bytes.
        payload_units: u32,
        /// The fingerprints, one for each block.
        fingerprints: Vec<Fingerprint>,
    },
    /// Staged chunks are no longer needed.
    Release {
        /// The first.
        first: ChunkId,
        /// How many.
        count: u32,
    },
    /// The reduction setting of a volume was changed.
    VolumeHandling {
        /// The volume.
        volume: VolumeId,
        /// What reduction skips.
        handling: Handling,
    },
    /// Chunks were moved to this record's payload, compressed together.
    RelocateGroup {
        /// Where in the record's payload, in units of 64 bytes.
        payload_units: u32,
        /// Its length there, in units of 64 bytes.
        stored_units: u16,
        /// How it is compressed.
        codec: Codec,
        /// The chunks, 1 to 8, with their fingerprints.
        chunks: Vec<(ChunkId, Fingerprint)>,
    },
    /// A chunk has the same content as another one: its own copy is dropped.
    Alias {
        /// The chunk.
        chunk: ChunkId,
        /// The other one, which is older: its id is smaller.
        original: ChunkId,
    },
    /// A COMPARE AND WRITE wrote the data of this record. It precedes the entries for that data.
    Compared(Box<Compared>),
}

struct Writer<'a>(&'a mut Vec<u8>);

impl Writer<'_> {
    fn u8(&mut self, value: u8) -> &mut Self {
        self.0.push(value);
        self
    }
    fn u16(&mut self, value: u16) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn u32(&mut self, value: u32) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn u64(&mut self, value: u64) -> &mut Self {
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }
    fn sums(&mut self, sums: &[Fingerprint]) {
        for sum in sums {
            self.0.extend_from_slice(&sum.0);
        }
    }
}

impl Entry {
    /// Returns how many bytes it takes in a record, with its length.
    pub fn encoded_bytes(&self) -> usize {
        1 + ENTRY_LENGTH_BYTES
            + match self {
                Self::Store { fingerprints, .. } => 17 + 16 * fingerprints.len(),
                Self::StoreGroup { fingerprints, .. } => 17 + 16 * fingerprints.len(),
                Self::Map { .. } => 28,
                Self::Fill { .. } => 32,
                Self::Copy { .. } => 40,
                Self::VolumeCreate { .. }
                | Self::VolumeResize { .. }
                | Self::VolumeOverwrite { .. } => 16,
                Self::VolumeClone { .. } => 17,
                Self::VolumeDestroy { .. } => 8,
                Self::Config { key, value } | Self::TargetState { key, value } => {
                    5 + key.len() + value.as_ref().map_or(0, Vec::len)
                }
                Self::Relocate { fingerprints, .. } => 16 + 16 * fingerprints.len(),
                Self::Release { .. } => 12,
                Self::VolumeHandling { .. } => 9,
                Self::RelocateGroup { chunks, .. } => 8 + 24 * chunks.len(),
                Self::Alias { .. } => 16,
                Self::Compared(_) => COMPARED_BYTES,
            }
    }

    /// Appends it to `out`, without its length.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut w = Writer(out);
        match self {
            Self::Store { first, payload_units, flags, fingerprints } => {
                w.u8(1).u64(first.0).u32(*payload_units).u32(fingerprints.len() as u32);
                w.u8(flags.encode()).sums(fingerprints);
            }
            Self::StoreGroup { first, payload_units, stored_units, codec, flags, fingerprints } => {
                w.u8(2).u64(first.0).u32(*payload_units).u16(*stored_units).u8(codec.encode());
                w.u8(fingerprints.len() as u8).u8(flags.encode()).sums(fingerprints);
            }
            Self::Map { volume, start, count, first } => {
                w.u8(3).u64(volume.0).u64(*start).u32(*count).u64(first.0);
            }
            Self::Fill { volume, start, count, entry } => {
                w.u8(4).u64(volume.0).u64(*start).u64(*count).u64(entry.encode());
            }
            Self::Copy { source, source_start, destination, destination_start, count } => {
                w.u8(5).u64(source.0).u64(*source_start);
                w.u64(destination.0).u64(*destination_start).u64(*count);
            }
            Self::VolumeCreate { volume, size_blocks } => {
                w.u8(6).u64(volume.0).u64(*size_blocks);
            }
            Self::VolumeResize { volume, size_blocks } => {
                w.u8(7).u64(volume.0).u64(*size_blocks);
            }
            Self::VolumeDestroy { volume } => {
                w.u8(8).u64(volume.0);
            }
            Self::VolumeClone { source, volume, snapshot } => {
                w.u8(9).u64(source.0).u64(volume.0).u8(u8::from(*snapshot));
            }
            Self::Config { key, value } => encode_pair(out, 10, key, value.as_deref()),
            Self::TargetState { key, value } => encode_pair(out, 18, key, value.as_deref()),
            Self::Relocate { first, payload_units, fingerprints } => {
                w.u8(11).u64(first.0).u32(*payload_units).u32(fingerprints.len() as u32);
                w.sums(fingerprints);
            }
            Self::Release { first, count } => {
                w.u8(12).u64(first.0).u32(*count);
            }
            Self::VolumeHandling { volume, handling } => {
                w.u8(13).u64(volume.0).u8(handling.encode());
            }
            Self::RelocateGroup { payload_units, stored_units, codec, chunks } => {
                w.u8(14).u32(*payload_units).u16(*stored_units).u8(codec.encode());
                w.u8(chunks.len() as u8);
                for (id, sum) in chunks {
                    w.u64(id.0).sums(&[*sum]);
                }
            }
            Self::Alias { chunk, original } => {
                w.u8(15).u64(chunk.0).u64(original.0);
            }
            Self::VolumeOverwrite { source, volume } => {
                w.u8(16).u64(source.0).u64(volume.0);
            }
            Self::Compared(compared) => {
                w.u8(17);
                compared.encode(out);
            }
        }
    }
}

fn encode_pair(out: &mut Vec<u8>, tag: u8, key: &[u8], value: Option<&[u8]>) {
    debug_assert!(key.len() <= 255);
    let length = value.map_or(CONFIG_REMOVED, |value| value.len() as u32);
    Writer(out).u8(tag).u8(key.len() as u8).u32(length);
    out.extend_from_slice(key);
    out.extend_from_slice(value.unwrap_or_default());
}

#[cfg(test)]
mod tests;
