//! Room: what free segments are reserved for, so that a pool never gets stuck.
//!
//! A checkpoint writes all changed metadata to new locations before it frees the old ones. So the
//! room for it must be reserved beforehand: without a checkpoint nothing is ever freed. How much it
//! would write now is known at any time ([`Writer::claim`]).
//!
//! Let `F` be the number of free segments, and `C` the number that a checkpoint of all changes
//! would open: changes that are applied, and those that have joined the log and will be applied. A
//! job may join only if it leaves:
//!
//! | what joins | leaves of `F - C` | for |
//! |---|---|---|
//! | a host's data | `E + 2`, and never less than the reserve in `F` | what is below |
//! | a host's data that replaces as much | `E + 1` | what is below |
//! | what may create metadata: UNMAP, zeros, copies, clones | `E + 1` | what is below |
//! | a move by reclaim, an addition to the configuration of the layer above | `E` | the rest |
//! | the end of a volume, UNMAP of a whole volume, other configuration | 0 | |
//!
//! `E` is the number of segments that the changes of that one record open: 1, except for segments
//! as tiny as those of tests.
//!
//! For the last two rows, which free space or are small, `C` is what a checkpoint opens after
//! filling the *holes* that exist at least (`holes`): blocks of metadata segments that the previous
//! checkpoint does not need.
//!
//! Invariants:
//! 1. `F >= C` whenever a job has joined: the next checkpoint fits. This is checked before a
//!    capture begins, so none fails in the middle for lack of segments.
//! 2. With `C` at zero, as after a checkpoint, reclaim has a segment to which it can copy the live
//!    data of another, and compaction one for the live data of several: as long as there is dead
//!    data in any segment, each leaves more free segments than before.
//! 3. Ending volumes needs one small record. What that frees only changes rows, in steps that stop
//!    before `C` reaches `F`, and continue after a checkpoint.
//!
//! `C` counts what usually changes, not the worst case: an edit of a shared leaf can touch 256
//! pages of rows that no other edit does. If the estimate was too low, the checkpoint fills holes:
//! changed metadata had a location before, so there are about as many.

use std::collections::BTreeSet;

use block::BLOCK_BYTES;
use format::NodeId;
use format::page::{REFS_PER_DIRECTORY, ROWS_PER_PAGE, STREAM_HEADER_BYTES};

use crate::chunks::pages::PageKey;
use crate::chunks::table::Table;
use crate::key_space::leaves::Leaves;
use crate::log::checkpointer::Checkpointer;
use crate::nodes::Nodes;
use crate::world::World;
use crate::writer::Writer;
use crate::writer::estimate::END_BLOCKS_MAX;

/// What must be left of the free segments, in addition to what a checkpoint takes and what one end
/// of a volume takes.
const LEFT_BY_DATA: u32 = 2;
const LEFT_BY_METADATA: u32 = 1;

/// A smaller fraction of a segment than this is no reason for a checkpoint.
const DUE_DIVISOR: u64 = 8;

/// The kind of room that a job needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Want {
    /// A host's data.
    Data,
    /// A host's data that replaces as much.
    Replacement,
    /// What may create metadata.
    Metadata,
    /// Configuration that the layer above adds.
    Addition,
    /// What reclaim or the background pass moves.
    Move,
    /// The end of volumes or of all their content, and other changes of configuration.
    End,
}

/// What a checkpoint would need now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// Blocks that it writes, at most.
    pub(crate) blocks: u64,
    /// Segments that it opens for them.
    pub(crate) segments: u32,
}

impl Writer {
    /// Returns how many segments the end of one volume opens, with its configuration.
    fn end_segments(&self) -> u32 {
        (END_BLOCKS_MAX as u32).div_ceil(self.next_checkpoint.segment_blocks())
    }

    fn left_by(&self, want: Want) -> u32 {
        match want {
            Want::Data => self.left_by_data(),
            Want::Replacement | Want::Metadata => self.end_segments() + LEFT_BY_METADATA,
            Want::Addition | Want::Move => self.end_segments(),
            Want::End => 0,
        }
    }

    /// Returns how many free segments a host's data must leave, in addition to what a checkpoint
    /// takes.
    pub(crate) fn left_by_data(&self) -> u32 {
        self.end_segments() + LEFT_BY_DATA
    }

    /// Returns what a checkpoint would need at most, for what has changed and for what has joined.
    /// Cheap, because it examines no page.
    pub(crate) fn claim(&self, world: &World) -> Claim {
        self.claim_with(world, 0)
    }

    /// The same as [`Writer::claim`], if this many more blocks change.
    fn claim_with(&self, world: &World, more_blocks: u64) -> Claim {
        #[cfg(test)]
        if self.next_checkpoint.claims_nothing {
            return Claim { blocks: 0, segments: 0 };
        }
        let changed = world.memory.dirty_bytes().div_ceil(BLOCK_BYTES);
        let (leaves_blocks, leaf_rows) = self.leaves_to_capture();
        let joined: u64 = if self.early() {
            0
        } else {
            let sealed = self.sealed.iter().map(|commit| commit.record.changes_blocks);
            sealed.sum::<u64>() + self.open.changes_blocks
        };
        // A node that moves changes its row, which may have been clean.
        let node_rows = world.nodes.changed_count().min(self.state.next_node / ROWS_PER_PAGE + 1);
        let rows = changed + node_rows + leaf_rows + joined + more_blocks;
        let directories = rows.min(self.directories_max(world));
        let streams_blocks = self.streams_blocks(world) + leaves_blocks;
        let blocks = rows + directories;
        let table = self.segment_table_blocks(world, blocks + streams_blocks, joined + more_blocks);
        self.claim_of(blocks + table, streams_blocks)
    }

    /// The same as [`Writer::claim`], only for what has changed, page by page.
    pub(crate) fn exact_claim(&self, world: &World) -> Claim {
        let tables = [&world.chunks, &world.volume_table];
        let pages: u64 =
            tables.iter().map(|table| table.pages_to_capture(std::iter::empty())).sum();
        let (leaves, (leaves_blocks, _)) = (self.state.config.leaves(), self.leaves_to_capture());
        let leaf_rows = leaves.into_iter().flat_map(Leaves::changed_rows);
        let pages = pages + world.leaves.pages_to_capture(leaf_rows);
        let streams_blocks = self.streams_blocks(world) + leaves_blocks;
        let blocks = pages + world.nodes.blocks_to_capture();
        let table = self.segment_table_blocks(world, blocks + streams_blocks, 0);
        self.claim_of(blocks + table, streams_blocks)
    }

    /// Returns how many blocks a checkpoint writes for leaves of the key-value space, and for their
    /// rows, at most. Each block may be a piece, and pieces may be as long as those of streams.
    fn leaves_to_capture(&self) -> (u64, u64) {
        let leaves = self.state.config.leaves();
        leaves.map_or((0, 0), |leaves| (leaves.dirty_blocks(), leaves.changed_pages_max()))
    }

    fn claim_of(&self, blocks: u64, streams_blocks: u64) -> Claim {
        let per_segment = u64::from(self.next_checkpoint.segment_blocks());
        // What a piece that does not fit the end of a segment leaves empty there.
        let piece_blocks = self.tuning.stream_piece_bytes_max as u64 / BLOCK_BYTES + 1;
        let waste = streams_blocks.min(piece_blocks).min(per_segment / 2);
        let blocks = blocks + streams_blocks;
        let beyond = (blocks + waste).saturating_sub(u64::from(self.next_checkpoint.rest_blocks()));
        let segments = beyond.div_ceil((per_segment - waste).max(1));
        Claim { blocks, segments: u32::try_from(segments).unwrap_or(u32::MAX) }
    }

    /// Returns how many segments a claim opens if holes are filled first.
    fn beyond_holes(&self, claim: Claim) -> Claim {
        let beyond = claim.blocks.saturating_sub(self.next_checkpoint.blocks_in_place());
        let segments = beyond.div_ceil(u64::from(self.next_checkpoint.segment_blocks())) as u32;
        Claim { blocks: claim.blocks, segments: segments.min(claim.segments) }
    }

    /// Records that a checkpoint was captured, which continues in segment `open`, and the minimum
    /// number of holes that it leaves; returns the number before. Each piece of a stream may be in
    /// a block of its own.
    pub(crate) fn note_holes(&mut self, world: &World, open: u32) -> u64 {
        let tally = self.state.segments.tally();
        let of_open = tally.holes_of(self.state.segments.row(open));
        let streams_blocks = self.streams_blocks(world);
        let holes_blocks = (tally.holes_blocks - of_open).saturating_sub(streams_blocks);
        self.next_checkpoint.note_holes(holes_blocks)
    }

    /// Returns the maximum number of directories above all pages of rows.
    fn directories_max(&self, world: &World) -> u64 {
        let below = ROWS_PER_PAGE * REFS_PER_DIRECTORY;
        let leaf_rows = self.state.config.leaves().map_or(0, Leaves::next);
        let tables: [(&Table, u64); 4] = [
            (&world.chunks, self.state.next_chunk),
            (&world.nodes.table, self.state.next_node),
            (&world.volume_table, self.state.next_volume),
            (&world.leaves, leaf_rows),
        ];
        let count = |(table, next): (&Table, u64)| {
            let first = next / below + 1;
            first + first / REFS_PER_DIRECTORY + u64::from(table.root.read().height) + 1
        };
        tables.into_iter().map(count).sum()
    }

    /// Returns the blocks of the streams: pending nodes; the segment table, if it is not in pages;
    /// and the key-value space as of the last checkpoint, with what has joined since, if it is not
    /// in leaves.
    fn streams_blocks(&self, world: &World) -> u64 {
        let pending = 8 * (self.state.pending.len() + self.state.stuck.len() + 1)
            + 12 * self.state.staged.len();
        let pending = pending as u64 + world.comparisons.encoded_bytes();
        let table = self.state.segments.encoded_bytes();
        let config_bytes = match self.state.config.leaves() {
            Some(_) => 0,
            None => self.next_checkpoint.config_bytes(),
        };
        let bytes = pending + table as u64 + config_bytes;
        // Each stream has a last block of its own, and each block may be a piece.
        3 + bytes.div_ceil(BLOCK_BYTES - STREAM_HEADER_BYTES as u64)
    }

    /// Returns whether a job may join that needs this kind of room and changes this many blocks of
    /// metadata. If it fits the rest of the log's segment, it opens none.
    pub(crate) fn leaves_enough(
        &mut self,
        world: &World,
        want: Want,
        changes_blocks: u64,
        fits_here: bool,
    ) -> bool {
        let opens = u32::from(!fits_here);
        let mut claim = self.claim_with(world, changes_blocks);
        if matches!(want, Want::Addition | Want::Move | Want::End) {
            claim = self.beyond_holes(claim);
        }
        let least = self.left_by(want).saturating_add(claim.segments);
        let reserve = match want {
            Want::Data => world.medium.reserve_segments() + 1,
            _ => 0,
        };
        self.state.segments.free_count() >= reserve.max(least.saturating_add(opens))
    }

    /// Returns whether jobs wait for room, and not only for their pace.
    fn waits_for_room(&mut self, world: &World) -> bool {
        self.queues.has_starved() && !self.leaves_enough(world, Want::Data, 0, false)
    }

    /// Returns whether the changed metadata takes half of the room in free segments beyond what the
    /// log needs, or whether jobs wait for the room that it takes.
    pub(crate) fn is_checkpoint_due_for_room(&mut self, world: &World) -> bool {
        let free = u64::from(self.state.segments.free_count());
        let changed = world.memory.dirty_bytes() / BLOCK_BYTES + self.leaves_to_capture().0;
        if free == 0 {
            return changed > 0 || self.log.bytes() > 0;
        }
        let claim = self.claim(world);
        let streams_blocks = self.streams_blocks(world);
        // What every checkpoint takes, the next one takes as well.
        let table = self.segment_table_blocks(world, streams_blocks, 0);
        let least = self.claim_of(table, streams_blocks);
        if self.waits_for_room(world) && free > u64::from(self.left_by(Want::Metadata)) {
            return changed > 0 && claim.segments > least.segments;
        }
        let per_segment = u64::from(self.next_checkpoint.segment_blocks());
        let room = free.saturating_sub(u64::from(self.left_by_data())).max(1) * per_segment;
        changed >= self.log.segment_bytes() / BLOCK_BYTES / DUE_DIVISOR
            && 4 * (claim.blocks - least.blocks) >= 3 * room
    }

    /// Returns how many of up to `most` dropped nodes may be freed before a checkpoint, because
    /// freeing changes rows. At least one, if almost nothing has changed.
    pub(crate) fn nodes_to_free(&mut self, world: &World, most: usize) -> usize {
        let free = self.state.segments.free_for_metadata();
        // The chunks of each may be far from any others.
        let each = world.medium.tuning.fanout.entries() as u64 + 2;
        let fits = |count: &usize| self.claim_with(world, *count as u64 * each).segments <= free;
        let halves = std::iter::successors(Some(most), |count| Some(count / 2));
        let found = halves.take_while(|count| *count > 0).find(fits);
        let changed = world.memory.dirty_bytes() / BLOCK_BYTES;
        let is_little = changed < self.log.segment_bytes() / BLOCK_BYTES / DUE_DIVISOR;
        found.unwrap_or(usize::from(is_little))
    }

    /// Initializes the state from the last checkpoint when a pool is opened.
    pub(crate) fn note_checkpoint(&mut self, checkpointer: &Checkpointer) {
        let superblock = checkpointer.superblock();
        let config_bytes = u64::from(superblock.config.length_bytes);
        let units: u64 = checkpointer.streams[0].iter().map(|(_, units)| u64::from(*units)).sum();
        let next = &mut self.next_checkpoint;
        next.note_config(config_bytes.max(units * format::PLACE_UNIT_BYTES));
        next.note_open((superblock.metadata_segment, superblock.metadata_block));
    }

    /// Returns the current reserve: hosts' data is accepted while more segments are free.
    pub(crate) fn reserve_now(&self, world: &World) -> u32 {
        let reserve = world.medium.reserve_segments();
        reserve.max(self.left_by_data() + self.claim(world).segments)
    }
}

impl Table {
    /// Returns how many pages a capture would write, with directories, if the pages of these rows
    /// change as well.
    pub(crate) fn pages_to_capture(&self, rows: impl Iterator<Item = u64>) -> u64 {
        let height = self.root.read().height;
        let mut pages: BTreeSet<PageKey> = self.dirty.lock().iter().copied().collect();
        pages.extend(rows.map(|row| (0, row / ROWS_PER_PAGE)));
        for level in 0..height {
            let here = pages.range((level, 0)..(level + 1, 0));
            let above: BTreeSet<u64> = here.map(|key| key.1 / REFS_PER_DIRECTORY).collect();
            pages.extend(above.into_iter().map(|number| (level + 1, number)));
        }
        pages.len() as u64
    }
}

impl Nodes {
    /// Returns how many nodes have changed since the last capture, at most.
    pub(crate) fn changed_count(&self) -> u64 {
        self.dirty.lock().len() as u64
    }

    /// Returns how many blocks a capture would write for nodes and for their rows, at most.
    pub(crate) fn blocks_to_capture(&self) -> u64 {
        let ids: Vec<NodeId> = self.dirty.lock().clone();
        let nodes = ids.len() as u64;
        // A node that moves changes its row.
        nodes.div_ceil(2) + self.table.pages_to_capture(ids.into_iter().map(|id| id.0))
    }
}
