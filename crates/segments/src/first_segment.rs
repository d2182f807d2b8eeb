//! The blocks of segment 0 for superblocks and labels: one block each, in several copies.

use std::io;

use block::{BLOCK_BYTES, Frame, FrameMut};
use format::FormatError;
use sys::Disk;

/// Writes a block, durably.
pub(crate) fn write_at(disk: &dyn Disk, offset_bytes: u64, frame: Frame) -> io::Result<()> {
    let frames = [frame];
    disk.write_and_flush(&mut || disk.write(offset_bytes, &frames))
}

/// Reads a block. A copy that can't be read counts as missing, because another one may exist.
pub(crate) fn read_at<T>(
    disk: &dyn Disk,
    offset_bytes: u64,
    decode: impl FnOnce(&[u8]) -> Result<T, FormatError>,
) -> Result<T, FormatError> {
    if offset_bytes + BLOCK_BYTES > disk.len_bytes() {
        return Err(FormatError { what: "the device is too short for it", offset: 0 });
    }
    let mut frames = [FrameMut::zeroed()];
    if disk.read_patiently(offset_bytes, &mut frames).is_err() {
        return Err(FormatError { what: "unreadable", offset: 0 });
    }
    decode(&frames[0][..])
}
