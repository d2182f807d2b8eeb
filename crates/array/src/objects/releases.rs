//! Released LUNs: those under which a host saw a volume until its connection ended.
//!
//! A host notices by itself that a volume is gone: Linux keeps the disk until somebody removes it.
//! If another volume got the LUN meanwhile, the host would reach that one through the old disk. So
//! a released LUN rests before it is chosen again.

use block::VolumeId;

use super::host_groups::HostGroupId;
use super::hosts::HostId;

/// For how long no LUN is chosen that was released: four hours, in milliseconds of array time.
pub const LUN_REST_MS: u64 = 4 * 3_600_000;

/// The maximum number of remembered releases of an array. Beyond that, the oldest are dropped: each
/// takes about 150 bytes of memory, and removing all must fit one commit.
pub const RELEASES_MAX: usize = 32_768;

/// The host or host group that a LUN belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum LunOwner {
    Host(HostId),
    Group(HostGroupId),
}

/// Something that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ReleaseKey {
    /// A connection under a LUN.
    Lun(LunOwner, u16),
    /// The membership of a host in a group, and so, for the host, all connections of the group.
    Membership(HostId, HostGroupId),
}

/// The end of a connection, or of a host's membership in a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// When, in array time. Later releases have higher times, even within a millisecond.
    pub(crate) at_ms: u64,
    /// The volume that was connected.
    pub(crate) volume: Option<VolumeId>,
}

/// A release to store, or `None` to drop one.
pub(crate) type ReleaseUpdate = (ReleaseKey, Option<Release>);
