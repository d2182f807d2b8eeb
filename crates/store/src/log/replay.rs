//! Finding the records of the log in sequence.

use std::collections::BTreeSet;
use std::sync::Arc;

use format::log::LogPosition;
use format::{Entry, RecordHeader, RecordPlaces};

use crate::StoreError;
use crate::chunks::medium::Medium;
use crate::log::log_reader::{LogReader, ReadRecord};
use crate::log::plausible::{check_record, payload_is_intact};

/// A record that was found, and its location.
pub(crate) struct Found {
    pub(crate) at: LogPosition,
    pub(crate) header: RecordHeader,
    pub(crate) entries: Vec<Entry>,
    /// What the next record has a copy of.
    pub(crate) own: Arc<[u8]>,
    /// The location of its blocks.
    pub(crate) places: RecordPlaces,
}

impl Found {
    /// Returns a record found at a position, if it is plausible.
    pub(crate) fn at(
        medium: &Medium,
        at: LogPosition,
        found: ReadRecord,
    ) -> Result<Self, StoreError> {
        let geometry = medium.geometry_of(at.segment);
        let ReadRecord { header, entries, own } = found;
        check_record(geometry, &header, &entries)?;
        let at = LogPosition { next_segment: header.next_segment, ..at };
        let blocks = (u32::from(header.header_blocks), header.payload_blocks);
        let places = RecordPlaces::new(geometry, &at, blocks);
        Ok(Self { at, header, entries, own, places })
    }

    /// Returns where the next record must be.
    pub(crate) fn behind(&self) -> LogPosition {
        LogPosition {
            block: self.at.block + self.places.rows(),
            lsn: self.header.lsn + 1,
            previous: self.header.seal,
            ..self.at
        }
    }
}

/// At the end of the log: checks that no later record proves that a missing one was flushed. A
/// crash can't cause that; a damaged record does, and must not pass for the end.
pub(crate) fn no_record_is_lost(
    reader: &mut LogReader<'_>,
    end: &LogPosition,
) -> Result<(), StoreError> {
    if reader.is_end(end) {
        return Ok(());
    }
    let Some(witness) = find_witness(reader, end) else { return Ok(()) };
    Err(StoreError::Damaged(format!(
        "record {} of the log was flushed but can't be read, at block {} of segment {} or at the \
         start of segment {}; record {} is there and proves it",
        end.lsn, end.block, end.segment, end.next_segment, witness.lsn
    )))
}

/// Returns the first record after `end` that proves that the record missing there was flushed.
pub(crate) fn find_witness(reader: &mut LogReader<'_>, end: &LogPosition) -> Option<RecordHeader> {
    let mut witness = None;
    search_behind(reader, end, &mut |header| {
        witness = (header.flushed_lsn >= end.lsn).then_some(*header);
        witness.is_some()
    });
    witness
}

/// Calls `visit` for each record found after `end`, where one is missing, until it returns true;
/// returns the segments that were searched.
///
/// The missing record is either here or the first of the next segment, and its successors are after
/// it, or in a segment that a later record names. All of that is searched, to the last block,
/// because a record that is not found proves nothing. Older records that are still there have lower
/// LSNs, and those of an abandoned epoch don't say that so much was flushed.
pub(crate) fn search_behind(
    reader: &mut LogReader<'_>,
    end: &LogPosition,
    visit: &mut dyn FnMut(&RecordHeader) -> bool,
) -> BTreeSet<u32> {
    let rows = reader.medium.geometry().rows();
    let mut seen = BTreeSet::from([end.segment, end.next_segment]);
    let mut search = vec![(end.next_segment, 0), (end.segment, end.block)];
    while let Some((segment, first)) = search.pop() {
        for block in first..rows {
            // What can't be read proves nothing.
            let Ok(Some(header)) = reader.header_at(segment, block) else { continue };
            if header.lsn <= end.lsn {
                continue;
            }
            if visit(&header) {
                return seen;
            }
            if seen.insert(header.next_segment) {
                search.push((header.next_segment, 0));
            }
        }
    }
    seen
}

/// Returns the record at a position, of this epoch or a later one: here, or the first of the next
/// segment.
///
/// If several match, one of a later epoch is right, because that epoch began where the others were
/// given up. Within one epoch it is the last, because the device refused the others
/// ([`crate::writer::elsewhere`]).
///
/// An unreadable block may contain the record, and so is damage, unless the record is found whole
/// at another location, or can't be in that block: the log leaves a segment only if a record does
/// not fit the rest of it, or was refused.
pub(crate) fn next_record(
    reader: &mut LogReader<'_>,
    position: &LogPosition,
    epoch: u64,
) -> Result<Option<Found>, StoreError> {
    let mut best = Best::of(position, epoch);
    let mut unreadable: Option<LogPosition> = None;
    for at in reader.places(position) {
        let found = match reader.record(&at, best.least_epoch) {
            Err(StoreError::Io(_)) => {
                let may_be_here = match unreadable {
                    _ if at == *position => true,
                    None => at.block == 0 && may_not_fit(reader.medium, position),
                    Some(before) => at.block == 0 || before.segment == at.segment,
                };
                unreadable = if may_be_here { Some(at) } else { unreadable };
                continue;
            }
            found => found?,
        };
        best.take(reader.medium, at, found)?;
    }
    let mut best = best.found;
    if best.is_none() {
        best = next_record_by_copy(reader, position, epoch)?;
        if best.is_some() {
            return Ok(best);
        }
    }
    let Some(LogPosition { lsn, segment, block, .. }) = unreadable else { return Ok(best) };
    if let Some(found) = &best
        && payload_is_intact(reader.medium, found.places, &found.entries).unwrap_or(false)
    {
        return Ok(best);
    }
    reader.medium.answers()?;
    let text = "can't be read, and may hold record";
    Err(StoreError::Damaged(format!("block {block} of segment {segment} {text} {lsn} of the log")))
}

/// The same as [`next_record`], in a log that another process writes: a record that is not found or
/// can't be read may still come.
pub(crate) fn next_record_in_use(
    reader: &mut LogReader<'_>,
    position: &LogPosition,
    epoch: u64,
) -> Result<Option<Found>, StoreError> {
    let mut best = Best::of(position, epoch);
    for at in reader.places(position) {
        match reader.record(&at, best.least_epoch) {
            Err(StoreError::Io(_)) => {}
            found => best.take(reader.medium, at, found?)?,
        }
    }
    Ok(best.found)
}

/// The same as [`next_record`], if no header is valid.
fn next_record_by_copy(
    reader: &mut LogReader<'_>,
    position: &LogPosition,
    epoch: u64,
) -> Result<Option<Found>, StoreError> {
    if reader.is_end(position) {
        return Ok(None);
    }
    let mut best = Best::of(position, epoch);
    for at in LogReader::places_of_copies(position) {
        // Only a record after others is known to name the same next segment as they do.
        let found = reader.record_by_copy(&at, at == *position)?;
        best.take(reader.medium, at, found)?;
    }
    Ok(best.found)
}

/// The best match for the record at a position.
struct Best<'a> {
    position: &'a LogPosition,
    least_epoch: u64,
    found: Option<Found>,
}

impl<'a> Best<'a> {
    /// Nothing was found yet; only this epoch or a later one counts.
    fn of(position: &'a LogPosition, least_epoch: u64) -> Self {
        Self { position, least_epoch, found: None }
    }

    /// Considers a record found at one of the locations, which come in log order.
    fn take(
        &mut self,
        medium: &Medium,
        at: LogPosition,
        found: Option<ReadRecord>,
    ) -> Result<(), StoreError> {
        if let Some(found) = found
            && found.header.epoch >= self.least_epoch
            && (at == *self.position || can_be_first(&found.header, &at))
        {
            self.least_epoch = found.header.epoch;
            self.found = Some(Found::at(medium, at, found)?);
        }
        Ok(())
    }
}

/// Returns whether there are records that don't fit the rest of a segment.
pub(crate) fn may_not_fit(medium: &Medium, position: &LogPosition) -> bool {
    let geometry = medium.geometry_of(position.segment);
    medium.tuning.record_rows_max(geometry) > geometry.rows().saturating_sub(position.block)
}

/// Returns whether a record can be the first of its segment, at its location: not one that names
/// that segment as the next. That belongs to the previous segment, and a write or a read was
/// misdirected.
fn can_be_first(header: &RecordHeader, at: &LogPosition) -> bool {
    let is_link = header.entry_count == 0 && header.payload_blocks == 0;
    header.next_segment != at.segment && is_link == (at.block > 0)
}

/// Returns the record with which the log continues at a position, and whether its payload is
/// intact.
///
/// If it is torn, a recovery may have ended before it, and the log continued in the next segment,
/// in a later epoch: then that record counts, and the torn one does not exist.
pub(crate) fn next_of_log(
    reader: &mut LogReader<'_>,
    position: &LogPosition,
) -> Result<Option<(Found, bool)>, StoreError> {
    let (mut epoch, mut torn) = (0, None);
    while let Some(found) = next_record(reader, position, epoch)? {
        if payload_is_intact(reader.medium, found.places, &found.entries).unwrap_or(false) {
            return Ok(Some((found, true)));
        }
        epoch = found.header.epoch + 1;
        torn.get_or_insert(found);
    }
    Ok(torn.map(|found| (found, false)))
}
