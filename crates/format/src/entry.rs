//! Redo entries: what a log record says has happened. They are logical, so that an offload of any
//! size is some 40 bytes, and replication can ship the same entries.
//!
//! ```text
//! tag  entry           fields behind the tag (1 byte)
//!  1   Store           first chunk 8, offset in the payload 4 (units of 64), count 4, flags 1
//!                      (1: stays without a reference), then 16 bytes of fingerprint a block
//!  2   StoreGroup      first chunk 8, offset 4, stored length 2 (units), codec 1, blocks 1,
//!                      flags 1, then 16 bytes of fingerprint a block
//!  3   Map             volume 8, first block 8, count 4, first chunk 8
//!  4   Fill            volume 8, first block 8, count 8, map entry 8 (hole, zeros, pattern, chunk)
//!  5   Copy            source 8, from block 8, destination 8, to block 8, count 8
//!  6   VolumeCreate    volume 8, size in blocks 8
//!  7   VolumeResize    volume 8, size in blocks 8
//!  8   VolumeDestroy   volume 8
//!  9   VolumeClone     source 8, new volume 8, flags 1 (1: a snapshot)
//! 10   Config          key length 1, value length 4 (2^32-1: taken out), key, value
//! 11   Relocate        first chunk 8, offset 4, count 4, then 16 bytes of fingerprint a block
//! 12   Release         first chunk 8, count 4: chunks that stayed without a reference
//! 16   VolumeOverwrite source 8, volume 8
//! ```

use block::VolumeId;

use crate::FormatError;
use crate::checksum::Fingerprint;
use crate::codec::Reader;
use crate::map::{ChunkId, MapEntry};
use crate::row::{Codec, GROUP_BLOCKS_MAX};

/// The most bytes in a value of the key-value space.
pub const CONFIG_VALUE_BYTES_MAX: usize = 64 << 10;
const CONFIG_REMOVED: u32 = u32::MAX;

/// What has happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// Blocks came with this record, as they are, one chunk each with consecutive ids.
    Store {
        /// The id of the first.
        first: ChunkId,
        /// Where in the record's payload, in units of 64 bytes.
        payload_units: u32,
        /// Whether the chunks stay though no entry of this record names them.
        staged: bool,
        /// The blocks' fingerprints; as many as there are blocks.
        fingerprints: Vec<Fingerprint>,
    },
    /// A group of blocks came with this record, compressed together.
    StoreGroup {
        /// The id of the first.
        first: ChunkId,
        /// Where in the record's payload, in units of 64 bytes.
        payload_units: u32,
        /// How long it is there, in units of 64 bytes.
        stored_units: u16,
        /// How it is compressed.
        codec: Codec,
        /// Whether the chunks stay though no entry of this record names them.
        staged: bool,
        /// The blocks' fingerprints, 1 to 8.
        fingerprints: Vec<Fingerprint>,
    },
    /// Consecutive blocks of a volume are consecutive chunks now.
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
    /// Blocks of a volume are all alike now.
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
    /// Blocks are now what others were.
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
    /// A volume is there.
    VolumeCreate {
        /// Its id.
        volume: VolumeId,
        /// Its size.
        size_blocks: u64,
    },
    /// A volume has another size.
    VolumeResize {
        /// Which.
        volume: VolumeId,
        /// Its new size.
        size_blocks: u64,
    },
    /// A volume is gone.
    VolumeDestroy {
        /// Which.
        volume: VolumeId,
    },
    /// A volume is there that is what another is.
    VolumeClone {
        /// Which.
        source: VolumeId,
        /// The new one.
        volume: VolumeId,
        /// Whether it is a snapshot, which hosts don't write to.
        snapshot: bool,
    },
    /// A volume is now what another is, its size too.
    VolumeOverwrite {
        /// Which.
        source: VolumeId,
        /// The one that changed.
        volume: VolumeId,
    },
    /// The key-value space has changed.
    Config {
        /// Up to 255 bytes.
        key: Vec<u8>,
        /// The new value, up to 64 KiB; `None`: the key is gone.
        value: Option<Vec<u8>>,
    },
    /// Chunks have moved to this record's payload.
    Relocate {
        /// The first; the others follow it.
        first: ChunkId,
        /// Where in the record's payload, in units of 64 bytes.
        payload_units: u32,
        /// The blocks' fingerprints; as many as there are blocks.
        fingerprints: Vec<Fingerprint>,
    },
    /// Staged chunks are not wanted any more.
    Release {
        /// The first.
        first: ChunkId,
        /// How many.
        count: u32,
    },
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
    /// How many bytes it takes in a record.
    pub fn encoded_bytes(&self) -> usize {
        1 + match self {
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
            Self::Config { key, value } => 5 + key.len() + value.as_ref().map_or(0, Vec::len),
            Self::Relocate { fingerprints, .. } => 16 + 16 * fingerprints.len(),
            Self::Release { .. } => 12,
        }
    }

    /// Appends it to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut w = Writer(out);
        match self {
            Self::Store { first, payload_units, staged, fingerprints } => {
                w.u8(1).u64(first.0).u32(*payload_units).u32(fingerprints.len() as u32);
                w.u8(u8::from(*staged)).sums(fingerprints);
            }
            Self::StoreGroup {
                first,
                payload_units,
                stored_units,
                codec,
                staged,
                fingerprints,
            } => {
                w.u8(2).u64(first.0).u32(*payload_units).u16(*stored_units).u8(codec.encode());
                w.u8(fingerprints.len() as u8).u8(u8::from(*staged)).sums(fingerprints);
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
            Self::Config { key, value } => {
                debug_assert!(key.len() <= 255);
                let length = value.as_ref().map_or(CONFIG_REMOVED, |value| value.len() as u32);
                w.u8(10).u8(key.len() as u8).u32(length);
                out.extend_from_slice(key);
                out.extend_from_slice(value.as_deref().unwrap_or_default());
            }
            Self::Relocate { first, payload_units, fingerprints } => {
                w.u8(11).u64(first.0).u32(*payload_units).u32(fingerprints.len() as u32);
                w.sums(fingerprints);
            }
            Self::Release { first, count } => {
                w.u8(12).u64(first.0).u32(*count);
            }
            Self::VolumeOverwrite { source, volume } => {
                w.u8(16).u64(source.0).u64(volume.0);
            }
        }
    }

    /// Takes one off the front.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, FormatError> {
        match reader.u8()? {
            1 => decode_store(reader),
            2 => decode_group(reader),
            3 => Ok(Self::Map {
                volume: VolumeId(reader.u64()?),
                start: reader.u64()?,
                count: reader.u32()?,
                first: ChunkId(reader.u64()?),
            }),
            4 => decode_fill(reader),
            5 => Ok(Self::Copy {
                source: VolumeId(reader.u64()?),
                source_start: reader.u64()?,
                destination: VolumeId(reader.u64()?),
                destination_start: reader.u64()?,
                count: reader.u64()?,
            }),
            6 => Ok(Self::VolumeCreate {
                volume: VolumeId(reader.u64()?),
                size_blocks: reader.u64()?,
            }),
            7 => Ok(Self::VolumeResize {
                volume: VolumeId(reader.u64()?),
                size_blocks: reader.u64()?,
            }),
            8 => Ok(Self::VolumeDestroy { volume: VolumeId(reader.u64()?) }),
            9 => Ok(Self::VolumeClone {
                source: VolumeId(reader.u64()?),
                volume: VolumeId(reader.u64()?),
                snapshot: decode_flags(reader)?,
            }),
            10 => decode_config(reader),
            11 => {
                let first = ChunkId(reader.u64()?);
                let payload_units = reader.u32()?;
                let count = reader.u32()? as usize;
                let fingerprints = decode_sums(reader, count)?;
                Ok(Self::Relocate { first, payload_units, fingerprints })
            }
            12 => Ok(Self::Release { first: ChunkId(reader.u64()?), count: reader.u32()? }),
            16 => Ok(Self::VolumeOverwrite {
                source: VolumeId(reader.u64()?),
                volume: VolumeId(reader.u64()?),
            }),
            _ => Err(reader.error("unknown kind of entry")),
        }
    }
}

fn decode_sums(reader: &mut Reader<'_>, count: usize) -> Result<Vec<Fingerprint>, FormatError> {
    if count == 0 || count > reader.remaining() / 16 {
        return Err(reader.error("impossible count of blocks"));
    }
    (0..count).map(|_| Ok(Fingerprint(reader.array()?))).collect()
}

fn decode_flags(reader: &mut Reader<'_>) -> Result<bool, FormatError> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(reader.error("unknown flags of an entry")),
    }
}

fn decode_store(reader: &mut Reader<'_>) -> Result<Entry, FormatError> {
    let first = ChunkId(reader.u64()?);
    let payload_units = reader.u32()?;
    let count = reader.u32()? as usize;
    let staged = decode_flags(reader)?;
    let fingerprints = decode_sums(reader, count)?;
    Ok(Entry::Store { first, payload_units, staged, fingerprints })
}

fn decode_group(reader: &mut Reader<'_>) -> Result<Entry, FormatError> {
    let first = ChunkId(reader.u64()?);
    let payload_units = reader.u32()?;
    let stored_units = reader.u16()?;
    let codec = reader.u8()?;
    let count = reader.u8()?;
    let staged = decode_flags(reader)?;
    let codec = Codec::decode(codec).ok_or_else(|| reader.error("unknown codec"))?;
    if count > GROUP_BLOCKS_MAX {
        return Err(reader.error("too many blocks in a group"));
    }
    let fingerprints = decode_sums(reader, usize::from(count))?;
    Ok(Entry::StoreGroup { first, payload_units, stored_units, codec, staged, fingerprints })
}

fn decode_fill(reader: &mut Reader<'_>) -> Result<Entry, FormatError> {
    let volume = VolumeId(reader.u64()?);
    let (start, count) = (reader.u64()?, reader.u64()?);
    let entry = MapEntry::decode(reader.u64()?)?;
    if matches!(entry, MapEntry::Node(_)) {
        return Err(reader.error("a fill with a node"));
    }
    Ok(Entry::Fill { volume, start, count, entry })
}

fn decode_config(reader: &mut Reader<'_>) -> Result<Entry, FormatError> {
    let key_bytes = usize::from(reader.u8()?);
    let value_bytes = reader.u32()?;
    let key = reader.bytes(key_bytes)?.to_vec();
    let value = match value_bytes {
        CONFIG_REMOVED => None,
        count if count as usize <= CONFIG_VALUE_BYTES_MAX => {
            Some(reader.bytes(count as usize)?.to_vec())
        }
        _ => return Err(reader.error("a value that is too long")),
    };
    Ok(Entry::Config { key, value })
}

#[cfg(test)]
mod tests;
