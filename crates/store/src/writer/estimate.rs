//! What kind of room a job needs, and how much metadata it usually changes (`room`).

use block::{BLOCK_BYTES, VolumeId};
use format::map::Fanout;
use format::page::ROWS_PER_PAGE;
use format::{Entry, MapEntry};

use crate::edits::edit::{Edit, Step};
use crate::log::relocation::Relocation;
use crate::world::World;
use crate::writer::Writer;
use crate::writer::job::Job;
use crate::writer::room::Want;

/// Blocks that a small administrative entry may change.
const ENTRY_BLOCKS: u64 = 4;
/// Blocks that a checkpoint writes for a change of one volume and its configuration: the blocks
/// that the entries change, and as many directories.
pub(crate) const END_BLOCKS_MAX: u64 = 2 * (ENTRY_BLOCKS + 2);
/// The most bytes that an object's record grows when it is destroyed.
const END_NOTE_BYTES_MAX: usize = 64;
/// Units of work of a copy (`take`) for each block that it usually changes: a node that is set, or
/// the rows of this many chunks.
const WORK_PER_BLOCK: u64 = 16;
impl Job {
    /// Returns the kind of room that it needs; `None` for a flush.
    pub(crate) fn want(&self, world: &World) -> Option<Want> {
        match self {
            Self::Edit(edit) if edit.ends_content(world) => Some(Want::End),
            Self::Edit(edit) if edit.data_blocks() == 0 => Some(Want::Metadata),
            Self::Edit(_) | Self::Stage(_) => Some(Want::Data),
            Self::Relocate(_) => Some(Want::Move),
            Self::Entries { entries, grows, .. } => Some(entries_want(entries, *grows)),
            Self::Flush => None,
        }
    }

    /// Returns how many blocks of metadata it usually changes.
    pub(crate) fn changes_blocks(&self, world: &World) -> u64 {
        match self {
            Self::Edit(edit) => edit.changes_blocks(world),
            Self::Stage(edit) => edit.staging.frames.len() as u64 / ROWS_PER_PAGE + 2,
            Self::Relocate(relocation) => relocation.changes_blocks(),
            Self::Entries { entries, .. } => entries_changes_blocks(world, entries),
            Self::Flush => 0,
        }
    }
}

/// Returns the kind of room for a change by an administrator: it is an end if it creates nothing
/// that could grow. Configuration that `grows` leaves room for ends.
fn entries_want(entries: &[Entry], grows: bool) -> Want {
    let creates = |entry: &Entry| {
        matches!(
            entry,
            Entry::VolumeCreate { .. } | Entry::VolumeClone { .. } | Entry::VolumeResize { .. }
        )
    };
    let ends = |entry: &Entry| matches!(entry, Entry::VolumeDestroy { .. });
    match entries.iter().any(creates) {
        true => Want::Metadata,
        false if grows && !entries.iter().any(ends) => Want::Addition,
        false => Want::End,
    }
}

impl Writer {
    /// Returns whether pairs of the key-value space are new, or longer by more than what an object
    /// keeps about its end.
    pub(crate) fn adds_to_config(&self, pairs: &[(Vec<u8>, Option<Vec<u8>>)]) -> bool {
        pairs.iter().any(|(key, value)| {
            let old_bytes = self.state.config.get(key).map(Vec::len);
            let most = old_bytes.map_or(0, |bytes| bytes + END_NOTE_BYTES_MAX);
            value.as_ref().is_some_and(|value| value.len() > most)
        })
    }
}

fn entries_changes_blocks(world: &World, entries: &[Entry]) -> u64 {
    let of = |entry: &Entry| match entry {
        Entry::VolumeResize { volume, size_blocks } => {
            let old = world.map_of(*volume).map_or(0, |map| map.size_blocks);
            ends_blocks(world, *volume, old.abs_diff(*size_blocks))
        }
        // A leaf, if the key-value space is in leaves.
        Entry::Config { .. } | Entry::TargetState { .. } => {
            u64::from(world.medium.features().has_leaves())
        }
        _ => ENTRY_BLOCKS,
    };
    // The growth of the key-value space, or a page of the rows of its leaves.
    entries.iter().map(of).sum::<u64>() + config_bytes(entries).div_ceil(BLOCK_BYTES)
}

/// Returns how much entries add to the key-value space, at most.
pub(crate) fn config_bytes(entries: &[Entry]) -> u64 {
    let of = |entry: &Entry| match entry {
        Entry::Config { .. } | Entry::TargetState { .. } => entry.encoded_bytes() as u64,
        _ => 0,
    };
    entries.iter().map(of).sum()
}

/// Returns how many blocks a step of this many blocks changes, apart from the rows of each block
/// that it sets: the descents to both its ends. From where they divide there are two nodes of each
/// level, and each node is half a block and has a row, in a page that it shares with another node
/// of the same age. At each end, part of a leaf's entries is released, whose chunks usually were
/// made together.
fn ends_blocks(world: &World, volume: VolumeId, count: u64) -> u64 {
    let fanout = world.medium.tuning.fanout;
    let level = world.map_of(volume).map_or(1, |map| map.level);
    let nodes = u64::from(level) + u64::from(fanout.level_for(count.max(1)).min(level));
    let leaf_blocks = (fanout.entries() as u64).div_ceil(ROWS_PER_PAGE);
    let volume_blocks = 1;
    nodes + 2 * leaf_blocks + volume_blocks
}

impl Edit {
    /// Returns whether it unmaps whole volumes, which is like their end: it changes nothing but the
    /// nodes that lead to the last block.
    fn ends_content(&self, world: &World) -> bool {
        let ends = |step: &Step| {
            let Step::Fill { volume, range, entry: MapEntry::Hole } = step else { return false };
            let size = world.map_of(*volume).map(|map| map.size_blocks);
            range.start.0 == 0 && size == Some(range.count.0)
        };
        !self.steps.is_empty() && self.steps.iter().all(ends)
    }

    /// Returns how many blocks of metadata it usually changes: for each block the row of its old
    /// chunk and of its new one, and each leaf and its row.
    fn changes_blocks(&self, world: &World) -> u64 {
        let of = |step: &Step| {
            let (volume, range) = step.target();
            let count = range.count.0;
            match step {
                Step::Put(_) if count == 1 => 6,
                Step::Put(_) | Step::Linked { .. } => {
                    ends_blocks(world, volume, count) + count + count / 32
                }
                Step::Fill { .. } | Step::Repeat { .. } | Step::Copy { .. } => {
                    ends_blocks(world, volume, count)
                }
            }
        };
        let copies = self.steps.iter().any(|step| matches!(step, Step::Copy { .. }));
        let copied = if copies { self.work / WORK_PER_BLOCK } else { 0 };
        let is_compared = self.compare.as_ref().is_some_and(|compare| compare.compared.is_some());
        self.steps.iter().map(of).sum::<u64>() + copied + u64::from(is_compared)
    }
}

impl Edit {
    /// Returns how many nodes applying it creates, at most: on each descent to an end of what is
    /// set, above all leaves that are set in part, and for its other costs.
    pub(crate) fn new_nodes_max(&self, fanout: Fanout) -> u64 {
        let ways = 2 * u64::from(fanout.level_max());
        let in_step = |step: &Step| match step {
            Step::Put(_) | Step::Linked { .. } => {
                ways + step.target().1.count.0 / fanout.span_blocks(1)
            }
            _ => ways,
        };
        self.steps.iter().map(in_step).sum::<u64>() + self.work / 16
    }

    /// Returns how many chunks it creates, at most.
    pub(crate) fn new_chunks_max(&self) -> usize {
        let in_step = |step: &Step| match step {
            Step::Put(put) => put.new_chunks(),
            Step::Repeat { .. } => 1,
            _ => 0,
        };
        self.steps.iter().map(in_step).sum()
    }

    /// Returns the maximum number of data blocks it writes.
    pub(crate) fn data_blocks(&self) -> usize {
        self.steps
            .iter()
            .map(|step| match step {
                Step::Put(put) => put.stored_blocks(),
                Step::Repeat { .. } => 1,
                _ => 0,
            })
            .sum()
    }
}

impl Relocation {
    fn changes_blocks(&self) -> u64 {
        let of = |entry: &Entry| match entry {
            Entry::Relocate { fingerprints, .. } => fingerprints.len() as u64 / ROWS_PER_PAGE + 2,
            Entry::RelocateGroup { chunks, .. } => chunks.len() as u64,
            _ => 1,
        };
        self.entries.iter().map(of).sum()
    }
}
