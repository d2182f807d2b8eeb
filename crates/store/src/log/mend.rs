//! Repair of records that one device has and another lacks: they were in flight during a crash, or
//! a device has lost them since.

use std::sync::Arc;

use block::{FRAME_BYTES, Frame, FrameMut};
use format::{Brought, Entry, PLACE_UNIT_BYTES, Place, RecordHeader, Seal};
use sys::Persist;

use crate::StoreError;
use crate::chunks::copies::{Wanted, mend_copies};
use crate::chunks::medium::Medium;
use crate::log::copied_header::header_in_copy;
use crate::log::replay::Found;

/// Makes all copies of a valid record alike, durably. A copy that can't be repaired has failed with
/// its device. `before` is the content of its copy of the previous record, if known.
///
/// There are no writes there meanwhile: the record is durable, or nothing was written since the
/// crash, and its segment is not reused.
pub(crate) fn mend_record(medium: &Medium, record: &Found, before: &[u8]) {
    if medium.disk.copies() <= 1 || !medium.mends.are_allowed() {
        return;
    }
    if medium.geometry().has_stripes() {
        // All at once: the rows of records in flight may have columns of two different times, and
        // repairing one may make it impossible to reconstruct another. A header that no device has
        // is in the next record.
        let header = right_header(medium, record, before);
        write_anew(medium, record, header.as_deref());
        return;
    }
    if are_alike(medium, record) {
        return;
    }
    for brought in record.entries.iter().flat_map(Entry::brought) {
        mend_copies(medium, &Wanted::of_brought(record.places, &brought));
    }
    mend_header_as(medium, record, Some(before));
}

/// Rewrites a record with its parity, because a write in flight during a crash may have reached
/// only some devices. Returns whether it was rewritten: a valid copy of all of its data exists, and
/// no device has failed.
///
/// The data is verified before it is written: otherwise parity of what a device has returned once
/// would make that the content.
pub(crate) fn encode_anew(medium: &Medium, record: &Found) -> bool {
    let header = right_header(medium, record, &[]);
    header.is_some_and(|header| write_anew(medium, record, Some(&header)))
}

/// The same, with these blocks of its header, or with those on the medium.
fn write_anew(medium: &Medium, record: &Found, header: Option<&[u8]>) -> bool {
    right_bytes(medium, record, header).is_some_and(|bytes| {
        let frames = frames_of(&bytes);
        medium.disk.append_as(place_of(record), &frames, Persist::Itself).is_ok()
    })
}

fn frames_of(bytes: &[u8]) -> Vec<Frame> {
    bytes.chunks_exact(FRAME_BYTES).map(|block| FrameMut::from_bytes(block).freeze()).collect()
}

/// The new seal of a record that was sealed again.
pub(crate) struct SealedAgain {
    pub(crate) seal: Seal,
    /// What the next record has a copy of.
    pub(crate) own: Arc<[u8]>,
}

/// Gives the last record of the log a header of its own, if only the next record has a copy of it:
/// that next one was in flight during the crash, is not part of the log, and is dropped. The
/// record's copy of the previous one is left out, so that its seal differs. Nothing was written
/// after it yet.
///
/// # Errors
/// If it can't be written: the content of the location is then unknown.
pub(crate) fn seal_again(
    medium: &Medium,
    record: &Found,
) -> Result<Option<SealedAgain>, StoreError> {
    let mut held = (0..medium.disk.copies()).map(|copy| held_header(medium, record, copy));
    if medium.disk.copies() <= 1 || held.any(|header| header.is_some()) {
        return Ok(None);
    }
    let mut bytes = record.own.to_vec();
    bytes.resize(usize::from(record.header.header_blocks) * FRAME_BYTES, 0);
    let seal = RecordHeader { copied_bytes: 0, ..record.header }.seal(&mut bytes, &medium.keys);
    let own: Arc<[u8]> = bytes[..record.own.len()].into();
    let all = match medium.geometry().has_stripes() {
        true => right_bytes(medium, record, Some(&bytes)),
        false => Some(bytes),
    };
    // A record that was flushed may have lost something: what is left of it stays as it is.
    let Some(all) = all else { return Ok(None) };
    medium.disk.append_as(place_of(record), &frames_of(&all), Persist::Itself)?;
    Ok(Some(SealedAgain { seal, own }))
}

/// Returns all rows of a record, with data blocks from valid copies, and these blocks of its
/// header.
fn right_bytes(medium: &Medium, record: &Found, header: Option<&[u8]>) -> Option<Vec<u8>> {
    let blocks = record.places.rows() * u32::from(medium.geometry_of(record.at.segment).columns);
    let mut bytes = Vec::with_capacity(blocks as usize * FRAME_BYTES);
    for number in 0..blocks {
        let mut frame = [FrameMut::stale()];
        let read = medium.disk.read_patiently(record.places.block(number), &mut frame);
        // It may be available in another way; otherwise it is not needed.
        bytes.extend_from_slice(if read.is_ok() { &frame[0][..] } else { &[0; FRAME_BYTES] });
    }
    let header = header.unwrap_or_default();
    bytes[..header.len()].copy_from_slice(header);
    let payload_at = usize::from(record.header.header_blocks) * FRAME_BYTES;
    let range = |brought: &Brought| {
        let start = payload_at + units_bytes(brought.payload_units);
        start..start + units_bytes(brought.shape.stored_units.into())
    };
    for is_last in [false, true] {
        for brought in record.entries.iter().flat_map(Entry::brought) {
            let wanted = Wanted::of_brought(record.places, &brought);
            let held = bytes.get_mut(range(&brought))?;
            if !wanted.is_right(medium, held) {
                let right = if is_last { None } else { wanted.right_bytes(medium) };
                wanted.make_right(medium, held, &right?);
            }
        }
    }
    Some(bytes)
}

/// Returns the blocks of a record's header: from any copy that has it, or assembled from what is
/// known.
fn right_header(medium: &Medium, record: &Found, before: &[u8]) -> Option<Vec<u8>> {
    let mut copies = (0..medium.disk.copies()).filter_map(|copy| held_header(medium, record, copy));
    copies.next().or_else(|| {
        let mut bytes = [&record.own, before].concat();
        bytes.resize(usize::from(record.header.header_blocks) * FRAME_BYTES, 0);
        record.header.verify(&bytes, &medium.keys).then_some(bytes)
    })
}

/// Returns the blocks of a record's header in one copy, if they are those of this record.
fn held_header(medium: &Medium, record: &Found, copy: u32) -> Option<Vec<u8>> {
    let (header, bytes) = header_in_copy(medium, place_of(record), copy)?;
    (header.seal == record.header.seal).then_some(bytes)
}

fn units_bytes(units: u32) -> usize {
    units as usize * PLACE_UNIT_BYTES as usize
}

fn place_of(record: &Found) -> Place {
    Place::of_block(record.at.segment, record.at.block)
}

/// Returns whether all copies of a record are identical.
fn are_alike(medium: &Medium, record: &Found) -> bool {
    let blocks = record.header.total_blocks() as usize;
    let mut read = (0..medium.disk.copies()).map(|copy| {
        let mut frames: Vec<FrameMut> = (0..blocks).map(|_| FrameMut::stale()).collect();
        medium.disk.read_copy(place_of(record), copy, &mut frames).ok()?;
        Some(frames)
    });
    let Some(first) = read.next().flatten() else { return false };
    let is_same = |(a, b): (&FrameMut, &FrameMut)| a[..] == b[..];
    read.all(|other| other.is_some_and(|other| first.iter().zip(&other).all(is_same)))
}

/// The same as [`mend_record`], for its header and entries: their blocks contain no other record.
pub(crate) fn mend_header(medium: &Medium, record: &Found) -> u64 {
    mend_header_as(medium, record, None)
}

/// The same, for a record that may be known only through the next one, which not every device has.
/// `before` is the content of its copy of the previous record, if the header may be assembled from
/// that.
fn mend_header_as(medium: &Medium, record: &Found, before: Option<&[u8]>) -> u64 {
    let copies = medium.disk.copies();
    if copies <= 1 {
        return 0;
    }
    let held: Vec<Option<Vec<u8>>> =
        (0..copies).map(|copy| held_header(medium, record, copy)).collect();
    let first = held.iter().flatten().next().cloned();
    let right = first.or_else(|| right_header(medium, record, before?));
    let Some(right) = right else { return 0 };
    if !medium.mends.are_allowed() {
        return 0;
    }
    let frames = frames_of(&right);
    let wrong = (0..).zip(&held).filter(|(_, held)| held.as_ref() != Some(&right));
    let mend = |copy| medium.disk.mend(place_of(record), copy, &frames).is_ok();
    let mended = wrong.filter(|(copy, _)| mend(*copy)).count();
    (0..mended).for_each(|_| medium.mends.mended());
    mended as u64
}
