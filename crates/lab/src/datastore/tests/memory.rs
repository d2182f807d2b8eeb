//! The disk of a world as one host sees it.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::task::LocalSpawnExt;
use libiscsi::Status;

use super::commands::Commands;
use super::world::{SECTOR, Shared};
use crate::datastore::{Locking, Medium, NoAutoReclaim};
use crate::engine::{LocalFuture, Task};
use crate::host::{HostError, Swap};

/// A disk as one host sees it.
#[derive(Clone)]
pub struct Memory(Rc<Inner>);

struct Inner {
    disk: Rc<Shared>,
    number: usize,
    locking: Cell<Locking>,
    /// The disk refuses COMPARE AND WRITE.
    refuses_ats: Cell<bool>,
    /// Percent of COMPARE AND WRITE commands that are sent twice.
    twice: Cell<u32>,
    /// Writes until it dies.
    lives_for: Cell<u64>,
    is_dead: Cell<bool>,
    /// Its next WRITE is done, and reported as failed.
    hides_write: Cell<bool>,
    /// Added to the duration of its commands.
    lag: Cell<Duration>,
    commands: Cell<Commands>,
    /// Blocks a second that it unmaps by automatic reclaim.
    reclaims: Cell<Option<NonZeroU32>>,
}

impl Memory {
    pub fn new(disk: &Rc<Shared>, by_ats: bool) -> Self {
        disk.hosts.set(disk.hosts.get() + 1);
        Self(Rc::new(Inner {
            disk: disk.clone(),
            number: disk.hosts.get(),
            locking: Cell::new(Locking { by_ats, heartbeat_by_ats: by_ats }),
            refuses_ats: Cell::new(false),
            twice: Cell::new(0),
            lives_for: Cell::new(u64::MAX),
            is_dead: Cell::new(false),
            hides_write: Cell::new(false),
            lag: Cell::default(),
            commands: Cell::default(),
            reclaims: Cell::new(None),
        }))
    }

    pub fn disk(&self) -> &Rc<Shared> {
        &self.0.disk
    }

    pub fn set_locking(&self, by_ats: bool, heartbeat_by_ats: bool) {
        self.0.locking.set(Locking { by_ats, heartbeat_by_ats });
    }

    pub fn refuse_ats(&self) {
        self.0.refuses_ats.set(true);
    }

    pub fn send_twice(&self, percent: u32) {
        self.0.twice.set(percent);
    }

    pub fn die_after(&self, writes: u64) {
        self.0.lives_for.set(writes);
    }

    pub fn hide_next_write(&self) {
        self.0.hides_write.set(true);
    }

    pub fn set_lag(&self, lag: Duration) {
        self.0.lag.set(lag);
    }

    /// Returns the commands sent since the last call.
    pub fn take_commands(&self) -> Commands {
        self.0.commands.take()
    }

    fn count(&self, change: impl FnOnce(&mut Commands)) {
        let mut commands = self.0.commands.get();
        change(&mut commands);
        self.0.commands.set(commands);
    }

    pub fn reclaim_by_itself(&self, blocks_per_s: u32) {
        self.0.reclaims.set(NonZeroU32::new(blocks_per_s));
    }

    pub fn is_dead(&self) -> bool {
        self.0.is_dead.get()
    }

    pub fn die(&self) {
        self.0.is_dead.set(true);
        // The array releases the reservation of a lost session.
        if self.0.disk.reserved_by.get() == Some(self.0.number) {
            self.0.disk.reserved_by.set(None);
        }
    }

    /// Reads as a guest does: its host retries while another one has the disk reserved.
    pub async fn guest_read(&self, offset: u64) -> Result<Vec<u8>, HostError> {
        loop {
            match self.read(offset, 512).await {
                Err(HostError::Reserved) => self.delay().await,
                end => return end,
            }
        }
    }

    /// Writes as a guest does.
    pub async fn guest_write(&self, offset: u64, bytes: &[u8]) -> Result<(), HostError> {
        loop {
            match self.write(offset, bytes).await {
                Err(HostError::Reserved) => self.delay().await,
                end => return end,
            }
        }
    }

    fn below(&self, bound: u64) -> u64 {
        self.0.disk.random.borrow_mut().below(bound)
    }

    async fn delay(&self) {
        let micros = 20 + self.below(400);
        self.0.disk.sleep(Duration::from_micros(micros) + self.0.lag.get()).await;
    }

    /// Runs before a command takes effect.
    async fn begin(&self) -> Result<(), HostError> {
        self.delay().await;
        let reserved_by = self.0.disk.reserved_by.get();
        match (self.is_dead(), reserved_by) {
            (true, _) => Err(HostError::PathsDown),
            (_, Some(host)) if host != self.0.number => Err(HostError::Reserved),
            _ => Ok(()),
        }
    }

    /// Runs after it.
    async fn end<T>(&self, value: T) -> Result<T, HostError> {
        self.delay().await;
        if self.is_dead() { Err(HostError::PathsDown) } else { Ok(value) }
    }

    /// Returns whether it dies in this write.
    fn dies_now(&self) -> bool {
        let left = self.0.lives_for.get();
        self.0.lives_for.set(left.saturating_sub(1));
        left == 0
    }

    async fn do_write(&self, offset: u64, bytes: &[u8]) -> Result<(), HostError> {
        self.count(|commands| commands.writes += 1);
        self.begin().await?;
        let sectors = (bytes.len() / SECTOR) as u64;
        if self.dies_now() {
            let done = self.below(sectors + 1) as usize * SECTOR;
            self.0.disk.put(offset, &bytes[..done]);
            self.die();
            return Err(HostError::PathsDown);
        }
        let torn = self.below(sectors) as usize * SECTOR;
        if torn > 0 {
            self.0.disk.put(offset, &bytes[..torn]);
            self.begin().await?;
        }
        self.0.disk.put(offset + torn as u64, &bytes[torn..]);
        self.end(()).await?;
        if self.0.hides_write.take() { Err(HostError::PathsDown) } else { Ok(()) }
    }

    async fn do_swap(&self, offset: u64, old: &[u8], new: &[u8]) -> Result<Swap, HostError> {
        self.count(|commands| commands.swaps += 1);
        self.begin().await?;
        if self.0.refuses_ats.get() {
            let command = "COMPARE AND WRITE";
            return Err(HostError::Unsupported { command, status: Status::Other(0) });
        }
        let dies = self.dies_now();
        if dies && self.below(2) == 0 {
            self.die();
            return Err(HostError::PathsDown);
        }
        let mut swap = self.swap_now(offset, old, new);
        if dies {
            self.die();
            return Err(HostError::PathsDown);
        }
        if self.below(100) < u64::from(self.0.twice.get()) {
            self.begin().await?;
            swap = self.swap_now(offset, old, new);
        }
        self.end(swap).await
    }

    fn swap_now(&self, offset: u64, old: &[u8], new: &[u8]) -> Swap {
        if self.0.disk.get(offset, new.len() as u64) != old {
            return Swap::Miscompare;
        }
        self.0.disk.put(offset, new);
        Swap::Done
    }
}

impl Medium for Memory {
    fn read(&self, offset_bytes: u64, bytes: u64) -> LocalFuture<'_, Result<Vec<u8>, HostError>> {
        Box::pin(async move {
            self.count(|commands| commands.reads += 1);
            self.begin().await?;
            // In two parts, in any order, or in one.
            let (first, is_backwards) = (self.below(bytes / 512) * 512, self.below(2) == 0);
            let mut all = self.0.disk.get(offset_bytes, bytes);
            if first > 0 {
                self.begin().await?;
                let late = if is_backwards { 0..first } else { first..bytes };
                let at = offset_bytes + late.start;
                let read = self.0.disk.get(at, late.end - late.start);
                all[late.start as usize..late.end as usize].copy_from_slice(&read);
            }
            self.end(all).await
        })
    }

    fn write<'a>(
        &'a self,
        offset_bytes: u64,
        bytes: &'a [u8],
    ) -> LocalFuture<'a, Result<(), HostError>> {
        Box::pin(self.do_write(offset_bytes, bytes))
    }

    fn compare_and_write<'a>(
        &'a self,
        offset_bytes: u64,
        expected: &'a [u8],
        new: &'a [u8],
    ) -> LocalFuture<'a, Result<Swap, HostError>> {
        Box::pin(self.do_swap(offset_bytes, expected, new))
    }

    fn reserve(&self) -> LocalFuture<'_, Result<(), HostError>> {
        Box::pin(async move {
            self.count(|commands| commands.reserves += 1);
            self.begin().await?;
            self.0.disk.reserved_by.set(Some(self.0.number));
            self.end(()).await
        })
    }

    fn release(&self) -> LocalFuture<'_, Result<(), HostError>> {
        Box::pin(async move {
            self.count(|commands| commands.releases += 1);
            self.delay().await;
            if self.0.disk.reserved_by.get() == Some(self.0.number) {
                self.0.disk.reserved_by.set(None);
            }
            self.end(()).await
        })
    }

    fn unmap<'a>(&'a self, ranges: &'a [(u64, u64)]) -> LocalFuture<'a, Result<(), HostError>> {
        Box::pin(async move {
            self.begin().await?;
            // It may take long: no other host may get the blocks before it ends.
            self.0.disk.sleep(Duration::from_micros(self.below(8000))).await;
            for (offset, bytes) in ranges {
                self.0.disk.put(*offset, &vec![0; *bytes as usize]);
            }
            self.end(()).await
        })
    }

    fn bytes(&self) -> u64 {
        self.0.disk.bytes
    }

    fn sector_bytes(&self) -> u64 {
        512
    }

    fn locking(&self) -> Locking {
        self.0.locking.get()
    }

    fn auto_reclaim(&self) -> Result<NonZeroU32, NoAutoReclaim> {
        self.0.reclaims.get().ok_or(NoAutoReclaim::Version)
    }

    fn now(&self) -> Instant {
        self.0.disk.base + self.0.disk.now.get()
    }

    fn sleep(&self, time: Duration) -> LocalFuture<'static, ()> {
        self.0.disk.sleep(time)
    }

    fn spawn(&self, future: LocalFuture<'static, ()>) -> Task<()> {
        self.0.disk.spawner.spawn_local_with_handle(future).unwrap()
    }
}
