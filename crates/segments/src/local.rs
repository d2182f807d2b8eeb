//! One local file or block device.
//!
//! Segments are ranges of it, all of one size, after the copies of the root
//! (`docs/on-disk-format.md`).
//!
//! Invariants:
//! 1. Reads and writes are whole blocks within one segment ([`Layout::offset_bytes`]).
//! 2. A segment keeps its size and its location for the life of the pool; new ones are added after
//!    it.
//! 3. An epoch is never lower than the previous one ([`Segments::fence`]).

use std::io;
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use block::{FRAME_BYTES, Frame, FrameMut};
use format::{FormatError, Geometry, Label, Place, Superblock};
use sys::{Completion, Disk, FileDisk, Persist, Ring};

use crate::channel::Channel;
use crate::devices::{DeviceState, DeviceStatus};
use crate::labels;
use crate::layout::Layout;
use crate::root::{self, Roots, SinceRead};
use crate::segments::{BadLabel, Fence, RootError, Segments, Shared};
use crate::slow::{SlowChannel, SlowDisk};

/// One local file or block device, optionally slowed down. Or any other disk, such as a simulated
/// one; it then has no channels.
pub struct Local {
    disk: Arc<dyn Disk>,
    file: Option<Arc<FileDisk>>,
    /// The latency added to each request.
    latency: Option<Duration>,
    layout: Arc<Layout>,
    /// The state of the root since it was read.
    roots: SinceRead<Roots>,
    epoch: AtomicU64,
}

impl Local {
    /// Stores the pool in this file.
    pub fn new(file: Arc<FileDisk>) -> Self {
        Self { file: Some(file.clone()), ..Self::over(file) }
    }

    /// The same, with a latency added to each request: see [`crate::slow`].
    pub fn slowed(file: Arc<FileDisk>, latency: Duration) -> Self {
        let slow = Arc::new(SlowDisk::new(file.clone(), latency));
        Self { file: Some(file), latency: Some(latency), ..Self::over(slow) }
    }

    /// Stores the pool on this disk.
    pub fn over(disk: Arc<dyn Disk>) -> Self {
        let (layout, roots, epoch) = Default::default();
        Self { disk, file: None, latency: None, layout, roots, epoch }
    }

    /// Creates a pool on `disk`, with its first root. The first blocks of `wiped` are zeroed, so
    /// that no earlier content is mistaken for a part of the pool.
    ///
    /// # Errors
    /// Those of the disk; there is then no pool.
    pub fn make(disk: &dyn Disk, root: &Superblock, wiped: &[Place]) -> io::Result<()> {
        for place in wiped {
            disk.write(root.geometry.offset_bytes(*place), &[Frame::zeros()])?;
        }
        root::make(disk, root)
    }

    /// Returns the file or device, if there is one.
    pub fn file(&self) -> Option<&Arc<FileDisk>> {
        self.file.as_ref()
    }

    /// Returns messages for the administrator, one sentence each; usually none.
    pub fn notices(&self) -> Vec<String> {
        let slow = self.latency.map(|latency| {
            let ms = latency.as_secs_f64() * 1e3;
            format!("each request to the device is delayed by {ms} ms, for tests")
        });
        let file = self.file.iter().flat_map(|file| file.notices().iter().cloned());
        file.chain(slow).collect()
    }

    fn offset_bytes(&self, place: Place, frame_count: usize) -> u64 {
        self.layout.offset_bytes(place, frame_count)
    }
}

impl std::fmt::Debug for Local {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Local");
        shown.field("latency", &self.latency).field("layout", &self.layout);
        shown.finish_non_exhaustive()
    }
}

impl Segments for Local {
    fn lay_out(&self, geometry: Geometry) {
        self.layout.set(geometry);
    }

    fn len_bytes(&self) -> u64 {
        self.disk.len_bytes()
    }

    fn grow(&self, capacity_bytes: u64) -> io::Result<()> {
        match self.disk.len_bytes() < capacity_bytes {
            true => self.disk.grow(capacity_bytes),
            false => Ok(()),
        }
    }

    fn read(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()> {
        self.disk.read(self.offset_bytes(place, frames.len()), frames)
    }

    fn read_patiently(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()> {
        self.disk.read_patiently(self.offset_bytes(place, frames.len()), frames)
    }

    fn free(&self, segment: u32) -> io::Result<bool> {
        let segment_bytes = self.layout.get().part_bytes;
        let frames = segment_bytes as usize / FRAME_BYTES;
        self.disk.discard(self.offset_bytes(Place::of_block(segment, 0), frames), segment_bytes)
    }

    fn append(&self, place: Place, frames: &[Frame]) -> io::Result<()> {
        self.disk.write(self.layout.offset_or_start(place, frames.len()), frames)
    }

    fn append_as(&self, place: Place, frames: &[Frame], persist: Persist) -> io::Result<()> {
        let offset_bytes = self.layout.offset_or_start(place, frames.len());
        self.disk.write_as(offset_bytes, frames, persist)
    }

    fn write_and_flush(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        self.disk.write_and_flush(write)
    }

    fn flush_failures(&self) -> u64 {
        self.disk.flush_failures()
    }

    fn read_root(&self) -> Result<Superblock, RootError> {
        let (root, roots) = Roots::read(&*self.disk)?;
        labels::check(&*self.disk, &root)?;
        if root.features.has_stripes() {
            // Its label is bad; otherwise it would not be opened as a single device.
            let text = "it is one of several devices of a striped pool; its label can't be read";
            return Err(RootError::None(text.into()));
        }
        self.roots.set(roots);
        Ok(root)
    }

    fn root_copies(&self) -> Vec<Result<Superblock, FormatError>> {
        let copies = root::read_copies(&*self.disk);
        let stand_in = root::read_stand_in(&*self.disk, &copies).map(Ok);
        copies.into_iter().chain(stand_in).collect()
    }

    fn swap_root(&self, expected: u64, next: &Superblock) -> Result<(), RootError> {
        self.roots.with(|roots| roots.swap(&*self.disk, expected, next))
    }

    fn settle_root(&self) {
        self.roots.with_any(|roots| roots.settle(&*self.disk));
    }

    fn mend_root(&self, copy: usize, root: &Superblock) -> Result<(), RootError> {
        self.roots.with(|roots| roots.mend(&*self.disk, copy, root))
    }

    fn labels(&self) -> Vec<Result<Label, FormatError>> {
        labels::read(&*self.disk).into()
    }

    fn mend_labels(&self, root: &Superblock) -> Vec<BadLabel> {
        match root.features.has_labels() {
            true => labels::mend(&*self.disk, root),
            false => Vec::new(),
        }
    }

    fn fence(&self, epoch: u64) -> io::Result<Fence> {
        let before = self.epoch.fetch_max(epoch, Ordering::AcqRel);
        assert!(epoch >= before, "epoch {epoch} is before {before}");
        Ok(if self.file.is_some() { Fence::Lock } else { Fence::Memory })
    }

    fn channel(&self, entries: u32) -> io::Result<Box<dyn Channel>> {
        let Some(file) = &self.file else {
            let text = "this disk does not support channels";
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        };
        let ring = Ring::new(file.clone(), entries);
        let channel = Box::new(LocalChannel { ring, layout: self.layout.clone() });
        Ok(match self.latency {
            None => channel,
            Some(latency) => Box::new(SlowChannel::new(channel, latency)?),
        })
    }

    fn devices(&self) -> Vec<DeviceStatus> {
        let labels = labels::read(&*self.disk);
        let id = labels.iter().flatten().next().map(|label| label.device).unwrap_or_default();
        vec![DeviceStatus {
            number: 0,
            id,
            name: String::new(),
            state: DeviceState::In,
            why_out: None,
            len_bytes: self.disk.len_bytes(),
            read_errors: 0,
            write_errors: 0,
            mended: 0,
            retries: self.disk.retry_count(),
            parts: None,
            counts: self.disk.counts(),
            reads_elsewhere: 0,
        }]
    }

    fn has_given_up(&self) -> bool {
        self.disk.has_given_up()
    }

    fn is_refusing(&self) -> bool {
        self.disk.is_refusing()
    }

    fn retry_count(&self) -> u64 {
        self.disk.retry_count()
    }

    fn give_way(&self) -> bool {
        self.disk.give_way()
    }

    fn locate(&self, place: Place) -> u64 {
        self.layout.get().offset_bytes(place)
    }
}

/// A thread's ring to the file.
struct LocalChannel {
    ring: Ring,
    layout: Arc<Layout>,
}

impl Channel for LocalChannel {
    fn read(&mut self, user_data: u64, place: Place, frames: Vec<FrameMut>) -> io::Result<()> {
        let offset_bytes = self.layout.offset_bytes(place, frames.len());
        self.ring.read(user_data, offset_bytes, frames)
    }

    fn append(
        &mut self,
        user_data: u64,
        place: Place,
        frames: Vec<Frame>,
        persist: Persist,
    ) -> io::Result<()> {
        let offset_bytes = self.layout.offset_or_start(place, frames.len());
        self.ring.write(user_data, offset_bytes, frames, persist)
    }

    fn check(&self, place: Place, frame_count: usize) -> io::Result<()> {
        let offset_bytes = self.layout.offset_or_start(place, frame_count);
        self.ring.check_range(offset_bytes, frame_count)
    }

    fn submit(&mut self) -> io::Result<()> {
        self.ring.submit()
    }

    fn complete(&mut self, out: &mut Vec<Completion>) -> io::Result<()> {
        self.ring.complete(out)
    }

    fn wait(&mut self) -> io::Result<()> {
        self.ring.wait()
    }

    fn poll_fds(&self) -> Vec<RawFd> {
        self.ring.poll_fd().into_iter().collect()
    }

    fn next_retry(&self) -> Option<Duration> {
        self.ring.next_retry()
    }

    fn has_ended(&self) -> bool {
        self.ring.has_ended()
    }

    fn in_flight(&self) -> usize {
        self.ring.in_flight()
    }

    fn end_retries(&self) {
        self.ring.end_retries();
    }

    fn notices(&self) -> Vec<String> {
        self.ring.notices().to_vec()
    }
}

impl From<Arc<Local>> for Shared {
    fn from(local: Arc<Local>) -> Self {
        Self::from(local as Arc<dyn Segments>)
    }
}

/// A pool on one disk, for callers that need no channels.
impl<D: Disk + 'static> From<Arc<D>> for Shared {
    fn from(disk: Arc<D>) -> Self {
        Self::from(Arc::new(Local::over(disk)))
    }
}

impl From<Arc<dyn Disk>> for Shared {
    fn from(disk: Arc<dyn Disk>) -> Self {
        Self::from(Arc::new(Local::over(disk)))
    }
}

#[cfg(test)]
#[path = "local_tests.rs"]
mod tests;
