//! Recovering a pool while another process uses it, so that little is left to do when that process
//! ends.
//!
//! A follower reads the newest checkpoint, and applies the records after it as a recovery does. It
//! only reads from the medium, and does not rely on the process that has the pool: regardless of
//! what that process does, the follower's state is either right or discarded. When the other
//! process has published a newer checkpoint, the state is obsolete, and a new follower begins
//! there.
//!
//! Invariants, by which its state equals that of a recovery from the beginning:
//! 1. It applies a record only if a later one says that it was flushed: such records are a
//!    permanent part of the log. What else recovery decides (where the log ends, which of it is
//!    torn) is decided when this process has the pool to itself.
//! 2. It continues only from the checkpoint that is the newest when it takes over. Everything that
//!    it has read of it was in place then, and so all the time, because what a checkpoint refers to
//!    is not overwritten before the next one is published. So lost data is lost, and what was read
//!    was right.
//! 3. It met nothing that could not be read: otherwise it may have read the wrong device.
//! 4. Segments are as wide as when it read their locations, and the last record that it applied is
//!    there: no device is missing that it was read from.
//!
//! It writes nothing, and takes no lock.

use format::Superblock;
use segments::Shared;

use crate::opening::Purpose;
use crate::opening::recovery::Recovery;
use crate::{OpenOptions, StoreError};

/// About how many records are applied before checking whether there is a newer checkpoint, and
/// whether the follower is still needed: a takeover waits that long.
const RECORDS_AT_ONCE: usize = 32;

/// A recovery that follows the log; see the module.
pub struct Follower {
    recovery: Recovery,
    /// An error has left its state inconsistent.
    is_broken: bool,
}

/// The result of following the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Following {
    /// Everything that is certainly durable was applied.
    Current,
    /// There is more to apply.
    Behind,
    /// There is a newer checkpoint: this follower is obsolete.
    Overtaken,
}

impl Follower {
    /// Reads the newest checkpoint of a pool that another process uses. `disk` is for this follower
    /// alone; it need not be writable.
    ///
    /// # Errors
    /// If something can't be read, or is invalid: the checkpoint may have been replaced meanwhile.
    pub fn open(disk: impl Into<Shared>, options: OpenOptions) -> Result<Self, StoreError> {
        let recovery = Recovery::begin(disk.into(), options, Purpose::Look)?;
        Ok(Self { recovery, is_broken: false })
    }

    /// Applies what was added to the log, at most a few dozen records.
    ///
    /// # Errors
    /// As [`Follower::open`]. The follower is then useless.
    pub fn follow(&mut self) -> Result<Following, StoreError> {
        if !self.is_of_use() || self.newest().is_none_or(|newest| !self.is_of(&newest)) {
            return Ok(Following::Overtaken);
        }
        self.is_broken = true;
        let is_all = self.recovery.follow(RECORDS_AT_ONCE)?;
        self.is_broken = false;
        Ok(match (self.is_of_use(), is_all) {
            (false, _) => Following::Overtaken,
            (true, true) => Following::Current,
            (true, false) => Following::Behind,
        })
    }

    /// Returns how many records it has applied.
    pub fn records(&self) -> u64 {
        self.next_lsn() - self.recovery.superblock().log.lsn
    }

    /// Returns the LSN of the record that it applies next.
    pub fn next_lsn(&self) -> u64 {
        self.recovery.next_lsn()
    }

    /// Returns whether its state is consistent, and everything could be read.
    fn is_of_use(&self) -> bool {
        !self.is_broken && self.recovery.is_whole()
    }

    /// Reads the newest superblock that can be read.
    fn newest(&self) -> Option<Superblock> {
        let copies = self.recovery.disk().root_copies();
        copies.into_iter().flatten().max_by_key(|copy| copy.sequence)
    }

    /// Returns whether this superblock is of the checkpoint that it builds on. Each is written
    /// twice, with successive sequence numbers.
    fn is_of(&self, superblock: &Superblock) -> bool {
        let own = self.recovery.superblock();
        let sequence = own.sequence;
        superblock.sequence.abs_diff(sequence) <= 1
            && Superblock { sequence, ..superblock.clone() } == *own
    }

    /// Returns its state for a process that has the pool to itself now, on this disk with this
    /// root; `None` if it can't be used.
    pub(super) fn recovery_on(
        self,
        disk: &Shared,
        root: &Superblock,
        options: &OpenOptions,
    ) -> Option<Recovery> {
        let mut segments = 1..root.geometry.segment_count;
        let is_of_use = self.is_of_use()
            && self.is_of(root)
            && segments
                .all(|segment| self.recovery.disk().columns(segment) == disk.columns(segment));
        if is_of_use { self.recovery.go_on(disk, root, options) } else { None }
    }
}
