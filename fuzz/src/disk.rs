//! An in-memory disk with copy-on-write over a shared image, so that a new disk is cheap.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;

use block::{BLOCK_BYTES, Frame, FrameMut};
use parking_lot::Mutex;

/// Blocks by their number; missing blocks are zeros.
pub type Image = BTreeMap<u64, Frame>;

/// The disk.
pub struct MemoryDisk {
    len_bytes: u64,
    image: Arc<Image>,
    changed: Mutex<HashMap<u64, Frame>>,
}

impl MemoryDisk {
    /// Creates a disk with the content of `image`.
    pub fn new(len_bytes: u64, image: Arc<Image>) -> Self {
        Self { len_bytes, image, changed: Mutex::default() }
    }

    /// Returns the whole content.
    pub fn image(&self) -> Image {
        let mut image = (*self.image).clone();
        image.extend(self.changed.lock().iter().map(|(at, frame)| (*at, frame.clone())));
        image
    }

    fn block(&self, number: u64) -> Frame {
        let changed = self.changed.lock().get(&number).cloned();
        changed.or_else(|| self.image.get(&number).cloned()).unwrap_or_else(Frame::zeros)
    }

    /// Reads bytes at any offset within the disk.
    pub fn bytes(&self, at: u64, count: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(count);
        while out.len() < count {
            let place = at + out.len() as u64;
            let offset = (place % BLOCK_BYTES) as usize;
            let n = (count - out.len()).min(BLOCK_BYTES as usize - offset);
            out.extend_from_slice(&self.block(place / BLOCK_BYTES)[offset..offset + n]);
        }
        out
    }

    /// Writes bytes at any offset within the disk.
    pub fn set_bytes(&self, at: u64, bytes: &[u8]) {
        let mut done = 0;
        while done < bytes.len() {
            let place = at + done as u64;
            let offset = (place % BLOCK_BYTES) as usize;
            let n = (bytes.len() - done).min(BLOCK_BYTES as usize - offset);
            let mut frame = self.block(place / BLOCK_BYTES).into_mut();
            frame[offset..offset + n].copy_from_slice(&bytes[done..done + n]);
            self.changed.lock().insert(place / BLOCK_BYTES, frame.freeze());
            done += n;
        }
    }

    fn check(&self, offset_bytes: u64, count: usize) -> io::Result<()> {
        assert!(offset_bytes.is_multiple_of(BLOCK_BYTES), "an unaligned access");
        let end = offset_bytes + count as u64 * BLOCK_BYTES;
        if end > self.len_bytes {
            return Err(io::Error::other("an access past the end"));
        }
        Ok(())
    }
}

impl sys::Disk for MemoryDisk {
    fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.check(offset_bytes, frames.len())?;
        let changed = self.changed.lock();
        for (number, frame) in (offset_bytes / BLOCK_BYTES..).zip(frames) {
            match changed.get(&number).or_else(|| self.image.get(&number)) {
                Some(stored) => frame.copy_from_slice(&stored[..]),
                None => frame.fill(0),
            }
        }
        Ok(())
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.check(offset_bytes, frames.len()).expect("a store writes within its disk");
        self.changed.lock().extend((offset_bytes / BLOCK_BYTES..).zip(frames.iter().cloned()));
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn flush_failures(&self) -> u64 {
        0
    }
}
