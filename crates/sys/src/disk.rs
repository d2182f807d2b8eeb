//! What the store requires of a disk.

use std::io;

use block::{Frame, FrameMut};

use crate::counts::DiskSnapshot;

/// How often a read is tried before it has failed. A device takes its time for each read of a bad
/// block, so these are few.
pub const READ_TRIES_MAX: u32 = 4;

/// What is durable when a write has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persist {
    /// Nothing of it, before the next flush.
    #[default]
    Nothing,
    /// What it wrote, and nothing else: earlier writes stay as they were (devices do it by FUA).
    Itself,
    /// What it wrote, and all writes that had returned before it began: a flush follows it.
    All,
}

/// A disk, or a file used as one, addressed in bytes but accessed in whole 4 KiB frames.
///
/// `docs/crash-consistency.md` says what the store assumes: a write that was followed by a flush is
/// present after a crash; one that was not may be there completely, partly, in any order of its
/// 512-byte sectors, or not at all.
pub trait Disk: Send + Sync {
    /// Returns the size in bytes, a multiple of 4096.
    fn len_bytes(&self) -> u64;

    /// Grows the disk to `len_bytes` (a multiple of 4096), durably, while it is in use.
    fn grow(&self, _len_bytes: u64) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this disk can't grow"))
    }

    /// Fills `frames` from `offset_bytes` (a multiple of 4096) on. A read that fails once may
    /// succeed when it is repeated: see [`Disk::read_patiently`].
    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()>;

    /// Reads like [`Disk::read`], but retries, so that an error is persistent. For callers that
    /// block; a ring does the same for callers that do not.
    fn read_patiently(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        let mut result = self.read(offset_bytes, frames);
        for _ in 1..READ_TRIES_MAX {
            if result.is_ok() {
                break;
            }
            result = self.read(offset_bytes, frames);
        }
        result
    }

    /// Writes `frames` from `offset_bytes` (a multiple of 4096) on. Not durable before a flush.
    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()>;

    /// Makes all completed writes durable, except those that began before a flush failed: data that
    /// this flush should have made durable may be lost, even if the next one succeeds. See
    /// [`Disk::flush_failures`].
    fn flush(&self) -> io::Result<()>;

    /// Returns how many flushes have failed since the disk was opened, for any caller, including
    /// those within durable writes. A flush covers a write only if this number is unchanged since
    /// that write began; otherwise the data must be written again.
    fn flush_failures(&self) -> u64;

    /// Calls `write`, which may write anything, and makes all of that durable, but not what others
    /// have written. If a flush fails meanwhile, `write` is called again, and writes all of it
    /// again: merely repeating a flush says nothing about what the first one has lost.
    fn write_and_flush(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        write()?;
        if self.flush().is_ok() {
            return Ok(());
        }
        write()?;
        self.flush()
    }

    /// Discards `len_bytes` from `offset_bytes` on (multiples of 4096) that are not needed: their
    /// space goes back to the layer below. Reads before the next write return undefined data.
    /// Returns `false` if the disk can't do that.
    ///
    /// # Errors
    /// Those of the system; the content may be gone nevertheless.
    fn discard(&self, _offset_bytes: u64, _len_bytes: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// Returns whether the device accepts no more writes: one was given up after the full time for
    /// a device, and none has succeeded since. What only one location refuses does not count.
    fn has_given_up(&self) -> bool {
        false
    }

    /// Returns whether the device refuses all writes at the moment: one is being retried that was
    /// refused more often than at a bad location, for 0.3 s or more, and none has succeeded since.
    fn is_refusing(&self) -> bool {
        false
    }

    /// Sets whether other devices have the same data: then a refused call fails after about 70 ms
    /// with any error, because the device can be spared.
    fn set_redundant(&self, _redundant: bool) {}

    /// Lets other threads run, because the caller holds no lock, and has much to do or waits for
    /// them. Returns whether they did: in a world with one thread there is nothing to wait for.
    fn give_way(&self) -> bool {
        std::thread::yield_now();
        false
    }

    /// Returns how often a refused write or flush was retried.
    fn retry_count(&self) -> u64 {
        0
    }

    /// Returns the I/O counters since it was opened, as far as there are any.
    fn counts(&self) -> DiskSnapshot {
        DiskSnapshot::default()
    }

    /// Writes, and makes that durable, in one step if the disk can. Does not cover earlier writes:
    /// for those, use [`Disk::write_as`] with [`Persist::All`].
    fn write_durable(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.write(offset_bytes, frames)?;
        self.flush()
    }

    /// Writes `frames` (perhaps none), and makes durable what `persist` requests.
    fn write_as(&self, offset_bytes: u64, frames: &[Frame], persist: Persist) -> io::Result<()> {
        match persist {
            Persist::Nothing => self.write(offset_bytes, frames),
            Persist::Itself if frames.is_empty() => Ok(()),
            Persist::Itself => self.write_durable(offset_bytes, frames),
            Persist::All => {
                if !frames.is_empty() {
                    self.write(offset_bytes, frames)?;
                }
                self.flush()
            }
        }
    }
}
