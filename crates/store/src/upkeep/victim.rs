//! Choosing the segment of the log that reclaim empties next, and reading it while the previous one
//! is emptied.

use std::collections::VecDeque;

use format::geometry::UNITS_PER_BLOCK;
use format::{PLACE_UNIT_BYTES, SegmentRow, SegmentState};

use crate::chunks::groups::Image;
use crate::chunks::medium::Medium;
use crate::chunks::verify::Stored;
use crate::upkeep::Store;
use crate::upkeep::read_ahead::ReadAhead;
use crate::upkeep::relocate::SegmentReader;
use crate::writer::Writer;

/// A segment being emptied.
pub(super) struct Victim {
    pub(super) segment: u32,
    pub(super) opened_lsn: u64,
    /// Its live units when it was chosen.
    pub(super) live_units: u64,
    pub(super) dead_units: u64,
    pub(super) live: VecDeque<Stored>,
    /// Its content.
    pub(super) image: Image,
    /// Whether the next one to empty was searched.
    is_next_sought: bool,
}

impl Store {
    /// Reads a part of the segment that is to be emptied next: as large a fraction as that of
    /// `victim` that was just moved. So hosts that wait for what moves gain never wait for reading
    /// a whole segment. Not if more than seven eighths of it are live: little is gained there, and
    /// another may be better by then.
    pub(super) fn read_ahead(
        &self,
        victim: &mut Victim,
        next: &mut Option<SegmentReader>,
        live_units_max: u64,
        moved_blocks: usize,
        ahead: &mut ReadAhead,
    ) {
        if next.is_none() && !std::mem::replace(&mut victim.is_next_sought, true) {
            let geometry = self.world.medium.geometry();
            let most = live_units_max.min(geometry.segment_bytes() / PLACE_UNIT_BYTES / 8 * 7);
            let but = Some(victim.segment);
            let least = self.writer.lock().least_live(&self.world.medium, most, but);
            *next = least.map(|(segment, row)| SegmentReader::new(segment, row.opened_lsn));
        }
        let Some(next) = next else { return };
        let live_blocks = (victim.live_units / u64::from(UNITS_PER_BLOCK)).max(1);
        let geometry = self.world.medium.geometry_of(victim.segment);
        let part = u64::from(geometry.blocks_per_segment()) * moved_blocks as u64;
        let part = part.div_ceil(live_blocks);
        next.read_some(&self.world.medium, ahead, part.try_into().unwrap_or(u32::MAX));
    }

    /// Returns what was read ahead, if it is still worth emptying; otherwise the log segment with
    /// the least live data. One with unreadable records is left alone.
    pub(super) fn choose_victim(
        &self,
        live_units_max: u64,
        mut begun: Option<SegmentReader>,
        ahead: &mut ReadAhead,
    ) -> Option<Victim> {
        loop {
            let read = begun.take().and_then(|read| self.still_worth_it(read, live_units_max));
            let (row, next) = match read {
                Some(read) => read,
                None => {
                    let writer = self.writer.lock();
                    let (segment, row) =
                        writer.least_live(&self.world.medium, live_units_max, None)?;
                    (row, SegmentReader::new(segment, row.opened_lsn))
                }
            };
            let victim = self.victim_of(row, next, ahead);
            if victim.is_some() {
                return victim;
            }
        }
    }

    /// Returns a segment of the log with its live chunks; `None`, and it is left alone, if its
    /// records can't be read.
    pub(super) fn victim_of(
        &self,
        row: SegmentRow,
        reader: SegmentReader,
        ahead: &mut ReadAhead,
    ) -> Option<Victim> {
        let (segment, opened_lsn) = (reader.segment, reader.opened_lsn);
        let Ok((live, image)) = reader.finish(&self.world, ahead) else {
            self.writer.lock().supply.leave_alone(segment);
            return None;
        };
        let live_units = u64::from(row.live_units);
        let segment_bytes = self.world.medium.geometry_of(segment).segment_bytes();
        let dead_units = (segment_bytes / PLACE_UNIT_BYTES).saturating_sub(live_units);
        let (live, is_next_sought) = (live.into(), false);
        Some(Victim { segment, opened_lsn, live_units, dead_units, live, image, is_next_sought })
    }

    /// Returns what was read ahead, unless the segment was reused, or is no longer worth emptying.
    fn still_worth_it(
        &self,
        read: SegmentReader,
        live_units_max: u64,
    ) -> Option<(SegmentRow, SegmentReader)> {
        let writer = self.writer.lock();
        let row = writer.state.segments.row(read.segment);
        let is_it = row.state == SegmentState::Log && row.opened_lsn == read.opened_lsn;
        let live_units = self.world.medium.as_of_whole(read.segment, row.live_units);
        let is_worth_it = (1..live_units_max).contains(&live_units)
            && !writer.supply.is_unreclaimable(read.segment);
        (is_it && is_worth_it).then_some((row, read))
    }
}

impl Writer {
    /// Returns the log segment with the fewest live units, relative to its width, if those are less
    /// than `most` of a whole one. Segments that recovery would read stay, and so does `but`; those
    /// that are nearly all live are not worth moving. This walks all rows, once for each segment
    /// that is emptied: other conditions are checked only for segments with less live data than all
    /// before.
    fn least_live(
        &self,
        medium: &Medium,
        most: u64,
        but: Option<u32>,
    ) -> Option<(u32, SegmentRow)> {
        let weightless = &self.state.segments.weightless;
        let mut least: Option<(u64, (u32, SegmentRow))> = None;
        for (segment, row) in self.state.segments.rows() {
            if row.state != SegmentState::Log || Some(segment) == but {
                continue;
            }
            let live_units = medium.as_of_whole(segment, row.live_units);
            if least.is_none_or(|(found, _)| live_units < found)
                && ((1..most).contains(&live_units) || weightless.contains(&segment))
                && !self.log.segments().contains(&segment)
                && !self.supply.is_unreclaimable(segment)
            {
                least = Some((live_units, (segment, row)));
            }
        }
        least.map(|(_, least)| least)
    }
}
