//! What the store requires of the storage of its segments.

use std::fmt;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use block::{Frame, FrameMut};
use format::{FormatError, Geometry, Label, Place, Superblock};
use sys::Persist;

use crate::channel::Channel;
use crate::devices::{DeviceError, DeviceStatus, Lacking, Rebuilt, ToLayAnew};

/// Stores the segments and the root of a pool.
///
/// A place is a segment and an offset in it; no caller knows where it is on which device. Reads and
/// writes are whole 4 KiB blocks within one segment. An assertion stops any other request, because
/// it would reach other data.
///
/// These calls block. They are for checkpoints, reclaim, scrubbing, recovery and tools; hosts'
/// requests use a [`Channel`].
pub trait Segments: Send + Sync {
    /// Sets the division of the pool: that of its root, or of the next root after growing. Segments
    /// keep their size.
    fn lay_out(&self, geometry: Geometry);

    /// Returns the number of data columns of a segment; `None` if it is the number in the root.
    /// Only [`Segments::lay_anew`] changes it.
    fn columns(&self, _segment: u32) -> Option<u8> {
        None
    }

    /// Returns the segments that should have another layout, because devices were added or lost;
    /// `None` if there are none. As long as no device is out, this is cheap enough to call for each
    /// command.
    fn to_lay_anew(&self) -> Option<Arc<ToLayAnew>> {
        None
    }

    /// Changes the layout of those of these segments that need it, durably, and makes others
    /// narrower if these would otherwise lack a column; returns how many were changed. All of
    /// `segments` are empty, and there are no reads or writes of them before this returns.
    ///
    /// # Errors
    /// Those of the devices; all segments are then where they were.
    fn lay_anew(&self, _segments: &[u32]) -> io::Result<u32> {
        Ok(0)
    }

    /// Returns the size that the pool can have, in bytes.
    fn len_bytes(&self) -> u64;

    /// Makes room for a pool of `capacity_bytes`, durably, while the pool is in use; does nothing
    /// if there is enough.
    ///
    /// # Errors
    /// If there is no such room.
    fn grow(&self, capacity_bytes: u64) -> io::Result<()>;

    /// Fills `frames` from `place` on. A read that fails once may succeed when it is repeated.
    ///
    /// # Errors
    /// Those of the medium.
    fn read(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()>;

    /// Reads like [`Segments::read`], but retries, so that an error is persistent.
    ///
    /// # Errors
    /// Those of the medium.
    fn read_patiently(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()>;

    /// Discards a segment whose content is not needed, and to which nothing is appended before this
    /// returns: its space goes back to the layer below. Returns `false` if the medium can't
    /// discard, which then holds for all segments.
    ///
    /// # Errors
    /// Those of the medium. The content may be gone nevertheless.
    fn free(&self, segment: u32) -> io::Result<bool>;

    /// Appends `frames` to a segment, at `place`. Not durable before a flush. `place` may be in a
    /// *hole*: blocks of a metadata segment that nothing refers to any longer.
    ///
    /// # Errors
    /// Those of the medium; any part may have been written.
    fn append(&self, place: Place, frames: &[Frame]) -> io::Result<()>;

    /// Appends `frames` (if there are none, `place` is ignored), and makes durable what `persist`
    /// requests.
    ///
    /// # Errors
    /// As [`Segments::append`].
    fn append_as(&self, place: Place, frames: &[Frame], persist: Persist) -> io::Result<()>;

    /// Calls `write`, which may append anything, and makes all of that durable: see
    /// [`sys::Disk::write_and_flush`].
    ///
    /// # Errors
    /// Those of `write`, and of the flush.
    fn write_and_flush(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()>;

    /// Returns the number of flushes that have failed since the medium was opened: see
    /// [`sys::Disk::flush_failures`].
    fn flush_failures(&self) -> u64;

    /// Returns the newest valid root.
    ///
    /// # Errors
    /// If there is none, or the pool that it describes is larger than the medium.
    fn read_root(&self) -> Result<Superblock, RootError>;

    /// Reads all copies of the root, new or old: for tools, and for scrubbing, which compares them.
    fn root_copies(&self) -> Vec<Result<Superblock, FormatError>>;

    /// Replaces the root with the sequence number `expected` by `next`, durably; does nothing if
    /// the root has another sequence number. The one of `next` must be higher.
    ///
    /// # Errors
    /// [`RootError::Overtaken`] if another caller has replaced the root; the error of the medium,
    /// after which the old or the new root is present.
    fn swap_root(&self, expected: u64, next: &Superblock) -> Result<(), RootError>;

    /// Makes copies of the root that differ in age alike: called after two successive roots with
    /// the same content.
    fn settle_root(&self);

    /// Rewrites copy `copy` of the root, which was found damaged, with `root`: the newest root
    /// itself, or its successor.
    ///
    /// # Errors
    /// As [`Segments::swap_root`].
    fn mend_root(&self, copy: usize, root: &Superblock) -> Result<(), RootError>;

    /// Rewrites the newest root on each device that does not have it, if others do. Returns which
    /// copy it is, and for each device that did not have it whether it has it now.
    fn mend_roots(&self) -> (usize, Vec<bool>) {
        (0, Vec::new())
    }

    /// Reads the labels of all devices, in all copies: for tools.
    fn labels(&self) -> Vec<Result<Label, FormatError>>;

    /// Rewrites labels that are missing or wrong, if the pool of this root has labels. Returns the
    /// copies that were.
    fn mend_labels(&self, root: &Superblock) -> Vec<BadLabel>;

    /// Fences processes of earlier epochs: none of their writes in flight lands on a record of this
    /// epoch once this has returned. Returns the mechanism, and so its limits.
    ///
    /// # Errors
    /// If fencing is not possible.
    fn fence(&self, epoch: u64) -> io::Result<Fence>;

    /// Opens a channel of the calling thread with at most `entries` requests in flight; further
    /// ones wait in the channel.
    ///
    /// # Errors
    /// If the medium has no channels; those of the system.
    fn channel(&self, entries: u32) -> io::Result<Box<dyn Channel>>;

    /// Returns the number of copies of a place. They are numbered from 0, the one that is read
    /// first; which device has which number depends on the first requested block. One without
    /// redundancy.
    fn copies(&self) -> u32 {
        1
    }

    /// Reads one copy only, with retries like [`Segments::read_patiently`]: for a caller that found
    /// wrong data.
    ///
    /// # Errors
    /// Those of the device; `NotConnected` or `NotFound` if the device with this copy is not in.
    fn read_copy(&self, place: Place, copy: u32, frames: &mut [FrameMut]) -> io::Result<()> {
        assert_eq!(copy, 0, "the medium has one copy");
        self.read_patiently(place, frames)
    }

    /// Rewrites a damaged copy at `place`, durably. There are no other writes there meanwhile: the
    /// caller keeps the segment from being reused.
    ///
    /// # Errors
    /// Those of the device; that there is no redundancy, and so no way to know the right data.
    fn mend(&self, _place: Place, _copy: u32, _frames: &[Frame]) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the medium has one copy"))
    }

    /// Returns the devices of the pool, by number.
    fn devices(&self) -> Vec<DeviceStatus>;

    /// Returns the targets that receive all new writes but lack earlier ones, each with the number
    /// of the attempt: it differs each time a target begins to catch up.
    fn lacking(&self) -> Vec<(Lacking, u64)> {
        Vec::new()
    }

    /// Returns whether `who` lacks anything of this segment.
    fn lacks(&self, _who: Lacking, _segment: u32) -> bool {
        true
    }

    /// Starts catching up: of devices that failed a while ago and may work again, and of parts to
    /// which columns of lost devices are moved.
    fn begin_to_give(&self) {}

    /// Copies the content of `place` to a target that lacks it, and to no other. Not durable before
    /// [`Segments::given`].
    ///
    /// # Errors
    /// Those of a device, which then is out; that the target lacks nothing (any longer).
    fn copy_to(&self, _who: Lacking, _place: Place, _frames: &[Frame]) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the pool is on one device"))
    }

    /// Rebuilds these rows of a segment for a target that lacks them, in a striped pool: columns of
    /// the log from the other columns, or copies of metadata. Not durable before
    /// [`Segments::given`].
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
        Err(io::Error::new(io::ErrorKind::Unsupported, "the pool is not striped"))
    }

    /// Returns whether P and Q of these rows of the log match the data, in a striped pool.
    ///
    /// # Errors
    /// If a device is not in, or can't be read.
    fn verify_rows(&self, _segment: u32, _rows: Range<u32>) -> io::Result<bool> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the pool is not striped"))
    }

    /// Ends catching up of a target that is complete again. When this returns, the device is in, or
    /// the columns are at their new locations, and the labels of all devices that are in say so.
    ///
    /// # Errors
    /// As [`Segments::copy_to`].
    fn given(&self, _who: Lacking) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the pool is on one device"))
    }

    /// Takes a device out, for the reason `why`: it is no longer used.
    ///
    /// # Errors
    /// If there is no such device, or the others can't do without it.
    fn take_out(&self, _device: u16, _why: &str) -> Result<(), DeviceError> {
        Err(DeviceError::OnlyOne)
    }

    /// Starts catching up of a device that is out and responds.
    ///
    /// # Errors
    /// If there is no such device, it is not out, or it fails at once.
    fn take_back(&self, _device: u16) -> Result<(), DeviceError> {
        Err(DeviceError::OnlyOne)
    }

    /// Returns whether the medium accepts no more writes: see [`sys::Disk::has_given_up`].
    fn has_given_up(&self) -> bool;

    /// Returns whether the medium refuses all writes at the moment: see [`sys::Disk::is_refusing`].
    fn is_refusing(&self) -> bool;

    /// Returns how often a refused write or flush was retried.
    fn retry_count(&self) -> u64;

    /// Lets other threads run: see [`sys::Disk::give_way`].
    fn give_way(&self) -> bool;

    /// Returns the offset of a place on its device, in bytes: for messages, and for tests that
    /// damage it. Never used for I/O.
    fn locate(&self, place: Place) -> u64;
}

/// The mechanism that fences processes of earlier epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fence {
    /// The lock of the file or the device, held from opening until the process has ended, with all
    /// of its I/O. It keeps out other processes of this machine that request the lock, but not
    /// other machines, nor programs that write without it.
    Lock,
    /// None: only this process can access the medium.
    Memory,
}

/// Why a root can't be read or replaced.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// No copy is valid: why.
    #[error("{0}")]
    None(String),
    /// The root was written by a newer version of Holdfast: why it can't be read.
    #[error("the pool was written by a newer version: {0}")]
    Newer(String),
    /// The pool is larger than its medium.
    #[error("the pool has {wants_bytes} bytes, but its device has only {has_bytes}")]
    Short {
        /// The size in the root.
        wants_bytes: u64,
        /// The size of the medium.
        has_bytes: u64,
    },
    /// The label says that this is another device, or one of another pool.
    #[error("its root is of pool {pool}, but its label is that of {label}")]
    OtherDevice {
        /// The pool in the label.
        label: String,
        /// The pool in the root.
        pool: String,
    },
    /// The root is not the expected one.
    #[error("root {expected} was expected, but {found} was found")]
    Overtaken {
        /// The sequence number that was expected.
        expected: u64,
        /// The sequence number that was found.
        found: u64,
    },
    /// The medium failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A copy of a label that was not what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadLabel {
    /// The copy: 0 or 1.
    pub copy: u8,
    /// Its offset on the device, in bytes.
    pub offset_bytes: u64,
    /// Whether it was rewritten.
    pub mended: bool,
}

/// A shared handle to [`Segments`].
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
