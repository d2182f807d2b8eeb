//! The superblock: the root of everything else. Its two copies are written one after the other, so
//! that one is always whole; of the valid copies, the one with the higher sequence number is used.
//! Once both are written, they differ only in their sequence numbers. While one of them can't be
//! written, a third one replaces it; at any other time the third one is zeros.
//!
//! ```text
//!    0  8  magic "HOLDFAST"         112  8  next chunk id
//!    8  4  version (3)              120  8  next node id
//!   12  4  zero                     128  8  next volume id
//!   16 16  pool id                  136 40  log position: segment 4, block 4, next segment 4,
//!   32 32  root key                         zero 4, LSN 8, seal of the previous record 16
//!   64  8  sequence                 176 24  chunk table: reference 16, height 1, zero 7
//!   72  8  epoch                    200 24  node table, likewise
//!   80  8  capacity in bytes        224 24  volume table, likewise
//!   88  8  segment size in bytes    248 24  segment stream: reference 16, length 4, zero 4
//!   96  4  segments                 272 24  config stream, likewise
//!  100  4  open metadata segment    296 24  pending stream, likewise
//!  104  4  its next free block      320  8  features: compatible
//!  108  4  columns of data, 0 if 1  328  8  features: compatible for readers
//!                                   336  8  features: incompatible
//!                                   344  8  incarnation
//!                                   352 24  leaf table: as those of chunks, nodes, volumes
//!                                   376 24  segment table, likewise
//!                                  1024 2048 reserved for slots of keys: zero
//!                                  4064 32  BLAKE3 of the preceding bytes
//! ```
//!
//! A feature is a bit. A program that finds an unknown bit set uses the pool if the feature is
//! compatible, opens it read-only if the feature is compatible for readers, and refuses it
//! otherwise. Version 3 adds to version 2 a second copy of metadata
//! ([geometry](#segments-and-locations), [records](#log-records)), entries with a length, and these
//! fields. A pool of version 2 has zeros there.
//!
//! ```text
//! compatible    bit 0  devices have labels
//! incompatible  bit 0  the key-value space is in leaves (leaf table); a checkpoint writes only
//!                      changed ones
//!               bit 1  the segment table is in pages (segment table); a checkpoint writes only
//!                      changed ones
//!               bit 3  the pool is on several devices (labels), each of which has all of it
//!               bit 4  the pool is on four devices or more (labels), in stripes of two or more
//!                      data columns and two parity columns
//! ```
//!
//! A pool of an earlier version, or without some of these features, can be read unchanged. Opening
//! it for use upgrades it, unless that is switched off: a superblock records the upgrade, and the
//! next checkpoint writes the structures that are stored differently from then on. Until then the
//! key-value space and the segment table are in their streams, which are empty in any other pool
//! with the feature.
//!
//! Each opening for use increments the epoch, and begins the next incarnation: state that a power
//! loss ends is stored with the incarnation's number, and is valid in no other. In a pool of
//! version 2 the epoch is the incarnation's number; it is kept when the pool becomes one of version
//! 3, and counts on.

use block::{BLOCK_BYTES, VolumeId};

use crate::FormatError;
use crate::checksum::{Seal, superblock_sum};
use crate::codec::Reader;
pub use crate::features::{Features, FormatVersion};
use crate::geometry::Geometry;
use crate::log::LogPosition;
use crate::map::{ChunkId, NodeId};
use crate::page::{PageRef, StreamRef, TABLE_HEIGHT_MAX, TableRoot};

const MAGIC: [u8; 8] = *b"HOLDFAST";
const COLUMNS_AT: usize = 108;
const FEATURES_AT: usize = 320;
const LEAVES_AT: usize = 352;
const SEGMENT_TABLE_AT: usize = 376;
const KEY_SLOTS: std::ops::Range<usize> = 1024..3072;
const SUM_AT: usize = 4064;
/// Bytes of a superblock.
pub const SUPERBLOCK_BYTES: usize = BLOCK_BYTES as usize;
/// The offsets of the two copies, in bytes: far apart, so that one bad spot can't destroy both.
pub const SUPERBLOCK_OFFSETS_BYTES: [u64; 2] = [0, 8 << 20];
/// The offset of the stand-in for a copy that can't be written, in bytes.
pub const SUPERBLOCK_STAND_IN_OFFSET_BYTES: u64 = 4 << 20;

/// What is wrong with a superblock of a later version.
pub const UNKNOWN_VERSION: &str = "the superblock has an unknown version of the format";
/// What is wrong with a superblock that has an incompatible feature.
pub const UNKNOWN_FEATURE: &str = "the superblock has an unknown incompatible feature";

/// What is wrong with a superblock of a striped pool without columns.
const NO_STRIPES: &str = "impossible columns of a stripe";
/// What is wrong with a superblock with key slots.
const KEY_IN_SLOT: &str = "the superblock has key slots, which are not supported";

/// The root of everything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The version of the format.
    pub version: FormatVersion,
    /// The pool's features beyond that.
    pub features: Features,
    /// Incremented with every opening that is a power on; state that ends with a power loss is
    /// stored with this number. Version 2 does not have it, and uses its epoch instead.
    pub incarnation: u64,
    /// The pool's id, which never changes.
    pub pool_id: [u8; 16],
    /// The key from which the pool's keys are derived.
    pub root_key: [u8; 32],
    /// Incremented with every superblock that is written.
    pub sequence: u64,
    /// Incremented with every opening of the pool.
    pub epoch: u64,
    /// The size of the pool.
    pub capacity_bytes: u64,
    /// The division of the pool.
    pub geometry: Geometry,
    /// The metadata segment in which checkpoints continue, 0 for none.
    pub metadata_segment: u32,
    /// Its first free 4 KiB block.
    pub metadata_block: u32,
    /// The first unused chunk id.
    pub next_chunk: ChunkId,
    /// The first unused node id.
    pub next_node: NodeId,
    /// The first unused volume id.
    pub next_volume: VolumeId,
    /// Where replay starts.
    pub log: LogPosition,
    /// The chunk table.
    pub chunks: TableRoot,
    /// The node table.
    pub nodes: TableRoot,
    /// The volume table.
    pub volumes: TableRoot,
    /// The segment rows, in a pool that does not have them in a table, or not yet.
    pub segments: StreamRef,
    /// The key-value space, in a pool that does not have it in leaves, or not yet.
    pub config: StreamRef,
    /// Nodes to be freed, and staged chunks.
    pub pending: StreamRef,
    /// The leaves of the key-value space.
    pub leaves: TableRoot,
    /// The segment rows.
    pub segment_table: TableRoot,
}

/// The fields of version 3 that version 2 does not have.
#[derive(Default)]
struct Later {
    features: Features,
    incarnation: u64,
    leaves: TableRoot,
    segment_table: TableRoot,
}

fn encode_root(out: &mut Vec<u8>, root: TableRoot) {
    out.extend_from_slice(&root.page.encode());
    out.push(root.height);
    out.extend_from_slice(&[0; 7]);
}

fn decode_root(reader: &mut Reader<'_>) -> Result<TableRoot, FormatError> {
    let page = PageRef::decode(reader)?;
    let height = reader.u8()?;
    reader.bytes(7)?;
    if height > TABLE_HEIGHT_MAX {
        return Err(reader.error("a table that is too high"));
    }
    Ok(TableRoot { page, height })
}

impl Superblock {
    /// Returns the first superblock of an empty pool: of the latest version, with the sequence
    /// number 1.
    pub fn of_new_pool(
        pool_id: [u8; 16],
        root_key: [u8; 32],
        capacity_bytes: u64,
        geometry: Geometry,
    ) -> Self {
        let (block, previous) = (0, Seal::default());
        Self {
            version: FormatVersion::default(),
            features: Features::KNOWN,
            incarnation: 0,
            pool_id,
            root_key,
            sequence: 1,
            epoch: 0,
            capacity_bytes,
            geometry,
            metadata_segment: 0,
            metadata_block: 0,
            next_chunk: ChunkId(1),
            next_node: NodeId(1),
            next_volume: VolumeId(1),
            log: LogPosition { segment: 1, block, next_segment: 2, lsn: 1, previous },
            chunks: TableRoot::default(),
            nodes: TableRoot::default(),
            volumes: TableRoot::default(),
            segments: StreamRef::default(),
            config: StreamRef::default(),
            pending: StreamRef::default(),
            leaves: TableRoot::default(),
            segment_table: TableRoot::default(),
        }
    }

    /// Returns whether it has everything that this version of the program gives a pool.
    pub fn is_latest(&self) -> bool {
        self.version == FormatVersion::default() && self.features.with_known() == self.features
    }

    /// Encodes it: [`SUPERBLOCK_BYTES`] bytes.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(SUPERBLOCK_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&self.version.number().to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.pool_id);
        out.extend_from_slice(&self.root_key);
        for value in [self.sequence, self.epoch, self.capacity_bytes, self.geometry.part_bytes] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        let Geometry { segment_count, columns, .. } = self.geometry;
        let columns = if columns == 1 { 0 } else { u32::from(columns) };
        for value in [segment_count, self.metadata_segment, self.metadata_block, columns] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        for value in [self.next_chunk.0, self.next_node.0, self.next_volume.0] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        for value in [self.log.segment, self.log.block, self.log.next_segment, 0] {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&self.log.lsn.to_le_bytes());
        out.extend_from_slice(&self.log.previous.0);
        for root in [self.chunks, self.nodes, self.volumes] {
            encode_root(&mut out, root);
        }
        for stream in [self.segments, self.config, self.pending] {
            out.extend_from_slice(&stream.encode());
        }
        debug_assert_eq!(out.len(), FEATURES_AT);
        if self.version > FormatVersion::V2 {
            let Features { compatible, read_compatible, incompatible } = self.features;
            for value in [compatible, read_compatible, incompatible, self.incarnation] {
                out.extend_from_slice(&value.to_le_bytes());
            }
            encode_root(&mut out, self.leaves);
            debug_assert_eq!(out.len(), SEGMENT_TABLE_AT);
            encode_root(&mut out, self.segment_table);
        }
        out.resize(SUM_AT, 0);
        let sum = superblock_sum(&out);
        out.extend_from_slice(&sum);
        out
    }

    /// Decodes one.
    pub fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        if bytes.len() != SUPERBLOCK_BYTES {
            return Err(FormatError { what: "a superblock has 4096 bytes", offset: 0 });
        }
        let mut reader = Reader::new(bytes);
        if reader.array()? != MAGIC {
            return Err(FormatError { what: "no superblock", offset: 0 });
        }
        if superblock_sum(&bytes[..SUM_AT]) != bytes[SUM_AT..] {
            return Err(FormatError { what: "wrong checksum of a superblock", offset: SUM_AT });
        }
        let version = FormatVersion::decode(reader.u32()?);
        let version = version.ok_or(FormatError { what: UNKNOWN_VERSION, offset: 8 })?;
        reader.u32()?;
        let pool_id = reader.array()?;
        let root_key = reader.array()?;
        let (sequence, epoch) = (reader.u64()?, reader.u64()?);
        let (capacity_bytes, part_bytes) = (reader.u64()?, reader.u64()?);
        let segment_count = reader.u32()?;
        let (metadata_segment, metadata_block) = (reader.u32()?, reader.u32()?);
        let columns = reader.u32()?;
        let next_chunk = ChunkId(reader.u64()?);
        let next_node = NodeId(reader.u64()?);
        let next_volume = VolumeId(reader.u64()?);
        let log = decode_position(&mut reader)?;
        let later = match version {
            FormatVersion::V2 => Later::default(),
            FormatVersion::V3 => Later::decode(&bytes[FEATURES_AT..SUM_AT])?,
        };
        if bytes[KEY_SLOTS].iter().any(|byte| *byte != 0) {
            return Err(FormatError { what: KEY_IN_SLOT, offset: KEY_SLOTS.start });
        }
        let Later { features, incarnation, leaves, segment_table } = later;
        let has_stripes = features.has_stripes();
        let columns = match u8::try_from(columns) {
            Ok(columns @ 2..) if has_stripes => columns,
            _ if has_stripes => return Err(FormatError { what: NO_STRIPES, offset: COLUMNS_AT }),
            // Zeros, or something that was never read.
            _ => 1,
        };
        let geometry = Geometry { part_bytes, segment_count, columns };
        let geometry = geometry.check(capacity_bytes, features.segments_max())?;
        let superblock = Self {
            version,
            features,
            incarnation,
            pool_id,
            root_key,
            sequence,
            epoch,
            capacity_bytes,
            geometry,
            metadata_segment,
            metadata_block,
            next_chunk,
            next_node,
            next_volume,
            log,
            chunks: decode_root(&mut reader)?,
            nodes: decode_root(&mut reader)?,
            volumes: decode_root(&mut reader)?,
            segments: StreamRef::decode(&mut reader)?,
            config: StreamRef::decode(&mut reader)?,
            pending: StreamRef::decode(&mut reader)?,
            leaves,
            segment_table,
        };
        superblock.check_kinds()?;
        Ok(superblock)
    }

    /// Checks that nothing is both in a table and in a stream.
    fn check_kinds(&self) -> Result<(), FormatError> {
        let has_both = |table: TableRoot, stream: StreamRef, may_have_table: bool| {
            !table.page.is_none() && (stream.length_bytes > 0 || !may_have_table)
        };
        if has_both(self.leaves, self.config, self.features.has_leaves()) {
            return Err(FormatError {
                what: "a key-value space both in leaves and in a stream",
                offset: LEAVES_AT,
            });
        }
        if has_both(self.segment_table, self.segments, self.features.has_segment_table()) {
            let what = "a segment table both in pages and in a stream";
            return Err(FormatError { what, offset: SEGMENT_TABLE_AT });
        }
        Ok(())
    }
}

impl Later {
    fn decode(bytes: &[u8]) -> Result<Self, FormatError> {
        let mut reader = Reader::new(bytes);
        let (compatible, read_compatible) = (reader.u64()?, reader.u64()?);
        let incompatible = reader.u64()?;
        let features = Features { compatible, read_compatible, incompatible };
        if features.unknown().incompatible != 0 {
            return Err(FormatError { what: UNKNOWN_FEATURE, offset: FEATURES_AT + 16 });
        }
        let incarnation = reader.u64()?;
        let (leaves, segment_table) = (decode_root(&mut reader)?, decode_root(&mut reader)?);
        Ok(Self { features, incarnation, leaves, segment_table })
    }
}

fn decode_position(reader: &mut Reader<'_>) -> Result<LogPosition, FormatError> {
    let (segment, block, next_segment) = (reader.u32()?, reader.u32()?, reader.u32()?);
    reader.u32()?;
    let lsn = reader.u64()?;
    let previous = Seal(reader.array()?);
    Ok(LogPosition { segment, block, next_segment, lsn, previous })
}

#[cfg(test)]
mod tests;
