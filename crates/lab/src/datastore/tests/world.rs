//! Hosts over one in-memory disk, in a time of their own: when no host can proceed it advances to
//! the next event, so that a run depends only on its seed.
//!
//! The disk's faults: every command takes time, half of it before its effect; writes of several
//! sectors are torn in two, and so are reads, whose second part may be older; a COMPARE AND WRITE
//! may be sent twice, as after the loss of a path; a completed write may seem to have failed; a
//! host may die in the middle of its n-th write, with any part of it done.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use futures::executor::{LocalPool, LocalSpawner};
use futures::task::LocalSpawnExt;

use super::memory::Memory;
use crate::engine::LocalFuture;
use crate::random::Random;

pub const SECTOR: usize = 512;

pub struct World {
    pool: LocalPool,
    pub disk: Rc<Shared>,
}

pub struct Shared {
    pub(super) spawner: LocalSpawner,
    pub(super) base: Instant,
    pub(super) now: Cell<Duration>,
    timers: RefCell<BTreeMap<(Duration, u64), oneshot::Sender<()>>>,
    timer_count: Cell<u64>,
    pub random: RefCell<Random>,
    pub sectors: RefCell<HashMap<u64, [u8; SECTOR]>>,
    pub(super) bytes: u64,
    pub(super) reserved_by: Cell<Option<usize>>,
    pub(super) hosts: Cell<usize>,
}

impl World {
    pub fn new(bytes: u64, seed: u64) -> Self {
        let pool = LocalPool::new();
        let disk = Rc::new(Shared {
            spawner: pool.spawner(),
            base: Instant::now(),
            now: Cell::default(),
            timers: RefCell::default(),
            timer_count: Cell::new(0),
            random: RefCell::new(Random::new(seed)),
            sectors: RefCell::default(),
            bytes,
            reserved_by: Cell::new(None),
            hosts: Cell::new(0),
        });
        Self { pool, disk }
    }

    pub fn host(&self, by_ats: bool) -> Memory {
        Memory::new(&self.disk, by_ats)
    }

    /// Runs a future to its end.
    pub fn run<T: 'static>(&mut self, future: impl Future<Output = T> + 'static) -> T {
        let mut task = self.pool.spawner().spawn_local_with_handle(future).unwrap();
        let mut is_stuck = false;
        loop {
            let ended = self.pool.run_until(async { futures::poll!(&mut task) });
            if let std::task::Poll::Ready(value) = ended {
                return value;
            }
            assert!(!is_stuck, "nothing is due, but the future has not ended");
            self.pool.run_until_stalled();
            is_stuck = !self.disk.turn_clock();
        }
    }
}

impl Shared {
    /// Advances to the next timer that a task still waits for; returns whether there is one.
    fn turn_clock(&self) -> bool {
        loop {
            let Some((due, waiter)) = self.timers.borrow_mut().pop_first() else { return false };
            if !waiter.is_canceled() {
                self.now.set(due.0);
                let _ = waiter.send(());
                return true;
            }
        }
    }

    pub fn sleep(&self, time: Duration) -> LocalFuture<'static, ()> {
        let (waiter, due) = oneshot::channel();
        self.timer_count.set(self.timer_count.get() + 1);
        let key = (self.now.get() + time, self.timer_count.get());
        self.timers.borrow_mut().insert(key, waiter);
        Box::pin(async move {
            let _ = due.await;
        })
    }

    pub fn get(&self, offset: u64, bytes: u64) -> Vec<u8> {
        assert!(offset.is_multiple_of(512) && bytes.is_multiple_of(512), "{offset} {bytes}");
        assert!(bytes > 0 && offset + bytes <= self.bytes, "{offset} {bytes}");
        let sectors = self.sectors.borrow();
        let numbers = offset / 512..(offset + bytes) / 512;
        numbers.flat_map(|number| sectors.get(&number).copied().unwrap_or([0xEE; SECTOR])).collect()
    }

    pub fn put(&self, offset: u64, bytes: &[u8]) {
        assert!(offset.is_multiple_of(512) && offset + bytes.len() as u64 <= self.bytes);
        for (sector, number) in bytes.chunks_exact(SECTOR).zip(offset / 512..) {
            self.sectors.borrow_mut().insert(number, sector.try_into().unwrap());
        }
    }
}
