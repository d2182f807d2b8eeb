//! What is below a disk: single calls of the system, or of a simulated one.

use std::io;
use std::time::Duration;

use block::{Frame, FrameMut};

/// The calls that a disk makes. Each is done once: it moves all, a part or nothing, or fails, and
/// nothing of what follows from that is decided here ([`crate::RetryingDisk`], [`crate::Ring`]).
///
/// Ranges are inside of the disk and begin at a multiple of 4096 bytes; what has been moved already
/// is skipped.
pub trait Calls: Send + Sync {
    /// The size in bytes, a multiple of 4096.
    fn len_bytes(&self) -> u64;

    /// Makes it `len_bytes` long (a multiple of 4096), durably; what is longer stays so.
    ///
    /// # Errors
    /// What the system says. It may be longer all the same.
    fn grow(&self, len_bytes: u64) -> io::Result<()>;

    /// So many bytes from `offset_bytes` on are to be written. May wait for what others do there,
    /// which may flush: so it is called before a write begins, and never between.
    fn before_write(&self, _offset_bytes: u64, _len_bytes: u64) {}

    /// Reads into `frames`, of which the first begins at `offset_bytes`, from their byte
    /// `skip_bytes` on. Returns how many bytes were read, at least one.
    ///
    /// # Errors
    /// What the system says; `UnexpectedEof` where there are no bytes.
    fn read(
        &self,
        offset_bytes: u64,
        frames: &mut [FrameMut],
        skip_bytes: usize,
    ) -> io::Result<usize>;

    /// As [`Calls::read`], in the other direction. With `dsync`, what was written is durable at the
    /// end of the call (`RWF_DSYNC`).
    ///
    /// # Errors
    /// `EOPNOTSUPP` if it has no such flag; what the system says. Any part may have been written.
    fn write(
        &self,
        offset_bytes: u64,
        frames: &[Frame],
        skip_bytes: usize,
        dsync: bool,
    ) -> io::Result<usize>;

    /// Makes durable what calls have written that had ended (`fdatasync`).
    ///
    /// # Errors
    /// What the system says. Any part of that may be lost then, and the next call succeeds all the
    /// same.
    fn sync(&self) -> io::Result<()>;

    /// Nobody needs what these bytes hold any more: their space goes back to whoever has lent it.
    /// What is read there from now on is not known. `false` if there is no such call.
    ///
    /// # Errors
    /// What the system says.
    fn discard(&self, _offset_bytes: u64, _len_bytes: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// Lets time pass.
    fn sleep(&self, pause: Duration) {
        std::thread::sleep(pause);
    }
}
