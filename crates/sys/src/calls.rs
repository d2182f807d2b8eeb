//! The layer below a disk: single calls of the system, or simulated ones.

use std::io;
use std::time::Duration;

use block::{Frame, FrameMut};

/// The calls that a disk makes. Each is done once: it transfers all, a part or nothing, or fails;
/// [`crate::RetryingDisk`] and [`crate::Ring`] decide what follows.
///
/// Ranges are within the disk and begin at a multiple of 4096 bytes; what was already transferred
/// is skipped.
pub trait Calls: Send + Sync {
    /// Returns the size in bytes, a multiple of 4096.
    fn len_bytes(&self) -> u64;

    /// Grows it to `len_bytes` (a multiple of 4096), durably; does not shrink it.
    ///
    /// # Errors
    /// Those of the system. It may have grown nevertheless.
    fn grow(&self, len_bytes: u64) -> io::Result<()>;

    /// Announces a write of `len_bytes` from `offset_bytes` on. May wait for other operations
    /// there, which may flush: so it is called before a write begins, and never in the middle.
    fn before_write(&self, _offset_bytes: u64, _len_bytes: u64) {}

    /// Reads into `frames`, of which the first begins at `offset_bytes`, from their byte
    /// `skip_bytes` on. Returns how many bytes were read, at least one.
    ///
    /// # Errors
    /// Those of the system; `UnexpectedEof` if there are no bytes.
    fn read(
        &self,
        offset_bytes: u64,
        frames: &mut [FrameMut],
        skip_bytes: usize,
    ) -> io::Result<usize>;

    /// Does the same as [`Calls::read`] in the other direction. With `dsync`, what was written is
    /// durable at the end of the call (`RWF_DSYNC`).
    ///
    /// # Errors
    /// `EOPNOTSUPP` if there is no such flag; those of the system. Any part may have been written.
    fn write(
        &self,
        offset_bytes: u64,
        frames: &[Frame],
        skip_bytes: usize,
        dsync: bool,
    ) -> io::Result<usize>;

    /// Makes completed writes durable (`fdatasync`).
    ///
    /// # Errors
    /// Those of the system. Any part of the data may then be lost, and the next call succeeds
    /// nevertheless.
    fn sync(&self) -> io::Result<()>;

    /// Discards bytes that are not needed: their space goes back to the layer below. Reads return
    /// undefined data from now on. Returns `false` if there is no such call.
    ///
    /// # Errors
    /// Those of the system.
    fn discard(&self, _offset_bytes: u64, _len_bytes: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// Lets time pass.
    fn sleep(&self, pause: Duration) {
        std::thread::sleep(pause);
    }
}
