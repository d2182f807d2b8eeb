//! Sizes that define boundaries. A simulator reduces them, to reach each boundary thousands of
//! times a second.

use block::BLOCK_BYTES;
use block::request::limits::TRANSFER_BYTES_MAX;
use format::Geometry;
use format::log::{RECORD_ENTRIES_BYTES_MAX, RECORD_HEADER_BYTES, header_blocks};
use format::map::Fanout;
use format::page::STREAM_PIECE_BYTES_MAX;
use format::record_places;

use crate::StoreError;

/// The maximum size of the entry of a run that a staged copy maps.
pub(crate) const LINKED_RUN_BYTES_MAX: usize = 40;

/// The cost of walking through a node, or of setting blocks with a descent of their own.
pub(crate) const NODE_WORK: u64 = 16;
/// The cost of checking a step: two descents to the blocks at its ends.
pub(crate) const STEP_WORK: u64 = 64;

/// Returns the maximum cost of a copy of this many blocks, for any source (`take`).
pub(crate) fn work_max(fanout: Fanout, blocks: u64) -> u64 {
    let leaves = blocks / fanout.span_blocks(1) + 2;
    blocks + NODE_WORK * 2 * (leaves + u64::from(fanout.level_max()))
}

/// Sizes of a store. All pools use the default; others are for a simulator, and a pool that was
/// created with other sizes must always be opened with the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// How many entries of a map node are used.
    pub fanout: Fanout,
    /// The maximum number of payload blocks of a record: 6 MiB. With its entries a record fits any
    /// segment twice.
    pub record_blocks_max: usize,
    /// The maximum bytes of entries of a record.
    pub record_entries_bytes_max: usize,
    /// The maximum number of commits in flight. A durable write takes a device several times as
    /// long as starting it.
    pub commits_in_flight_max: usize,
    /// The maximum bytes of records in memory that no flush has covered (`durability = "flush"`):
    /// the record that reaches it flushes all of them. 64 MiB.
    pub unflushed_bytes_max: u64,
    /// A record is shortened to fit the rest of its segment if at least this many blocks are left:
    /// 1 MiB.
    pub segment_rest_blocks_min: u32,
    /// The maximum number of data blocks of one edit: a copy that moves more is staged.
    pub edit_blocks_max: u64,
    /// The number of blocks in a part of a staged copy: 4 MiB.
    pub part_blocks_max: u64,
    /// The number of copies that move data at once, each up to one part: 16 MiB.
    pub parts_at_once: usize,
    /// The number of blocks that a copy may move in one commit without counting among those: 256
    /// KiB.
    pub placeless_blocks_max: usize,
    /// One in this many segments is kept from hosts' data, see [`Tuning::reserve_segments`].
    pub reserve_divisor: u32,
    /// The number of blocks moved in one commit if hosts are idle: 1 MiB.
    pub move_blocks_max: usize,
    /// The number of blocks moved in one commit while hosts write: 512 KiB, to delay their writes
    /// little.
    pub move_blocks_busy: usize,
    /// The minimum number of blocks that justifies a record of its own at the end of a segment.
    pub move_blocks_min: u32,
    /// The maximum that reclaim moves in a row in return for hosts' writes: 2 MiB.
    pub move_credit_bytes_max: u64,
    /// How far hosts' writes may run ahead of reclaim, while they are paced: 1 MiB.
    pub pace_bytes_max: u32,
    /// The maximum number of dropped nodes that wait for [`crate::Store::housekeep`]: leaves of 64
    /// GiB.
    pub pending_nodes_max: usize,
    /// How many nodes, or pages of rows, a checkpoint captures at once before writes continue: a
    /// few tenths of a millisecond.
    pub slice_len: usize,
    /// The maximum bytes of a piece of a checkpoint's stream.
    pub stream_piece_bytes_max: usize,
    /// The maximum cost of a commit, in units of some tenths of a microsecond: one for an entry of
    /// a node that gains or loses a reference. A copy that costs more is done in several commits. A
    /// write, or the end of a staged copy, is atomic: it may cost twice as much, in a commit of its
    /// own.
    pub commit_work: u64,
}

impl Tuning {
    /// The sizes of every real pool.
    pub const DEFAULT: Self = Self {
        fanout: Fanout::DEFAULT,
        record_blocks_max: 1536,
        record_entries_bytes_max: RECORD_ENTRIES_BYTES_MAX,
        commits_in_flight_max: 4,
        unflushed_bytes_max: 64 << 20,
        segment_rest_blocks_min: 256,
        edit_blocks_max: TRANSFER_BYTES_MAX / BLOCK_BYTES + 2,
        part_blocks_max: 1024,
        parts_at_once: 4,
        reserve_divisor: 64,
        placeless_blocks_max: 64,
        move_blocks_max: 256,
        move_blocks_busy: 128,
        move_blocks_min: 16,
        move_credit_bytes_max: 2 << 20,
        pace_bytes_max: 1 << 20,
        pending_nodes_max: 65_536,
        slice_len: 256,
        stream_piece_bytes_max: STREAM_PIECE_BYTES_MAX,
        commit_work: 8192,
    };

    /// Sizes for segments of 64 KiB, of which a record takes three quarters. A host's write has 32
    /// KiB at most.
    pub const SMALL: Self = Self {
        fanout: Fanout::SMALL,
        record_blocks_max: 10,
        record_entries_bytes_max: 4000,
        commits_in_flight_max: 4,
        unflushed_bytes_max: 256 << 10,
        segment_rest_blocks_min: 3,
        edit_blocks_max: 10,
        part_blocks_max: 4,
        parts_at_once: 2,
        reserve_divisor: 64,
        placeless_blocks_max: 2,
        move_blocks_max: 8,
        move_blocks_busy: 4,
        move_blocks_min: 2,
        move_credit_bytes_max: 32 << 10,
        pace_bytes_max: 32 << 10,
        pending_nodes_max: 16,
        slice_len: 3,
        stream_piece_bytes_max: 6000,
        commit_work: 1024,
    };

    /// Returns the maximum number of parts of one staged copy, 64 MiB by default: the entries that
    /// map them fit one record, whose commit does not take long. A longer copy is done in pieces.
    pub(crate) fn parts_max(&self) -> usize {
        (self.named_runs_max() / 2).clamp(1, 16)
    }

    /// Returns the maximum number of runs in all parts of a staged copy.
    pub(crate) fn named_runs_max(&self) -> usize {
        // The rest is for the blocks at the ends of its segments.
        (self.record_entries_bytes_max * 7 / 8).saturating_div(LINKED_RUN_BYTES_MAX)
    }

    /// Returns the number of segments that hosts can't fill: a sixty-fourth, at least 4. Metadata,
    /// reclaim and checkpoints use them, so that unmap and overwrites continue when the pool is
    /// full. So much must be dead on average before emptying a segment gains more than the headers
    /// of its records take. `room` has what a checkpoint may need in addition.
    pub(crate) fn reserve_segments(&self, segment_count: u32) -> u32 {
        (segment_count / self.reserve_divisor).max(4)
    }

    /// Returns the maximum number of blocks of a record's header and entries, with those of the
    /// previous record.
    pub(crate) fn header_blocks_max(&self) -> u32 {
        let most = self.record_entries_bytes_max;
        header_blocks(most, RECORD_HEADER_BYTES + most)
    }

    /// Returns the maximum number of payload blocks of a record.
    pub(crate) fn payload_blocks_max(&self) -> u32 {
        self.record_blocks_max.max(self.edit_blocks_max as usize) as u32
    }

    /// Returns the maximum number of rows of a record.
    pub(crate) fn record_rows_max(&self, geometry: Geometry) -> u32 {
        let blocks = self.header_blocks_max() + self.payload_blocks_max();
        record_places::rows_max(geometry.columns.into(), blocks)
    }

    /// Returns the maximum number of header and entry blocks of a commit that moves data: a chunk
    /// needs less than 64 bytes.
    pub(crate) fn move_header_blocks(&self) -> u32 {
        let most = self.move_blocks_max * 64;
        header_blocks(most, RECORD_HEADER_BYTES + most)
    }

    /// Refuses a pool whose segments are smaller than the largest piece that is written to one.
    pub(crate) fn check(&self, geometry: Geometry) -> Result<(), StoreError> {
        let piece = self.stream_piece_bytes_max.div_ceil(BLOCK_BYTES as usize) as u32 + 1;
        if self.record_rows_max(geometry) <= geometry.rows() && piece <= geometry.mirrored_blocks()
        {
            return Ok(());
        }
        let bytes = geometry.segment_bytes();
        Err(StoreError::Size(format!("segments of {bytes} bytes are too small for a record")))
    }

    /// Returns whether segments of which this many blocks must be moved have too many parts for one
    /// copy.
    pub(crate) fn is_too_long_to_stage(&self, moved_blocks: impl Iterator<Item = u64>) -> bool {
        let parts: u64 = moved_blocks.map(|blocks| blocks.div_ceil(self.part_blocks_max)).sum();
        parts > self.parts_max() as u64
    }

    /// Returns whether a copy of segments with this many blocks each may take several commits, for
    /// any source: it is then not atomic for concurrent readers, nor after a crash.
    pub fn may_split(&self, blocks: impl Iterator<Item = u64> + Clone) -> bool {
        let work = |blocks| work_max(self.fanout, blocks);
        blocks.clone().map(work).sum::<u64>() >= self.commit_work
            || self.is_too_long_to_stage(blocks.map(|blocks| blocks + 1))
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_tuning_requires_segments_of_its_minimum_size() {
        let usual = Geometry::for_capacity(1 << 30).unwrap();
        let small = Geometry::of_segments(64 << 10, 32 << 20).unwrap();
        assert!(Tuning::DEFAULT.check(usual).is_ok() && Tuning::SMALL.check(usual).is_ok());
        assert!(Tuning::SMALL.check(small).is_ok());
        assert!(matches!(Tuning::DEFAULT.check(small), Err(StoreError::Size(_))));
    }
}
