//! Holes: blocks of metadata segments that the last checkpoint does not need.
//!
//! A checkpoint goes to segments of its own as long as enough are free. If not, it goes to blocks
//! that the previous checkpoint does not use: their content is dead, and neither that checkpoint
//! nor the log after it refers to it. So metadata never takes more space than its own size and that
//! of the changes, however scattered it is, and compaction (`compact`) needs no free segment to
//! empty others.
//!
//! Memory does not record which blocks those are, because it forgets what was removed since. So the
//! last checkpoint is read: its directories, the rows of its nodes, and its streams.
//!
//! What is below an unreadable page may be in any segment. The segment table of the same checkpoint
//! counts what is live in each: a segment of which everything was found has holes, and one of which
//! something is missing has none. So a bad page only costs space.

use std::collections::{BTreeMap, BTreeSet};

use block::BLOCK_BYTES;
use format::geometry::UNITS_PER_BLOCK;
use format::page::{PageRef, REFS_PER_DIRECTORY, ROWS_PER_PAGE};
use format::{NodeRow, PLACE_UNIT_BYTES, Place, SegmentRow, SegmentState};

use crate::checkpoint::load::load_checkpoint;
use crate::chunks::medium::{Medium, metadata_blocks};
use crate::chunks::memory::Budgets;
use crate::chunks::pages::PageKey;
use crate::chunks::table::Table;
use crate::chunks::table_name::TableName;
use crate::key_space::leaves::Leaves;
use crate::log::checkpointer::Checkpointer;
use crate::world::World;
use crate::writer::Writer;
use crate::{NODE_UNITS, StoreError};

/// The maximum memory for reading the last checkpoint.
const MEMORY_BYTES: u64 = 16 << 20;
const PAGE_UNITS: u32 = UNITS_PER_BLOCK;
/// The number of segments that a checkpoint leaves free while it can use holes: reclaim needs them
/// to start.
pub(crate) const KEPT_SEGMENTS: u32 = 3;

/// Blocks that may be overwritten: runs of them, the last first.
#[derive(Debug, Default)]
pub(crate) struct Holes {
    runs: Vec<Run>,
    blocks: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    segment: u32,
    first: u32,
    count: u32,
}

impl Holes {
    /// Finds the holes of the last checkpoint, except in segments that are to be emptied; none
    /// while there is a reader of an earlier checkpoint, whose metadata must stay, or if the
    /// checkpoint can't be read. The caller has the checkpointer, so there is no other checkpoint
    /// meanwhile.
    pub(crate) fn find(
        world: &World,
        checkpointer: &Checkpointer,
        emptied: &BTreeSet<u32>,
    ) -> Self {
        if checkpointer.is_earlier_image_read() {
            return Self::default();
        }
        // Nothing was changed: it may still fit without holes, or fit later.
        Self::of_last(world, checkpointer, emptied).unwrap_or_default()
    }

    fn of_last(
        world: &World,
        checkpointer: &Checkpointer,
        emptied: &BTreeSet<u32>,
    ) -> Result<Self, StoreError> {
        // As it was: segments that were added since are in no checkpoint.
        let superblock = checkpointer.stored_superblock();
        let (disk, tuning) = (world.medium.disk.clone(), world.medium.tuning);
        let medium = Medium::new(disk, &superblock, tuning);
        let mut reader = Checkpointer::new(superblock);
        let (image, state) =
            load_checkpoint(medium, Budgets::of_metadata(MEMORY_BYTES), &mut reader)?;
        let rows = state.segments.rows();
        let rows =
            rows.filter(|(_, row)| row.state == SegmentState::Metadata && row.live_units > 0);
        let unmarked = |(segment, row): (u32, SegmentRow)| {
            let geometry = image.medium.geometry_of(segment);
            let marked = Marked {
                first_block: geometry.first_metadata_block(),
                usable: metadata_blocks(geometry, world.medium.version()) as usize,
                blocks: vec![false; geometry.metadata_blocks() as usize],
                missing_units: u64::from(row.live_units),
            };
            (segment, marked)
        };
        let mut used = Used { segments: rows.map(unmarked).collect() };
        let is_whole = used.mark_tables(&image);
        for (place, units) in reader.streams.iter().flatten() {
            used.mark(*place, *units);
        }
        for (place, units) in state.config.leaves().into_iter().flat_map(Leaves::places) {
            used.mark(place, units);
        }
        used.segments.retain(|segment, marked| {
            !emptied.contains(segment)
                && !checkpointer.refused.contains(segment)
                && (is_whole || marked.missing_units == 0)
        });
        let open = checkpointer.superblock();
        Ok(used.holes((open.metadata_segment, open.metadata_block)))
    }

    /// Returns the number of blocks.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Takes `blocks` contiguous blocks; returns the first.
    pub(crate) fn take(&mut self, blocks: u32) -> Option<Place> {
        let at = self.runs.iter().rposition(|run| run.count >= blocks)?;
        let run = &mut self.runs[at];
        let place = Place::of_block(run.segment, run.first);
        run.first += blocks;
        run.count -= blocks;
        self.blocks -= u64::from(blocks);
        if run.count == 0 {
            self.runs.remove(at);
        }
        Some(place)
    }
}

/// Checks that what has changed fits the free segments and the rest of the one where the last
/// checkpoint has ended, or those and the holes.
pub(crate) fn make_sure_it_fits(
    world: &World,
    writer: &mut Writer,
    holes: Option<Holes>,
) -> Result<Option<(Holes, u32)>, StoreError> {
    let free = writer.state.segments.free_for_metadata();
    let leaves_some = |segments: u32| segments.saturating_add(KEPT_SEGMENTS) <= free;
    if holes.is_none() && leaves_some(writer.claim(world).segments) {
        return Ok(None);
    }
    let claim = writer.exact_claim(world);
    if holes.is_none() && leaves_some(claim.segments) {
        return Ok(None);
    }
    // One stays for the log, which continues while the checkpoint is written.
    let openings_max = free.saturating_sub(1);
    let per_segment = u64::from(writer.next_checkpoint.segment_blocks());
    let in_holes = holes.as_ref().map_or(0, Holes::blocks);
    let rest = u64::from(writer.next_checkpoint.rest_blocks());
    let openings = claim.blocks.saturating_sub(rest + in_holes).div_ceil(per_segment);
    match holes {
        Some(holes) if openings <= u64::from(openings_max) => Ok(Some((holes, openings as u32))),
        Some(_) if claim.segments <= free => Ok(None),
        _ => Err(StoreError::NoRoom {
            needed_bytes: claim.blocks * BLOCK_BYTES,
            free_bytes: (rest + u64::from(openings_max) * per_segment + in_holes) * BLOCK_BYTES,
        }),
    }
}

/// The used blocks of a metadata segment, as far as they were found.
struct Marked {
    /// The first address of the segment that is metadata.
    first_block: u32,
    /// How many of its blocks a checkpoint can fill: their copies are after them.
    usable: usize,
    blocks: Vec<bool>,
    /// What is live there and was not found.
    missing_units: u64,
}

/// The used blocks of metadata segments.
struct Used {
    segments: BTreeMap<u32, Marked>,
}

impl Used {
    fn mark(&mut self, place: Place, units: u32) {
        let Some(marked) = self.segments.get_mut(&place.segment) else { return };
        let Marked { first_block, blocks, missing_units, .. } = marked;
        let start = place.offset_units.saturating_sub(*first_block * UNITS_PER_BLOCK);
        let first = (start / UNITS_PER_BLOCK) as usize;
        let end = (start + units).div_ceil(UNITS_PER_BLOCK) as usize;
        let end = end.min(blocks.len());
        blocks[first.min(end)..end].fill(true);
        *missing_units = missing_units.saturating_sub(u64::from(units));
    }

    /// Marks everything that tables use; returns whether all of it could be read.
    fn mark_tables(&mut self, image: &World) -> bool {
        let mut is_whole = true;
        for name in TableName::ALL {
            let (table, has_places) = (image.table(name), name == TableName::Nodes);
            let root = *table.root.read();
            self.mark(root.page.place, PAGE_UNITS);
            if !root.page.place.is_none() {
                is_whole &= self.mark_below(image, table, (root.height, 0), has_places);
            }
        }
        is_whole
    }

    /// Marks what is below a page, as far as it can be read; returns whether all could. Pages of
    /// rows without references are not read.
    fn mark_below(&mut self, image: &World, table: &Table, key: PageKey, has_places: bool) -> bool {
        if key.0 == 0 {
            let mut mark = |raw: &[u8]| {
                if let Some(row) = NodeRow::decode(raw) {
                    self.mark(row.place, NODE_UNITS);
                }
            };
            let first = key.1 * ROWS_PER_PAGE;
            return !has_places
                || table.rows_of_page(&image.medium, first, |_, raw| mark(raw)).is_ok();
        }
        let children = table.read_page(&image.medium, key, |page| {
            let places = |index: u64| PageRef::in_directory(page, index as usize).place;
            (0..REFS_PER_DIRECTORY).map(places).collect::<Vec<Place>>()
        });
        let Ok(children) = children else { return false };
        let mut is_whole = true;
        for (index, place) in (0..).zip(children) {
            if !place.is_none() {
                self.mark(place, PAGE_UNITS);
                let child = (key.0 - 1, key.1 * REFS_PER_DIRECTORY + index);
                is_whole &= self.mark_below(image, table, child, has_places);
            }
        }
        is_whole
    }

    /// Returns the unused blocks of each segment, except at the end of the one in which checkpoints
    /// continue. If metadata has two copies, both locations must be unused: in an upgraded pool,
    /// segments that are not emptied yet have something in both halves.
    fn holes(&self, (open, end): (u32, u32)) -> Holes {
        let mut holes = Holes::default();
        for (segment, Marked { first_block, usable, blocks, .. }) in &self.segments {
            let (firsts, seconds) = blocks.split_at((*usable).min(blocks.len()));
            let seconds = seconds.iter().copied().chain(std::iter::repeat(false));
            let mut used: Vec<bool> = firsts.iter().zip(seconds).map(|(a, b)| a | b).collect();
            if *segment == open {
                used.truncate(end as usize);
            }
            let mut first = *first_block;
            for run in used.chunk_by(|a, b| a == b) {
                let count = run.len() as u32;
                if !run[0] {
                    holes.runs.push(Run { segment: *segment, first, count });
                    holes.blocks += u64::from(count);
                }
                first += count;
            }
        }
        holes
    }
}

const _: () = assert!(UNITS_PER_BLOCK as u64 * PLACE_UNIT_BYTES == BLOCK_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_unmarked_block_is_allocated_once() {
        let unmarked =
            || Marked { first_block: 0, usable: 8, blocks: vec![false; 8], missing_units: 8 };
        let segments = BTreeMap::from([(3, unmarked()), (5, unmarked())]);
        let mut used = Used { segments };
        used.mark(Place { segment: 3, offset_units: 2 * UNITS_PER_BLOCK }, UNITS_PER_BLOCK + 1);
        used.mark(Place { segment: 5, offset_units: UNITS_PER_BLOCK / 2 }, UNITS_PER_BLOCK / 2);
        used.mark(Place { segment: 9, offset_units: 0 }, 1);
        let mut holes = used.holes((5, 4));
        // Blocks 0, 1 and 4 to 7 of segment 3; 1 to 3 of segment 5, where checkpoints go on at 4.
        assert_eq!(holes.blocks(), 9);
        let place = |segment, block: u32| Place { segment, offset_units: block * UNITS_PER_BLOCK };
        assert_eq!(holes.take(4), Some(place(3, 4)));
        assert_eq!(holes.take(4), None);
        let rest: Vec<Place> = std::iter::from_fn(|| holes.take(1)).collect();
        assert_eq!(rest, [place(5, 1), place(5, 2), place(5, 3), place(3, 0), place(3, 1)]);
        assert_eq!(holes.blocks(), 0);
        // With second copies, a block of the first half is free only if that of the second is, too.
        used.segments.values_mut().for_each(|marked| marked.usable = 4);
        let mut holes = used.holes((5, 4));
        used.mark(place(3, 5), 1);
        let rest: Vec<Place> = std::iter::from_fn(|| holes.take(1)).collect();
        assert_eq!(rest, [place(5, 1), place(5, 2), place(5, 3), place(3, 0), place(3, 1)]);
        let mut holes = used.holes((5, 4));
        let rest: Vec<Place> = std::iter::from_fn(|| holes.take(1)).collect();
        assert_eq!(rest, [place(5, 1), place(5, 2), place(5, 3), place(3, 0)]);
    }
}
