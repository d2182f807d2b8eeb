//! A load in a guest: reads and writes of one size, at a depth, over some disks, which remembers
//! what it has written where.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;
use std::time::Duration;

use super::content::{GUEST_BLOCK_BYTES, fill_block};
use super::disk::GuestDisk;
use super::meter::Meter;
use super::worker;
use crate::disk::DiskError;
use crate::engine::{Reactor, Task, all};
use crate::random::Random;

/// The parameters of a load.
#[derive(Clone, Copy, Debug)]
pub struct LoadPlan {
    /// Bytes of one request: whole blocks of 4 KiB.
    pub bytes: u64,
    /// Requests in flight on each disk.
    pub depth: usize,
    /// How many of a hundred requests are reads.
    pub read_percent: u32,
    /// How many of a hundred requests follow the previous one; the others are random.
    pub sequential_percent: u32,
    /// Bytes of each disk that are read and written, from its beginning; none: all.
    pub span_bytes: Option<u64>,
    /// The seed of block numbers and contents.
    pub seed: u64,
}

impl Default for LoadPlan {
    fn default() -> Self {
        Self {
            bytes: 32 << 10,
            depth: 4,
            read_percent: 30,
            sequential_percent: 20,
            span_bytes: None,
            seed: 1,
        }
    }
}

/// A load that runs until it is stopped.
#[derive(Debug)]
pub struct Load {
    pub(super) state: Rc<State>,
    tasks: Vec<Task<Result<(), DiskError>>>,
}

impl Drop for Load {
    /// Requests in flight end by themselves: a write that is dropped may leave a lock on disk.
    fn drop(&mut self) {
        self.state.stopped.set(true);
        self.tasks.drain(..).for_each(Task::forget);
    }
}

/// What all requests of a load share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) plan: LoadPlan,
    pub(super) disks: Vec<Target>,
    pub(super) meter: RefCell<Meter>,
    pub(super) stopped: Cell<bool>,
    /// The time from the beginning of one request of a worker to that of the next; none: as fast as
    /// possible.
    pub(super) interval: Cell<Option<Duration>>,
}

/// A disk, and its state.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) disk: GuestDisk,
    pub(super) known: RefCell<Known>,
}

/// What a disk must contain, and the requests in flight there.
#[derive(Debug)]
pub(super) struct Known {
    /// What the disk was filled with, if it was; otherwise it contained zeros.
    pub(super) filled_seed: Option<u64>,
    /// How often a block was written since.
    pub(super) versions: BTreeMap<u64, u32>,
    /// Blocks with a request in flight: with two the order would be unknown.
    pub(super) busy: HashSet<u64>,
    pub(super) next_block: u64,
    pub(super) random: Random,
}

impl Load {
    /// Starts it. `filled_seed` says what the disks contain ([`super::fill`]), if not zeros.
    pub fn start(
        reactor: &Reactor,
        disks: &[GuestDisk],
        plan: LoadPlan,
        filled_seed: Option<u64>,
    ) -> Self {
        let targets = disks.iter().enumerate().map(|(index, disk)| Target {
            disk: disk.clone(),
            known: RefCell::new(Known {
                filled_seed,
                versions: BTreeMap::new(),
                busy: HashSet::new(),
                next_block: 0,
                random: Random::new(plan.seed.wrapping_add(index as u64)),
            }),
        });
        let disks = targets.collect();
        let state = Rc::new(State {
            plan,
            disks,
            meter: RefCell::default(),
            stopped: Cell::new(false),
            interval: Cell::new(None),
        });
        let count = state.disks.len();
        let workers = (0..count).flat_map(|disk| (0..plan.depth.max(1)).map(move |_| disk));
        let tasks = workers
            .map(|disk| reactor.spawn(worker::run(state.clone(), reactor.clone(), disk)))
            .collect();
        Self { state, tasks }
    }

    /// Limits the rate of requests per second from now on, evenly spaced as far as possible.
    pub fn pace(&self, per_second: f64) {
        let interval = Duration::try_from_secs_f64(self.tasks.len() as f64 / per_second);
        self.state.interval.set(interval.ok());
    }

    /// Begins measuring now.
    pub fn restart_meter(&self) {
        self.state.meter.borrow_mut().restart();
    }

    /// Returns what it has done since measuring began, until now.
    pub fn meter(&self) -> Meter {
        self.state.meter.borrow().read()
    }

    /// Stops it, and waits for requests in flight.
    ///
    /// # Errors
    /// Those of the disks; also if a read has returned what was not written.
    pub async fn stop(&mut self) -> Result<(), DiskError> {
        self.state.stopped.set(true);
        all(self.tasks.drain(..)).await.map(drop)
    }

    /// Reads everything that was written and compares it; returns the compared bytes.
    ///
    /// # Errors
    /// Those of the disks, and if something else is read.
    pub async fn verify(&self) -> Result<u64, DiskError> {
        let mut verified_bytes = 0;
        for target in &self.state.disks {
            let written: Vec<u64> = target.known.borrow().versions.keys().copied().collect();
            for run in written.chunk_by(|a, b| a + 1 == *b) {
                for part in run.chunks(256) {
                    let bytes = (part.len() * GUEST_BLOCK_BYTES) as u64;
                    let offset = part[0] * GUEST_BLOCK_BYTES as u64;
                    let held = target.disk.read(offset, bytes).await?;
                    target.check(offset, &held)?;
                    verified_bytes += bytes;
                }
            }
        }
        Ok(verified_bytes)
    }
}

impl Target {
    /// Compares what was read with what must be there.
    pub(super) fn check(&self, offset: u64, held: &[u8]) -> Result<(), DiskError> {
        let known = self.known.borrow();
        let mut expected = vec![0; GUEST_BLOCK_BYTES];
        let first = offset / GUEST_BLOCK_BYTES as u64;
        for (block, held) in (first..).zip(held.chunks_exact(GUEST_BLOCK_BYTES)) {
            match (known.versions.get(&block), known.filled_seed) {
                (Some(version), _) => {
                    fill_block(known.seed_of_writes(), block, *version, &mut expected);
                }
                (None, Some(seed)) => fill_block(seed, block, 0, &mut expected),
                (None, None) => expected.fill(0),
            }
            if held != expected {
                let offset = block * GUEST_BLOCK_BYTES as u64;
                let disk = self.disk.base().name();
                return Err(DiskError::Differs { disk, offset });
            }
        }
        Ok(())
    }
}

impl Known {
    /// Returns a seed for written data that differs from the initial content of the disk.
    pub(super) fn seed_of_writes(&self) -> u64 {
        !self.filled_seed.unwrap_or(0)
    }
}
