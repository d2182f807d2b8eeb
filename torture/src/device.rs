//! A device that fails on command: a plain file below a volatile write cache.
//!
//! Written data is in the cache until a flush, or is durable at once if the write requests it
//! (FUA), which covers only that write. Reads check the cache first. A device that is torn out and
//! brought back lacks what was not flushed; and, on request, is as it was when it was torn out the
//! time before.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use fuser::Errno;
use rustix::fs::{FallocateFlags, StatVfs};

use crate::faults::{Counts, Faults};

/// The size of a cached block.
pub const BLOCK_BYTES: u64 = 4096;
/// The largest cache, in blocks (32 MiB): like a real device, this one writes back the excess.
const CACHE_BLOCKS: usize = 8192;

/// The bytes copied at a time.
const COPY_BYTES: usize = 1 << 17;

/// A block of the cache.
type Block = Box<[u8]>;

/// The kind of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    Write,
    Flush,
}

/// A device, and its faults.
pub struct Device {
    file: File,
    state: Mutex<State>,
    /// Notified when the faults change.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    faults: Faults,
    counts: Counts,
    cache: BTreeMap<u64, Block>,
    /// Its content when it was torn out.
    before: Option<File>,
}

impl Device {
    /// Creates a device with the content of this file.
    pub fn over(file: File) -> Self {
        Self { file, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Sets its faults from now on.
    pub fn set(&self, faults: Faults) {
        self.lock().faults = faults;
        self.changed.notify_all();
    }

    /// Returns its counts.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// Returns whether a call would be slow now: then it must not block other calls.
    pub fn is_slow(&self) -> bool {
        let faults = &self.lock().faults;
        faults.hangs || !faults.delay.is_zero()
    }

    /// Tears it out until it is brought back.
    pub fn tear_out(&self) {
        self.set(Faults { is_gone: true, ..Faults::default() });
    }

    /// Brings it back, healthy, but without unflushed data.
    pub fn bring_back(&self) {
        self.lose_unflushed();
        self.set(Faults::default());
    }

    /// Loses unflushed data, as in a power failure.
    pub fn lose_unflushed(&self) {
        let mut state = self.lock();
        state.counts.lost_blocks += state.cache.len() as u64;
        state.cache.clear();
    }

    /// Returns whether it can be set back.
    pub fn remembers(&self) -> bool {
        self.lock().before.is_some()
    }

    /// Remembers its content without unflushed data. Only while it is gone, when nothing changes.
    ///
    /// # Errors
    /// Errors of copying the file.
    pub fn remember(&self) -> io::Result<()> {
        let copy = tempfile::tempfile()?;
        copy_all(&self.file, &copy)?;
        self.lock().before = Some(copy);
        Ok(())
    }

    /// Sets it back to the remembered content; returns false if there is none. Only while it is
    /// gone.
    ///
    /// # Errors
    /// Errors of copying the file.
    pub fn set_back(&self) -> io::Result<bool> {
        self.lose_unflushed();
        let Some(before) = self.lock().before.take() else { return Ok(false) };
        copy_all(&before, &self.file)?;
        self.lock().counts.set_back += 1;
        Ok(true)
    }

    /// Reads; fewer bytes beyond the end.
    ///
    /// # Errors
    /// Its fault.
    pub fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>, Errno> {
        let mut state = self.begin(Call::Read)?;
        let mut bytes = vec![0; len];
        let had = read_up_to(&self.file, &mut bytes, offset)?;
        bytes.truncate(had);
        for (number, block) in state.cache.range(blocks_of(offset, len)) {
            let (from, to) = overlap(*number, offset, bytes.len());
            let start = (number * BLOCK_BYTES + from as u64 - offset) as usize;
            bytes[start..start + (to - from)].copy_from_slice(&block[from..to]);
        }
        state.counts.bytes += bytes.len() as u64;
        if state.faults.lies && !bytes.is_empty() {
            state.counts.lies += 1;
            // Another bit each time, anywhere in the data.
            let bit = state.counts.lies.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            let at = bit as usize % (bytes.len() * 8);
            bytes[at / 8] ^= 1 << (at % 8);
        }
        Ok(bytes)
    }

    /// Writes all of it, durably if requested.
    ///
    /// # Errors
    /// Its fault; then nothing was written.
    pub fn write(&self, offset: u64, bytes: &[u8], durable: bool) -> Result<(), Errno> {
        let mut state = self.begin(Call::Write)?;
        state.counts.bytes += bytes.len() as u64;
        for number in blocks_of(offset, bytes.len()) {
            let (from, to) = overlap(number, offset, bytes.len());
            let start = (number * BLOCK_BYTES + from as u64 - offset) as usize;
            let mut block = match state.cache.remove(&number) {
                Some(block) => block,
                None if to - from == BLOCK_BYTES as usize => vec![0; to].into(),
                None => self.stored(number)?,
            };
            block[from..to].copy_from_slice(&bytes[start..start + (to - from)]);
            match durable {
                true => self.store(number, &block)?,
                false => _ = state.cache.insert(number, block),
            }
        }
        while state.cache.len() > CACHE_BLOCKS {
            let Some((number, block)) = state.cache.pop_first() else { break };
            self.store(number, &block)?;
        }
        Ok(())
    }

    /// Makes all written data survive a loss of power.
    ///
    /// # Errors
    /// Its fault.
    pub fn flush(&self) -> Result<(), Errno> {
        let mut state = self.begin(Call::Flush)?;
        for (number, block) in std::mem::take(&mut state.cache) {
            self.store(number, &block)?;
        }
        Ok(())
    }

    /// Reserves or releases space.
    ///
    /// # Errors
    /// Its fault; errors of the file.
    pub fn allocate(&self, mode: i32, offset: u64, len: u64) -> Result<(), Errno> {
        let mut state = self.begin(Call::Write)?;
        let mode = FallocateFlags::from_bits_retain(mode as u32);
        if mode.contains(FallocateFlags::PUNCH_HOLE) {
            state.cache.retain(|number, _| {
                let start = number * BLOCK_BYTES;
                start < offset || start + BLOCK_BYTES > offset + len
            });
        }
        rustix::fs::fallocate(&self.file, mode, offset, len).map_err(io::Error::from)?;
        Ok(())
    }

    /// Makes it longer or shorter.
    ///
    /// # Errors
    /// Its fault; errors of the file.
    pub fn set_len(&self, len: u64) -> Result<(), Errno> {
        let mut state = self.begin(Call::Write)?;
        state.cache.split_off(&len.div_ceil(BLOCK_BYTES));
        Ok(self.file.set_len(len)?)
    }

    /// Returns the metadata of its file.
    ///
    /// # Errors
    /// If it is gone; errors of the file.
    pub fn metadata(&self) -> Result<Metadata, Errno> {
        self.must_be_there()?;
        Ok(self.file.metadata()?)
    }

    /// Returns the free space of its filesystem.
    ///
    /// # Errors
    /// If it is gone; errors of the file.
    pub fn space(&self) -> Result<StatVfs, Errno> {
        self.must_be_there()?;
        Ok(rustix::fs::fstatvfs(&self.file).map_err(io::Error::from)?)
    }

    /// Checks that it is present.
    ///
    /// # Errors
    /// If it is gone.
    pub fn must_be_there(&self) -> Result<(), Errno> {
        match self.lock().faults.is_gone {
            true => Err(Errno::ENODEV),
            false => Ok(()),
        }
    }

    /// Waits as its faults demand, and fails if they demand that.
    fn begin(&self, call: Call) -> Result<MutexGuard<'_, State>, Errno> {
        let mut state = self.lock();
        if !state.faults.delay.is_zero() {
            state.counts.delayed += 1;
            let delay = state.faults.delay;
            drop(state);
            thread::sleep(delay);
            state = self.lock();
        }
        if state.faults.hangs {
            state.counts.hung += 1;
            let is_over = |state: &mut State| state.faults.hangs && !state.faults.is_gone;
            let waited = self.changed.wait_while(state, is_over);
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        state.call(call)?;
        Ok(state)
    }

    /// Returns a block of the file; zeros beyond its end.
    fn stored(&self, number: u64) -> io::Result<Block> {
        let mut block = vec![0; BLOCK_BYTES as usize];
        read_up_to(&self.file, &mut block, number * BLOCK_BYTES)?;
        Ok(block.into())
    }

    fn store(&self, number: u64, block: &[u8]) -> io::Result<()> {
        self.file.write_all_at(block, number * BLOCK_BYTES)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked has already failed the test.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a call, and fails it if its faults demand that.
    fn call(&mut self, call: Call) -> Result<(), Errno> {
        if self.faults.is_gone {
            self.counts.gone += 1;
            return Err(Errno::ENODEV);
        }
        let refusal = match call {
            Call::Read => &mut self.faults.reads,
            Call::Write => &mut self.faults.writes,
            Call::Flush => &mut self.faults.flushes,
        };
        if refusal.refuses() {
            self.counts.refused += 1;
            if call == Call::Flush {
                self.counts.lost_blocks += self.cache.len() as u64;
                self.cache.clear();
            }
            return Err(Errno::EIO);
        }
        if call == Call::Write && self.faults.is_full {
            self.counts.full += 1;
            return Err(Errno::ENOSPC);
        }
        self.counts.calls += 1;
        Ok(())
    }
}

/// Returns the blocks that a range of bytes touches.
fn blocks_of(offset: u64, len: usize) -> std::ops::Range<u64> {
    offset / BLOCK_BYTES..(offset + len as u64).div_ceil(BLOCK_BYTES)
}

/// Returns which bytes of a block are in this range, which touches it.
fn overlap(number: u64, offset: u64, len: usize) -> (usize, usize) {
    let start = number * BLOCK_BYTES;
    let end = (offset + len as u64).saturating_sub(start).min(BLOCK_BYTES);
    let from = offset.saturating_sub(start).min(end);
    (from as usize, end as usize)
}

fn read_up_to(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut had = 0;
    while had < bytes.len() {
        match file.read_at(&mut bytes[had..], offset + had as u64)? {
            0 => break,
            more => had += more,
        }
    }
    Ok(had)
}

/// Copies the content of a file to another one, with holes for zeros.
fn copy_all(from: &File, to: &File) -> io::Result<()> {
    let len = from.metadata()?.len();
    to.set_len(0)?;
    to.set_len(len)?;
    let mut bytes = vec![0; COPY_BYTES];
    for offset in (0..len).step_by(COPY_BYTES) {
        let had = read_up_to(from, &mut bytes, offset)?;
        if bytes[..had].iter().any(|byte| *byte != 0) {
            to.write_all_at(&bytes[..had], offset)?;
        }
    }
    Ok(())
}
