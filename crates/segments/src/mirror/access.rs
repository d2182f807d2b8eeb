//! Reading and writing what all devices have.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use block::FrameMut;
use sys::Disk;

use super::device::Slot;
use super::members::{Members, Slots};

/// Reads of places that are so near to each other go to the same device, as long as it is well.
const NEAR_BYTES: u64 = 256 << 10;

impl Members {
    /// Does the same with each device that is written to. One that refuses is out.
    ///
    /// # Errors
    /// That of the last one that is in.
    pub(super) fn write_each(&self, write: impl Fn(&dyn Disk) -> io::Result<()>) -> io::Result<()> {
        self.begin()?;
        for slot in self.slots().iter() {
            let Some(device) = slot.written() else { continue };
            if let Err(error) = write(device.disk()) {
                self.fail(slot, error)?;
            }
        }
        Ok(())
    }

    /// Reads from one device after the other, until one gives it.
    pub(super) fn read_any(
        &self,
        offset_bytes: u64,
        frames: &mut [FrameMut],
        read: impl Fn(&dyn Disk, u64, &mut [FrameMut]) -> io::Result<()>,
    ) -> io::Result<()> {
        let slots = self.slots();
        let mut failed = None;
        for slot in reading_order(&slots, offset_bytes) {
            let Some(device) = slot.readable() else { continue };
            match read(device.disk(), offset_bytes, frames) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    slot.read_errors.fetch_add(1, Ordering::Relaxed);
                    failed = Some(error);
                }
            }
        }
        Err(failed.unwrap_or_else(|| io::Error::other("no device is in")))
    }

    /// The device with a copy of what is at an offset.
    pub(super) fn copy_of(&self, offset_bytes: u64, copy: u32) -> io::Result<Arc<Slot>> {
        let slots = self.slots();
        let slot = reading_order(&slots, offset_bytes).nth(copy as usize).cloned();
        let gone = || io::Error::new(io::ErrorKind::NotFound, "there is no such copy (any more)");
        slot.ok_or_else(gone)
    }

    /// The only device that is written to, if it is one.
    pub(super) fn only(&self) -> Option<Arc<Slot>> {
        let slots = self.slots();
        let mut written = slots.iter().filter(|slot| slot.written().is_some());
        let only = written.next()?;
        written.next().is_none().then(|| only.clone())
    }
}

/// All devices, in the order in which they are asked for what is at an offset.
pub(super) fn reading_order(slots: &Slots, offset_bytes: u64) -> impl Iterator<Item = &Arc<Slot>> {
    let first = (offset_bytes / NEAR_BYTES) as usize % slots.len().max(1);
    slots[first..].iter().chain(&slots[..first])
}

pub(super) fn is_out() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the device is out")
}
