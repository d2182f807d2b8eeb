//! The devices of a pool, as those who look after them see them.

use std::io;

use format::DeviceId;
use format::label::MemberState;
use sys::DiskSnapshot;

/// What a device does in its pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceState {
    /// It has all that it should have of the pool.
    In,
    /// It gets all that is written, and what it does not have yet is copied to it.
    CatchingUp,
    /// It has failed: nothing is asked of it before it is taken back.
    Out,
    /// An administrator has taken it out: nothing is asked of it before it is taken back.
    Kept,
    /// It was not there when the pool was opened.
    Missing,
}

impl DeviceState {
    /// How labels name it.
    pub fn of_member(self) -> MemberState {
        match self {
            Self::In => MemberState::In,
            Self::CatchingUp | Self::Out | Self::Missing => MemberState::Out,
            Self::Kept => MemberState::Kept,
        }
    }
}

/// Who lacks something that others have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacking {
    /// A device that catches up, by its number.
    Device(u16),
    /// The parts that columns are being moved to.
    Parts,
}

/// What was rebuilt of some rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuilt {
    /// All that should be there.
    All,
    /// The same, but the others don't agree: one of them holds something else than was written, so
    /// that what was made of it may be wrong.
    Doubtful,
    /// Nothing, as too few of the others can be read.
    Nothing,
}

/// Segments that should be laid on other devices than they are, or on more of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToLayAnew {
    /// Some of their columns are on devices that are lost, or leave, and no other one has a free
    /// part for these: those that lack most come first.
    pub lacking: Vec<u32>,
    /// They are narrower than they could be on the devices that there are now.
    pub narrow: Vec<u32>,
}

impl ToLayAnew {
    /// Whether all segments are as they should be.
    pub fn is_empty(&self) -> bool {
        self.lacking.is_empty() && self.narrow.is_empty()
    }
}

/// A device of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceStatus {
    /// Its number in the pool.
    pub number: u16,
    /// Which it is, for ever.
    pub id: DeviceId,
    /// Where it was opened, such as a path; empty if it is missing.
    pub name: String,
    /// What it does.
    pub state: DeviceState,
    /// Why it is out, if it is, in one sentence.
    pub why_out: Option<String>,
    /// How long it is, in bytes; 0 if it is missing.
    pub len_bytes: u64,
    /// Reads that failed, since the pool was opened.
    pub read_errors: u64,
    /// Writes and flushes that failed, since the pool was opened.
    pub write_errors: u64,
    /// Places that had something else than what was written, and were written anew.
    pub mended: u64,
    /// How often a write or a flush was retried that it had refused.
    pub retries: u64,
    /// In a pool with a map of parts: how many it has, and how many of them columns are in.
    pub parts: Option<PartsUse>,
    /// What it was asked by whomever, since it was opened.
    pub counts: DiskSnapshot,
    /// Reads of what it should have that were made of others instead, or read from another one, as
    /// it was late, had failed them, or was not in; since the pool was opened.
    pub reads_elsewhere: u64,
}

/// The parts of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartsUse {
    /// How many there are.
    pub all: u32,
    /// How many columns are in.
    pub used: u32,
    /// Whether it is emptied: what it has is moved elsewhere, and then it is no member any more.
    pub is_emptied: bool,
}

/// Why devices can't be changed so.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// There is none with this number.
    #[error("the pool has no device {0}")]
    Unknown(u16),
    /// A pool on one device, without labels of several.
    #[error("the pool is on one device, and can't be given more; make one on several")]
    OnlyOne,
    /// The last one that is in stays.
    #[error("device {0} is the only one that has all of the pool")]
    Last(u16),
    /// Without it too few are left to make what the others have.
    #[error("with {are_in} devices in, none can be spared, and so not device {number}")]
    Needed {
        /// The number of the device.
        number: u16,
        /// How many are in.
        are_in: usize,
    },
    /// None comes to a pool in stripes without a map of parts, and none goes, but for another.
    #[error("the pool has no map of parts, and keeps its {0} devices: replace one that is out")]
    InStripes(usize),
    /// The others have too few parts for the segments of the pool, as narrow as these can be.
    #[error("without device {number} there is room for {has} of the pool's {needs} segments")]
    NoRoom {
        /// The number of the device.
        number: u16,
        /// How many segments there are.
        needs: u32,
        /// How many of two columns of data the others have room for.
        has: u32,
    },
    /// It is what is asked for already, or can't be from where it is.
    #[error("device {number} is {state:?}: {instead}")]
    State {
        /// The number of the device.
        number: u16,
        /// What it is.
        state: DeviceState,
        /// What can be done.
        instead: &'static str,
    },
    /// It is too small.
    #[error("it has {has_bytes} bytes, and the pool {needs_bytes}")]
    Small {
        /// How long it is.
        has_bytes: u64,
        /// How much each device of the pool has of it.
        needs_bytes: u64,
    },
    /// There are as many as a pool can have.
    #[error("the pool has {0} devices, which is the most that it can have")]
    Full(usize),
    /// The devices have failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}
