//! A pool's devices, which are read as far as possible, and never written.

use std::io;

use block::{Frame, FrameMut};
use format::{FormatError, Geometry, Label, Place, Superblock};
use segments::{BadLabel, Channel, DeviceStatus, Fence, RootError, Segments, Shared};
use sys::Persist;

/// What can't be read is replaced by zeros: no checksum and no fingerprint matches those.
pub(super) struct ReadOnly(pub(super) Shared);

fn refuse() -> io::Error {
    io::Error::new(io::ErrorKind::ReadOnlyFilesystem, "salvage never writes to a pool")
}

impl Segments for ReadOnly {
    fn lay_out(&self, geometry: Geometry) {
        self.0.lay_out(geometry);
    }

    fn columns(&self, segment: u32) -> Option<u8> {
        self.0.columns(segment)
    }

    fn len_bytes(&self) -> u64 {
        self.0.len_bytes()
    }

    fn read(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()> {
        if self.0.read(place, frames).is_ok() {
            return Ok(());
        }
        // One bad block must not lose its neighbors.
        for (at, frame) in (0..).zip(frames) {
            let place = place.plus_blocks(at);
            if self.0.read_patiently(place, std::slice::from_mut(frame)).is_err() {
                frame.fill(0);
            }
        }
        Ok(())
    }

    fn read_patiently(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()> {
        self.read(place, frames)
    }

    fn copies(&self) -> u32 {
        self.0.copies()
    }

    fn read_copy(&self, place: Place, copy: u32, frames: &mut [FrameMut]) -> io::Result<()> {
        self.0.read_copy(place, copy, frames)
    }

    fn read_root(&self) -> Result<Superblock, RootError> {
        self.0.read_root()
    }

    fn root_copies(&self) -> Vec<Result<Superblock, FormatError>> {
        self.0.root_copies()
    }

    fn labels(&self) -> Vec<Result<Label, FormatError>> {
        self.0.labels()
    }

    fn devices(&self) -> Vec<DeviceStatus> {
        self.0.devices()
    }

    fn locate(&self, place: Place) -> u64 {
        self.0.locate(place)
    }

    fn grow(&self, _capacity_bytes: u64) -> io::Result<()> {
        Err(refuse())
    }

    fn free(&self, _segment: u32) -> io::Result<bool> {
        Err(refuse())
    }

    fn append(&self, _place: Place, _frames: &[Frame]) -> io::Result<()> {
        Err(refuse())
    }

    fn append_as(&self, _place: Place, _frames: &[Frame], _persist: Persist) -> io::Result<()> {
        Err(refuse())
    }

    fn write_and_flush(&self, _write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        Err(refuse())
    }

    fn swap_root(&self, _expected: u64, _next: &Superblock) -> Result<(), RootError> {
        Err(refuse().into())
    }

    fn settle_root(&self) {}

    fn mend_root(&self, _copy: usize, _root: &Superblock) -> Result<(), RootError> {
        Err(refuse().into())
    }

    fn mend_labels(&self, _root: &Superblock) -> Vec<BadLabel> {
        Vec::new()
    }

    fn fence(&self, _epoch: u64) -> io::Result<Fence> {
        Err(refuse())
    }

    fn channel(&self, _entries: u32) -> io::Result<Box<dyn Channel>> {
        Err(refuse())
    }

    fn flush_failures(&self) -> u64 {
        0
    }

    fn has_given_up(&self) -> bool {
        false
    }

    fn is_refusing(&self) -> bool {
        false
    }

    fn retry_count(&self) -> u64 {
        self.0.retry_count()
    }

    fn give_way(&self) -> bool {
        false
    }
}
