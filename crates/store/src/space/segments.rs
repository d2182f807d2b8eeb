//! Which segments are free, and how much of each is live. Owned by the writer.

mod laying;
mod stream;

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Weak};

use format::{FormatVersion, Geometry, Place, SegmentRow, SegmentState};

use crate::StoreError;
use crate::chunks::medium::metadata_blocks;
use crate::space::readers::ReaderToken;
use crate::space::row_pages::RowPages;
use crate::space::tally::Tally;
use crate::space::undiscarded::Undiscarded;
use crate::space::widths::FreeSegments;

/// Freed segments, and who may still read them.
struct Freed {
    readers: [Weak<ReaderToken>; 2],
    segments: Vec<u32>,
}

impl Freed {
    fn is_unread(&self) -> bool {
        self.readers.iter().all(|token| token.strong_count() == 0)
    }
}

/// The segment table.
pub(crate) struct Segments {
    rows: Vec<SegmentRow>,
    free: FreeSegments,
    /// Added to the pool, but not in both superblocks yet: only for metadata.
    fresh: BTreeSet<u32>,
    /// The first segment that is not in both superblocks, if there is one.
    fresh_from: Option<u32>,
    /// Freed, but perhaps still being read: oldest first, log and metadata separately.
    limbo: [VecDeque<Freed>; 2],
    /// Whether metadata written from here on has two copies.
    mirrors: bool,
    /// The pages of the rows; `None` if each checkpoint writes all rows, in a stream.
    pub(crate) pages: Option<RowPages>,
    /// Whether the last checkpoint has them in a stream.
    is_in_stream: bool,
    /// The epoch in which segments are opened now.
    pub(crate) epoch: u64,
    /// The sums over all rows.
    tally: Tally,
    /// Segments opened from this LSN on have no data that counts no unit.
    known_from_lsn: u64,
    /// Segments that count nothing live, but are not empty.
    pub(crate) weightless: BTreeSet<u32>,
    /// Free, and not discarded.
    undiscarded: Undiscarded,
    /// How often all rows were walked.
    #[cfg(test)]
    pub(crate) walks: std::cell::Cell<u64>,
}

/// Up to this many rows are recounted in builds with assertions, at each use of the sums.
const PROVED_ROWS_MAX: usize = 1024;

impl Segments {
    /// Creates a table in which all except segment 0 are free.
    pub(crate) fn new(geometry: Geometry, version: FormatVersion) -> Self {
        let rows = vec![SegmentRow::default(); geometry.segment_count as usize];
        Self {
            rows,
            free: FreeSegments::new(1..geometry.segment_count),
            fresh: BTreeSet::new(),
            fresh_from: None,
            limbo: Default::default(),
            mirrors: version.mirrors_metadata(),
            pages: None,
            is_in_stream: false,
            epoch: 0,
            tally: Tally::new(metadata_blocks(geometry, version)),
            known_from_lsn: 0,
            weightless: BTreeSet::new(),
            undiscarded: Undiscarded::default(),
            #[cfg(test)]
            walks: std::cell::Cell::default(),
        }
    }

    /// Switches to two copies of metadata.
    pub(crate) fn upgraded(&mut self, geometry: Geometry) {
        self.mirrors = true;
        self.fill_with(metadata_blocks(geometry, FormatVersion::V3));
    }

    /// Returns the segments of metadata with one copy that should have two, and are to be emptied
    /// for that.
    pub(crate) fn of_one_copy(&self) -> impl Iterator<Item = (u32, SegmentRow)> + '_ {
        let segments = self.tally.of_one_copy.iter().filter(|_| self.mirrors);
        segments.map(|segment| (*segment, self.row(*segment))).filter(|(_, row)| row.live_units > 0)
    }

    fn set_row(&mut self, segment: u32, row: SegmentRow) {
        let old = std::mem::replace(&mut self.rows[segment as usize], row);
        self.tally.change(segment, old, row);
        if let Some(pages) = &mut self.pages {
            pages.change(segment);
        }
    }

    /// Returns the sums over all rows, without walking them.
    pub(crate) fn tally(&self) -> &Tally {
        debug_assert!(self.rows.len() > PROVED_ROWS_MAX || self.tally.is_of(self.all_rows()));
        &self.tally
    }

    /// Adds rows up to `segment_count`. Until [`Segments::open_up`] only metadata may go to these
    /// segments: the superblock of the checkpoint that writes there knows them, but a record may be
    /// found from an older one.
    pub(crate) fn extend(&mut self, segment_count: u32) {
        self.fresh_from.get_or_insert(self.rows.len() as u32);
        self.fresh.extend(self.rows.len() as u32..segment_count);
        self.rows.resize(segment_count as usize, SegmentRow::default());
    }

    /// Undoes the last [`Segments::extend`]; returns `false` if one of the segments was used.
    pub(crate) fn shrink(&mut self, segment_count: u32) -> bool {
        let mut added = self.rows[segment_count as usize..].iter();
        if added.any(|row| row.state != SegmentState::Free) {
            return false;
        }
        self.fresh.split_off(&segment_count);
        self.fresh_from = self.fresh_from.filter(|first| *first < segment_count);
        self.rows.truncate(segment_count as usize);
        true
    }

    /// Allows all added segments to be opened for anything.
    pub(crate) fn open_up(&mut self) {
        let fresh = std::mem::take(&mut self.fresh);
        fresh.into_iter().for_each(|segment| self.free.insert(segment));
        self.fresh_from = None;
    }

    /// Discards segments from here on when they are free ([`Segments::take_to_discard`]).
    pub(crate) fn enable_discard(&mut self) {
        self.undiscarded.enable(self.free.segments());
    }

    /// Returns whether [`Segments::take_to_discard`] would return a segment.
    pub(crate) fn has_to_discard(&mut self, spare: u32) -> bool {
        self.free_count() > spare && self.undiscarded.last_in(self.free.segments()).is_some()
    }

    /// Takes out a free segment to discard, as long as more than `spare` are free;
    /// [`Segments::discarded`] puts it back.
    pub(crate) fn take_to_discard(&mut self, spare: u32) -> Option<u32> {
        if self.free_count() <= spare {
            return None;
        }
        let segment = self.undiscarded.last_in(self.free.segments())?;
        self.free.remove(segment);
        self.undiscarded.remove(segment);
        Some(segment)
    }

    /// Puts back a discarded segment. If the device does not support discarding, there are no more.
    pub(crate) fn discarded(&mut self, segment: u32, is_supported: bool) {
        assert_eq!(self.row(segment).state, SegmentState::Free, "opened during a discard");
        self.free.insert(segment);
        if !is_supported {
            self.undiscarded.disable();
        }
    }

    /// Makes a freed segment available again, for what it could be before.
    fn offer(&mut self, segment: u32) {
        self.undiscarded.freed(segment);
        let is_fresh = self.fresh_from.is_some_and(|first| segment >= first);
        if is_fresh {
            self.fresh.insert(segment);
        } else {
            self.free.insert(segment);
        }
    }

    /// Frees segments at once that were opened for metadata that was not written: nothing refers to
    /// a place in them, and nothing has read one.
    pub(crate) fn give_back(&mut self, segments: impl IntoIterator<Item = u32>) {
        for segment in segments {
            assert_eq!(self.row(segment).live_units, 0, "a live segment was given back");
            self.set_row(segment, SegmentRow::default());
            self.offer(segment);
        }
    }

    /// Returns how many segments a checkpoint can open now.
    pub(crate) fn free_for_metadata(&mut self) -> u32 {
        self.free_count() + self.fresh.len() as u32
    }

    /// Returns the number of segments, including segment 0.
    pub(crate) fn count(&self) -> u32 {
        self.rows.len() as u32
    }

    /// Returns the rows of these segments, as far as they exist.
    pub(crate) fn rows_in(&self, segments: std::ops::Range<u64>) -> &[SegmentRow] {
        let end = segments.end.min(self.rows.len() as u64) as usize;
        self.rows.get(segments.start as usize..end).unwrap_or(&[])
    }

    /// Returns the row of a segment.
    pub(crate) fn row(&self, segment: u32) -> SegmentRow {
        self.rows[segment as usize]
    }

    /// Returns how many whole segments those that can be opened now make up.
    pub(crate) fn free_count(&mut self) -> u32 {
        self.reap();
        self.free.whole_count()
    }

    /// Returns whether no segment can be opened now.
    pub(crate) fn is_none_free(&mut self) -> bool {
        self.reap();
        self.free.is_empty()
    }

    /// Returns how many segments are neither free nor being freed.
    pub(crate) fn used_count(&self) -> u32 {
        self.tally.used
    }

    /// Returns the live bytes of log segments: volume data.
    pub(crate) fn live_log_bytes(&self) -> u64 {
        self.tally.live_log_units * format::PLACE_UNIT_BYTES
    }

    /// Returns the live bytes of all segments: volume data, and both copies of metadata.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.tally.live_units * format::PLACE_UNIT_BYTES
    }

    /// Opens a free segment, the lowest (so that the same history gives the same locations).
    pub(crate) fn open(&mut self, state: SegmentState, lsn: u64) -> Option<u32> {
        self.reap();
        let fresh = if state == SegmentState::Metadata { self.fresh.pop_first() } else { None };
        let segment = fresh.or_else(|| self.free.pop_first())?;
        self.undiscarded.remove(segment);
        let mirrored = self.mirrors && state == SegmentState::Metadata;
        self.set_row(segment, SegmentRow { mirrored, ..opened(state, (lsn, self.epoch)) });
        Some(segment)
    }

    /// Reopens a segment during recovery that was opened after the checkpoint, because a record of
    /// this number and epoch names it: all that is in it is of that epoch or a later one. It was
    /// free in the checkpoint, or dead: then it was freed after the checkpoint, and may have been
    /// reused for something else.
    pub(crate) fn reopen(&mut self, segment: u32, state: SegmentState, record: (u64, u64)) {
        let row = self.row(segment);
        let was_free = self.free.remove(segment);
        if was_free || row.state != state && row.live_units == 0 {
            self.set_row(segment, opened(state, record));
        }
    }

    /// Reserves a segment in which the log that is still to be replayed continues, from this record
    /// on. It was free when the log took it, so nothing in it is live.
    pub(crate) fn reserve_for_log(&mut self, segment: u32, record: (u64, u64)) {
        let Some(row) = self.rows.get(segment as usize) else { return };
        if row.live_units == 0 {
            self.free.remove(segment);
            self.set_row(segment, opened(SegmentState::Log, record));
        }
    }

    /// Counts stored bytes as live.
    pub(crate) fn add_live(&mut self, place: Place, units: u32) -> Result<(), StoreError> {
        self.count_live(place, |live| live.checked_add(units))
    }

    /// Counts stored bytes as dead.
    pub(crate) fn sub_live(&mut self, place: Place, units: u32) -> Result<(), StoreError> {
        self.count_live(place, |live| live.checked_sub(units))
    }

    /// Locations and counts come from the medium: an impossible one is damage with a valid
    /// checksum, and must not cause a panic.
    fn count_live(
        &mut self,
        place: Place,
        change: impl FnOnce(u32) -> Option<u32>,
    ) -> Result<(), StoreError> {
        let row = self.rows.get(place.segment as usize);
        let counted = row.and_then(|row| Some((change(row.live_units)?, *row)));
        let Some((live_units, row)) = counted else {
            let text = format!("segment {} has a wrong count of live bytes", place.segment);
            return Err(StoreError::Damaged(text));
        };
        self.set_row(place.segment, SegmentRow { live_units, ..row });
        Ok(())
    }

    /// Records that in segments opened from here on each chunk is counted.
    pub(crate) fn know_from(&mut self, lsn: u64) {
        self.known_from_lsn = lsn;
    }

    /// Returns whether everything live in a segment is counted: it has metadata, or what was
    /// written since the pool was opened.
    pub(crate) fn is_known(&self, segment: u32) -> bool {
        let row = self.rows[segment as usize];
        row.state != SegmentState::Log || row.opened_lsn >= self.known_from_lsn
    }

    /// Returns the segments without live data, except those in `keep`.
    pub(crate) fn dead(&self, keep: &BTreeSet<u32>) -> Vec<u32> {
        let dead = self.tally().empty.range(1..);
        dead.filter(|segment| !keep.contains(segment) && !self.weightless.contains(segment))
            .copied()
            .collect()
    }

    /// Frees segments once the readers that hold `readers` (an earlier token) are gone, and for
    /// metadata those that hold `images` as well.
    pub(crate) fn free(
        &mut self,
        segments: Vec<u32>,
        readers: &Arc<ReaderToken>,
        images: &Arc<ReaderToken>,
    ) {
        let is_metadata =
            |segment: &u32| self.rows[*segment as usize].state == SegmentState::Metadata;
        let (metadata, log): (Vec<u32>, Vec<u32>) = segments.iter().partition(|s| is_metadata(s));
        for &segment in &segments {
            assert_eq!(self.rows[segment as usize].live_units, 0, "a live segment was freed");
            self.set_row(segment, SegmentRow::default());
        }
        let readers = Arc::downgrade(readers);
        let images = Arc::downgrade(images);
        let [of_log, of_metadata] = &mut self.limbo;
        of_log.push_back(Freed { readers: [readers.clone(), Weak::new()], segments: log });
        of_metadata.push_back(Freed { readers: [readers, images], segments: metadata });
    }

    /// Frees a segment that the checkpoint with which a pool was opened has freed, if nothing has
    /// become live in it since. Nobody reads it.
    pub(crate) fn free_dead_one(&mut self, segment: u32) {
        let row = self.row(segment);
        if row.state != SegmentState::Free && row.live_units == 0 {
            self.set_row(segment, SegmentRow::default());
            self.free.insert(segment);
        }
    }

    /// Returns how many freed metadata segments wait for their readers.
    pub(crate) fn metadata_in_limbo(&mut self) -> usize {
        self.reap();
        self.limbo[1].iter().map(|freed| freed.segments.len()).sum()
    }

    /// Returns whether freed segments wait for readers.
    pub(crate) fn awaits_readers(&mut self) -> bool {
        self.reap();
        self.limbo.iter().flatten().any(|freed| !freed.segments.is_empty())
    }

    fn reap(&mut self) {
        let mut ready = Vec::new();
        for limbo in &mut self.limbo {
            while limbo.front().is_some_and(Freed::is_unread)
                && let Some(freed) = limbo.pop_front()
            {
                ready.extend(freed.segments);
            }
        }
        ready.into_iter().for_each(|segment| self.offer(segment));
    }

    /// Returns all segments with their live units. For 65,536 of them this takes some tenths of a
    /// millisecond: under the writer's lock it may be done only once per whole segment.
    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = (u32, SegmentRow)> + '_ {
        #[cfg(test)]
        self.walks.set(self.walks.get() + 1);
        self.all_rows()
    }

    pub(crate) fn all_rows(&self) -> impl ExactSizeIterator<Item = (u32, SegmentRow)> + '_ {
        self.rows.iter().enumerate().map(|(index, row)| (index as u32, *row))
    }
}

/// Returns the row of a segment opened by a record of this number and epoch, or by a checkpoint
/// after it.
fn opened(state: SegmentState, (opened_lsn, opened_epoch): (u64, u64)) -> SegmentRow {
    SegmentRow { state, opened_lsn, opened_epoch, ..SegmentRow::default() }
}

#[cfg(test)]
mod tests;
