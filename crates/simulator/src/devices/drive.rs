//! One of several disks: what a [`SimDisk`] does, and trouble of the whole disk.
//!
//! All disks share the power: it fails at a call to any of them, any part of which may then have
//! been done, and no disk responds from there on.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use block::{Frame, FrameMut};
use format::geometry::SEGMENT_BYTES_MIN;
use sys::{Disk, Persist, RetryingDisk};

use crate::commits::Ground;
use crate::disk::{Below, Faults, Hook, SimDisk, Survival};
use crate::rng::{Rng, mix};

/// The trouble of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Nothing.
    #[default]
    None,
    /// It is not there: each call fails with ENODEV.
    Gone,
    /// This many calls fail with EIO.
    Errors(u64),
    /// This many reads fail with EIO.
    ReadErrors(u64),
    /// This many writes fail with ENOSPC.
    Full(u64),
}

impl Trouble {
    /// Returns how a call fails, if it does; counts it.
    fn strike(&mut self, is_read: bool) -> Option<i32> {
        let (left, code) = match self {
            Self::Gone => return Some(libc::ENODEV),
            Self::Errors(left) => (left, libc::EIO),
            Self::ReadErrors(left) if is_read => (left, libc::EIO),
            Self::Full(left) if !is_read => (left, libc::ENOSPC),
            _ => return None,
        };
        *left -= 1;
        if *left == 0 {
            *self = Self::None;
        }
        Some(code)
    }
}

/// What all disks share.
#[derive(Default)]
pub(super) struct Power {
    inner: Mutex<Inner>,
    hook: Mutex<Option<Hook>>,
}

#[derive(Default)]
struct Inner {
    /// Calls until it fails.
    fuse: Option<u64>,
    has_failed: bool,
    reads: u64,
    writes: u64,
    troubled: u64,
    trace: u64,
    log: Option<Vec<String>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Power {
    pub(super) fn with_log(keeps_log: bool) -> Arc<Self> {
        let log = keeps_log.then(Vec::new);
        let inner = Mutex::new(Inner { log, ..Inner::default() });
        Arc::new(Self { inner, hook: Mutex::default() })
    }

    /// Makes the power fail after this many writes and flushes.
    pub(super) fn set_fuse(&self, calls: Option<u64>) {
        lock(&self.inner).fuse = calls;
    }

    /// Restores the power.
    pub(super) fn restore(&self) {
        let mut inner = lock(&self.inner);
        (inner.fuse, inner.has_failed) = (None, false);
    }

    /// Sets a hook that is called after each write except of roots and labels, but not recursively.
    pub(super) fn set_hook(&self, hook: Option<Hook>) {
        *lock(&self.hook) = hook;
    }

    pub(super) fn trace(&self) -> u64 {
        lock(&self.inner).trace
    }

    pub(super) fn take_log(&self) -> Vec<String> {
        lock(&self.inner).log.take().unwrap_or_default()
    }

    /// Returns the number of writes and flushes, and of calls that failed because of the trouble of
    /// a disk.
    pub(super) fn counts(&self) -> (u64, u64) {
        let inner = lock(&self.inner);
        (inner.writes, inner.troubled)
    }

    /// Counts a write or a flush: returns whether the power fails at it.
    ///
    /// # Errors
    /// If it has failed before.
    fn count(&self) -> io::Result<bool> {
        let mut inner = lock(&self.inner);
        if inner.has_failed {
            return Err(has_failed());
        }
        inner.writes += 1;
        let left = inner.fuse.map(|left| left.saturating_sub(1));
        inner.fuse = left;
        inner.has_failed = left == Some(0);
        Ok(inner.has_failed)
    }

    /// Calls the hook; returns whether there is one.
    fn after(&self) -> bool {
        let hook = lock(&self.hook).take();
        let Some(mut hook) = hook else { return false };
        hook();
        *lock(&self.hook) = Some(hook);
        true
    }
}

impl Ground for Power {
    fn note(&self, line: &str) {
        let mut inner = lock(&self.inner);
        let hash = line.bytes().fold(inner.trace, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3).rotate_left(29)
        });
        inner.trace = mix(hash);
        if let Some(log) = &mut inner.log {
            log.push(line.to_string());
        }
    }

    fn has_failed(&self) -> bool {
        lock(&self.inner).has_failed
    }

    fn read_count(&self) -> u64 {
        lock(&self.inner).reads
    }

    fn retrying(&self) -> Option<&RetryingDisk<Below>> {
        None
    }
}

fn has_failed() -> io::Error {
    io::Error::other("simulated: the power has failed")
}

/// One of several disks.
pub(super) struct Drive {
    pub(super) name: String,
    pub(super) disk: SimDisk,
    power: Arc<Power>,
    trouble: Mutex<Trouble>,
}

impl Drive {
    /// Creates an empty disk.
    pub(super) fn new(name: String, len_bytes: u64, seed: u64, power: &Arc<Power>) -> Arc<Self> {
        let disk = SimDisk::new(len_bytes, seed);
        disk.set_faults(Faults { no_fua: seed.is_multiple_of(3), ..Faults::that_pass(false) });
        Arc::new(Self { name, disk, power: power.clone(), trouble: Mutex::default() })
    }

    pub(super) fn trouble(&self) -> Trouble {
        *lock(&self.trouble)
    }

    pub(super) fn set_trouble(&self, trouble: Trouble) {
        self.power.note(&format!("disk {}: trouble {trouble:?}", self.name));
        *lock(&self.trouble) = trouble;
    }

    /// Makes the power fail and return.
    pub(super) fn crash(&self, survival: Survival, rng: &mut Rng) {
        self.disk.crash(survival, rng);
    }

    /// Returns a disk with what is durable on this one.
    pub(super) fn copy(&self) -> SimDisk {
        let mut content = self.disk.content();
        content.lose_power(Survival::Nothing, &mut Rng::new(0));
        let copy = SimDisk::new(self.disk.len_bytes(), 0);
        copy.set_content(content);
        copy
    }

    fn strike(&self, is_read: bool) -> Option<io::Error> {
        let code = lock(&self.trouble).strike(is_read)?;
        lock(&self.power.inner).troubled += 1;
        Some(io::Error::from_raw_os_error(code))
    }

    /// Does a call that changes something.
    fn change<T>(
        &self,
        told: &str,
        at: (u64, usize),
        call: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let is_last = self.power.count()?;
        let refused = self.strike(false);
        // What fails may have been done in part.
        let has_effect = refused.is_none() || self.trouble() != Trouble::Gone;
        if is_last || refused.is_some() {
            // At the write, or at the flush after it.
            let io = self.disk.io_count();
            self.disk.set_error_at(Some(io + 1 + io % 2));
        }
        let mut result = if has_effect { call() } else { Err(io::Error::other("gone")) };
        if let Some(error) = refused {
            result = Err(error);
        }
        if is_last {
            result = Err(has_failed());
        }
        self.disk.set_error_at(None);
        let is_done = if result.is_ok() { "done" } else { "failed" };
        let (name, (offset_bytes, blocks)) = (&self.name, at);
        self.power.note(&format!("disk {name}: {told} {offset_bytes:#x} {blocks} {is_done}"));
        if offset_bytes >= SEGMENT_BYTES_MIN && !is_last {
            self.power.after();
        }
        result
    }

    fn read_with(&self, read: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        {
            let mut inner = lock(&self.power.inner);
            if inner.has_failed {
                return Err(has_failed());
            }
            inner.reads += 1;
        }
        match self.strike(true) {
            Some(error) => Err(error),
            None => read(),
        }
    }
}

impl Disk for Drive {
    fn len_bytes(&self) -> u64 {
        self.disk.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.read_with(|| self.disk.read(offset_bytes, frames))
    }

    fn read_patiently(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.read_with(|| self.disk.read_patiently(offset_bytes, frames))
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.write_as(offset_bytes, frames, Persist::Nothing)
    }

    fn flush(&self) -> io::Result<()> {
        self.change("flush", (0, 0), || self.disk.flush())
    }

    fn flush_failures(&self) -> u64 {
        self.disk.flush_failures()
    }

    fn discard(&self, offset_bytes: u64, len_bytes: u64) -> io::Result<bool> {
        let blocks = (len_bytes / block::BLOCK_BYTES) as usize;
        let at = (offset_bytes, blocks);
        self.change("discard", at, || self.disk.discard(offset_bytes, len_bytes))
    }

    fn set_redundant(&self, redundant: bool) {
        self.disk.set_redundant(redundant);
    }

    fn give_way(&self) -> bool {
        self.power.after()
    }

    fn write_durable(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.write_as(offset_bytes, frames, Persist::Itself)
    }

    fn write_as(&self, offset_bytes: u64, frames: &[Frame], persist: Persist) -> io::Result<()> {
        let at = (offset_bytes, frames.len());
        let write = || self.disk.write_as(offset_bytes, frames, persist);
        self.change(&format!("write {persist:?}"), at, write)
    }
}
