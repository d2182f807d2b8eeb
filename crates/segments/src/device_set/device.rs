//! A device, and its state as a member of a pool.

use std::fmt;
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use format::DeviceId;
use format::label::Member;
use sys::{Disk, FileDisk};

use super::workers::{Limits, Workers};
use crate::devices::{DeviceState, DeviceStatus};

/// A device for creating or opening a pool.
#[derive(Clone)]
pub struct Device {
    pub(super) disk: Arc<dyn Disk>,
    /// The same device, if it is a file or a block device; there are then channels to it.
    pub(super) file: Option<Arc<FileDisk>>,
    /// The threads that call it, if calls may take long; otherwise calls are made directly.
    pub(super) workers: Option<Arc<Workers>>,
    pub(super) name: String,
}

impl Device {
    /// Uses a file or a block device; `name` is for messages, such as its path.
    pub fn of_file(file: Arc<FileDisk>, name: String) -> Self {
        let workers = Some(Workers::new(Limits::OF_FILES));
        Self { disk: file.clone(), file: Some(file), workers, name }
    }

    /// Uses any disk, such as a simulated one.
    pub fn over(disk: Arc<dyn Disk>, name: String) -> Self {
        Self { disk, file: None, workers: None, name }
    }

    /// Has the disk called on threads, as if it were a file.
    #[cfg(test)]
    pub(super) fn with_workers(self, limits: Limits) -> Self {
        Self { workers: Some(Workers::new(limits)), ..self }
    }

    /// The disk.
    pub fn disk(&self) -> &dyn Disk {
        &*self.disk
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A member of the pool.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) number: u16,
    pub(super) id: DeviceId,
    /// `None` if it was missing when the pool was opened.
    pub(super) device: Option<Device>,
    state: AtomicU8,
    /// How much of it the pool uses, in bytes, in a pool with a map of parts.
    bytes: AtomicU64,
    /// The sequence number of its map of parts, as far as this process knows; 0 if it has none.
    pub(super) map_sequence: AtomicU64,
    /// The number of its last attempt to catch up, counted over all devices; 0 before the first.
    pub(super) attempts: AtomicU64,
    /// The number of its requests in flight.
    pub(super) in_flight: AtomicU32,
    /// The sequence number of the newest label written to it. Locked during the write, so that a
    /// slow write does not overwrite a newer label.
    pub(super) label: Mutex<u64>,
    /// The number of its failed flushes when it began to catch up.
    flushes_failed: AtomicU64,
    why_out: Mutex<Option<String>>,
    /// How often it stopped being in.
    exits: AtomicU64,
    /// When its state last changed.
    since: Mutex<Instant>,
    /// The times at which it went out by failing.
    pub(super) departures: Mutex<Vec<Instant>>,
    pub(super) read_errors: AtomicU64,
    pub(super) write_errors: AtomicU64,
    pub(super) mended: AtomicU64,
    reads_elsewhere: AtomicU64,
}

const STATES: [DeviceState; 5] = [
    DeviceState::In,
    DeviceState::CatchingUp,
    DeviceState::Out,
    DeviceState::Kept,
    DeviceState::Missing,
];

impl Slot {
    pub(super) fn new(
        number: u16,
        id: DeviceId,
        device: Option<Device>,
        state: DeviceState,
    ) -> Arc<Self> {
        let slot = Self {
            number,
            id,
            device,
            state: AtomicU8::default(),
            bytes: AtomicU64::default(),
            map_sequence: AtomicU64::default(),
            attempts: AtomicU64::default(),
            in_flight: AtomicU32::default(),
            label: Mutex::default(),
            flushes_failed: AtomicU64::default(),
            why_out: Mutex::default(),
            exits: AtomicU64::default(),
            since: Mutex::new(Instant::now()),
            departures: Mutex::default(),
            read_errors: AtomicU64::default(),
            write_errors: AtomicU64::default(),
            mended: AtomicU64::default(),
            reads_elsewhere: AtomicU64::default(),
        };
        slot.set(state, None);
        Arc::new(slot)
    }

    pub(super) fn state(&self) -> DeviceState {
        STATES[usize::from(self.state.load(Ordering::Acquire))]
    }

    /// Sets the state. For [`super::members`] only, which has recorded it in labels before, if
    /// necessary.
    pub(super) fn set(&self, state: DeviceState, why_out: Option<String>) {
        let code = STATES.iter().position(|known| *known == state);
        *self.why_out.lock().unwrap_or_else(PoisonError::into_inner) = why_out;
        let code = code.unwrap_or_default() as u8;
        let before = self.state.swap(code, Ordering::AcqRel);
        if before != code {
            *self.since.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
        if STATES[usize::from(before)] == DeviceState::In && before != code {
            self.exits.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Returns how often it stopped being in.
    pub(super) fn exits(&self) -> u64 {
        self.exits.load(Ordering::Acquire)
    }

    /// Returns when its state last changed.
    pub(super) fn since(&self) -> Instant {
        *self.since.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records why it is about to go out.
    pub(super) fn set_why(&self, error: &std::io::Error) {
        let why = Some(error.to_string());
        *self.why_out.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    pub(super) fn why_out(&self) -> Option<String> {
        self.why_out.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records the failed flushes at the beginning of catching up: none may fail from here on.
    pub(super) fn note_flushes(&self) {
        let failures = self.device.as_ref().map_or(0, |device| device.disk.flush_failures());
        self.flushes_failed.store(failures, Ordering::Release);
    }

    /// Flushes what was written while it was catching up.
    pub(super) fn flush_all(&self, disk: &dyn Disk) -> std::io::Result<()> {
        disk.flush()?;
        match disk.flush_failures() == self.flushes_failed.load(Ordering::Acquire) {
            true => Ok(()),
            false => {
                Err(std::io::Error::other("a flush has failed since the device began to catch up"))
            }
        }
    }

    pub(super) fn is_in(&self) -> bool {
        self.state() == DeviceState::In
    }

    /// Returns its device, if present.
    pub(super) fn device(&self) -> Option<&Device> {
        self.device.as_ref()
    }

    /// Returns its device, if it receives all writes.
    pub(super) fn written(&self) -> Option<&Device> {
        let is_written = matches!(self.state(), DeviceState::In | DeviceState::CatchingUp);
        self.device.as_ref().filter(|_| is_written)
    }

    /// Returns its device, if it may be read.
    pub(super) fn readable(&self) -> Option<&Device> {
        self.device.as_ref().filter(|_| self.is_in())
    }

    /// Returns how much of it the pool uses, in bytes, in a pool with a map of parts.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    pub(super) fn set_bytes(&self, bytes: u64) {
        self.bytes.store(bytes, Ordering::Release);
    }

    /// Counts a read of its data that other devices served.
    pub(super) fn note_read_elsewhere(&self) {
        self.reads_elsewhere.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns its entry in labels.
    pub(super) fn member(&self, bytes: u64) -> Member {
        let state = self.state().of_member();
        Member { device: self.id, bytes, number: self.number, state }
    }

    pub(super) fn status(&self) -> DeviceStatus {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let disk = self.device.as_ref().map(|device| &device.disk);
        DeviceStatus {
            number: self.number,
            id: self.id,
            name: self.device.as_ref().map(|device| device.name.clone()).unwrap_or_default(),
            state: self.state(),
            why_out: self.why_out(),
            len_bytes: disk.map_or(0, |disk| disk.len_bytes()),
            read_errors: count(&self.read_errors),
            write_errors: count(&self.write_errors),
            mended: count(&self.mended),
            retries: disk.map_or(0, |disk| disk.retry_count()),
            parts: None,
            counts: disk.map(|disk| disk.counts()).unwrap_or_default(),
            reads_elsewhere: count(&self.reads_elsewhere),
        }
    }
}
