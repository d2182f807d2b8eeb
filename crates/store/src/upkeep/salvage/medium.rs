//! A device that is read as far as it can be, and never written.

use std::io;
use std::sync::Arc;

use block::{BLOCK_BYTES, Frame, FrameMut};

/// What can't be read is zeros: no checksum and no fingerprint takes those for what was written.
pub(super) struct ReadOnly {
    disk: Arc<dyn sys::Disk>,
    /// As the pool wants it, also where the device is shorter.
    len_bytes: u64,
}

impl ReadOnly {
    pub(super) fn new(disk: Arc<dyn sys::Disk>, len_bytes: u64) -> Self {
        Self { disk, len_bytes }
    }
}

fn refuse() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "salvage never writes to a pool")
}

impl sys::Disk for ReadOnly {
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        if self.disk.read(offset_bytes, frames).is_ok() {
            return Ok(());
        }
        // One bad block must not cost those beside it.
        for (index, frame) in frames.iter_mut().enumerate() {
            let at = offset_bytes + index as u64 * BLOCK_BYTES;
            if self.disk.read_patiently(at, std::slice::from_mut(frame)).is_err() {
                frame.fill(0);
            }
        }
        Ok(())
    }

    fn write(&self, _offset_bytes: u64, _frames: &[Frame]) -> io::Result<()> {
        Err(refuse())
    }

    fn flush(&self) -> io::Result<()> {
        Err(refuse())
    }

    fn flush_failures(&self) -> u64 {
        0
    }
}
