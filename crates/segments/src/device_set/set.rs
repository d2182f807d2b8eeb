//! [`Segments`] over several devices.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use block::{Frame, FrameMut};
use format::{FormatError, Geometry, Label, Place, Superblock};
use sys::{Disk, Persist};

use super::channel::SetChannel;
use super::device::{Device, Slot};
use super::members::Members;
use super::opening;
use super::roots::{self, PoolRoots};
use super::workers::FLUSH;
use crate::channel::Channel;
use crate::devices::{DeviceError, DeviceState, DeviceStatus, Lacking, Rebuilt, ToLayAnew};
use crate::plan::StripePlan;
use crate::root::SinceRead;
use crate::segments::{BadLabel, Fence, RootError, Segments};

/// The devices of a pool, mirrored or striped.
#[derive(Debug)]
pub struct DeviceSet {
    members: Arc<Members>,
    /// The state of the roots since they were read.
    roots: SinceRead<PoolRoots>,
    epoch: AtomicU64,
    /// Devices that did not respond when the pool was opened.
    silent: Vec<String>,
}

impl DeviceSet {
    /// Creates a pool on 1 to 18 devices, with its first root: see [`crate::Local::make`].
    /// `entropy` is random. From four devices on the pool is striped: each segment is on all of
    /// them, and two of its columns are parity.
    ///
    /// # Errors
    /// Those of the devices, or that parity can't be computed; there is then no pool.
    pub fn make(
        devices: &[Device],
        root: &Superblock,
        wiped: &[Place],
        entropy: [u8; 16],
    ) -> io::Result<()> {
        opening::make(devices, root, (wiped, entropy), None)
    }

    /// Creates a pool with a map of parts, on devices for which this plan was made.
    ///
    /// # Errors
    /// As [`DeviceSet::make`].
    pub fn make_planned(
        devices: &[Device],
        root: &Superblock,
        (wiped, entropy): (&[Place], [u8; 16]),
        plan: &StripePlan,
    ) -> io::Result<()> {
        opening::make(devices, root, (wiped, entropy), Some(plan))
    }

    /// Returns the set of these members; `silent` has the names of devices that did not respond.
    pub(super) fn over(members: Arc<Members>, silent: Vec<String>) -> Self {
        let (roots, epoch) = Default::default();
        Self { members, roots, epoch, silent }
    }

    /// Adds a device, which then catches up: a blank one, or one of this pool that was missing.
    /// Returns its number.
    ///
    /// # Errors
    /// [`DeviceError`]; the device is then not in the pool.
    pub fn add(&self, device: Device, entropy: [u8; 16]) -> Result<u16, DeviceError> {
        self.members.add(device, None, entropy)
    }

    /// Replaces a device that is out by a blank one.
    ///
    /// # Errors
    /// As [`DeviceSet::add`]; that the old one is not out.
    pub fn replace(&self, old: u16, device: Device, entropy: [u8; 16]) -> Result<u16, DeviceError> {
        self.members.slot(old)?;
        self.members.add(device, Some(old), entropy)
    }

    /// Removes a device permanently. If there is a map of parts, and the device has some, their
    /// columns are moved to others first; [`Segments::take_back`] cancels that.
    ///
    /// # Errors
    /// If there is no such device, or the others lack the data or the room for it.
    pub fn remove(&self, number: u16) -> Result<(), DeviceError> {
        self.members.remove(number)
    }

    /// Sets how long a device is out before it counts as lost and its columns are rebuilt on
    /// others, where there is room. The default is ten minutes.
    pub fn set_lost_after(&self, after: Duration) {
        self.members.set_lost_after(after);
    }

    /// Returns messages for the administrator about the devices, one sentence each; usually none.
    pub fn notices(&self) -> Vec<String> {
        let slots = self.members.slots();
        let files = slots.iter().filter_map(|slot| slot.device.as_ref()?.file.clone());
        let notices = files.flat_map(|file| file.notices().to_vec());
        let missing = slots.iter().filter(|slot| slot.state() == DeviceState::Missing);
        let missing =
            missing.map(|it| format!("device {} ({}) of the pool is missing", it.number, it.id));
        let silent =
            self.silent.iter().map(|name| format!("{name} does not respond: it counts as missing"));
        notices.chain(silent).chain(missing).collect()
    }

    #[cfg(test)]
    pub(super) fn members(&self) -> Arc<Members> {
        self.members.clone()
    }
}

impl Segments for DeviceSet {
    fn lay_out(&self, geometry: Geometry) {
        self.members.placement().lay_out(geometry);
    }

    fn columns(&self, segment: u32) -> Option<u8> {
        let table = self.members.placement().mapped_table()?;
        if table.is_uniform() { None } else { table.data_columns(segment) }
    }

    fn to_lay_anew(&self) -> Option<Arc<ToLayAnew>> {
        self.members.to_lay_anew()
    }

    fn lay_anew(&self, segments: &[u32]) -> io::Result<u32> {
        self.members.lay_anew(segments)
    }

    /// The size of the smallest device that is in; with a map of parts, the size in the map.
    fn len_bytes(&self) -> u64 {
        if let Some(table) = self.members.placement().mapped_table() {
            let geometry = self.members.placement().geometry();
            return geometry.part_offset_bytes(table.map().segment_count());
        }
        let slots = self.members.slots();
        let devices = slots.iter().filter_map(|slot| slot.readable());
        devices.map(|device| device.disk.len_bytes()).min().unwrap_or(0)
    }

    fn grow(&self, capacity_bytes: u64) -> io::Result<()> {
        if self.members.placement().mapped_table().is_some() {
            self.members.begin()?;
            return self.members.grow_map(capacity_bytes);
        }
        self.members.grow(capacity_bytes)
    }

    fn read(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()> {
        self.members.read(place, frames, |disk, at, frames| disk.read(at, frames))
    }

    fn read_patiently(&self, place: Place, frames: &mut [FrameMut]) -> io::Result<()> {
        self.read(place, frames).or_else(|_| {
            self.members.read(place, frames, |disk, at, frames| disk.read_patiently(at, frames))
        })
    }

    fn free(&self, segment: u32) -> io::Result<bool> {
        let geometry = self.members.placement().geometry();
        assert!((1..geometry.segment_count).contains(&segment), "there is no segment {segment}");
        let (mut can, slots) = (false, self.members.slots());
        let calls = slots.iter().filter_map(|slot| {
            let start =
                self.members.placement().row_on(slot.number, Place::of_block(segment, 0))?;
            let discard = move |disk: &dyn Disk| disk.discard(start, geometry.part_bytes);
            Some((slot.clone(), discard))
        });
        self.members.each(calls, Slot::written, FLUSH, |_, discarded| {
            can |= discarded?;
            Ok::<_, io::Error>(())
        })?;
        Ok(can)
    }

    fn append(&self, place: Place, frames: &[Frame]) -> io::Result<()> {
        self.append_as(place, frames, Persist::Nothing)
    }

    fn append_as(&self, place: Place, frames: &[Frame], persist: Persist) -> io::Result<()> {
        self.members.append(place, frames, persist)
    }

    fn write_and_flush(&self, write: &mut dyn FnMut() -> io::Result<()>) -> io::Result<()> {
        if let Some(only) = self.members.only()
            && let Some(device) = only.written()
        {
            return device.disk.write_and_flush(write);
        }
        let failures =
            |slot: &Arc<Slot>| Some((slot.clone(), slot.written()?.disk.flush_failures()));
        let before: Vec<_> = self.members.slots().iter().filter_map(failures).collect();
        write()?;
        let calls = before.into_iter().map(|(slot, failed)| {
            let flush = move |disk: &dyn Disk| {
                disk.flush()?;
                match disk.flush_failures() == failed {
                    true => Ok(()),
                    false => Err(io::Error::other("a flush has failed")),
                }
            };
            (slot, flush)
        });
        let flushed = self.members.each(calls, Slot::written, FLUSH, |slot, flushed| {
            let gone = flushed.or_else(|error| self.members.fail(slot, error));
            gone.map_err(|_| slot.clone())
        });
        match flushed.map_err(|slot| slot.device.clone()) {
            Err(Some(device)) => {
                // A device that must stay in: what it lost is written again, to all devices.
                device.disk.write_and_flush(write)?;
                self.write_and_flush(&mut || Ok(()))
            }
            _ => Ok(()),
        }
    }

    /// Counts devices that are in: one that is out has lost nothing that the others lack.
    fn flush_failures(&self) -> u64 {
        let slots = self.members.slots();
        slots.iter().filter_map(|slot| slot.readable()).map(|it| it.disk.flush_failures()).sum()
    }

    fn read_root(&self) -> Result<Superblock, RootError> {
        let found = PoolRoots::read(&self.members)?;
        let newest = found.newest().clone();
        self.roots.set(found);
        Ok(newest)
    }

    fn root_copies(&self) -> Vec<Result<Superblock, FormatError>> {
        roots::copies(&self.members)
    }

    fn swap_root(&self, expected: u64, next: &Superblock) -> Result<(), RootError> {
        self.members.begin()?;
        self.members.note_root(next.capacity_bytes, next.epoch);
        self.roots.with(|roots| roots.swap(&self.members, expected, next))
    }

    fn settle_root(&self) {
        self.roots.with_any(|roots| roots.settle(&self.members));
    }

    fn mend_root(&self, copy: usize, root: &Superblock) -> Result<(), RootError> {
        self.members.begin()?;
        self.roots.with(|roots| roots.mend(&self.members, copy, root))
    }

    fn mend_roots(&self) -> (usize, Vec<bool>) {
        self.roots.with(|roots| Ok(roots.mend_each(&self.members))).unwrap_or_default()
    }

    fn labels(&self) -> Vec<Result<Label, FormatError>> {
        self.members.read_labels()
    }

    fn mend_labels(&self, _root: &Superblock) -> Vec<BadLabel> {
        self.members.mend_labels()
    }

    fn fence(&self, epoch: u64) -> io::Result<Fence> {
        let before = self.epoch.fetch_max(epoch, Ordering::AcqRel);
        assert!(epoch >= before, "epoch {epoch} is before {before}");
        self.members.begin()?;
        let slots = self.members.slots();
        let mut devices = slots.iter().filter_map(|slot| slot.device.as_ref());
        let are_files = devices.all(|device| device.file.is_some());
        Ok(if are_files { Fence::Lock } else { Fence::Memory })
    }

    fn channel(&self, entries: u32) -> io::Result<Box<dyn Channel>> {
        let channel = SetChannel::new(self.members.clone(), entries)?;
        Ok(Box::new(channel))
    }

    fn copies(&self) -> u32 {
        match self.members.placement().table() {
            Some(table) => table.map().columns_max() as u32,
            None => self.members.slots().len() as u32,
        }
    }

    fn read_copy(&self, place: Place, copy: u32, frames: &mut [FrameMut]) -> io::Result<()> {
        self.members.read_copy(place, copy, frames)
    }

    fn mend(&self, place: Place, copy: u32, frames: &[Frame]) -> io::Result<()> {
        self.members.mend(place, copy, frames)
    }

    fn devices(&self) -> Vec<DeviceStatus> {
        self.members.statuses()
    }

    fn begin_to_give(&self) {
        self.members.take_back_departed();
        self.members.begin_moves();
    }

    fn lacking(&self) -> Vec<(Lacking, u64)> {
        let slots = self.members.slots();
        let devices = slots.iter().filter(|slot| slot.state() == DeviceState::CatchingUp);
        let attempt =
            |it: &Arc<Slot>| (Lacking::Device(it.number), it.attempts.load(Ordering::Acquire));
        let devices = devices.map(attempt);
        devices.chain(self.members.moving().map(|batch| (Lacking::Parts, batch))).collect()
    }

    fn lacks(&self, who: Lacking, segment: u32) -> bool {
        self.members.lacks(who, segment)
    }

    fn copy_to(&self, who: Lacking, place: Place, frames: &[Frame]) -> io::Result<()> {
        self.members.copy_to(who, place, frames)
    }

    fn rebuild(
        &self,
        who: Lacking,
        segment: u32,
        is_metadata: bool,
        rows: Range<u32>,
    ) -> io::Result<Rebuilt> {
        self.members.rebuild(who, (segment, is_metadata), rows)
    }

    fn verify_rows(&self, segment: u32, rows: Range<u32>) -> io::Result<bool> {
        self.members.verify_rows(segment, rows)
    }

    fn given(&self, who: Lacking) -> io::Result<()> {
        match who {
            Lacking::Parts => self.members.end_moves(),
            Lacking::Device(device) => self.members.given(device, |slot| {
                // No root is replaced between writing this one and admitting the device.
                let admitted = self.roots.with(|roots| {
                    roots.write_to(&self.members, slot)?;
                    Ok(self.members.admit(slot)?)
                });
                admitted.map_err(io::Error::other)
            }),
        }
    }

    fn take_out(&self, device: u16, why: &str) -> Result<(), DeviceError> {
        self.members.take_out(device, why)
    }

    fn take_back(&self, device: u16) -> Result<(), DeviceError> {
        self.members.take_back(device)
    }

    fn has_given_up(&self) -> bool {
        let slots = self.members.slots();
        slots.iter().filter_map(|slot| slot.readable()).all(|device| device.disk.has_given_up())
    }

    fn is_refusing(&self) -> bool {
        let slots = self.members.slots();
        slots.iter().filter_map(|slot| slot.readable()).any(|device| device.disk.is_refusing())
    }

    fn retry_count(&self) -> u64 {
        let slots = self.members.slots();
        slots.iter().filter_map(|slot| Some(slot.device.as_ref()?.disk.retry_count())).sum()
    }

    fn give_way(&self) -> bool {
        let slots = self.members.slots();
        slots.iter().find_map(|slot| slot.readable()).is_some_and(|device| device.disk.give_way())
    }

    fn locate(&self, place: Place) -> u64 {
        self.members.placement().locate(place, &self.members.slots())
    }
}
