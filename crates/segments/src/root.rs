//! The root on one device: superblocks, their validity, and the guarantee that one is always valid.
//!
//! There are two copies, written one after the other, and a *stand-in* for the time in which one of
//! them can't be written: without it, nothing would be valid while the other is overwritten.
//!
//! Invariants:
//! 1. A copy is overwritten only while the other one, or the stand-in, is valid and has the same
//!    content, or the new one. If the device refuses the stand-in as well, it refuses all writes:
//!    the last copy is left as it is, and writing ends.
//! 2. The root is replaced only by its successor, and only by a caller that has read the newest one
//!    ([`Roots::swap`] refuses others).

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use block::{Frame, FrameMut};
use format::superblock::{
    SUPERBLOCK_OFFSETS_BYTES, SUPERBLOCK_STAND_IN_OFFSET_BYTES, UNKNOWN_FEATURE, UNKNOWN_VERSION,
};
use format::{FormatError, Superblock};
use sys::Disk;

use crate::first_segment::{read_at, write_at};
use crate::{RootError, labels};

/// The state of the copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Roots {
    /// The sequence number of the newest.
    sequence: u64,
    /// Which copies are valid and have the content of the newest root or of its predecessor.
    whole: [bool; 2],
    /// Whether the stand-in is in use.
    stands_in: bool,
}

/// A value that is known once the root was read.
#[derive(Debug)]
pub(crate) struct SinceRead<T>(Mutex<Option<T>>);

impl<T> Default for SinceRead<T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<T> SinceRead<T> {
    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the value, after reading.
    pub(crate) fn set(&self, known: T) {
        *self.lock() = Some(known);
    }

    /// Calls `call` with the value, under its lock.
    ///
    /// # Errors
    /// Those of `call`; that nothing was read yet.
    pub(crate) fn with<R>(
        &self,
        call: impl FnOnce(&mut T) -> Result<R, RootError>,
    ) -> Result<R, RootError> {
        let mut known = self.lock();
        let known =
            known.as_mut().ok_or_else(|| RootError::None("the root was not read yet".into()))?;
        call(known)
    }

    /// The same, if anything was read.
    pub(crate) fn with_any(&self, call: impl FnOnce(&mut T)) {
        if let Some(known) = self.lock().as_mut() {
            call(known);
        }
    }
}

/// Returns why no copy is valid.
fn no_root(copies: &[Result<Superblock, FormatError>; 2]) -> RootError {
    let reasons = || copies.iter().filter_map(|copy| copy.as_ref().err());
    let is_newer = |error: &&FormatError| [UNKNOWN_VERSION, UNKNOWN_FEATURE].contains(&error.what);
    match reasons().find(is_newer) {
        Some(error) => RootError::Newer(error.what.to_string()),
        None => RootError::None(reasons().next().map_or_else(String::new, ToString::to_string)),
    }
}

/// The copies of the root found on one device.
pub(crate) struct Found {
    copies: [Result<Superblock, FormatError>; 2],
    stand_in: Option<Superblock>,
}

impl Found {
    pub(crate) fn on(disk: &dyn Disk) -> Self {
        let mut copies = read_copies(disk);
        if copies.iter().any(Result::is_err) {
            // A crash leaves one torn copy, but a misread one must not lead to an old state.
            copies = read_copies(disk);
        }
        let stand_in = read_stand_in(disk, &copies);
        Self { copies, stand_in }
    }

    /// Returns the newest valid one.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn newest(&self) -> Result<&Superblock, RootError> {
        let all = self.copies.iter().flatten().chain(&self.stand_in);
        let newest = all.max_by_key(|superblock| superblock.sequence);
        newest.ok_or_else(|| no_root(&self.copies))
    }

    /// Returns the state of these copies, given the newest root of the pool, which may be on
    /// another device.
    pub(crate) fn judged(&self, newest: &Superblock) -> Roots {
        let is_whole = |copy: &Result<Superblock, FormatError>| {
            copy.as_ref().is_ok_and(|copy| {
                let age = newest.sequence.checked_sub(copy.sequence);
                copy.pool_id == newest.pool_id && age.is_some_and(|age| age <= 1)
            })
        };
        let whole = self.copies.each_ref().map(is_whole);
        Roots { sequence: newest.sequence, whole, stands_in: self.stand_in.is_some() }
    }
}

impl Roots {
    /// Returns the state of a device without a root, in a pool with this newest root.
    pub(crate) fn none_of(newest: &Superblock) -> Self {
        Self { sequence: newest.sequence, whole: [false; 2], stands_in: false }
    }

    /// Reads the newest valid superblock, and the state of all copies.
    pub(crate) fn read(disk: &dyn Disk) -> Result<(Superblock, Self), RootError> {
        let found = Found::on(disk);
        let newest = found.newest()?.clone();
        let has_bytes = disk.len_bytes();
        if newest.capacity_bytes > has_bytes {
            return Err(RootError::Short { wants_bytes: newest.capacity_bytes, has_bytes });
        }
        let roots = found.judged(&newest);
        Ok((newest, roots))
    }

    /// Writes the newest root, at its location, to a device that has none.
    pub(crate) fn write_newest(
        &mut self,
        disk: &dyn Disk,
        newest: &Superblock,
    ) -> Result<(), RootError> {
        assert_eq!(newest.sequence, self.sequence, "the root is the newest");
        self.write(disk, newest)
    }

    /// Replaces the root with the sequence number `expected` by `next`, which has the following
    /// number and so overwrites the other copy.
    pub(crate) fn swap(
        &mut self,
        disk: &dyn Disk,
        expected: u64,
        next: &Superblock,
    ) -> Result<(), RootError> {
        if self.sequence != expected {
            return Err(RootError::Overtaken { expected, found: self.sequence });
        }
        assert!(next.sequence > expected, "a root is replaced only by its successor");
        self.replace(disk, next)
    }

    /// The same, for a caller that knows which root it replaces.
    pub(crate) fn replace(&mut self, disk: &dyn Disk, next: &Superblock) -> Result<(), RootError> {
        self.write(disk, next)?;
        self.sequence = next.sequence;
        Ok(())
    }

    /// Rewrites a copy that was found damaged, with the newest root or its successor, whichever
    /// belongs there.
    pub(crate) fn mend(
        &mut self,
        disk: &dyn Disk,
        copy: usize,
        root: &Superblock,
    ) -> Result<(), RootError> {
        assert_eq!(root.sequence % 2, copy as u64, "each copy has its sequence numbers");
        self.whole[copy] = false;
        match root.sequence == self.sequence {
            true => self.write(disk, root),
            false => self.swap(disk, root.sequence - 1, root),
        }
    }

    fn write(&mut self, disk: &dyn Disk, superblock: &Superblock) -> Result<(), RootError> {
        let copy = (superblock.sequence % 2) as usize;
        let frame = FrameMut::from_bytes(&superblock.encode()).freeze();
        if self.whole[copy] && !self.whole[1 - copy] {
            self.stands_in = true;
            write_at(disk, SUPERBLOCK_STAND_IN_OFFSET_BYTES, frame.clone())?;
        }
        let written = write_at(disk, SUPERBLOCK_OFFSETS_BYTES[copy], frame);
        self.whole[copy] = written.is_ok();
        Ok(written?)
    }

    /// Clears the stand-in once both copies are alike and valid, so that old content never counts
    /// as the newest.
    pub(crate) fn settle(&mut self, disk: &dyn Disk) {
        if self.stands_in && self.whole == [true; 2] {
            let cleared = write_at(disk, SUPERBLOCK_STAND_IN_OFFSET_BYTES, Frame::zeros());
            self.stands_in = cleared.is_err();
        }
    }
}

/// Reads both copies, in order.
pub(crate) fn read_copies(disk: &dyn Disk) -> [Result<Superblock, FormatError>; 2] {
    SUPERBLOCK_OFFSETS_BYTES.map(|offset_bytes| read_at(disk, offset_bytes, Superblock::decode))
}

/// Reads the stand-in, if there is one. It must be of the same pool, because the device may have
/// held another one before.
pub(crate) fn read_stand_in(
    disk: &dyn Disk,
    copies: &[Result<Superblock, FormatError>; 2],
) -> Option<Superblock> {
    let found = read_at(disk, SUPERBLOCK_STAND_IN_OFFSET_BYTES, Superblock::decode).ok()?;
    copies.iter().flatten().all(|copy| copy.pool_id == found.pool_id).then_some(found)
}

/// Writes the first root of a pool to a device with any content: both copies alike, no stand-in.
/// The labels, if there are any, are already written. `superblock` has the first sequence number.
pub(crate) fn make(disk: &dyn Disk, superblock: &Superblock) -> io::Result<()> {
    wipe(disk)?;
    if superblock.features.has_labels() {
        labels::make(disk, superblock)?;
    }
    write_first(disk, superblock)
}

/// Removes all roots from this device.
pub(crate) fn wipe(disk: &dyn Disk) -> io::Result<()> {
    let roots = SUPERBLOCK_OFFSETS_BYTES.into_iter().chain([SUPERBLOCK_STAND_IN_OFFSET_BYTES]);
    for offset_bytes in roots {
        disk.write(offset_bytes, &[Frame::zeros()])?;
    }
    disk.flush()
}

/// Writes both copies of the first root.
pub(crate) fn write_first(disk: &dyn Disk, superblock: &Superblock) -> io::Result<()> {
    for sequence in [superblock.sequence, superblock.sequence + 1] {
        let copy = Superblock { sequence, ..superblock.clone() };
        let frame = FrameMut::from_bytes(&copy.encode()).freeze();
        disk.write(SUPERBLOCK_OFFSETS_BYTES[(sequence % 2) as usize], &[frame])?;
        disk.flush()?;
    }
    Ok(())
}
