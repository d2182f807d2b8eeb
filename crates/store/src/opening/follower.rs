//! Recovering a pool while another process uses it, so that little is left to do when that ends.
//!
//! A follower reads the newest checkpoint, and applies the records behind it as a recovery does. It
//! reads from the medium, and asks nothing of the process that has the pool: so it is right, or of
//! no use, whatever that one does or did. When the other one has published a newer checkpoint, what
//! the follower has is of no use any more, and a new one begins there.
//!
//! Invariants, by which what it has is what a recovery from the beginning would have:
//! 1. It applies a record only if a later one says that it was flushed: such records are part of
//!    the log for good, whatever comes after. What else recovery decides (where the log ends, what
//!    of it is torn) is decided when the pool is this process's alone.
//! 2. It goes on only from the checkpoint that is the newest when it takes over. All that it has
//!    read of it was in place then, and so all the time: what a checkpoint names is not written
//!    over before the next one is published. So what was lost is lost, and what was read was right.
//! 3. Nothing that it met could not be read: it may have looked on the wrong device.
//! 4. Segments are as wide as they were when it read where they are, and the last record that it
//!    applied is there: the devices are not fewer than those that it was read from.
//!
//! It writes nothing, and takes no lock.

use format::Superblock;
use segments::Shared;

use crate::opening::Purpose;
use crate::opening::recovery::Recovery;
use crate::{OpenOptions, StoreError};

/// How many records are applied, or a few more, before it is looked whether there is a newer
/// checkpoint, and whether the follower is wanted any more: who takes over waits that long.
const RECORDS_AT_ONCE: usize = 32;

/// See the module.
pub struct Follower {
    recovery: Recovery,
    /// An error has left what it has in disorder.
    is_broken: bool,
}

/// What a follower has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Following {
    /// It applied all that is durable for sure.
    Current,
    /// There is more to apply.
    Behind,
    /// There is a newer checkpoint: this follower is of no use any more.
    Overtaken,
}

impl Follower {
    /// Reads the newest checkpoint of a pool that somebody else uses. `disk` is for this follower
    /// alone; it needs not be writable.
    ///
    /// # Errors
    /// What can't be read, or makes no sense: it may be that the checkpoint was replaced meanwhile.
    pub fn open(disk: impl Into<Shared>, options: OpenOptions) -> Result<Self, StoreError> {
        let recovery = Recovery::begin(disk.into(), options, Purpose::Look)?;
        Ok(Self { recovery, is_broken: false })
    }

    /// Applies what the log has got, at most some dozens of records.
    ///
    /// # Errors
    /// As [`Follower::open`]. It is of no use any more then.
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

    /// How many records it has applied.
    pub fn records(&self) -> u64 {
        self.next_lsn() - self.recovery.superblock().log.lsn
    }

    /// The sequence number of the record that it applies next.
    pub fn next_lsn(&self) -> u64 {
        self.recovery.next_lsn()
    }

    /// Whether what it has is in order, and all of it could be read.
    fn is_of_use(&self) -> bool {
        !self.is_broken && self.recovery.is_whole()
    }

    /// The newest superblock that can be read.
    fn newest(&self) -> Option<Superblock> {
        let copies = self.recovery.disk().root_copies();
        copies.into_iter().flatten().max_by_key(|copy| copy.sequence)
    }

    /// Whether this superblock is of the checkpoint that it builds on. Each is written twice, with
    /// sequence numbers that follow one another.
    fn is_of(&self, superblock: &Superblock) -> bool {
        let own = self.recovery.superblock();
        let sequence = own.sequence;
        superblock.sequence.abs_diff(sequence) <= 1
            && Superblock { sequence, ..superblock.clone() } == *own
    }

    /// What it has, for a process that has the pool to itself now, on this disk with this root;
    /// `None` if that is of no use.
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
