//! An in-memory disk with fault injection.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use block::{Frame, FrameMut};
use parking_lot::Mutex;

/// An in-memory disk, whose blocks take no memory until they are written.
pub(crate) struct MemoryDisk {
    blocks: Mutex<std::collections::HashMap<u64, Frame>>,
    len_bytes: AtomicU64,
    /// Number of reads.
    reads: AtomicU64,
    /// Writes that still succeed.
    writes_left: AtomicU64,
    /// Blocks that can't be read.
    unreadable: Mutex<BTreeSet<u64>>,
    /// Blocks that can't be written.
    bad: Mutex<BTreeSet<u64>>,
    /// Blocks of writes that failed.
    refused: Mutex<BTreeSet<u64>>,
}

impl MemoryDisk {
    pub(crate) fn new(len_bytes: u64) -> Arc<Self> {
        Arc::new(Self {
            blocks: Mutex::default(),
            len_bytes: AtomicU64::new(len_bytes),
            reads: AtomicU64::new(0),
            writes_left: AtomicU64::new(u64::MAX),
            unreadable: Mutex::default(),
            bad: Mutex::default(),
            refused: Mutex::default(),
        })
    }

    /// Returns another disk with the same content: what a crash at this moment would leave.
    pub(crate) fn copy(&self) -> Arc<Self> {
        let copy = Self::new(self.len_bytes.load(Ordering::Relaxed));
        copy.blocks.lock().extend(self.blocks.lock().iter().map(|(at, held)| (*at, held.clone())));
        copy
    }

    /// Returns the number of reads of any length.
    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::Relaxed)
    }

    /// Makes the device fail after this many writes.
    pub(crate) fn fail_after(&self, writes: u64) {
        self.writes_left.store(writes, Ordering::Relaxed);
    }

    /// Makes writes to these blocks fail.
    pub(crate) fn refuse_writes_to(&self, blocks: impl IntoIterator<Item = u64>) {
        *self.bad.lock() = blocks.into_iter().collect();
    }

    /// Returns the blocks whose writes failed: a device may have torn them.
    pub(crate) fn refused(&self) -> BTreeSet<u64> {
        self.refused.lock().clone()
    }

    /// Makes reads of a block and of all its copies fail; `u64::MAX` makes all blocks readable
    /// again.
    pub(crate) fn fail_reads_of(&self, block: u64) {
        *self.unreadable.lock() = self.copies_of(block).into_iter().collect();
    }

    /// Flips a bit, counted from a byte of the device, in the block and all its copies.
    pub(crate) fn flip(&self, offset_bytes: u64, bit: u64) {
        let at = offset_bytes + bit / 8;
        for block in self.copies_of(at / 4096) {
            self.flip_one(block * 4096 + at % 4096, bit % 8);
        }
    }

    /// Flips a bit, counted from a byte of the device, in this block only.
    pub(crate) fn flip_one(&self, offset_bytes: u64, bit: u64) {
        let at = offset_bytes + bit / 8;
        let mut bytes = self.block(at / 4096).into_mut();
        bytes[(at % 4096) as usize] ^= 1 << (bit % 8);
        self.overwrite(at / 4096, bytes.freeze());
    }

    /// Changes every byte.
    pub(crate) fn scramble(&self) {
        for held in self.blocks.lock().values_mut() {
            let mut bytes = held.clone().into_mut();
            bytes.iter_mut().for_each(|byte| *byte ^= 0xa5);
            *held = bytes.freeze();
        }
    }

    /// Returns a block and its copies: metadata is written twice, and a record's header is repeated
    /// in the next record, which identifies it by its seal.
    pub(crate) fn copies_of(&self, block: u64) -> Vec<u64> {
        let content = self.block(block);
        let is_record = content[..4] == *b"HFLR";
        let is_copy = |(at, held): &(&u64, &Frame)| {
            let is_next = is_record && held[..4] == *b"HFLR" && held[32..48] == content[64..80];
            **at != block && (is_next || held[..] == content[..])
        };
        let is_zeros = content.iter().all(|byte| *byte == 0);
        let blocks = self.blocks.lock();
        let copies = blocks.iter().filter(|held| !is_zeros && is_copy(held)).map(|(at, _)| *at);
        std::iter::once(block).chain(copies).collect()
    }

    /// Returns a block's content.
    pub(crate) fn block(&self, block: u64) -> Frame {
        self.blocks.lock().get(&block).cloned().unwrap_or_else(Frame::zeros)
    }

    /// Replaces a block's content.
    pub(crate) fn overwrite(&self, block: u64, frame: Frame) {
        self.blocks.lock().insert(block, frame);
    }

    /// Returns all blocks ever written, in order.
    pub(crate) fn written_blocks(&self) -> Vec<u64> {
        let mut blocks: Vec<u64> = self.blocks.lock().keys().copied().collect();
        blocks.sort_unstable();
        blocks
    }

    /// Shortens the device.
    pub(crate) fn cut(&self, len_bytes: u64) {
        self.len_bytes.store(len_bytes, Ordering::Relaxed);
        self.blocks.lock().retain(|block, _| block * 4096 < len_bytes);
    }

    /// Returns whether both disks hold the same content.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        let blocks = self.written_blocks();
        blocks == other.written_blocks()
            && blocks.iter().all(|at| self.block(*at)[..] == other.block(*at)[..])
    }
}

impl sys::Disk for MemoryDisk {
    fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Relaxed)
    }

    fn grow(&self, len_bytes: u64) -> io::Result<()> {
        self.len_bytes.fetch_max(len_bytes, Ordering::Relaxed);
        Ok(())
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let blocks = self.blocks.lock();
        let first = offset_bytes / 4096;
        let asked = first..first + frames.len() as u64;
        if self.unreadable.lock().range(asked).next().is_some()
            || offset_bytes + frames.len() as u64 * 4096 > self.len_bytes()
        {
            return Err(io::Error::other("the device can't read this"));
        }
        for (index, frame) in frames.iter_mut().enumerate() {
            match blocks.get(&(offset_bytes / 4096 + index as u64)) {
                Some(stored) => frame.copy_from_slice(&stored[..]),
                None => frame.fill(0),
            }
        }
        Ok(())
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let (first, end) = (offset_bytes / 4096, offset_bytes / 4096 + frames.len() as u64);
        let refuse = |why| {
            self.refused.lock().extend(first..end);
            Err(io::Error::other(why))
        };
        let Some(left) = self.writes_left.load(Ordering::Relaxed).checked_sub(1) else {
            return refuse("no more writes");
        };
        self.writes_left.store(left, Ordering::Relaxed);
        if self.bad.lock().range(first..end).next().is_some() {
            return refuse("the device can't write this");
        }
        let mut blocks = self.blocks.lock();
        for (index, frame) in frames.iter().enumerate() {
            blocks.insert(offset_bytes / 4096 + index as u64, frame.clone());
        }
        Ok(())
    }

    fn discard(&self, offset_bytes: u64, len_bytes: u64) -> io::Result<bool> {
        let first = offset_bytes / 4096;
        let mut blocks = self.blocks.lock();
        (first..first + len_bytes / 4096).for_each(|block| drop(blocks.remove(&block)));
        Ok(true)
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn flush_failures(&self) -> u64 {
        0
    }
}
