//! Decoding redo entries: untrusted bytes, until they have been checked.

use block::VolumeId;

use crate::FormatError;
use crate::checksum::Fingerprint;
use crate::codec::Reader;
use crate::compared::Compared;
use crate::entry::{CONFIG_REMOVED, CONFIG_VALUE_BYTES_MAX, Entry, PASSED_OVER_TAG, StoreFlags};
use crate::map::{ChunkId, MapEntry};
use crate::row::{Codec, GROUP_BLOCKS_MAX, Handling};
use crate::target_state::TARGET_STATE_KEY;

impl Entry {
    /// Takes an entry with its length off the front; `None` if it is unknown and may be skipped.
    pub fn decode_with_length(reader: &mut Reader<'_>) -> Result<Option<Self>, FormatError> {
        let bytes = reader.u32()? as usize;
        let bytes = reader.bytes(bytes)?;
        // No known entry has such a tag yet.
        if bytes.first().is_some_and(|tag| *tag >= PASSED_OVER_TAG) {
            return Ok(None);
        }
        let mut own = Reader::new(bytes);
        let entry = Self::decode(&mut own)?;
        if own.remaining() > 0 {
            return Err(reader.error("an entry is longer than its fields"));
        }
        Ok(Some(entry))
    }

    /// Takes an entry off the front.
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
                snapshot: decode_bool(reader)?,
            }),
            10 => {
                let (key, value) = decode_pair(reader)?;
                Ok(Self::Config { key, value })
            }
            11 => {
                let first = ChunkId(reader.u64()?);
                let payload_units = reader.u32()?;
                let count = reader.u32()? as usize;
                let fingerprints = decode_sums(reader, count)?;
                Ok(Self::Relocate { first, payload_units, fingerprints })
            }
            12 => Ok(Self::Release { first: ChunkId(reader.u64()?), count: reader.u32()? }),
            13 => {
                let volume = VolumeId(reader.u64()?);
                let handling = Handling::decode(reader.u8()?);
                let handling = handling.ok_or_else(|| reader.error("unknown handling"))?;
                Ok(Self::VolumeHandling { volume, handling })
            }
            14 => decode_relocated_group(reader),
            15 => decode_alias(reader),
            16 => Ok(Self::VolumeOverwrite {
                source: VolumeId(reader.u64()?),
                volume: VolumeId(reader.u64()?),
            }),
            17 => Ok(Self::Compared(Box::new(Compared::decode(reader)?))),
            18 => {
                let (key, value) = decode_pair(reader)?;
                if key.first() != Some(&TARGET_STATE_KEY) {
                    return Err(reader.error("a key outside the target's state"));
                }
                Ok(Self::TargetState { key, value })
            }
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

fn decode_bool(reader: &mut Reader<'_>) -> Result<bool, FormatError> {
    match reader.u8()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(reader.error("unknown flags of an entry")),
    }
}

fn decode_flags(reader: &mut Reader<'_>) -> Result<StoreFlags, FormatError> {
    let raw = reader.u8()?;
    StoreFlags::decode(raw).ok_or_else(|| reader.error("unknown flags of an entry"))
}

fn decode_store(reader: &mut Reader<'_>) -> Result<Entry, FormatError> {
    let first = ChunkId(reader.u64()?);
    let payload_units = reader.u32()?;
    let count = reader.u32()? as usize;
    let flags = decode_flags(reader)?;
    let fingerprints = decode_sums(reader, count)?;
    Ok(Entry::Store { first, payload_units, flags, fingerprints })
}

fn decode_group(reader: &mut Reader<'_>) -> Result<Entry, FormatError> {
    let first = ChunkId(reader.u64()?);
    let payload_units = reader.u32()?;
    let stored_units = reader.u16()?;
    let codec = reader.u8()?;
    let count = reader.u8()?;
    let flags = decode_flags(reader)?;
    let codec = decode_codec(reader, codec)?;
    if count > GROUP_BLOCKS_MAX {
        return Err(reader.error("too many blocks in a group"));
    }
    let fingerprints = decode_sums(reader, usize::from(count))?;
    Ok(Entry::StoreGroup { first, payload_units, stored_units, codec, flags, fingerprints })
}

/// The codec of a group in a record: groups are always compressed.
fn decode_codec(reader: &Reader<'_>, raw: u8) -> Result<Codec, FormatError> {
    match Codec::decode(raw) {
        Some(codec @ (Codec::Lz4 | Codec::Zstd)) => Ok(codec),
        _ => Err(reader.error("unknown codec")),
    }
}

fn decode_relocated_group(reader: &mut Reader<'_>) -> Result<Entry, FormatError> {
    let payload_units = reader.u32()?;
    let stored_units = reader.u16()?;
    let codec = reader.u8()?;
    let codec = decode_codec(reader, codec)?;
    let count = reader.u8()?;
    if count == 0 || count > GROUP_BLOCKS_MAX {
        return Err(reader.error("impossible count of blocks"));
    }
    let chunk = |_| Ok((ChunkId(reader.u64()?), Fingerprint(reader.array()?)));
    let chunks = (0..count).map(chunk).collect::<Result<_, FormatError>>()?;
    Ok(Entry::RelocateGroup { payload_units, stored_units, codec, chunks })
}

/// An original is older than its aliases, so following them always terminates.
fn decode_alias(reader: &mut Reader<'_>) -> Result<Entry, FormatError> {
    let (chunk, original) = (ChunkId(reader.u64()?), ChunkId(reader.u64()?));
    if original.0 == 0 || original >= chunk {
        return Err(reader.error("an original that is newer than its alias"));
    }
    Ok(Entry::Alias { chunk, original })
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

/// A key, and its value unless it was removed.
type Pair = (Vec<u8>, Option<Vec<u8>>);

fn decode_pair(reader: &mut Reader<'_>) -> Result<Pair, FormatError> {
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
    Ok((key, value))
}
