//! What the store needs of a disk.

use std::io;

use block::{Frame, FrameMut};

use crate::counts::DiskSnapshot;

/// How often a read is tried before it has failed. A device that is asked for a bad block takes its
/// time over each, so these are few.
pub const READ_TRIES_MAX: u32 = 4;

/// What is durable when a write has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Persist {
    /// Nothing of it, before the next flush.
    #[default]
    Nothing,
    /// What it wrote, and nothing else: earlier writes stay as they were (a device does it by FUA).
    Itself,
    /// What it wrote, and all writes that had returned before it began: a flush follows it.
    All,
}

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

    /// Fills `frames` from `offset_bytes` (a multiple of 4096) on, or fails. What fails once may
    /// succeed the next time: see [`Disk::read_patiently`].
    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()>;

    /// As [`Disk::read`], and tries again what fails, so that an error is one that lasts. For who
    /// waits on the spot; a ring does the same for who does not.
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

    /// Makes all writes durable that have returned, but for those that began before a flush failed:
    /// what that should have kept may be gone, whatever the next one says. See
    /// [`Disk::flush_failures`].
    fn flush(&self) -> io::Result<()>;

    /// How many flushes have failed since the disk was opened, for whomever they were, those within
    /// durable writes among them. A flush speaks for a write only if this is as it was before that
    /// write began; else what was written has to be written again.
    fn flush_failures(&self) -> u64;

    /// Calls `write`, which writes what it likes, and makes all of that durable, but not what
    /// others have written. Where a flush fails meanwhile, `write` is called again, and writes all
    /// of it again: a flush that is merely repeated says nothing of what the first one has lost.
    fn write_and_flush(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        write()?;
        if self.flush().is_ok() {
            return Ok(());
        }
        write()?;
        self.flush()
    }

    /// Nobody needs what so many bytes from `offset_bytes` on (multiples of 4096) hold any more:
    /// their space goes back to whoever has lent it. What is read there before the next write is
    /// not known. `false` if the disk can't do that.
    ///
    /// # Errors
    /// What the system says; the bytes may be gone all the same.
    fn discard(&self, _offset_bytes: u64, _len_bytes: u64) -> io::Result<bool> {
        Ok(false)
    }

    /// Whether the device takes no writes at all: one was given up after all the time that a device
    /// is given, and none has succeeded since. What one place refuses does not count.
    fn has_given_up(&self) -> bool {
        false
    }

    /// Whether the device refuses all writes at the moment: one is tried again that was refused
    /// more often than a bad place would, for 0.3 s and more, and none has succeeded since.
    fn is_refusing(&self) -> bool {
        false
    }

    /// Whether other devices have what this one has: then what it refuses has failed after some
    /// 70 ms, whatever it says, as it is done without.
    fn set_redundant(&self, _redundant: bool) {}

    /// Whoever calls it holds nothing that others need, and has much to do, or waits for them:
    /// they may go on. Whether they have: a world of one thread, which has nobody to wait for.
    fn give_way(&self) -> bool {
        std::thread::yield_now();
        false
    }

    /// How often a write or a flush was retried that the device had refused.
    fn retry_count(&self) -> u64 {
        0
    }

    /// What it was asked since it was opened, as far as that is counted.
    fn counts(&self) -> DiskSnapshot {
        DiskSnapshot::default()
    }

    /// Writes, and makes durable what it wrote, in one step where the disk can. Says nothing of
    /// earlier writes: where those count as well, [`Disk::write_as`] with [`Persist::All`].
    fn write_durable(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.write(offset_bytes, frames)?;
        self.flush()
    }

    /// Writes `frames` (perhaps none), and makes durable what `persist` says.
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
