//! Incarnations: state that ends with a power loss is stored with the number of its incarnation.
//!
//! Each opening of a pool for use is a power on, and begins the next incarnation: whoever has
//! served the pool before is gone. A controller that takes over continues the incarnation, but in a
//! new epoch. Both copies of the superblock have the incarnation before the first record of that
//! opening is written. So no durable state is ever of an incarnation that a later opening could
//! begin again, and beginning one needs no commit.
//!
//! Superblocks of version 2 have no such number; the epoch, which increases at each opening as
//! well, is used instead. When such a pool becomes one of version 3, its number stays, and
//! increases from there.

use format::{FormatVersion, Superblock};

/// The time from one power on to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incarnation {
    /// Its number, which increases.
    pub number: u64,
    /// Whether the pool stores it, from version 3 of the format on. Programs that know only version
    /// 2 use what the layer above has stored.
    pub is_stored: bool,
}

/// Returns the incarnation of a superblock.
pub(crate) fn of(superblock: &Superblock) -> u64 {
    match superblock.version {
        FormatVersion::V2 => superblock.epoch,
        FormatVersion::V3 => superblock.incarnation,
    }
}

/// Begins the next incarnation in the superblock of a new epoch, unless it has the one that is
/// being taken over; returns its number.
pub(crate) fn begin(superblock: &mut Superblock, takes_over: Option<u64>) -> u64 {
    if superblock.version > FormatVersion::V2 && takes_over != Some(superblock.incarnation) {
        superblock.incarnation += 1;
    }
    of(superblock)
}
