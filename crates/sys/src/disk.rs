//! What the store needs of a disk.

use std::io;

use block::{Frame, FrameMut};

/// A disk, or a file that stands for one, addressed in bytes but moved in whole 4 KiB frames.
///
/// What the store assumes of it stands in `docs/crash-consistency.md`: a write that was followed
/// by a flush is there after a crash; one that was not may be there wholly, partly, in any order
/// of its 512-byte sectors, or not at all.
pub trait Disk: Send + Sync {
    /// The size in bytes, a multiple of 4096.
    fn len_bytes(&self) -> u64;

    /// Makes the disk `len_bytes` long (a multiple of 4096), durably, while it is used.
    fn grow(&self, _len_bytes: u64) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this disk can't grow"))
    }

    /// Fills `frames` from `offset_bytes` (a multiple of 4096) on.
    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()>;

    /// Writes `frames` from `offset_bytes` (a multiple of 4096) on. Not durable before a flush.
    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()>;

    /// Makes all writes durable that have returned.
    fn flush(&self) -> io::Result<()>;

    /// Writes and makes durable, in one step where the disk can.
    fn write_durable(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.write(offset_bytes, frames)?;
        self.flush()
    }
}
