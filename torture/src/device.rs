//! A device that fails as it is told to: a plain file, below a write cache that is volatile.
//!
//! What is written is in the cache until a flush, or a write that is durable by itself (FUA), which
//! covers itself alone. Reads are of the cache first. Whoever tears the device out and brings it
//! back finds it without what was not flushed; and, if that is wanted, as it was when it was torn
//! out the time before.

use std::collections::BTreeMap;
use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use fuser::Errno;
use rustix::fs::{FallocateFlags, StatVfs};

use crate::faults::{Counts, Faults};

/// Bytes of a block, which is in the cache or is not.
pub const BLOCK_BYTES: u64 = 4096;
/// The largest cache, in blocks (32 MiB): a device writes back what is beyond, and so does this.
const CACHE_BLOCKS: usize = 8192;

/// How much is copied at a time.
const COPY_BYTES: usize = 1 << 17;

/// A block of the cache.
type Block = Box<[u8]>;

/// Which call is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    Write,
    Flush,
}

/// A device, and what is wrong with it.
pub struct Device {
    file: File,
    state: Mutex<State>,
    /// Notified when other things are wrong than before.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    faults: Faults,
    counts: Counts,
    cache: BTreeMap<u64, Block>,
    /// What it had when it was torn out.
    before: Option<File>,
}

impl Device {
    /// A device that has what is in this file.
    pub fn over(file: File) -> Self {
        Self { file, state: Mutex::default(), changed: Condvar::new() }
    }

    /// What is wrong from here on.
    pub fn set(&self, faults: Faults) {
        self.lock().faults = faults;
        self.changed.notify_all();
    }

    /// What it has done.
    pub fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// Whether a call would take its time now: somebody else has to wait for it then.
    pub fn is_slow(&self) -> bool {
        let faults = &self.lock().faults;
        faults.hangs || !faults.delay.is_zero()
    }

    /// It is gone, until it is brought back.
    pub fn tear_out(&self) {
        self.set(Faults { is_gone: true, ..Faults::default() });
    }

    /// It is back, and well, but for what it had not flushed.
    pub fn bring_back(&self) {
        self.lose_unflushed();
        self.set(Faults::default());
    }

    /// Loses what it had not flushed, as it does when its power fails.
    pub fn lose_unflushed(&self) {
        let mut state = self.lock();
        state.counts.lost_blocks += state.cache.len() as u64;
        state.cache.clear();
    }

    /// Whether it could be set back.
    pub fn remembers(&self) -> bool {
        self.lock().before.is_some()
    }

    /// Remembers what it has without what is not flushed. Only while it is gone: nothing changes
    /// then.
    ///
    /// # Errors
    /// What copying the file says.
    pub fn remember(&self) -> io::Result<()> {
        let copy = tempfile::tempfile()?;
        copy_all(&self.file, &copy)?;
        self.lock().before = Some(copy);
        Ok(())
    }

    /// Sets it back to what it has remembered; false if that is nothing. Only while it is gone.
    ///
    /// # Errors
    /// What copying the file says.
    pub fn set_back(&self) -> io::Result<bool> {
        self.lose_unflushed();
        let Some(before) = self.lock().before.take() else { return Ok(false) };
        copy_all(&before, &self.file)?;
        self.lock().counts.set_back += 1;
        Ok(true)
    }

    /// Reads; fewer bytes behind the end.
    ///
    /// # Errors
    /// What is wrong with it.
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
            // Another one each time, all over what was read.
            let bit = state.counts.lies.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 20;
            let at = bit as usize % (bytes.len() * 8);
            bytes[at / 8] ^= 1 << (at % 8);
        }
        Ok(bytes)
    }

    /// Writes all of it, durably if that is wanted.
    ///
    /// # Errors
    /// What is wrong with it; then nothing was written.
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

    /// Has all that was written survive a loss of power.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn flush(&self) -> Result<(), Errno> {
        let mut state = self.begin(Call::Flush)?;
        for (number, block) in std::mem::take(&mut state.cache) {
            self.store(number, &block)?;
        }
        Ok(())
    }

    /// Reserves space, or gives it back.
    ///
    /// # Errors
    /// What is wrong with it; what the file says.
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
    /// What is wrong with it; what the file says.
    pub fn set_len(&self, len: u64) -> Result<(), Errno> {
        let mut state = self.begin(Call::Write)?;
        state.cache.split_off(&len.div_ceil(BLOCK_BYTES));
        Ok(self.file.set_len(len)?)
    }

    /// What its file is.
    ///
    /// # Errors
    /// If it is gone; what the file says.
    pub fn metadata(&self) -> Result<Metadata, Errno> {
        self.must_be_there()?;
        Ok(self.file.metadata()?)
    }

    /// What is free where it is.
    ///
    /// # Errors
    /// If it is gone; what the file says.
    pub fn space(&self) -> Result<StatVfs, Errno> {
        self.must_be_there()?;
        Ok(rustix::fs::fstatvfs(&self.file).map_err(io::Error::from)?)
    }

    /// # Errors
    /// If it is gone.
    pub fn must_be_there(&self) -> Result<(), Errno> {
        match self.lock().faults.is_gone {
            true => Err(Errno::ENODEV),
            false => Ok(()),
        }
    }

    /// Waits as long as is wrong with it, and fails if that is.
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

    /// A block as the file has it; zeros behind its end.
    fn stored(&self, number: u64) -> io::Result<Block> {
        let mut block = vec![0; BLOCK_BYTES as usize];
        read_up_to(&self.file, &mut block, number * BLOCK_BYTES)?;
        Ok(block.into())
    }

    fn store(&self, number: u64, block: &[u8]) -> io::Result<()> {
        self.file.write_all_at(block, number * BLOCK_BYTES)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panicked has failed the test already.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts a call, and fails it if that is wanted.
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

/// The blocks that a range of bytes touches.
fn blocks_of(offset: u64, len: usize) -> std::ops::Range<u64> {
    offset / BLOCK_BYTES..(offset + len as u64).div_ceil(BLOCK_BYTES)
}

/// Which bytes of a block are in this range, of which it has some.
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

/// Has a file hold the same as another one, with holes where that is zeros.
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
