//! What the store needs of where its segments live.

use std::fmt;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use block::{Frame, FrameMut};
use format::{FormatError, Geometry, Label, Place, Superblock};
use sys::Persist;

use crate::channel::Channel;
use crate::devices::{DeviceError, DeviceStatus, Lacking, Rebuilt, ToLayAnew};

/// Where the segments of a pool live, and its root.
///
/// A place is a segment and an offset in it; where that is on which device nobody above knows.
/// Places are given in whole blocks of 4 KiB, and what is read or written there never leaves its
/// segment: whoever asks for that is stopped by an assertion, as it would reach what belongs to
/// somebody else.
///
/// The calls here wait. They are for checkpoints, reclaim, scrubbing, recovery and tools; on the
/// way of a host's request there is a [`Channel`].
pub trait Segments: Send + Sync {
    /// The pool is divided like this from now on: as its root says, or as it will say when it has
    /// grown. Segments keep their size.
    fn lay_out(&self, geometry: Geometry);

    /// How many columns of data a segment has; `None` if that is what the root says of all. It
    /// changes by [`Segments::lay_anew`] only.
    fn columns(&self, _segment: u32) -> Option<u8> {
        None
    }

    /// Which segments should be laid otherwise than they are, as devices have come or gone; `None`
    /// if none should. Cheap enough to be asked for each command, as long as no device is out.
    fn to_lay_anew(&self) -> Option<Arc<ToLayAnew>> {
        None
    }

    /// Lays those of these segments anew that should be, durably, and others narrower where these
    /// lack something otherwise; how many were. Nothing is in any of them, nobody reads them, and
    /// nobody writes to them before this has returned.
    ///
    /// # Errors
    /// What devices say: all are where they were then.
    fn lay_anew(&self, _segments: &[u32]) -> io::Result<u32> {
        Ok(0)
    }

    /// How large a pool there is room for, in bytes.
    fn len_bytes(&self) -> u64;

    /// Makes room for a pool of `capacity_bytes`, durably, while it is used; does nothing where
    /// there is.
    ///
    /// # Errors
    /// If that can't be had.
    fn grow(&self, capacity_bytes: u64) -> io::Result<()>;

    /// Fills `frames` from `place` on, or fails. What fails once may succeed the next time.
    ///
    /// # Errors
    /// What the medium says.
    fn read(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()>;

    /// As [`Segments::read`], and tries again what fails, so that an error is one that lasts.
    ///
    /// # Errors
    /// What the medium says.
    fn read_patiently(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()>;

    /// Nobody needs what is in this segment any more, and nothing is appended to it before this has
    /// returned: its space goes back to whoever has lent it. `false` where that can't be, and then
    /// of no segment.
    ///
    /// # Errors
    /// What the medium says. What was in the segment may be gone all the same.
    fn free(&self, segment: u32) -> io::Result<bool>;

    /// Appends `frames` to a segment, at `place`. Not durable before a flush. What is there may be
    /// a *hole*: blocks of a segment of metadata that nothing names any more.
    ///
    /// # Errors
    /// What the medium says; any part may have been written.
    fn append(&self, place: Place, frames: &[Frame]) -> io::Result<()>;

    /// Appends `frames` (perhaps none, then `place` says nothing), and makes durable what `persist`
    /// says.
    ///
    /// # Errors
    /// As [`Segments::append`].
    fn append_as(&self, place: Place, frames: &[Frame], persist: Persist) -> io::Result<()>;

    /// Calls `write`, which appends what it likes, and makes all of that durable: see
    /// [`sys::Disk::write_and_flush`].
    ///
    /// # Errors
    /// Those of `write`, and of the flush.
    fn write_and_flush(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;

    /// How many flushes have failed since it was opened: see [`sys::Disk::flush_failures`].
    fn flush_failures(&self) -> u64;

    /// The newest root that is whole.
    ///
    /// # Errors
    /// If there is none, or it names more than there is.
    fn read_root(&self) -> Result<Superblock, RootError>;

    /// All that stands in the place of a root, newest or not: for tools, and for scrubbing, which
    /// compares them.
    fn root_copies(&self) -> Vec<Result<Superblock, FormatError>>;

    /// Puts `next` in the place of the root with the sequence number `expected`, durably: nothing,
    /// if another one stands there now. Its own sequence number is a later one.
    ///
    /// # Errors
    /// [`RootError::Overtaken`]: somebody else has replaced it; what the medium says, and then the
    /// old root or the new one is there.
    fn swap_root(&self, expected: u64, next: &Superblock) -> Result<(), RootError>;

    /// Copies of the root that differ in age become alike: to be called when two roots that say the
    /// same have followed each other.
    fn settle_root(&self);

    /// A copy of the root, by its number, was found bad: writes `root` there, which is the newest
    /// itself, or its successor.
    ///
    /// # Errors
    /// As [`Segments::swap_root`].
    fn mend_root(&self, copy: usize, root: &Superblock) -> Result<(), RootError>;

    /// Has each device have the newest root whole, where it has not, though others have. Which copy
    /// that is on all of them, and for each that had it not whether it has it now.
    fn mend_roots(&self) -> (usize, Vec<bool>) {
        (0, Vec::new())
    }

    /// What each device says of itself, in all copies: for tools.
    fn labels(&self) -> Vec<Result<Label, FormatError>>;

    /// Has each device say which one of the pool it is, where it does not, if the pool of this root
    /// has labels. Returns the copies that did not.
    fn mend_labels(&self, root: &Superblock) -> Vec<BadLabel>;

    /// Keeps out whoever had an earlier epoch: nothing that they still have on its way lands on a
    /// record of this one when it returns. Says by what, and what that does not keep out.
    ///
    /// # Errors
    /// If they can't be kept out.
    fn fence(&self, epoch: u64) -> io::Result<Fence>;

    /// A channel of the calling thread, with at most `entries` requests on their way at once; more
    /// wait in the channel.
    ///
    /// # Errors
    /// If there is no such way to it; what the system says.
    fn channel(&self, entries: u32) -> io::Result<Box<dyn Channel>>;

    /// How many devices have what is at a place: copies are numbered from 0 on, which is the one
    /// that is read first. Which device has which number depends on the block that is asked for
    /// first. One, where nothing is redundant.
    fn copies(&self) -> u32 {
        1
    }

    /// As [`Segments::read_patiently`], from one copy only: for a caller that found what it read
    /// to be wrong.
    ///
    /// # Errors
    /// What the device says; `NotConnected` or `NotFound` if the one with this copy is not in.
    fn read_copy(&self, place: Place, copy: u32, frames: &mut [FrameMut]) -> io::Result<()> {
        assert_eq!(copy, 0, "there is one copy");
        self.read_patiently(place, frames)
    }

    /// Writes, durably, what a copy should have at `place` and has not. Nobody else writes there
    /// meanwhile: the caller holds what keeps the segment from being used again.
    ///
    /// # Errors
    /// What the device says; that nothing is redundant here, so that it can't be known.
    fn mend(&self, _place: Place, _copy: u32, _frames: &[Frame]) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "there is one copy"))
    }

    /// The devices of the pool, by number.
    fn devices(&self) -> Vec<DeviceStatus>;

    /// Who gets all that is written from now on, but lacks what was written before, each with a
    /// number that is another one each time it begins to.
    fn lacking(&self) -> Vec<(Lacking, u64)> {
        Vec::new()
    }

    /// Whether something of this segment is lacking there.
    fn lacks(&self, _who: Lacking, _segment: u32) -> bool {
        true
    }

    /// Who should lack nothing any more begins to be given it: devices that failed a while ago and
    /// may be well again, and parts that columns of lost devices go to.
    fn begin_to_give(&self) {}

    /// Writes to those who lack something, and to no other, what others have at `place`. Not
    /// durable before [`Segments::given`].
    ///
    /// # Errors
    /// What a device says: it is out then. That it does not lack anything (any more).
    fn copy_to(&self, _who: Lacking, _place: Place, _frames: &[Frame]) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "there is one device"))
    }

    /// Writes to those who lack something what they should have in these rows of a segment, in a
    /// pool in stripes: columns of the log, made of those of others, or copies of metadata. Not
    /// durable before [`Segments::given`].
    ///
    /// # Errors
    /// As [`Segments::copy_to`].
    fn rebuild(
        &self,
        _who: Lacking,
        _segment: u32,
        _is_metadata: bool,
        _rows: Range<u32>,
    ) -> io::Result<Rebuilt> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "there are no stripes"))
    }

    /// Whether P and Q of these rows of the log are what the data makes, in a pool in stripes.
    ///
    /// # Errors
    /// If a device is not in, or can't be read.
    fn verify_rows(&self, _segment: u32, _rows: Range<u32>) -> io::Result<bool> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "there are no stripes"))
    }

    /// They have all that they lacked. A device is in when this returns, and columns are where they
    /// were moved to; all devices that are in say so.
    ///
    /// # Errors
    /// As [`Segments::copy_to`].
    fn given(&self, _who: Lacking) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "there is one device"))
    }

    /// Takes a device out, for `why`: nothing is asked of it any more.
    ///
    /// # Errors
    /// If there is none such, or no other has all of the pool.
    fn take_out(&self, _device: u16, _why: &str) -> Result<(), DeviceError> {
        Err(DeviceError::OnlyOne)
    }

    /// Has a device that is out, and answers, catch up.
    ///
    /// # Errors
    /// If there is none such, or it is not out, or the device fails at once.
    fn take_back(&self, _device: u16) -> Result<(), DeviceError> {
        Err(DeviceError::OnlyOne)
    }

    /// Whether the medium takes no writes at all: see [`sys::Disk::has_given_up`].
    fn has_given_up(&self) -> bool;

    /// Whether it refuses all writes at the moment: see [`sys::Disk::is_refusing`].
    fn is_refusing(&self) -> bool;

    /// How often a write or a flush was retried that it had refused.
    fn retry_count(&self) -> u64;

    /// Lets others go on: see [`sys::Disk::give_way`].
    fn give_way(&self) -> bool;

    /// Where a place is on the device, in bytes: for what people are told, and for who damages it
    /// in a test. Nothing is read or written by it.
    fn locate(&self, place: Place) -> u64;
}

/// What keeps out whoever had an earlier epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// The lock of the file or the device, held since it was opened and until the process has
    /// ended, with all that it had on its way. It keeps out other processes of this machine that
    /// ask for the lock; no other machine, and nobody who writes without it.
    Lock,
    /// Nothing: only this process knows of it.
    Memory,
}

/// Why there is no root, or no new one.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// Nothing there is a root: why.
    #[error("{0}")]
    None(String),
    /// There is one that a newer version of Holdfast has written: why it can't be read.
    #[error("it was written by a newer version: {0}")]
    Newer(String),
    /// The pool is larger than where it lives.
    #[error("the pool has {wants_bytes} bytes, but its device only {has_bytes}")]
    Short {
        /// What the root names.
        wants_bytes: u64,
        /// What there is.
        has_bytes: u64,
    },
    /// The device says that it is another one, or of another pool.
    #[error("its root is of pool {pool}, and its label says that it is {label}")]
    OtherDevice {
        /// What the label says.
        label: String,
        /// The pool that the root is of.
        pool: String,
    },
    /// Another one stands there than was expected.
    #[error("root {expected} was expected, and {found} is there")]
    Overtaken {
        /// The sequence number that was expected.
        expected: u64,
        /// The one that is there.
        found: u64,
    },
    /// The medium has failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A copy of a label that did not say what it has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLabel {
    /// Which copy: 0 or 1.
    pub copy: u8,
    /// Where it is on the device, in bytes.
    pub offset_bytes: u64,
    /// Whether it was written anew.
    pub mended: bool,
}

/// [`Segments`] that several have.
#[derive(Clone)]
pub struct Shared(Arc<dyn Segments>);

impl Deref for Shared {
    type Target = dyn Segments;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl From<Arc<dyn Segments>> for Shared {
    fn from(segments: Arc<dyn Segments>) -> Self {
        Self(segments)
    }
}
