//! Segments on several disks in memory, each of which has all of the pool.

use std::sync::atomic::AtomicBool;

use format::{FormatError, Geometry, Label, Place, SegmentKind, Superblock};
use segments::{
    BadLabel, Channel, DeviceState, DeviceStatus, Fence, Local, Persist, RootError, Segments,
    Shared,
};

use super::*;

struct Device {
    disk: Arc<MemoryDisk>,
    local: Local,
    state: Mutex<DeviceState>,
    mended: AtomicU64,
    /// Each copy to it fails from here on.
    fails: AtomicBool,
}

/// See the module. A stand-in: none of it is durable but what is on the disks.
pub(super) struct Mirrors {
    devices: Vec<Device>,
    /// How often a device has begun to catch up.
    begun: AtomicU64,
}

impl Mirrors {
    pub(super) fn over(disks: &[Arc<MemoryDisk>]) -> Arc<Self> {
        let device = |disk: &Arc<MemoryDisk>| Device {
            disk: disk.clone(),
            local: Local::over(disk.clone()),
            state: Mutex::new(DeviceState::In),
            mended: AtomicU64::new(0),
            fails: AtomicBool::new(false),
        };
        let devices = disks.iter().map(device).collect();
        Arc::new(Self { devices, begun: AtomicU64::new(0) })
    }

    pub(super) fn shared(self: &Arc<Self>) -> Shared {
        Shared::from(self.clone() as Arc<dyn Segments>)
    }

    /// A device lacks what is written from here on.
    pub(super) fn lose(&self, device: usize) {
        *self.devices[device].state.lock() = DeviceState::Out;
    }

    /// A device gets what is written from here on.
    pub(super) fn take_back(&self, device: usize) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.devices[device].fails.store(false, Ordering::Relaxed);
        *self.devices[device].state.lock() = DeviceState::CatchingUp;
    }

    /// Lets a device fail the next copy to it.
    pub(super) fn fail_copies_to(&self, device: usize) {
        self.devices[device].fails.store(true, Ordering::Relaxed);
    }

    pub(super) fn state(&self, device: usize) -> DeviceState {
        *self.devices[device].state.lock()
    }

    pub(super) fn mended(&self, device: usize) -> u64 {
        self.devices[device].mended.load(Ordering::Relaxed)
    }

    fn which(&self, is_meant: impl Fn(DeviceState) -> bool) -> impl Iterator<Item = &Device> {
        self.devices.iter().filter(move |device| is_meant(*device.state.lock()))
    }

    fn those_in(&self) -> impl Iterator<Item = &Device> {
        self.which(|state| state == DeviceState::In)
    }

    fn first(&self) -> &Local {
        &self.those_in().next().expect("one is in").local
    }

    /// Those that get what is written.
    fn written(&self) -> impl Iterator<Item = &Device> {
        self.which(|state| [DeviceState::In, DeviceState::CatchingUp].contains(&state))
    }

    fn either(&self, read: impl Fn(&Local) -> io::Result<()>) -> io::Result<()> {
        let mut result = Ok(());
        for device in self.those_in() {
            result = read(&device.local);
            if result.is_ok() {
                break;
            }
        }
        result
    }
}

impl Segments for Mirrors {
    fn lay_out(&self, geometry: Geometry) {
        self.devices.iter().for_each(|device| device.local.lay_out(geometry));
    }

    fn len_bytes(&self) -> u64 {
        self.first().len_bytes()
    }

    fn grow(&self, capacity_bytes: u64) -> io::Result<()> {
        self.written().try_for_each(|device| device.local.grow(capacity_bytes))
    }

    fn describe(&self, segment: u32) -> SegmentKind {
        self.first().describe(segment)
    }

    fn read(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()> {
        let frames = Mutex::new(frames);
        self.either(|local| local.read(place, &mut frames.lock()))
    }

    fn read_patiently(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()> {
        self.read(place, frames)
    }

    fn free(&self, segment: u32) -> io::Result<bool> {
        self.written().try_fold(true, |all, device| Ok(all & device.local.free(segment)?))
    }

    fn append(&self, place: Place, frames: &[Frame]) -> io::Result<()> {
        self.written().try_for_each(|device| device.local.append(place, frames))
    }

    fn append_as(&self, place: Place, frames: &[Frame], persist: Persist) -> io::Result<()> {
        self.written().try_for_each(|device| device.local.append_as(place, frames, persist))
    }

    fn write_and_flush(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        self.first().write_and_flush(write)
    }

    fn flush_failures(&self) -> u64 {
        0
    }

    fn read_root(&self) -> Result<Superblock, RootError> {
        let roots: Result<Vec<_>, _> =
            self.those_in().map(|device| device.local.read_root()).collect();
        Ok(roots?.into_iter().next().expect("one is in"))
    }

    fn root_copies(&self) -> Vec<Result<Superblock, FormatError>> {
        self.first().root_copies()
    }

    fn swap_root(&self, expected: u64, next: &Superblock) -> Result<(), RootError> {
        self.those_in().try_for_each(|device| device.local.swap_root(expected, next))
    }

    fn settle_root(&self) {
        self.those_in().for_each(|device| device.local.settle_root());
    }

    fn mend_root(&self, copy: usize, root: &Superblock) -> Result<(), RootError> {
        self.those_in().try_for_each(|device| device.local.mend_root(copy, root))
    }

    fn labels(&self) -> Vec<Result<Label, FormatError>> {
        self.first().labels()
    }

    fn mend_labels(&self, root: &Superblock) -> Vec<BadLabel> {
        self.those_in().flat_map(|device| device.local.mend_labels(root)).collect()
    }

    fn fence(&self, epoch: u64) -> io::Result<Fence> {
        self.first().fence(epoch)
    }

    fn channel(&self, _entries: u32) -> io::Result<Box<dyn Channel>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn copies(&self) -> u32 {
        self.devices.len() as u32
    }

    fn read_copy(&self, place: Place, copy: u32, frames: &mut [FrameMut]) -> io::Result<()> {
        match self.state(copy as usize) {
            DeviceState::In => self.devices[copy as usize].local.read(place, frames),
            _ => Err(io::Error::other("it is not in")),
        }
    }

    fn mend(&self, place: Place, copy: u32, frames: &[Frame]) -> io::Result<()> {
        let device = &self.devices[copy as usize];
        if self.state(copy as usize) != DeviceState::In {
            return Err(io::Error::other("it is not in"));
        }
        device.mended.fetch_add(1, Ordering::Relaxed);
        device.local.append(place, frames)
    }

    fn devices(&self) -> Vec<DeviceStatus> {
        let number = |(number, device): (u16, &Device)| DeviceStatus {
            number,
            state: *device.state.lock(),
            ..device.local.devices().remove(0)
        };
        (0..).zip(&self.devices).map(number).collect()
    }

    fn catching_up(&self) -> Vec<(u16, u64)> {
        let begun = self.begun.load(Ordering::Relaxed);
        let states =
            (0..).zip(&self.devices).map(|(number, device)| (number, *device.state.lock()));
        let catching = states.filter(|(_, state)| *state == DeviceState::CatchingUp);
        catching.map(|(number, _)| (number, begun)).collect()
    }

    fn copy_to(&self, device: u16, place: Place, frames: &[Frame]) -> io::Result<()> {
        let to = &self.devices[usize::from(device)];
        if self.state(device.into()) != DeviceState::CatchingUp {
            return Err(io::Error::other("it is not catching up"));
        }
        if to.fails.load(Ordering::Relaxed) {
            self.lose(device.into());
            return Err(io::Error::other("it fails"));
        }
        to.local.append(place, frames)
    }

    fn caught_up(&self, device: u16) -> io::Result<()> {
        let to = &self.devices[usize::from(device)];
        if self.state(device.into()) != DeviceState::CatchingUp {
            return Err(io::Error::other("it is not catching up"));
        }
        // The roots are in front of all segments.
        let from = &self.those_in().next().expect("one is in").disk;
        (0..self.locate(Place::of_block(1, 0)) / 4096)
            .for_each(|block| to.disk.overwrite(block, from.block(block)));
        to.local.read_root().map_err(io::Error::other)?;
        *to.state.lock() = DeviceState::In;
        Ok(())
    }

    fn has_given_up(&self) -> bool {
        false
    }

    fn is_refusing(&self) -> bool {
        false
    }

    fn retry_count(&self) -> u64 {
        0
    }

    fn give_way(&self) -> bool {
        false
    }

    fn locate(&self, place: Place) -> u64 {
        self.first().locate(place)
    }
}
