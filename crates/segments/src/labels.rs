//! The labels of one device: two copies that identify the device and its pool.
//!
//! Invariants:
//! 1. A copy is written only after the other one is durable, so that a crash leaves one of them
//!    valid.
//! 2. Nothing is lost with a label of a pool on one device, because it can be derived from the
//!    root. So a device that refuses a label does not prevent using the pool.
//! 3. A device whose valid label names another pool, or another position in this one, is not
//!    accepted as a part of this one ([`check`]).

use std::io;

use block::FrameMut;
use format::label::{LABEL_OFFSETS_BYTES, UNKNOWN_LABEL};
use format::{DeviceId, FormatError, Label, Superblock};
use sys::Disk;

use crate::first_segment::read_at;
use crate::segments::{BadLabel, RootError};

/// Reads both copies, in order.
pub(crate) fn read(disk: &dyn Disk) -> [Result<Label, FormatError>; 2] {
    LABEL_OFFSETS_BYTES.map(|offset_bytes| read_at(disk, offset_bytes, Label::decode))
}

/// Checks that the root belongs to this device. A bad copy proves nothing, nor does a wrong copy
/// next to a right one.
///
/// # Errors
/// [`RootError::OtherDevice`].
pub(crate) fn check(disk: &dyn Disk, root: &Superblock) -> Result<(), RootError> {
    let labels = read(disk);
    let mut whole = labels.iter().flatten();
    match whole.next() {
        Some(label) if root.features.has_labels() => {
            let is_right = is_of(label, root) || whole.any(|label| is_of(label, root));
            if is_right { Ok(()) } else { Err(other_device(label, root)) }
        }
        _ => Ok(()),
    }
}

/// Rewrites wrong or missing copies, one after the other. A label of a later version stays: a pool
/// that can't be shared with that version has a feature that says so.
pub(crate) fn mend(disk: &dyn Disk, root: &Superblock) -> Vec<BadLabel> {
    let copies = read(disk);
    // An existing label has the epoch; both copies say the same.
    let label = copies.iter().flatten().find(|label| is_of(label, root)).cloned();
    let label = label.unwrap_or_else(|| Label::of_only(root));
    mend_where(disk, &label, |found| !is_of(found, root))
}

/// Rewrites the copies that differ from this label.
pub(crate) fn mend_as(disk: &dyn Disk, label: &Label) -> Vec<BadLabel> {
    mend_where(disk, label, |found| found != label)
}

/// Writes a label over copies that are invalid or for which `is_wrong` returns true, one after the
/// other.
fn mend_where(disk: &dyn Disk, label: &Label, is_wrong: impl Fn(&Label) -> bool) -> Vec<BadLabel> {
    let is_bad = |found: &Result<Label, FormatError>| match found {
        Ok(label) => is_wrong(label),
        Err(error) => error.what != UNKNOWN_LABEL,
    };
    let copies = read(disk);
    let bad = (0..copies.len()).filter(|copy| is_bad(&copies[*copy]));
    let mended = |copy: usize| {
        let offset_bytes = LABEL_OFFSETS_BYTES[copy];
        let mended = write(disk, offset_bytes, label).is_ok();
        BadLabel { copy: copy as u8, offset_bytes, mended }
    };
    bad.map(mended).collect()
}

/// Writes both copies to a device with any content.
pub(crate) fn make(disk: &dyn Disk, root: &Superblock) -> io::Result<()> {
    write_both(disk, &Label::of_only(root))
}

/// Writes both copies, one after the other.
pub(crate) fn write_both(disk: &dyn Disk, label: &Label) -> io::Result<()> {
    LABEL_OFFSETS_BYTES.into_iter().try_for_each(|offset_bytes| write(disk, offset_bytes, label))
}

/// Returns the label for one device, given what all labels of the pool have in common.
pub(crate) fn of_device(label: &Label, number: u16, device: DeviceId) -> Label {
    Label { device, number, ..label.clone() }
}

/// Writes the label durably by itself, without a flush: a flush would wait for those of appends
/// that have completed but were not collected, and the thread that must collect them may be the
/// caller.
fn write(disk: &dyn Disk, offset_bytes: u64, label: &Label) -> io::Result<()> {
    disk.write_durable(offset_bytes, &[FrameMut::from_bytes(&label.encode()).freeze()])
}

/// Returns whether this is the label of the only device of this pool.
fn is_of(label: &Label, root: &Superblock) -> bool {
    let only = Label::of_only(root);
    let place = (label.pool_id, label.device, label.number);
    place == (only.pool_id, only.device, only.number) && label.members.len() == 1
}

fn other_device(label: &Label, root: &Superblock) -> RootError {
    let of_pool = |pool_id: [u8; 16]| pool_id.map(|byte| format!("{byte:02x}")).concat();
    let text = match label.pool_id == root.pool_id {
        true => format!(
            "device {} of {} of a pool on several devices",
            label.number,
            label.members.len()
        ),
        false => format!("a device of pool {}", of_pool(label.pool_id)),
    };
    RootError::OtherDevice { label: text, pool: of_pool(root.pool_id) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use block::Frame;
    use format::Geometry;
    use sys::{FileDisk, Persist, Ring};

    use super::*;

    /// A front end that records in labels that a device is out collects the completions of its
    /// other appends only afterwards.
    #[test]
    fn a_label_does_not_wait_for_the_delivery_of_completed_appends() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Arc::new(FileDisk::create(&dir.path().join("disk"), 16 << 20).unwrap());
        let mut ring = Ring::new(disk.clone(), 8);
        ring.write(1, 12 << 20, vec![Frame::zeros()], Persist::Itself).unwrap();
        ring.submit().unwrap();
        let geometry = Geometry { part_bytes: 16 << 20, segment_count: 64, columns: 1 };
        let root = Superblock::of_new_pool([7; 16], [9; 32], geometry.pool_bytes(), geometry);
        let begin = Instant::now();
        write_both(&*disk, &Label::of_only(&root)).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
        assert!(read(&*disk).iter().all(|copy| copy.as_ref() == Ok(&Label::of_only(&root))));
        while ring.in_flight() > 0 {
            ring.wait().unwrap();
            ring.complete(&mut Vec::new()).unwrap();
        }
    }
}
