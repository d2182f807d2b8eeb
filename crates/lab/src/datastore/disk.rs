//! Sectors of a medium, with retries while another host has it reserved; and the one operation that
//! all locks are based on: changing a sector if it is still what was read.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::lock::Mutex;

use super::counters::LockCounters;
use super::error::DatastoreError;
use super::medium::Medium;
use super::sector::{SECTOR_BYTES, Sector, damaged};
use crate::host::{HostError, Swap};
use crate::random::Random;

/// The maximum pause before retrying after a conflict with another host.
const PAUSE_MS_MAX: u64 = 64;
/// How often a command may meet a reservation: with the pauses, for longer than any host stays
/// alive whose heartbeat fails as well.
const CONFLICTS_MAX: u32 = 2000;
/// The maximum size of one read.
const READ_BYTES_MAX: u64 = 64 << 10;

/// A medium with the state that all of a host's tasks on it share.
pub(super) struct Disk {
    pub(super) medium: Rc<dyn Medium>,
    pub(super) counters: RefCell<LockCounters>,
    random: RefCell<Random>,
    /// A reservation is of the whole host, so its tasks must take turns.
    reservation: Mutex<()>,
    fence: Cell<Fence>,
}

/// Whether a host may still write what its locks allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fence {
    /// It has no locks yet.
    Open,
    /// As long as no other host can have found it dead.
    Until(Instant),
    /// Another host has found it dead.
    Lost,
    Unmounted,
}

impl Disk {
    pub(super) fn new(medium: Rc<dyn Medium>, seed: u64) -> Self {
        Self {
            medium,
            counters: RefCell::default(),
            random: RefCell::new(Random::new(seed)),
            reservation: Mutex::new(()),
            fence: Cell::new(Fence::Open),
        }
    }

    pub(super) fn set_fence(&self, fence: Fence) {
        self.fence.set(fence);
    }

    /// Checked before each write, including retries.
    pub(super) fn may_write(&self) -> Result<(), DatastoreError> {
        match self.fence.get() {
            Fence::Open => Ok(()),
            Fence::Until(when) if self.medium.now() <= when => Ok(()),
            Fence::Until(_) => Err(DatastoreError::HeartbeatLate),
            Fence::Lost => Err(DatastoreError::Lost),
            Fence::Unmounted => Err(DatastoreError::Unmounted),
        }
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut LockCounters)) {
        change(&mut self.counters.borrow_mut());
    }

    pub(super) fn nonce(&self) -> u64 {
        self.random.borrow_mut().next_u64()
    }

    /// Waits for a random time, longer with each attempt.
    pub(super) async fn back_off(&self, attempt: u32) {
        let most_ms = (1 << attempt.min(6)).min(PAUSE_MS_MAX);
        let micros = self.random.borrow_mut().below(most_ms * 1000);
        self.medium.sleep(Duration::from_micros(500 + micros)).await;
    }

    /// Repeats a command while the device is reserved.
    async fn persist<T, F>(&self, command: impl Fn() -> F) -> Result<T, DatastoreError>
    where
        F: Future<Output = Result<T, HostError>>,
    {
        self.persist_while(|| Ok(()), command).await
    }

    /// The same for a command that writes.
    async fn persist_fenced<T, F>(&self, command: impl Fn() -> F) -> Result<T, DatastoreError>
    where
        F: Future<Output = Result<T, HostError>>,
    {
        self.persist_while(|| self.may_write(), command).await
    }

    async fn persist_while<T, F>(
        &self,
        may: impl Fn() -> Result<(), DatastoreError>,
        command: impl Fn() -> F,
    ) -> Result<T, DatastoreError>
    where
        F: Future<Output = Result<T, HostError>>,
    {
        for attempt in 0..CONFLICTS_MAX {
            may()?;
            match command().await {
                Err(HostError::Reserved) => self.count(|counters| counters.conflicts += 1),
                end => return Ok(end?),
            }
            self.back_off(attempt).await;
        }
        Err(DatastoreError::StaysReserved)
    }

    /// Reads any number of sectors.
    pub(super) async fn read(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, DatastoreError> {
        let mut all = Vec::with_capacity(bytes as usize);
        while (all.len() as u64) < bytes {
            let at = offset + all.len() as u64;
            let part = (bytes - all.len() as u64).min(READ_BYTES_MAX);
            let read = self.persist(|| self.medium.read(at, part)).await?;
            if read.len() as u64 != part {
                return Err(damaged(at, format!("{} bytes were read, not {part}", read.len())));
            }
            all.extend(read);
        }
        Ok(all)
    }

    pub(super) async fn read_sector(&self, offset: u64) -> Result<Sector, DatastoreError> {
        let bytes = self.read(offset, SECTOR_BYTES).await?;
        Sector::try_from(bytes.as_slice())
            .map_err(|_| damaged(offset, "the read is not one sector"))
    }

    pub(super) async fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DatastoreError> {
        self.persist_fenced(|| self.medium.write(offset, bytes)).await
    }

    /// Changes a sector from `old` to `new`, atomically among all hosts; returns whether it is
    /// `new` now.
    pub(super) async fn exchange(
        &self,
        offset: u64,
        old: &Sector,
        new: &Sector,
    ) -> Result<bool, DatastoreError> {
        Ok(self.exchange_or_read(offset, SECTOR_BYTES, old, new).await?.is_none())
    }

    /// The same; on failure, returns the sector and what follows it in `bytes`, or as much of that
    /// as one read returns. If the sector has the new content already, it counts as written by us:
    /// a command whose completion was lost with its path was sent twice. So `new` must differ from
    /// anything others write.
    pub(super) async fn exchange_or_read(
        &self,
        offset: u64,
        bytes: u64,
        old: &Sector,
        new: &Sector,
    ) -> Result<Option<Vec<u8>>, DatastoreError> {
        let bytes = bytes.min(READ_BYTES_MAX);
        if self.medium.locking().by_ats {
            match self.exchange_by_ats(offset, bytes, old, new).await {
                // The medium knows for how long a refusal counts.
                Err(DatastoreError::Host(HostError::Unsupported { .. })) => {
                    self.count(|counters| counters.ats_refused += 1);
                }
                end => return end,
            }
        }
        for attempt in 0..CONFLICTS_MAX {
            self.may_write()?;
            match self.exchange_by_reservation(offset, bytes, old, new).await {
                // The reservation was lost, with the path that had it.
                Err(HostError::Reserved) => self.back_off(attempt).await,
                end => return Ok(end?),
            }
        }
        Err(DatastoreError::StaysReserved)
    }

    async fn exchange_by_ats(
        &self,
        offset: u64,
        bytes: u64,
        old: &Sector,
        new: &Sector,
    ) -> Result<Option<Vec<u8>>, DatastoreError> {
        let swap = || self.medium.compare_and_write(offset, old, new);
        if self.persist_fenced(swap).await? == Swap::Done {
            return Ok(None);
        }
        self.count(|counters| counters.miscompares += 1);
        let found = self.read(offset, bytes).await?;
        let is_ours = found.starts_with(new);
        self.count(|counters| counters.false_miscompares += u64::from(is_ours));
        Ok((!is_ours).then_some(found))
    }

    /// The same by RESERVE, read, write, RELEASE; unfenced.
    pub(super) async fn exchange_by_reservation(
        &self,
        offset: u64,
        bytes: u64,
        old: &Sector,
        new: &Sector,
    ) -> Result<Option<Vec<u8>>, HostError> {
        let _turn = self.reservation.lock().await;
        if let Err(error) = self.medium.reserve().await {
            let is_conflict = matches!(error, HostError::Reserved);
            self.count(|counters| counters.conflicts += u64::from(is_conflict));
            return Err(error);
        }
        self.count(|counters| counters.reservations += 1);
        self.medium.locks_by_hand();
        let changed = self.exchange_reserved(offset, bytes, old, new).await;
        // In any case others must be able to continue.
        let released = self.medium.release().await;
        let changed = changed?;
        released?;
        Ok(changed)
    }

    /// Without retries: the holder of the reservation gets no conflict unless the reservation is
    /// lost, and then nothing more may be written under it.
    async fn exchange_reserved(
        &self,
        offset: u64,
        bytes: u64,
        old: &Sector,
        new: &Sector,
    ) -> Result<Option<Vec<u8>>, HostError> {
        let found = self.medium.read(offset, bytes).await?;
        if found.starts_with(old) {
            self.medium.write(offset, new).await?;
            return Ok(None);
        }
        Ok((!found.starts_with(new)).then_some(found))
    }
}
