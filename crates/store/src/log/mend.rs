//! Records that one device has and another lacks: they were on their way in a crash, or a device
//! has lost them since.

use block::{BLOCK_BYTES, Frame, FrameMut};
use format::{Entry, Place, RecordHeader};

use crate::chunks::copies::{Wanted, mend_copies};
use crate::chunks::medium::Medium;
use crate::log::log_reader::header_in_copy;
use crate::log::replay::{Found, payload_place};

/// Makes all copies of a record alike that was found to be right, durably; how many places were
/// not. What can't be mended has failed with its device.
///
/// Nobody writes there meanwhile: the record is durable, or nothing was written since the crash,
/// and its segment is not used again.
pub(crate) fn mend_record(medium: &Medium, record: &Found) -> u64 {
    if medium.disk.copies() <= 1 || are_alike(medium, record) {
        return 0;
    }
    let payload = payload_place(record);
    let wanted = |brought| Wanted::of_brought(payload, &brought);
    let brought = record.entries.iter().flat_map(Entry::brought);
    let mended: u64 = brought.map(|brought| mend_copies(medium, &wanted(brought)).mended).sum();
    mended + mend_header(medium, record)
}

fn place_of(record: &Found) -> Place {
    Place::of_block(record.at.segment, record.at.block)
}

/// Whether all copies of a record are the same, to the last bit.
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

/// As [`mend_record`], of its header and its entries: their blocks are of no other record.
pub(crate) fn mend_header(medium: &Medium, record: &Found) -> u64 {
    let copies = medium.disk.copies();
    if copies <= 1 {
        return 0;
    }
    let is_it = |header: &RecordHeader| header.seal == record.header.seal;
    let held: Vec<Option<Vec<u8>>> = (0..copies)
        .map(|copy| header_in_copy(medium, place_of(record), copy))
        .map(|found| found.filter(|(header, _)| is_it(header)).map(|(_, bytes)| bytes))
        .collect();
    // It may be known by its successor only.
    let Some(right) = held.iter().flatten().next() else { return 0 };
    if !medium.mends.are_allowed() {
        return 0;
    }
    let blocks = right.chunks_exact(BLOCK_BYTES as usize);
    let frames: Vec<Frame> = blocks.map(|block| FrameMut::from_bytes(block).freeze()).collect();
    let wrong = (0..).zip(&held).filter(|(_, held)| held.as_ref() != Some(right));
    let mend = |copy| medium.disk.mend(place_of(record), copy, &frames).is_ok();
    let mended = wrong.filter(|(copy, _)| mend(*copy)).count();
    (0..mended).for_each(|_| medium.mends.mended());
    mended as u64
}
