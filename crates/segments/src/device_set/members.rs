//! Which devices are in, and how that changes.
//!
//! Changes are made one at a time, under a lock. A change is durable in the labels of all devices
//! that are then in before it is visible to anyone.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use super::device::Slot;
use super::labelling::write_labels;
use super::lanes::UnderWay;
use super::laying::LastLook;
use super::maps::Stored;
use super::moving::Batch;
use super::placement::Placement;
use super::workers::{TRANSFER, ask};
use crate::devices::{DeviceError, DeviceState};
use crate::root;

/// How long a device stays out before it is taken back automatically.
const OUT_AT_LEAST: Duration = Duration::from_secs(5);
/// A device that went out so often within [`DEPARTURES_WITHIN`] is left to an administrator.
const DEPARTURES_MAX: usize = 3;
const DEPARTURES_WITHIN: Duration = Duration::from_secs(600);

/// By default, a device that is out for so long counts as lost: its columns are rebuilt on others,
/// where there is room.
const LOST_AFTER: Duration = Duration::from_secs(600);

pub(super) type Slots = Arc<[Arc<Slot>]>;

/// The devices of a pool.
#[derive(Debug)]
pub(super) struct Members {
    pool_id: [u8; 16],
    placement: Placement,
    slots: RwLock<Slots>,
    /// Increases with each change of `slots`.
    generation: AtomicU64,
    /// Whether labels are up to date. Before the first write of a process they may not be, and are
    /// not written for a process that only reads. Set under `change`.
    has_begun: AtomicBool,
    /// How many times a target has begun to catch up.
    attempts: AtomicU64,
    change: Mutex<Change>,
    /// The columns being moved.
    batch: Mutex<Batch>,
    last_look: Mutex<LastLook>,
    /// How long a device is out before its columns are rebuilt on others, in milliseconds.
    lost_after_ms: AtomicU64,
}

/// The content of labels, apart from the members.
#[derive(Debug)]
pub(super) struct Change {
    /// The sequence number of the newest labels.
    pub(super) sequence: u64,
    epoch: u64,
    /// How much of each device the pool uses, in bytes; with a map, each device has its own number.
    pub(super) bytes: u64,
    /// The same two, as in the newest labels.
    pub(super) told: (u64, u64),
    /// The current map of parts, if the pool has one.
    pub(super) map: Stored,
}

impl Members {
    pub(super) fn new(
        pool_id: [u8; 16],
        placement: Placement,
        slots: Vec<Arc<Slot>>,
        sequence: u64,
    ) -> Self {
        let map = placement.table().map(|table| table.map().clone());
        let map = map.filter(|map| map.sequence > 0).map(|map| Stored::of(&map));
        let map = map.unwrap_or_default();
        let change = Change { sequence, epoch: 0, bytes: 0, told: (0, 0), map };
        let members = Self {
            pool_id,
            placement,
            slots: RwLock::new(slots.into()),
            generation: AtomicU64::new(1),
            has_begun: AtomicBool::new(false),
            attempts: AtomicU64::new(0),
            change: Mutex::new(change),
            batch: Mutex::default(),
            last_look: Mutex::default(),
            lost_after_ms: AtomicU64::new(LOST_AFTER.as_millis() as u64),
        };
        members.tell_redundancy();
        members
    }

    pub(super) fn pool_id(&self) -> [u8; 16] {
        self.pool_id
    }

    /// Returns the placement of segments on the members.
    pub(super) fn placement(&self) -> &Placement {
        &self.placement
    }

    /// Returns all members, by number.
    pub(super) fn slots(&self) -> Slots {
        self.slots.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns a number that increases when devices are added or removed.
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(super) fn slot(&self, number: u16) -> Result<Arc<Slot>, DeviceError> {
        let slots = self.slots();
        let found = slots.iter().find(|slot| slot.number == number);
        found.cloned().ok_or(DeviceError::Unknown(number))
    }

    pub(super) fn has_begun(&self) -> bool {
        self.has_begun.load(Ordering::Acquire)
    }

    pub(super) fn change(&self) -> MutexGuard<'_, Change> {
        self.change.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn batch(&self) -> MutexGuard<'_, Batch> {
        self.batch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the last answer about segments that should have another layout.
    pub(super) fn last_look(&self) -> MutexGuard<'_, LastLook> {
        self.last_look.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how long a device is out before its columns are rebuilt on others.
    pub(super) fn lost_after(&self) -> Duration {
        Duration::from_millis(self.lost_after_ms.load(Ordering::Relaxed))
    }

    pub(super) fn set_lost_after(&self, after: Duration) {
        let after_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.lost_after_ms.store(after_ms, Ordering::Relaxed);
    }

    /// Returns the number of the next attempt of a target to catch up.
    pub(super) fn next_attempt(&self) -> u64 {
        1 + self.attempts.fetch_add(1, Ordering::AcqRel)
    }

    /// Records how much of each device the pool uses, and the epoch.
    pub(super) fn note_root(&self, bytes: u64, epoch: u64) {
        let mut change = self.change();
        (change.bytes, change.epoch) = (bytes, epoch);
    }

    /// Updates labels before the first write of this process. Devices that were out and are present
    /// catch up from here on, except those that an administrator keeps out.
    ///
    /// # Errors
    /// If no device takes its label.
    pub(super) fn begin(&self) -> io::Result<()> {
        // Each write calls this: without the lock, once it was done.
        if self.has_begun() {
            return Ok(());
        }
        let mut change = self.change();
        if self.has_begun() {
            return Ok(());
        }
        let slots = self.slots();
        self.commit(&mut change, slots.clone(), BTreeMap::new())?;
        self.has_begun.store(true, Ordering::Release);
        for slot in slots.iter().filter(|slot| slot.state() == DeviceState::Out) {
            // One that fails at once stays out.
            let _ = self.let_catch_up(&mut change, slot);
        }
        Ok(())
    }

    /// Takes out a device that has failed: when this returns, the labels of the others say so.
    ///
    /// # Errors
    /// `error`, if no other device is in; or if the others have failed, too.
    pub(super) fn fail(&self, slot: &Slot, error: io::Error) -> io::Result<()> {
        slot.write_errors.fetch_add(1, Ordering::Relaxed);
        self.leave(slot, error, DeviceState::Out)
    }

    /// The same, for a caller that fails with this device in any case; returns its error.
    pub(super) fn fail_with(&self, slot: &Slot, error: io::Error) -> io::Error {
        let same = io::Error::new(error.kind(), error.to_string());
        // The last device that is in stays in.
        let _ = self.fail(slot, error);
        same
    }

    /// The same, for a caller that counts the error elsewhere, with the resulting state.
    pub(super) fn leave(
        &self,
        slot: &Slot,
        error: io::Error,
        state: DeviceState,
    ) -> io::Result<()> {
        self.leave_in(&mut self.change(), slot, error, state)
    }

    /// The same, within a change.
    pub(super) fn leave_in(
        &self,
        change: &mut Change,
        slot: &Slot,
        error: io::Error,
        state: DeviceState,
    ) -> io::Result<()> {
        let why = Some(error.to_string());
        match slot.state() {
            DeviceState::In => {
                let slots = self.slots();
                if !self.can_do_without(&slots, slot) {
                    return Err(error);
                }
                if self.has_begun() {
                    self.commit(change, slots, BTreeMap::from([(slot.number, state)]))?;
                }
            }
            DeviceState::CatchingUp if state == DeviceState::Kept => {
                let plan = BTreeMap::from([(slot.number, state)]);
                self.commit(change, self.slots(), plan)?;
            }
            // Labels already say that it is out.
            DeviceState::CatchingUp => {}
            _ => return Ok(()),
        }
        slot.set(state, why);
        let mut departures = slot.departures.lock().unwrap_or_else(PoisonError::into_inner);
        departures.push(Instant::now());
        self.tell_redundancy();
        Ok(())
    }

    /// Takes back devices that were late or had errors, and may work again. Only files and devices:
    /// for others time does not advance.
    pub(super) fn take_back_departed(&self) {
        let may_return = |slot: &&Arc<Slot>| {
            let departures = slot.departures.lock().unwrap_or_else(PoisonError::into_inner);
            let recent = departures.iter().filter(|at| at.elapsed() < DEPARTURES_WITHIN).count();
            let last = departures.last().is_some_and(|at| at.elapsed() >= OUT_AT_LEAST);
            last && recent < DEPARTURES_MAX
                && slot.state() == DeviceState::Out
                && slot.in_flight.load(Ordering::Acquire) == 0
                && slot.device.as_ref().is_some_and(|device| device.file.is_some())
        };
        for slot in self.slots().iter().filter(may_return) {
            // A device that fails again stays out, with one more departure.
            if self.take_back(slot.number).is_err() {
                slot.departures.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
            }
        }
    }

    pub(super) fn let_catch_up(&self, change: &mut Change, slot: &Arc<Slot>) -> io::Result<()> {
        let Some(device) = &slot.device else {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the device is not present"));
        };
        if slot.in_flight.load(Ordering::Acquire) > 0 {
            let text = "earlier requests to it are still in flight";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, text));
        }
        let of = (self.placement.geometry(), change.bytes);
        let needs_bytes = self.needed_bytes(of, slot.number);
        if device.disk.len_bytes() < needs_bytes {
            let text = format!(
                "it has {} bytes, but the pool needs {needs_bytes}",
                device.disk.len_bytes()
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        // Its content is invalid now, first of all its root.
        device.disk.set_redundant(true);
        ask(device, UnderWay::one(slot), TRANSFER, root::wipe)?;
        slot.map_sequence.store(0, Ordering::Release);
        // Numbers of devices are reused, so attempts are counted over all devices.
        slot.attempts.store(self.next_attempt(), Ordering::Release);
        slot.note_flushes();
        self.commit(change, self.slots(), BTreeMap::from([(slot.number, DeviceState::CatchingUp)]))
    }

    /// Ends catching up of a device that is complete again: its roots are written, and it was
    /// flushed.
    pub(super) fn admit(&self, slot: &Arc<Slot>) -> io::Result<()> {
        let mut change = self.change();
        if slot.state() != DeviceState::CatchingUp {
            return Err(io::Error::other("the device is not (or no longer) catching up"));
        }
        self.commit(&mut change, self.slots(), BTreeMap::from([(slot.number, DeviceState::In)]))
    }

    /// Makes a change: `slots` become the members, some with the states in `plan`. First the labels
    /// of all devices that are then in say so.
    ///
    /// # Errors
    /// If none of those takes its label: nothing has changed then.
    pub(super) fn commit(
        &self,
        change: &mut Change,
        slots: Slots,
        mut plan: BTreeMap<u16, DeviceState>,
    ) -> io::Result<()> {
        loop {
            let state_of = |slot: &Slot| plan.get(&slot.number).copied().unwrap_or(slot.state());
            change.sequence += 1;
            change.told = (change.epoch, change.bytes);
            let label = self.label(change, &slots, state_of);
            let is_written = |slot: &&Arc<Slot>| {
                matches!(state_of(slot), DeviceState::In | DeviceState::CatchingUp)
            };
            let asked: Vec<_> = slots.iter().filter(is_written).cloned().collect();
            // Devices that are in come first: no device that does not count may have a newer label.
            let (are_in, others): (Vec<_>, Vec<_>) =
                asked.into_iter().partition(|slot| state_of(slot) == DeviceState::In);
            let mut failed = write_labels(&are_in, &label, &change.map);
            let is_left = |slot: &Slot| match failed.iter().any(|it| it.0.number == slot.number) {
                true => DeviceState::Out,
                false => state_of(slot),
            };
            if !self.can_do_with(&slots, is_left) {
                let first = failed.into_iter().next().map(|(_, error)| error);
                return Err(first.unwrap_or_else(|| io::Error::other("no device is in")));
            }
            failed.extend(write_labels(&others, &label, &change.map));
            let is_done = failed.is_empty();
            for (slot, error) in failed {
                slot.write_errors.fetch_add(1, Ordering::Relaxed);
                slot.set_why(&error);
                plan.insert(slot.number, DeviceState::Out);
            }
            if is_done {
                break;
            }
        }
        for slot in slots.iter() {
            if let Some(state) = plan.get(&slot.number) {
                slot.set(*state, slot.why_out().filter(|_| *state != DeviceState::In));
            }
        }
        *self.slots.write().unwrap_or_else(PoisonError::into_inner) = slots;
        self.members_changed();
        Ok(())
    }

    /// Invalidates what was derived from the map.
    pub(super) fn members_changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.tell_redundancy();
    }

    /// While others have the same data, a device is retried only briefly.
    fn tell_redundancy(&self) {
        let slots = self.slots();
        for slot in slots.iter() {
            if let Some(device) = slot.written() {
                device.disk.set_redundant(!slot.is_in() || self.can_do_without(&slots, slot));
            }
        }
    }
}
