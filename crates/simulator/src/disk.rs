//! A disk in memory that does what real ones do when the power fails.
//!
//! # The fault model
//! What `docs/crash-consistency.md` assumes of a device, and nothing kinder:
//! - A write that was followed by a completed flush is present after a crash.
//! - Of a write that was not, each 512-byte sector independently is present or not: writes are
//!   lost, torn, and appear reordered. A sector itself is never torn.
//! - A crash comes at a write (any part of which may then be there), or at a flush (after which any
//!   part of what it should have kept is there), or between two I/Os.
//! - A write can fail, once or from some time on until the pool is opened again, with any effect.
//! - A write can be refused temporarily ([`Faults::transient_writes_per_mille`]): the device
//!   returns a temporary error, or a filesystem below has no space, after a part of it was done. A
//!   write can transfer fewer bytes than it was given. The product's own code retries and continues
//!   ([`sys::RetryingDisk`], [`sys::Transfers`]), over simulated calls ([`Below`]): this must have
//!   no visible effect.
//! - A location can go bad ([`SimDisk::set_bad`]): each write there fails, with any effect, until
//!   it is good again.
//! - A flush can fail, once, randomly, or from some time on, and lose what it should have kept, for
//!   readers as well; the next one succeeds nevertheless. This must have no visible effect, unless
//!   flushes fail permanently, which ends all writing.
//! - A read can fail a few times, and succeed when it is retried: this must have no visible effect.
//! - Reads can fail permanently, bits can flip, and a read can return another block's bytes:
//!   separate modes, in which the store may return MEDIUM ERROR, or refuse to open, but never
//!   anything wrong.
//! - A write that the device reports as done may be lost, land elsewhere, or land in part
//!   ([`WriteFault`]): also a separate mode, see [`crate::misplaced`].
//! - Growing is immediate and durable, or fails, after which the disk may have grown or not.
//! - A device that lies, and loses what it reported as flushed, is outside of what the store
//!   promises: [`Faults::lying_flush`] is a canary, with which the checker *must* find a loss.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use block::{Frame, FrameMut};
use sys::{Disk as _, RetryingDisk};
use twox_hash::XxHash3_64;

use crate::device::Device;
pub use crate::device::Survival;
use crate::rng::{Rng, mix};

mod calls;
mod faults;
mod moving;
mod patience;

pub use faults::{Faults, Struck, WriteFault};

const BLOCK: u64 = block::BLOCK_BYTES;
/// The maximum number of successive flushes that fail randomly.
const FLUSHES_REFUSED_MAX: u32 = 20;

pub(crate) type Hook = Box<dyn FnMut() + Send>;

/// The disk.
pub struct SimDisk {
    disk: RetryingDisk<Below>,
}

/// The calls that end at the device.
pub struct Below {
    inner: Mutex<Inner>,
    hook: Mutex<Option<Hook>>,
}

struct Inner {
    len_bytes: u64,
    device: Device,
    /// The number of writes and flushes so far.
    io_count: u64,
    /// The I/O at which the power fails.
    fuse: Option<u64>,
    /// The I/O that fails, alone or with all later ones.
    error_at: Option<u64>,
    errors_last: bool,
    /// The I/O from which on no flush succeeds.
    no_flush_from: Option<u64>,
    /// The number of successive flushes that have failed.
    flushes_refused: u32,
    /// How often writes were refused that will be accepted if retried, by the block in which each
    /// ends, because the rest of a partial write begins later.
    writes_refused: BTreeMap<u64, u32>,
    /// Writes that were refused so, or transferred only a part.
    hindered_count: u64,
    /// Blocks at which all writes fail.
    bad: Vec<Range<u64>>,
    /// Writes that failed there.
    refused_count: u64,
    /// Where the last write ended.
    written_to: u64,
    /// The next write to one of these locations is done wrongly; to any, if the list is empty.
    write_fault: Option<(&'static [u64], WriteFault)>,
    struck: Option<Struck>,
    /// The number of reads so far.
    read_count: u64,
    /// How often reads of a block have failed that will succeed if retried, and the number of reads
    /// at the first failure.
    reads_refused: BTreeMap<u64, (u32, u64)>,
    /// The number of writes that were reported as failed.
    error_count: u64,
    dead: bool,
    failed: bool,
    faults: Faults,
    rng: Rng,
    patience: patience::Patience,
    trace: u64,
    log: Option<Vec<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn power_failed() -> io::Error {
    io::Error::other("simulated: the power has failed")
}

/// A temporary error of the device, worth a retry.
fn error_that_may_pass() -> io::Error {
    io::Error::from_raw_os_error(libc::EIO)
}

/// Most of the cost of a world is what it writes: this hash is as fast as memory.
fn hash_bytes(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

impl Inner {
    fn note(&mut self, kind: &str, offset: u64, blocks: usize, content: u64) {
        self.trace = mix(self.trace ^ hash_bytes(kind.as_bytes()));
        self.trace = mix(self.trace ^ offset ^ (blocks as u64) << 48);
        self.trace = mix(self.trace ^ content);
        let io = self.io_count;
        if let Some(log) = &mut self.log {
            log.push(format!("io {io}: {kind} at {offset:#x}, {blocks} blocks, {content:016x}"));
        }
    }

    fn restart(&mut self) {
        self.dead = false;
        self.failed = false;
        self.fuse = None;
        self.error_at = None;
        self.no_flush_from = None;
    }

    /// Counts a write or a flush; returns whether it is to be done, and its result.
    fn count(&mut self, is_flush: bool) -> (bool, io::Result<()>) {
        self.patience.spend(patience::WRITE_WORK);
        if self.dead {
            return (false, Err(power_failed()));
        }
        self.io_count += 1;
        if self.fuse == Some(self.io_count) {
            self.dead = true;
            self.failed = true;
            return (true, Err(power_failed()));
        }
        let fails = |at| self.io_count == at || self.errors_last && self.io_count > at;
        if self.error_at.is_some_and(fails) {
            // What a flush should have kept is written again, unless all flushes fail from here on.
            self.failed |= !is_flush || self.errors_last;
            self.error_count += 1;
            let lasting = io::Error::other("simulated: a write error");
            return (true, Err(if is_flush { error_that_may_pass() } else { lasting }));
        }
        if is_flush && self.no_flush_from.is_some_and(|from| self.io_count >= from) {
            self.failed = true;
            return (true, Err(error_that_may_pass()));
        }
        (true, Ok(()))
    }
}

impl SimDisk {
    /// Creates an empty disk.
    pub fn new(len_bytes: u64, seed: u64) -> Self {
        let inner = Inner {
            len_bytes,
            device: Device::default(),
            io_count: 0,
            fuse: None,
            error_at: None,
            errors_last: false,
            no_flush_from: None,
            flushes_refused: 0,
            writes_refused: BTreeMap::new(),
            hindered_count: 0,
            bad: Vec::new(),
            refused_count: 0,
            written_to: 0,
            write_fault: None,
            struck: None,
            read_count: 0,
            reads_refused: BTreeMap::new(),
            error_count: 0,
            dead: false,
            failed: false,
            faults: Faults::default(),
            rng: Rng::new(seed),
            patience: patience::Patience::default(),
            trace: 0,
            log: None,
        };
        let below = Below { inner: Mutex::new(inner), hook: Mutex::new(None) };
        Self { disk: RetryingDisk::new(below) }
    }

    /// Returns the number of writes and flushes so far.
    pub fn io_count(&self) -> u64 {
        self.inner().io_count
    }

    /// Returns the number of reads so far.
    pub fn read_count(&self) -> u64 {
        self.inner().read_count
    }

    /// Returns the number of writes and flushes that have failed by themselves so far.
    pub fn error_count(&self) -> u64 {
        self.inner().error_count
    }

    /// Makes the power fail at this I/O, counted from the disk's beginning.
    pub fn set_fuse(&self, io: Option<u64>) {
        self.inner().fuse = io;
    }

    /// Makes only this I/O fail, counted from the disk's beginning.
    pub fn set_error_at(&self, io: Option<u64>) {
        let mut inner = self.inner();
        (inner.error_at, inner.errors_last) = (io, false);
    }

    /// Makes this I/O, counted from the disk's beginning, and all later ones fail, until the pool
    /// is opened again.
    pub fn set_errors_from(&self, io: u64) {
        let mut inner = self.inner();
        (inner.error_at, inner.errors_last) = (Some(io), true);
    }

    /// Makes each flush fail from this I/O on, counted from the disk's beginning, until the pool is
    /// opened again.
    pub fn set_no_flush_from(&self, io: u64) {
        self.inner().no_flush_from = Some(io);
    }

    /// Makes all writes to these blocks fail from here on.
    pub fn set_bad(&self, blocks: Vec<Range<u64>>) {
        let mut inner = self.inner();
        inner.note(&format!("bad: {blocks:?}"), 0, 0, 0);
        inner.bad = blocks;
    }

    /// Returns how many writes have failed at bad locations.
    pub fn refused_count(&self) -> u64 {
        self.inner().refused_count
    }

    /// Returns the block after the last write.
    pub fn written_to(&self) -> u64 {
        self.inner().written_to
    }

    /// Changes the faults.
    pub fn set_faults(&self, faults: Faults) {
        self.inner().faults = faults;
    }

    /// Does the next write that begins at one of these offsets wrongly; any next write, if none are
    /// given.
    pub fn set_write_fault(&self, offsets_bytes: &'static [u64], fault: WriteFault) {
        self.inner().write_fault = Some((offsets_bytes, fault));
    }

    /// Returns the write that was done wrongly, if there was one.
    pub fn struck(&self) -> Option<Struck> {
        self.inner().struck.clone()
    }

    /// Returns whether the power has failed, and [`SimDisk::crash`] is due.
    pub fn is_dead(&self) -> bool {
        self.inner().dead
    }

    /// Returns whether a write or a flush has failed since the last crash.
    pub fn has_failed(&self) -> bool {
        self.inner().failed
    }

    /// Returns how many flushes have failed.
    pub fn failed_flushes(&self) -> u64 {
        self.disk.flush_failures()
    }

    /// Returns how many writes were refused temporarily, or transferred only a part.
    pub fn hindered_count(&self) -> u64 {
        self.inner().hindered_count
    }

    /// Sets a hook that is called after every write and flush, with nothing locked, but not
    /// recursively: so the world continues during blocking writes.
    pub fn set_hook(&self, hook: Option<Hook>) {
        *lock(&self.disk.calls().hook) = hook;
    }

    /// Starts recording each I/O and each note as a line.
    pub fn keep_log(&self) {
        self.inner().log = Some(Vec::new());
    }

    /// Returns the lines since [`SimDisk::keep_log`].
    pub fn take_log(&self) -> Vec<String> {
        self.inner().log.take().unwrap_or_default()
    }

    /// Adds a line to the trace that is not an I/O.
    pub fn note(&self, line: &str) {
        let mut inner = self.inner();
        inner.trace = mix(inner.trace ^ hash_bytes(line.as_bytes()));
        if let Some(log) = &mut inner.log {
            log.push(line.to_string());
        }
    }

    /// Returns a hash of every I/O and every note so far.
    pub fn trace(&self) -> u64 {
        self.inner().trace
    }

    /// Makes the power fail and return: flushed data is present, and of the rest what `survival`
    /// says.
    pub fn crash(&self, survival: Survival, rng: &mut Rng) {
        let mut inner = self.inner();
        let inner = &mut *inner;
        inner.device.lose_power(survival, rng);
        inner.restart();
        self.disk.forget_failures();
    }

    /// Restarts the users of the disk, which has lost nothing.
    pub fn restart(&self) {
        self.inner().restart();
        self.disk.forget_failures();
    }

    /// Writes back a part of the device's cache.
    pub fn write_back(&self) {
        let inner = &mut *self.inner();
        inner.note("write back", 0, 0, 0);
        inner.device.write_back(&mut inner.rng);
    }

    /// Flips one bit of a block that was written, except in segment 0 (whose loss a single device
    /// can't survive); returns the block's number.
    pub fn rot(&self, rng: &mut Rng) -> Option<u64> {
        let mut inner = self.inner();
        let first = format::geometry::SEGMENT_BYTES_MIN / BLOCK;
        let numbers = inner.device.written_from(first);
        if numbers.is_empty() {
            return None;
        }
        let number = numbers[rng.below(numbers.len() as u64) as usize];
        let bit = rng.below(BLOCK * 8);
        let mut frame = inner.device.read(number).cloned()?.into_mut();
        frame[(bit / 8) as usize] ^= 1 << (bit % 8);
        inner.device.rot(number, frame.freeze());
        Some(number)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        lock(&self.disk.calls().inner)
    }

    /// Returns the product's own code over the device, for callers with [`sys::Transfers`].
    pub(crate) fn retrying(&self) -> &RetryingDisk<Below> {
        &self.disk
    }
}

impl Below {
    /// Calls the hook; returns whether there is one.
    fn after(&self) -> bool {
        let hook = lock(&self.hook).take();
        let Some(mut hook) = hook else { return false };
        hook();
        *lock(&self.hook) = Some(hook);
        true
    }
}

#[cfg(test)]
mod tests;
