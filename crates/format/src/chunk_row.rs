//! Rows of the chunk table, and how chunks are stored. The layout is in `row`.

use crate::checksum::Fingerprint;
use crate::codec::{b16_at, put, u32_at, u64_at};
use crate::geometry::Place;
use crate::map::ChunkId;

/// The maximum number of blocks that are compressed together.
pub const GROUP_BLOCKS_MAX: u8 = 8;

/// How a chunk's bytes are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Codec {
    /// Uncompressed.
    #[default]
    Raw,
    /// LZ4 block format, after two bytes of exact length.
    Lz4,
    /// Zstandard, after two bytes of exact length.
    Zstd,
    /// No bytes of its own: another chunk has the same 4 KiB.
    Alias,
}

impl Codec {
    /// Encodes it.
    pub fn encode(self) -> u8 {
        match self {
            Self::Raw => 1,
            Self::Lz4 => 2,
            Self::Zstd => 3,
            Self::Alias => 4,
        }
    }

    /// Decodes one.
    pub fn decode(raw: u8) -> Option<Self> {
        match raw {
            1 => Some(Self::Raw),
            2 => Some(Self::Lz4),
            3 => Some(Self::Zstd),
            4 => Some(Self::Alias),
            _ => None,
        }
    }
}

/// The kinds of reduction that are off: a setting of a volume, and so of the chunks that were
/// written through it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Handling {
    /// Not compressed, even when it is rewritten.
    pub uncompressed: bool,
    /// Not deduplicated, and not a candidate for deduplication of others.
    pub unshared: bool,
}

impl Handling {
    /// Encodes it.
    pub fn encode(self) -> u8 {
        u8::from(self.uncompressed) | u8::from(self.unshared) << 1
    }

    /// Decodes one.
    pub fn decode(raw: u8) -> Option<Self> {
        (raw < 4).then_some(Self { uncompressed: raw & 1 != 0, unshared: raw & 2 != 0 })
    }
}

/// The saturated reference count: a chunk that has reached it is never freed.
pub const REFERENCES_STUCK: u32 = u32::MAX;

/// Returns a reference count after a change; `None` if it would fall below zero.
#[inline]
pub fn counted(count: u32, change: i32) -> Option<u32> {
    if count == REFERENCES_STUCK {
        return Some(count);
    }
    match change {
        0.. => Some(count.saturating_add_signed(change)),
        _ => count.checked_add_signed(change),
    }
}

/// The location of a chunk, and its reference count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkRow {
    /// The location of its group. [`Place::NONE`] while it waits in memory
    /// (`durability = "flush"`).
    pub place: Place,
    /// The length of the stored group, in units of 64 bytes.
    pub stored_units: u16,
    /// How it is stored.
    pub codec: Codec,
    /// The index of the block in its group, 0..8.
    pub group_index: u8,
    /// The number of blocks of the group, 1..=8.
    pub group_blocks: u8,
    /// The kinds of reduction that are off.
    pub handling: Handling,
    /// The older chunk that has its content, if it has none of its own.
    pub original: Option<ChunkId>,
    /// The number of entries of live nodes, and of aliases, that refer to it.
    pub reference_count: u32,
    /// The hash of its 4 KiB, which is also its checksum.
    pub fingerprint: Fingerprint,
}

impl ChunkRow {
    /// Decodes a row; `None` if it is free.
    ///
    /// # Panics
    /// If `raw` is shorter than [`ROW_BYTES`].
    pub fn decode(raw: &[u8]) -> Option<Self> {
        let codec = Codec::decode(raw[10])?;
        let original = (codec == Codec::Alias).then(|| ChunkId(u64_at(raw, 0)));
        let place = match original {
            Some(_) => Place::NONE,
            None => Place { segment: u32_at(raw, 0), offset_units: u32_at(raw, 4) },
        };
        Some(Self {
            place,
            stored_units: u16::from_le_bytes([raw[8], raw[9]]),
            codec,
            group_index: raw[11] & 0x07,
            group_blocks: (raw[11] >> 4 & 0x07) + 1,
            handling: Handling { uncompressed: raw[11] & 0x08 != 0, unshared: raw[11] & 0x80 != 0 },
            original,
            reference_count: u32_at(raw, 12),
            fingerprint: Fingerprint(b16_at(raw, 16)),
        })
    }

    /// Changes the reference count of a stored row ([`counted`]), without decoding the rest, and
    /// returns the new count; `None` if the row is free, or the count would fall below zero.
    ///
    /// # Panics
    /// If `raw` is shorter than [`ROW_BYTES`].
    pub fn count_references(raw: &mut [u8], change: i32) -> Option<u32> {
        Codec::decode(raw[10])?;
        let count = counted(u32_at(raw, 12), change)?;
        put(raw, 12, &count.to_le_bytes());
        Some(count)
    }

    /// Returns this block's share of the stored group, in units of 64 bytes: the shares of all
    /// blocks of a group add up to its length.
    pub fn share_units(&self) -> u32 {
        let (units, blocks) = (u32::from(self.stored_units), u32::from(self.group_blocks));
        units / blocks + u32::from(u32::from(self.group_index) < units % blocks)
    }

    /// Encodes the row into `out`, which has [`ROW_BYTES`].
    pub fn encode(&self, out: &mut [u8]) {
        match self.original {
            Some(original) => put(out, 0, &original.0.to_le_bytes()),
            None => {
                put(out, 0, &self.place.segment.to_le_bytes());
                put(out, 4, &self.place.offset_units.to_le_bytes());
            }
        }
        put(out, 8, &self.stored_units.to_le_bytes());
        out[10] = self.codec.encode();
        out[11] = self.group_index & 0x07
            | u8::from(self.handling.uncompressed) << 3
            | ((self.group_blocks - 1) & 0x07) << 4
            | u8::from(self.handling.unshared) << 7;
        put(out, 12, &self.reference_count.to_le_bytes());
        put(out, 16, &self.fingerprint.0);
    }
}
