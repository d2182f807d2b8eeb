//! Replaying the log from the newest checkpoint to its end.

use format::log::LogPosition;
use format::{RecordHeader, SegmentState, Superblock};

use crate::StoreError;
use crate::apply::apply_all;
use crate::apply::bring::Payload;
use crate::handover::LogEnd;
use crate::log::log_reader::LogReader;
use crate::log::mend::{SealedAgain, mend_record, seal_again};
use crate::log::plausible::{check_log_segments, payload_is_intact};
use crate::log::replay::{Found, next_record, next_record_in_use, no_record_is_lost};
use crate::opening::fetching::Fetching;
use crate::opening::relief::Relief;
use crate::world::World;
use crate::writer::Writer;

/// How many records are applied together; what they need is read together.
const RECORDS_TOGETHER: usize = 64;

/// An applied record: its location and epoch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Applied {
    pub(super) at: LogPosition,
    pub(super) epoch: u64,
}

/// Replays the log from the writer's position to its end; `last` is the record before that, and
/// `end` is where the previous owner of the pool says that the log ends.
pub(super) fn replay(
    world: &World,
    writer: &mut Writer,
    (superblock, last): (&Superblock, Option<Applied>),
    (end, relief): (Option<LogEnd>, &mut Relief<'_>),
) -> Result<(), StoreError> {
    let mut epoch = last.map_or(0, |last| last.epoch);
    let mut position = writer.log.position();
    let end = end.filter(|end| end.epoch == superblock.epoch).map(|end| end.position);
    let mut reader = match end == Some(position) {
        true => LogReader::of_headers(&world.medium),
        false => LogReader::reading_ahead(&world.medium),
    };
    reader.end = end;
    let mut fetching = Fetching::new(world);
    let mut applied = None;
    open_segments(writer, &position, epoch)?;
    loop {
        // Records whose payload may be torn: they wait until a later one says that they were
        // flushed. Those known to be flushed are applied in batches.
        let mut unsure: Vec<Found> = Vec::new();
        let mut flushed = 0;
        while let Some(found) = next_record(&mut reader, &position, epoch)? {
            no_superblock_is_lost(&found.header, superblock.epoch)?;
            epoch = found.header.epoch;
            position = found.behind();
            flushed = flushed.max(found.header.flushed_lsn);
            unsure.push(found);
            fetching.go_on(world);
            if unsure.len() >= RECORDS_TOGETHER {
                let sure = take_sure(&mut unsure, flushed);
                let before = apply_before(world, writer, sure, (&mut fetching, relief))?;
                applied = before.or(applied);
            }
        }
        for records in [take_sure(&mut unsure, flushed), unsure] {
            applied = apply_before(world, writer, records, (&mut fetching, relief))?.or(applied);
        }
        let unsure = fetching.take(world);
        let (torn_epoch, intact) = apply_intact(world, writer, unsure, relief)?;
        applied = intact.or(applied);
        let Some(torn_epoch) = torn_epoch else { break };
        // An earlier recovery may have ended here, and the log continued in the next segment
        // because its first record did not fit after the last whole one: the torn one is still
        // there.
        (position, epoch) = (writer.log.position(), torn_epoch + 1);
    }
    no_record_is_lost(&mut reader, &writer.log.position())?;
    // A record before the newest checkpoint is no longer needed.
    match applied.filter(|record| relief.needs(record.header.lsn)) {
        Some(record) => make_known(world, writer, &record),
        None => Ok(()),
    }
}

/// Gives the last record a header of its own: the next record, which is given up, may have had the
/// only copy.
fn make_known(world: &World, writer: &mut Writer, record: &Found) -> Result<(), StoreError> {
    if let Some(SealedAgain { seal, own }) = seal_again(&world.medium, record)? {
        writer.log.sealed_again(seal, own);
    }
    Ok(())
}

/// Follows the log of a pool that another process uses, as far as later records say that it is
/// durable, and not much further than `most` records; returns whether there were no more. `last` is
/// the last applied one.
pub(super) fn follow(
    world: &World,
    writer: &mut Writer,
    (superblock, last): (&Superblock, &mut Option<Applied>),
    most: usize,
) -> Result<bool, StoreError> {
    let mut reader = LogReader::of_headers(&world.medium);
    let (mut fetching, mut relief) = (None, Relief::none());
    let mut position = writer.log.position();
    let (first_lsn, mut epoch) = (position.lsn, last.map_or(0, |last| last.epoch));
    let (mut unsure, mut flushed) = (Vec::<Found>::new(), 0);
    open_segments(writer, &position, epoch)?;
    let mut is_all = false;
    while writer.log.position().lsn - first_lsn < most as u64 {
        let Some(found) = next_record_in_use(&mut reader, &position, epoch)? else {
            is_all = true;
            break;
        };
        no_superblock_is_lost(&found.header, superblock.epoch)?;
        epoch = found.header.epoch;
        position = found.behind();
        flushed = flushed.max(found.header.flushed_lsn);
        unsure.push(found);
        if unsure.len() >= RECORDS_TOGETHER {
            let sure = note_last(take_sure(&mut unsure, flushed), last);
            // Created on demand, because usually there are no new records.
            let fetching = fetching.get_or_insert_with(|| Fetching::new(world));
            apply_before(world, writer, sure, (fetching, &mut relief))?;
        }
    }
    let sure = note_last(take_sure(&mut unsure, flushed), last);
    if !sure.is_empty() || fetching.is_some() {
        let fetching = fetching.get_or_insert_with(|| Fetching::new(world));
        apply_before(world, writer, sure, (fetching, &mut relief))?;
        apply_before(world, writer, Vec::new(), (fetching, &mut relief))?;
    }
    Ok(is_all)
}

/// Records the last of these records: all of them will be applied.
fn note_last(records: Vec<Found>, last: &mut Option<Applied>) -> Vec<Found> {
    if let Some(Found { at, header, .. }) = records.last() {
        *last = Some(Applied { at: *at, epoch: header.epoch });
    }
    records
}

/// Takes the first of these records, up to the last that was flushed.
fn take_sure(records: &mut Vec<Found>, flushed_lsn: u64) -> Vec<Found> {
    let sure = records.iter().take_while(|record| record.header.lsn <= flushed_lsn).count();
    records.drain(..sure).collect()
}

/// Begins to read what `records` need, and applies the previous ones meanwhile; returns the last of
/// these.
fn apply_before(
    world: &World,
    writer: &mut Writer,
    records: Vec<Found>,
    (fetching, relief): (&mut Fetching, &mut Relief<'_>),
) -> Result<Option<Found>, StoreError> {
    let before = fetching.take(world);
    fetching.begin(world, records);
    let mut last = None;
    for record in before {
        apply_record(world, writer, &record)?;
        relief.relieve(world, writer)?;
        fetching.go_on(world);
        last = Some(record);
    }
    Ok(last)
}

/// Applies records up to the first with torn payload; returns its epoch, and the last applied
/// record.
fn apply_intact(
    world: &World,
    writer: &mut Writer,
    records: Vec<Found>,
    relief: &mut Relief<'_>,
) -> Result<(Option<u64>, Option<Found>), StoreError> {
    let mut last = None;
    for record in records {
        let is_intact = payload_is_intact(&world.medium, record.places, &record.entries);
        if let Err(StoreError::Io(_)) = is_intact {
            world.medium.answers()?;
            let lsn = record.header.lsn;
            let text = format!("the payload of record {lsn} of the log can't be read");
            return Err(StoreError::Damaged(text));
        }
        if !is_intact? {
            return Ok((Some(record.header.epoch), last));
        }
        if relief.may_write() {
            // It was in flight during the crash, and some device may lack it. It is repaired before
            // a checkpoint refers to its blocks, and before any answer depends on it.
            mend_record(&world.medium, &record, writer.log.position_own());
        }
        apply_record(world, writer, &record)?;
        relief.relieve(world, writer)?;
        last = Some(record);
    }
    Ok((None, last))
}

/// Checks that no superblock is lost: an epoch is durable in a superblock before any record has it.
/// So a record of a later one shows that a newer superblock is missing, and with it the state that
/// these records build on.
fn no_superblock_is_lost(header: &RecordHeader, epoch: u64) -> Result<(), StoreError> {
    if header.epoch <= epoch {
        return Ok(());
    }
    Err(StoreError::Damaged(format!(
        "record {} of the log is of epoch {}, but the newest readable superblock of {epoch}",
        header.lsn, header.epoch
    )))
}

/// Reopens the segment of the log, and its next one. Their content is of `epoch` or a later one.
fn open_segments(writer: &mut Writer, at: &LogPosition, epoch: u64) -> Result<(), StoreError> {
    for segment in [at.segment, at.next_segment] {
        writer.state.segments.reopen(segment, SegmentState::Log, (at.lsn, epoch));
        writer.log.note_segment(segment);
    }
    check_log_segments(at, &writer.state.segments, writer.log.columns_of(at.segment))
}

fn apply_record(world: &World, writer: &mut Writer, record: &Found) -> Result<(), StoreError> {
    open_segments(writer, &record.at, record.header.epoch)?;
    let payload = Payload::stored(record.places);
    apply_all(world, &mut writer.state, &record.entries, payload).map_err(|error| {
        // Continuing without it would make reference counts wrong, and so free what is in use.
        let lsn = record.header.lsn;
        StoreError::Damaged(format!("record {lsn} of the log can't be applied: {error}"))
    })?;
    writer.log.recovered(record.behind(), record.own.clone(), record.places.rows());
    Ok(())
}
