//! Sizes that decide where boundaries are, and that a simulator makes small, so that it meets each
//! boundary thousands of times a second.

use block::BLOCK_BYTES;
use block::request::limits::TRANSFER_BYTES_MAX;
use format::Geometry;
use format::log::{RECORD_ENTRIES_BYTES_MAX, RECORD_HEADER_BYTES, header_blocks};
use format::map::Fanout;
use format::page::STREAM_PIECE_BYTES_MAX;
use format::record_places;

use crate::StoreError;

/// Bytes that the entry of a run takes at most which a staged copy names.
pub(crate) const LINKED_RUN_BYTES_MAX: usize = 40;

/// What a node costs that is walked through, or blocks that are set with a way down of their own.
pub(crate) const NODE_WORK: u64 = 16;
/// What a step costs that is looked at: two ways down to the blocks at its ends.
pub(crate) const STEP_WORK: u64 = 64;

/// The most that a copy of so many blocks can cost, whatever its source is (`take`).
pub(crate) fn work_max(fanout: Fanout, blocks: u64) -> u64 {
    let leaves = blocks / fanout.span_blocks(1) + 2;
    blocks + NODE_WORK * 2 * (leaves + u64::from(fanout.level_max()))
}

/// Sizes of a store. Every pool has the default; another is for a simulator, and a pool that was
/// made with one must always be opened with the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    /// How many entries of a map's node are used.
    pub fanout: Fanout,
    /// Payload blocks in a record at most: 6 MiB. With its entries a record fits any segment twice.
    pub record_blocks_max: usize,
    /// Bytes of entries in a record at most.
    pub record_entries_bytes_max: usize,
    /// Commits that may be on their way to the device at once. A durable write takes a device
    /// several times as long as it takes to begin it.
    pub commits_in_flight_max: usize,
    /// Bytes of records in memory that no flush has covered yet (`durability = "flush"`): with the
    /// record that makes them so many, all of them are flushed. 64 MiB.
    pub unflushed_bytes_max: u64,
    /// A record is cut to what is left of its segment if at least so many blocks are left: 1 MiB.
    pub segment_rest_blocks_min: u32,
    /// The most blocks that one edit brings as data: a copy that must move more is staged.
    pub edit_blocks_max: u64,
    /// Blocks in a part of a staged copy: 4 MiB.
    pub part_blocks_max: u64,
    /// Copies that move data at once, each with up to a part: 16 MiB.
    pub parts_at_once: usize,
    /// Blocks that a copy may move with one commit and not be counted among those: 256 KiB.
    pub placeless_blocks_max: usize,
    /// One in so many segments is kept from hosts' data, see [`Tuning::reserve_segments`].
    pub reserve_divisor: u32,
    /// Blocks moved with one commit, where nobody minds: 1 MiB.
    pub move_blocks_max: usize,
    /// Blocks moved with one commit while hosts write: 512 KiB, so that theirs are held up little.
    pub move_blocks_busy: usize,
    /// The least that is worth a record of its own at the end of a segment.
    pub move_blocks_min: u32,
    /// What can be moved in a row, at most, for what hosts have written: 2 MiB.
    pub move_credit_bytes_max: u64,
    /// What hosts may write ahead of the work, while they are paced: 1 MiB.
    pub pace_bytes_max: u32,
    /// Dropped nodes that may wait for [`crate::Store::housekeep`]: leaves of 64 GiB.
    pub pending_nodes_max: usize,
    /// How many nodes, or pages of rows, a checkpoint captures at once while writing goes on
    /// between: they take a few tenths of a millisecond.
    pub slice_len: usize,
    /// Bytes of a stream of a checkpoint in one piece.
    pub stream_piece_bytes_max: usize,
    /// What one commit may cost, in units of some tenths of a microsecond: an entry of a node that
    /// is named or let go takes one. A copy that costs more is done in several commits. A write, or
    /// the end of a staged copy, is all or nothing: it may cost twice as much, in a commit of its
    /// own.
    pub commit_work: u64,
}

impl Tuning {
    /// That of every pool.
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

    /// For segments of 64 KiB, of which a record takes three quarters. Hosts write 32 KiB at once
    /// at most.
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

    /// The most parts of one staged copy, 64 MiB by default: the entries that name them fit one
    /// record, and the commit that does does not take long. A longer copy is done in pieces.
    pub(crate) fn parts_max(&self) -> usize {
        (self.named_runs_max() / 2).clamp(1, 16)
    }

    /// The most runs that the parts of a staged copy can have together.
    pub(crate) fn named_runs_max(&self) -> usize {
        // The rest is for the blocks at the ends of its segments.
        (self.record_entries_bytes_max * 7 / 8).saturating_div(LINKED_RUN_BYTES_MAX)
    }

    /// Segments that hosts can't fill: metadata, reclaim and checkpoints take them, so that unmap
    /// and the like proceed when the pool is full, and overwrites do: a sixty-fourth, at least 4.
    /// So much must be dead on average before emptying a segment gains more than its records'
    /// headers take. What a checkpoint may need on top of that is in `room`.
    pub(crate) fn reserve_segments(&self, segment_count: u32) -> u32 {
        (segment_count / self.reserve_divisor).max(4)
    }

    /// Blocks that header and entries of a record take at most, with those of the record before.
    pub(crate) fn header_blocks_max(&self) -> u32 {
        let most = self.record_entries_bytes_max;
        header_blocks(most, RECORD_HEADER_BYTES + most)
    }

    /// Blocks of payload in a record at most.
    pub(crate) fn payload_blocks_max(&self) -> u32 {
        self.record_blocks_max.max(self.edit_blocks_max as usize) as u32
    }

    /// Rows of a record at most.
    pub(crate) fn record_rows_max(&self, geometry: Geometry) -> u32 {
        let blocks = self.header_blocks_max() + self.payload_blocks_max();
        record_places::rows_max(geometry.columns.into(), blocks)
    }

    /// Blocks that header and entries take at most of a commit that moves something: a chunk needs
    /// less than 64 bytes.
    pub(crate) fn move_header_blocks(&self) -> u32 {
        let most = self.move_blocks_max * 64;
        header_blocks(most, RECORD_HEADER_BYTES + most)
    }

    /// Refuses a pool whose segments are smaller than what is to be written into one of them.
    pub(crate) fn check(&self, geometry: Geometry) -> Result<(), StoreError> {
        let piece = self.stream_piece_bytes_max.div_ceil(BLOCK_BYTES as usize) as u32 + 1;
        if self.record_rows_max(geometry) <= geometry.rows() && piece <= geometry.mirrored_blocks()
        {
            return Ok(());
        }
        let bytes = geometry.segment_bytes();
        Err(StoreError::Size(format!("its segments of {bytes} bytes are too small for a record")))
    }

    /// Whether segments of which so many blocks must be moved have too many parts for one copy.
    pub(crate) fn is_too_long_to_stage(&self, moved_blocks: impl Iterator<Item = u64>) -> bool {
        let parts: u64 = moved_blocks.map(|blocks| blocks.div_ceil(self.part_blocks_max)).sum();
        parts > self.parts_max() as u64
    }

    /// Whether a copy of segments with so many blocks each may take several commits, whatever its
    /// source is: then it is not all or nothing for who reads meanwhile, nor after a crash.
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
    fn each_tuning_fits_its_segments_and_no_smaller_ones() {
        let usual = Geometry::for_capacity(1 << 30).unwrap();
        let small = Geometry::of_segments(64 << 10, 32 << 20).unwrap();
        assert!(Tuning::DEFAULT.check(usual).is_ok() && Tuning::SMALL.check(usual).is_ok());
        assert!(Tuning::SMALL.check(small).is_ok());
        assert!(matches!(Tuning::DEFAULT.check(small), Err(StoreError::Size(_))));
    }
}
