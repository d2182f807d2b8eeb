//! Incarnations: what ends with a loss of power is known by the number of the one that it is of.
//!
//! Each opening to use a pool is a power on, and begins the next incarnation: whoever has served
//! the pool before is gone. A controller that takes over from another one goes on in its
//! incarnation, but in a new epoch. A superblock says so, in both copies, before the first record
//! of that opening is written. So nothing durable is ever of an incarnation that a later opening
//! could begin again, and no commit is needed to begin one.
//!
//! Superblocks of version 2 have no such number. There the epoch is it, which each opening counts
//! up as well. When such a pool becomes one of version 3, its number stays, and counts on.

use format::{FormatVersion, Superblock};

/// The time from one power on to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// Its number: a later one's is higher.
    pub number: u64,
    /// Whether the pool itself says so, from version 3 of the format on. Programs that know version
    /// 2 only go by what the layer above has kept of it.
    pub is_stored: bool,
}

/// The incarnation that a superblock is of.
pub(crate) fn of(superblock: &Superblock) -> u64 {
    match superblock.version {
        FormatVersion::V2 => superblock.epoch,
        FormatVersion::V3 => superblock.incarnation,
    }
}

/// Has the superblock of a new epoch begin the next incarnation, unless it is of the one that is
/// taken over; its number.
pub(crate) fn begin(superblock: &mut Superblock, takes_over: Option<u64>) -> u64 {
    if superblock.version > FormatVersion::V2 && takes_over != Some(superblock.incarnation) {
        superblock.incarnation += 1;
    }
    of(superblock)
}
