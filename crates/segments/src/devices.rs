//! The devices of a pool, as administration and maintenance see them.

use std::io;

use format::DeviceId;
use format::label::MemberState;
use sys::DiskSnapshot;

/// The state of a device in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// It has everything that it should have.
    In,
    /// It receives all writes, and the data that it lacks is being copied to it.
    CatchingUp,
    /// It failed, and is not used until it is taken back.
    Out,
    /// An administrator took it out; it is not used until it is taken back.
    Kept,
    /// It was not present when the pool was opened.
    Missing,
}

impl DeviceState {
    /// Returns the state as labels record it.
    pub fn of_member(self) -> MemberState {
        match self {
            Self::In => MemberState::In,
            Self::CatchingUp | Self::Out | Self::Missing => MemberState::Out,
            Self::Kept => MemberState::Kept,
        }
    }
}

/// A target that lacks data that other devices have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    /// A device that is catching up, by its number.
    Device(u16),
    /// The parts to which columns are being moved.
    Parts,
}

/// The result of rebuilding some rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuilt {
    /// Everything was rebuilt.
    All,
    /// Everything was rebuilt, but the sources disagree: one of them is not what was written, so
    /// what was rebuilt from it may be wrong.
    Doubtful,
    /// Nothing was rebuilt, because too few sources can be read.
    Nothing,
}

/// Segments that should be moved to other devices, or to more of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToLayAnew {
    /// Segments with columns on devices that are lost or leaving, for which no other device has a
    /// free part. Those that lack most come first.
    pub lacking: Vec<u32>,
    /// Segments that are narrower than they could be on the current devices.
    pub narrow: Vec<u32>,
}

impl ToLayAnew {
    /// Returns whether no segment needs another layout.
    pub fn is_empty(&self) -> bool {
        self.lacking.is_empty() && self.narrow.is_empty()
    }
}

/// A device of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceStatus {
    /// Its number in the pool.
    pub number: u16,
    /// Its permanent identity.
    pub id: DeviceId,
    /// What it was opened as, such as a path; empty if it is missing.
    pub name: String,
    /// Its state.
    pub state: DeviceState,
    /// Why it is out, in one sentence; `None` if it is not.
    pub why_out: Option<String>,
    /// Its size in bytes; 0 if it is missing.
    pub len_bytes: u64,
    /// Reads that failed, since the pool was opened.
    pub read_errors: u64,
    /// Writes and flushes that failed, since the pool was opened.
    pub write_errors: u64,
    /// Locations whose content was not what was written, and was rewritten.
    pub mended: u64,
    /// How often a refused write or flush was retried.
    pub retries: u64,
    /// Its parts, in a pool with a map of parts.
    pub parts: Option<PartsUse>,
    /// Its I/O counters, for all callers, since it was opened.
    pub counts: DiskSnapshot,
    /// Reads of its data that were reconstructed, or served by another device, because this one was
    /// late, failed, or was not in; since the pool was opened.
    pub reads_elsewhere: u64,
}

/// The parts of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartsUse {
    /// The number of parts.
    pub all: u32,
    /// The number of parts with a column.
    pub used: u32,
    /// Whether it is being emptied: its columns are moved to other devices, and then it is removed.
    pub is_emptied: bool,
}

/// Why a device can't be changed as requested.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// There is no device with this number.
    #[error("the pool has no device {0}")]
    Unknown(u16),
    /// The pool is on one device, without labels of several.
    #[error("the pool was created on one device, and can't get more: create a pool on several")]
    OnlyOne,
    /// The last device that is in stays in.
    #[error("device {0} is the only one with all data of the pool")]
    Last(u16),
    /// Without it, too few devices are left to reconstruct the data.
    #[error("device {number} is needed: {are_in} devices are in, and none can be spared")]
    Needed {
        /// The number of the device.
        number: u16,
        /// The number of devices that are in.
        are_in: usize,
    },
    /// A striped pool without a map of parts can't get or lose devices, only replace them.
    #[error("the pool has no map of parts: its {0} devices can only be replaced once they are out")]
    InStripes(usize),
    /// The other devices have too few parts for the pool's segments, even at their narrowest.
    #[error("without device {number} there is room for {has} of the pool's {needs} segments")]
    NoRoom {
        /// The number of the device.
        number: u16,
        /// The number of segments.
        needs: u32,
        /// The number of segments with two columns of data that fit the others.
        has: u32,
    },
    /// It has the requested state already, or can't get it from its current one.
    #[error("device {number} is {state:?}: {instead}")]
    State {
        /// The number of the device.
        number: u16,
        /// Its state.
        state: DeviceState,
        /// What can be done instead.
        instead: &'static str,
    },
    /// It is too small.
    #[error("it has {has_bytes} bytes, but the pool needs {needs_bytes}")]
    Small {
        /// Its size.
        has_bytes: u64,
        /// The size that the pool uses of each device.
        needs_bytes: u64,
    },
    /// The pool has the maximum number of devices.
    #[error("the pool has {0} devices, which is the maximum")]
    Full(usize),
    /// The devices failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
