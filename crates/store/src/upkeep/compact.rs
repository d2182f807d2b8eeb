//! Compaction of scattered metadata. Each checkpoint writes changed metadata to a new location, and
//! unchanged metadata keeps whole segments from being freed. If that adds up, and free segments run
//! short, what is left in such segments is marked as changed, a little at a time, so that the next
//! checkpoint writes it elsewhere: to free segments or, if these are few, to the holes of other
//! metadata segments (`holes`). A pass without gain is not repeated at once.
//!
//! In an upgraded pool, segments whose metadata has one copy are emptied in the same way.

use std::collections::{BTreeMap, BTreeSet};

use block::BLOCK_BYTES;
use format::geometry::UNITS_PER_BLOCK;
use format::page::{PageRef, REFS_PER_DIRECTORY, ROWS_PER_PAGE};
use format::{NodeId, NodeRow, PLACE_UNIT_BYTES, Place};

use crate::StoreError;
use crate::checkpoint::holes::KEPT_SEGMENTS;
use crate::chunks::pages::PageKey;
use crate::chunks::table_name::TableName;
use crate::upkeep::Store;
use crate::world::view::View;
use crate::writer::Writer;

/// How many pages of references one turn examines.
const PAGES_PER_TURN: usize = 16;
/// The maximum units of 64 bytes that one pass moves: 64 MiB.
pub(super) const MOVED_UNITS_MAX: u64 = 1 << 20;

/// A pass over all references to metadata.
pub(crate) struct Compactor {
    /// The segments that are to be emptied, and when they were opened.
    segments: BTreeMap<u32, u64>,
    /// Pages with references to others that are still to be examined: the table, and the page.
    pages: Vec<(TableName, PageKey)>,
    /// Leaves of the key-value space that are still to be rewritten.
    leaves: Vec<u64>,
    /// The number of segments in use when it began, and of those of metadata with one copy that
    /// should have two.
    used_before: u32,
    of_one_copy_before: usize,
    /// Whether they are emptied to change their layout, which gains no segment.
    is_to_lay: bool,
}

/// The result of a turn of marking.
enum Marked {
    /// There is nothing to move.
    Nothing,
    /// A part was marked, or there was no room for more.
    Some,
    /// Everything to move is marked.
    All,
}

impl Compactor {
    fn empties(&self, place: Place) -> bool {
        !place.is_none() && self.segments.contains_key(&place.segment)
    }
}

impl Store {
    /// Does one turn of emptying metadata segments, if enough of them are nearly empty. Returns
    /// whether there was anything to do.
    ///
    /// # Errors
    /// Those of a checkpoint. What can't be read keeps its location.
    pub(crate) fn compact_turn(&self, pass: &mut Option<Compactor>) -> Result<bool, StoreError> {
        match self.mark_turn(pass) {
            Marked::Nothing => return Ok(false),
            Marked::Some => {}
            Marked::All => self.checkpoint_behind(pass)?,
        }
        Ok(true)
    }

    /// Writes a checkpoint that is due in any case, and with it what is left in nearly empty
    /// metadata segments. A separate checkpoint would rewrite what hosts have changed since, which
    /// is most of it.
    ///
    /// # Errors
    /// Those of a checkpoint.
    pub(crate) fn checkpoint_compacting(
        &self,
        pass: &mut Option<Compactor>,
    ) -> Result<(), StoreError> {
        loop {
            match self.mark_turn(pass) {
                Marked::All => return self.checkpoint_behind(pass),
                Marked::Some if !self.must_write_first() => self.worked_a_turn(),
                // The rest of it follows after that.
                Marked::Some | Marked::Nothing => return self.checkpoint(),
            }
        }
    }

    /// Marks a part of what a pass moves; begins a pass if there is none.
    fn mark_turn(&self, pass: &mut Option<Compactor>) -> Marked {
        if pass.is_some() && self.writer.lock().supply.compacted().is_empty() {
            // A checkpoint needed the holes of the segments to be emptied.
            *pass = None;
            self.writer.lock().rest_from_compaction();
            return Marked::Some;
        }
        if pass.is_none() {
            *pass = self.begin_compaction();
        }
        let Some(compactor) = pass else { return Marked::Nothing };
        for _ in 0..PAGES_PER_TURN {
            if self.must_write_first() {
                return Marked::Some;
            }
            if let Some(leaf) = compactor.leaves.pop() {
                self.write_leaves_anew(&BTreeSet::from([leaf]));
                continue;
            }
            let Some((table, key)) = compactor.pages.pop() else { break };
            if key.0 == 0 {
                self.write_nodes_anew(compactor, key.1);
            } else {
                self.write_pages_anew(compactor, table, key);
            }
        }
        match compactor.pages.is_empty() && compactor.leaves.is_empty() {
            true => Marked::All,
            false => Marked::Some,
        }
    }

    /// Ends a pass by writing everything that was marked.
    fn checkpoint_behind(&self, pass: &mut Option<Compactor>) -> Result<(), StoreError> {
        let Some(compactor) = pass.take() else { return Ok(()) };
        let Compactor { segments, used_before, of_one_copy_before, is_to_lay, .. } = compactor;
        let result = self.checkpoint();
        let mut writer = self.writer.lock();
        let is_given_up = writer.supply.end_compaction().is_empty();
        result?;
        if !is_given_up {
            writer.leave_alone(&segments);
        }
        let has_gained = is_to_lay
            || writer.state.segments.used_count() < used_before
            || writer.state.segments.of_one_copy().count() < of_one_copy_before;
        if is_given_up || !has_gained {
            writer.rest_from_compaction();
        }
        Ok(())
    }

    fn begin_compaction(&self) -> Option<Compactor> {
        // While a checkpoint is written, it is not known where the next one continues.
        let open = self.checkpointing.try_lock()?.superblock().metadata_segment;
        let mut compactor = {
            let mut writer = self.writer.lock();
            let to_lay = self.world.medium.disk.to_lay_anew().unwrap_or_default();
            let to_lay = writer.metadata_to_lay(&to_lay, open, self.metadata_units());
            let is_to_lay = !to_lay.is_empty();
            let segments = match is_to_lay {
                true => to_lay,
                false => writer.scattered(open, self.metadata_units())?,
            };
            writer.supply.begin_compaction(segments.keys().copied().collect());
            let used_before = writer.state.segments.used_count();
            let of_one_copy_before = writer.state.segments.of_one_copy().count();
            let leaves = writer.state.config.leaves();
            let leaves = leaves.map_or_else(Vec::new, |leaves| {
                leaves.numbers_in(|place| segments.contains_key(&place.segment))
            });
            let pages = Vec::new();
            Compactor { segments, pages, leaves, used_before, of_one_copy_before, is_to_lay }
        };
        for name in TableName::ALL {
            let table = self.world.table(name);
            let root = *table.root.read();
            let key = (root.height, 0);
            if compactor.empties(root.page.place) {
                self.write_page_anew(name, key);
            }
            if root.height > 0 || name == TableName::Nodes {
                compactor.pages.push((name, key));
            }
        }
        Some(compactor)
    }

    /// Returns whether a checkpoint is due before more is marked. That jobs wait for its room does
    /// not count as long as there is plenty; otherwise each page would have its own checkpoint.
    fn must_write_first(&self) -> bool {
        let mut writer = self.writer.lock();
        let claim = writer.claim(&self.world).segments.saturating_add(KEPT_SEGMENTS);
        self.checkpoint_due_of(&mut writer)
            && (claim > writer.state.segments.free_for_metadata()
                || self.world.memory.is_checkpoint_due())
    }

    /// Returns how many units of 64 bytes of metadata fit a segment.
    pub(crate) fn metadata_units(&self) -> u64 {
        u64::from(self.world.medium.metadata_blocks()) * BLOCK_BYTES / PLACE_UNIT_BYTES
    }

    /// Does one turn of rewriting metadata for the latest version, in an upgraded pool. Returns
    /// whether there was anything to do.
    pub(crate) fn mirror_turn(&self) -> Result<bool, StoreError> {
        if self.writer.lock().is_dividing_due(&self.world) {
            self.checkpoint()?;
            return Ok(true);
        }
        let reclaimer = &mut *self.reclaiming.lock();
        let is_due = || self.writer.lock().is_mirroring_due(self.metadata_units());
        Ok((reclaimer.compaction.is_some() || is_due())
            && self.compact_turn(&mut reclaimer.compaction)?)
    }

    /// Examines the pages that a directory refers to; queues those that refer to others.
    fn write_pages_anew(
        &self,
        compactor: &mut Compactor,
        name: TableName,
        (level, number): PageKey,
    ) {
        let table = self.world.table(name);
        let below = |page: &[u8]| -> Vec<(PageKey, Place)> {
            let children = 0..REFS_PER_DIRECTORY;
            let key = |child| (level - 1, number * REFS_PER_DIRECTORY + child);
            let place = |child: u64| PageRef::in_directory(page, child as usize).place;
            children.map(|child| (key(child), place(child))).collect()
        };
        let Ok(below) = table.read_page(&self.world.medium, (level, number), below) else { return };
        for (key, place) in &below {
            if !compactor.empties(*place) {
                continue;
            }
            if self.must_write_first() {
                // The rest of it follows after that.
                compactor.pages.push((name, (level, number)));
                return;
            }
            self.write_page_anew(name, *key);
        }
        if level > 1 || name == TableName::Nodes {
            let there = below.into_iter().filter(|(_, place)| !place.is_none());
            compactor.pages.extend(there.map(|(key, _)| (name, key)));
        }
    }

    /// Has the next checkpoint write a page to a new location; returns `false` if it can't be read.
    pub(crate) fn write_page_anew(&self, name: TableName, (level, number): PageKey) -> bool {
        if (name, level) == (TableName::Segments, 0) {
            // Memory has its whole content.
            self.writer.lock().state.segments.change_page(number);
            return true;
        }
        let table = self.world.table(name);
        let plan = self.world.memory.plans.hold();
        let view = View::from(&self.world).planning(plan.number);
        let height = table.root.read().height;
        // It is read, with all above it, before the lock is taken.
        let are_read = (level..=height).all(|above| {
            let number = number / REFS_PER_DIRECTORY.pow(u32::from(above - level));
            table.read_page(view.medium, (above, number), |_| ()).is_ok()
        });
        let _writer = self.writer.lock();
        are_read && table.write_anew((level, number))
    }

    /// Has the next checkpoint write leaves of the key-value space to new locations; returns which
    /// of them still exist.
    pub(crate) fn write_leaves_anew(&self, numbers: &BTreeSet<u64>) -> Vec<u64> {
        let mut writer = self.writer.lock();
        let leaves = writer.state.config.leaves_mut();
        leaves.map_or_else(Vec::new, |leaves| leaves.write_anew(numbers))
    }

    /// Does the same as [`Store::write_page_anew`] for a node.
    pub(crate) fn write_node_anew(&self, id: NodeId) -> bool {
        let plan = self.world.memory.plans.hold();
        let view = View::from(&self.world).planning(plan.number);
        let is_read = self.world.nodes.find(view.medium, id).is_ok();
        let _writer = self.writer.lock();
        is_read && self.world.nodes.write_anew(&self.world.medium, id)
    }

    /// Examines the nodes in a page of node rows.
    fn write_nodes_anew(&self, compactor: &Compactor, number: u64) {
        let (nodes, medium) = (&self.world.nodes, &self.world.medium);
        let first = number * ROWS_PER_PAGE;
        let mut found = Vec::new();
        let rows = nodes.table.rows_of_page(medium, first, |at, raw| {
            let row = NodeRow::decode(raw).filter(|row| compactor.empties(row.place));
            found.extend(row.map(|_| NodeId(first + at)));
        });
        for id in found.into_iter().filter(|_| rows.is_ok()) {
            self.write_node_anew(id);
        }
    }
}

impl Writer {
    /// Returns segments of metadata with one copy that should have two, and when they were opened:
    /// as many as fit a quarter of the free space.
    fn of_one_copy(&mut self, segment_units: u64) -> impl Iterator<Item = (u32, u64)> + '_ {
        let rests = self.supply.does_compaction_rest(self.log.written().log_bytes);
        let free = u64::from(self.state.segments.free_count());
        let mut room_units =
            free.saturating_sub(u64::from(self.left_by_data())) * segment_units / 4;
        if rests || self.has_failed() {
            room_units = 0;
        }
        let mut moved_units = 0;
        let fitting = self.state.segments.of_one_copy().take_while(move |(_, row)| {
            moved_units += u64::from(row.live_units);
            moved_units <= room_units
        });
        let chosen = fitting.filter(|(segment, _)| !self.supply.is_unreclaimable(*segment));
        chosen.map(|(segment, row)| (segment, row.opened_lsn))
    }

    /// Returns whether there is metadata with one copy that should have two, and room for it.
    pub(crate) fn is_mirroring_due(&mut self, segment_units: u64) -> bool {
        self.of_one_copy(segment_units).next().is_some()
    }

    /// Pauses compaction after a pass without gain until more was written.
    fn rest_from_compaction(&mut self) {
        let log_bytes = self.log.written().log_bytes + self.eighth_segment_bytes();
        self.supply.rest_from_compaction(log_bytes);
    }

    /// Excludes segments that were emptied as far as possible: what is left in them is damaged.
    fn leave_alone(&mut self, segments: &BTreeMap<u32, u64>) {
        let rows = &self.state.segments;
        let left = segments.iter().filter(|(segment, opened_lsn)| {
            let row = rows.row(**segment);
            row.live_units > 0 && row.opened_lsn == **opened_lsn
        });
        left.for_each(|(segment, _)| self.supply.leave_alone(*segment));
    }

    /// Returns the metadata segments of which less than half is live, the emptiest first, as many
    /// as fit a pass, if it would free more than it takes; without `open`, where checkpoints
    /// continue. If jobs wait for space, those of which less than seven eighths are live, as many
    /// as fit the free space.
    fn scattered(&mut self, open: u32, segment_units: u64) -> Option<BTreeMap<u32, u64>> {
        let of_one_copy: BTreeMap<u32, u64> = self.of_one_copy(segment_units).collect();
        if !of_one_copy.is_empty() {
            return Some(of_one_copy);
        }
        if self.supply.does_compaction_rest(self.log.written().log_bytes) {
            return None;
        }
        let starving = self.queues.has_starved();
        let most = if starving { segment_units / 8 * 7 } else { segment_units / 2 };
        let table = &self.state.segments;
        let rows = table.tally().metadata.iter().map(|segment| (*segment, table.row(*segment)));
        let rows = rows.filter(|(segment, row)| {
            *segment != open
                && !self.supply.is_unreclaimable(*segment)
                && (1..most).contains(&u64::from(row.live_units))
        });
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable_by_key(|(_, row)| row.live_units);
        let mut holes_units = self.next_checkpoint.holes_blocks() * u64::from(UNITS_PER_BLOCK);
        let free = u64::from(self.state.segments.free_count());
        let free_units = free.saturating_sub(1) * segment_units;
        let mut moved_units = 0;
        let mut count = 0;
        for (_, row) in &rows {
            let moved = moved_units + u64::from(row.live_units);
            let holes = holes_units.saturating_sub(segment_units - u64::from(row.live_units));
            // Moving changes the row with the location, and the directories above that.
            let fits = 3 * moved <= holes || moved <= free_units;
            if moved > MOVED_UNITS_MAX || starving && !fits {
                break;
            }
            (moved_units, holes_units, count) = (moved, holes, count + 1);
        }
        rows.truncate(count);
        let in_holes = free <= u64::from(self.left_by_data()) && 3 * moved_units <= holes_units;
        let gains = count > 0 && in_holes || count as u64 > moved_units.div_ceil(segment_units);
        let opened = rows.into_iter().map(|(segment, row)| (segment, row.opened_lsn));
        (gains && !self.has_failed()).then(|| opened.collect())
    }
}
