//! One history: from a seed to a verdict.

mod administer;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use block::{SectorRange, VolumeReply, VolumeRequest};
use store::{Change, CheckOptions, Durability, OpenOptions, Store, StoreError, VolumeChange};

use crate::content::{Tag, tags_of};
use crate::desk::Desk;
use crate::disk::{Faults, SimDisk, Survival};
use crate::generate::{Generator, MIB, Mix};
use crate::model::{Model, ModelVolume, State};
use crate::rng::Rng;

/// The key of the number that goes up with each of the administrator's changes.
const CONFIG_KEY: &[u8] = b"changes";

/// How often recovery may be struck by a crash itself before the power stays on.
const OPEN_CRASHES_MAX: u64 = 3;

/// What a history is made of. All that happens follows from it.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The seed.
    pub seed: u64,
    /// When answers may be given.
    pub durability: Durability,
    /// How many steps: each starts a request, does a device read, takes a commit a step further,
    /// or is one of the rare ones.
    pub steps: u64,
    /// Bytes of the pool.
    pub pool_bytes: u64,
    /// How many volumes.
    pub volumes: usize,
    /// Sectors of each volume.
    pub volume_sectors: u64,
    /// Memory of the store.
    pub memory_bytes: u64,
    /// How probable each kind of request is.
    pub mix: Mix,
    /// Whether the power also fails, and writes also fail, by chance, again and again.
    pub random_crashes: bool,
    /// The power fails at this write or flush, counted from the first step.
    pub fuse: Option<u64>,
    /// And again at this one of the recovery that follows.
    pub open_fuse: Option<u64>,
    /// What survives; by chance if not said.
    pub survival: Option<Survival>,
    /// Seeds what survives, and nothing else.
    pub survival_seed: u64,
    /// The canary: flushes do nothing.
    pub lying_flush: bool,
    /// Whether requests may be refused because the pool is full.
    pub may_be_full: bool,
    /// Whether every I/O and answer is kept as a line.
    pub log: bool,
}

impl Plan {
    /// A small history with everything in it.
    pub fn new(seed: u64, durability: Durability) -> Self {
        Self {
            seed,
            durability,
            steps: 300,
            pool_bytes: 256 << 20,
            volumes: 2,
            volume_sectors: 3 * MIB,
            memory_bytes: if seed.is_multiple_of(2) { 1 << 20 } else { 0 },
            mix: Mix { weights: [4, 8, 3, 1, 1, 2, 4, 1], write_sectors_max: 512 },
            random_crashes: true,
            fuse: None,
            open_fuse: None,
            survival: None,
            survival_seed: seed,
            lying_flush: false,
            may_be_full: false,
            log: false,
        }
    }

    /// A pool that gets full: large volumes, large writes, unmaps.
    pub fn full_pool(seed: u64, durability: Durability) -> Self {
        Self {
            volumes: 2,
            volume_sectors: 80 * MIB,
            steps: 900,
            mix: Mix { weights: [2, 20, 1, 0, 1, 1, 1, 1], write_sectors_max: 4 * MIB },
            may_be_full: true,
            ..Self::new(seed, durability)
        }
    }
}

/// What came of a history in which nothing was wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// A hash of every I/O and every answer.
    pub trace: u64,
    /// Writes and flushes since the first step.
    pub io_count: u64,
    /// Requests that were answered.
    pub answers: u64,
    /// Of them, how many because the pool was full.
    pub refused_full: u64,
    /// Crashes.
    pub crashes: u64,
    /// Checkpoints that were finished.
    pub checkpoints: u64,
}

/// What was wrong.
#[derive(Clone, Debug, thiserror::Error)]
#[error("seed {seed}, step {step}: {reason}")]
pub struct Failure {
    /// The seed.
    pub seed: u64,
    /// The step after which it was seen.
    pub step: u64,
    /// What.
    pub reason: String,
    /// Every I/O, request and answer, if the plan says so.
    pub log: Vec<String>,
}

struct History {
    plan: Plan,
    disk: Arc<SimDisk>,
    store: Option<Arc<Store>>,
    desk: Arc<Mutex<Desk>>,
    rng: Rng,
    survival_rng: Rng,
    first_io: u64,
    crashes: u64,
    checkpoints: u64,
    config: u64,
}

/// Runs a history.
pub fn run(plan: &Plan) -> Result<Summary, Failure> {
    let disk = Arc::new(SimDisk::new(plan.pool_bytes, plan.seed));
    if plan.log {
        disk.keep_log();
    }
    let mut step = 0;
    let result = History::new(plan, disk.clone()).and_then(|mut history| {
        while step < plan.steps {
            history.step()?;
            step += 1;
        }
        history.end()
    });
    result.map_err(|reason| Failure { seed: plan.seed, step, reason, log: disk.take_log() })
}

/// The smallest number of steps with which the plan still fails, and how.
pub fn shrink(plan: &Plan) -> Option<(Plan, Failure)> {
    let mut found = None;
    let mut steps = plan.steps;
    let mut stride = plan.steps;
    while stride > 0 {
        let shorter = Plan { steps: steps.saturating_sub(stride), ..*plan };
        match run(&shorter) {
            Err(failure) => {
                steps = shorter.steps;
                found = Some((shorter, failure));
            }
            Ok(_) => stride /= 2,
        }
        stride = stride.min(steps);
    }
    found
}

fn locked(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

fn options(plan: &Plan) -> OpenOptions {
    let Plan { durability, memory_bytes, .. } = *plan;
    OpenOptions { durability, memory_bytes, ..OpenOptions::default() }
}

fn text(error: StoreError) -> String {
    error.to_string()
}

impl History {
    fn new(plan: &Plan, disk: Arc<SimDisk>) -> Result<Self, String> {
        let mut entropy = [0; 64];
        let mut rng = Rng::new(plan.seed);
        entropy.iter_mut().for_each(|byte| *byte = rng.draw() as u8);
        Store::create(&*disk, &entropy).map_err(text)?;
        let store = Arc::new(Store::open(disk.clone(), options(plan)).map_err(text)?);
        let mut volumes = Vec::new();
        let mut change = Change::default();
        for _ in 0..plan.volumes {
            let id = store.allocate_volume_id();
            let size = block::SectorCount(plan.volume_sectors);
            change.volumes.push(VolumeChange::Create { id, size });
            volumes.push(ModelVolume { id, tags: vec![0; plan.volume_sectors as usize] });
        }
        store.change(change).map_err(text)?;
        administer::first_snapshots(&store, &mut volumes).map_err(text)?;
        let model = Model::new(State { volumes, live: plan.volumes, config: 0 });
        let durable = plan.durability == Durability::Commit;
        let generator = Generator::new(plan.mix);
        let mut desk = Desk::new(disk.clone(), model, generator, rng.clone(), durable);
        desk.may_be_full = plan.may_be_full;
        desk.sink = store.register_sink(desk.mailbox.clone());
        disk.set_faults(Faults { lying_flush: plan.lying_flush, ..Faults::default() });
        let first_io = disk.io_count();
        disk.set_fuse(plan.fuse.map(|io| first_io + io));
        let history = Self {
            plan: *plan,
            disk,
            store: Some(store),
            desk: Arc::new(Mutex::new(desk)),
            rng: Rng::new(rng.draw()),
            survival_rng: Rng::new(plan.survival_seed),
            first_io,
            crashes: 0,
            checkpoints: 0,
            config: 0,
        };
        Ok(history)
    }

    fn store(&self) -> Result<Arc<Store>, String> {
        self.store.clone().ok_or_else(|| "the store is not open".to_string())
    }

    fn step(&mut self) -> Result<(), String> {
        let store = self.store()?;
        if self.disk.has_failed() {
            // What is under way is answered with errors; what is not hangs.
            locked(&self.desk).settle(&store)?;
            drop(store);
            return self.crash();
        }
        let crash = u64::from(self.plan.random_crashes);
        match self.rng.weighted(&[180, 5, 2, 1, 1, crash, crash, 3]) {
            0 if store.checkpoint_due() && self.rng.chance(20) => self.checkpoint(&store),
            0 => locked(&self.desk).step(&store),
            1 => self.checkpoint(&store),
            2 => {
                store.housekeep();
                Ok(())
            }
            3 => self.change(&store),
            4 => {
                drop(store);
                self.reopen()
            }
            5 => {
                drop(store);
                self.crash()
            }
            7 => self.background(&store),
            _ => {
                let io = Some(self.disk.io_count() + self.rng.between(1, 40));
                if self.rng.chance(70) {
                    self.disk.set_fuse(io);
                } else {
                    self.disk.set_error_at(io);
                }
                Ok(())
            }
        }
    }

    /// A turn of reclaim, or of the background pass. Both wait for commits of their own.
    fn background(&mut self, store: &Arc<Store>) -> Result<(), String> {
        locked(&self.desk).finish_commits(store)?;
        if self.disk.has_failed() {
            return Ok(());
        }
        // Reads and writes may fail here as anywhere: what comes of it, the model tells.
        if self.rng.chance(50) {
            self.disk.note("reclaim");
            let _ = store.reclaim_segment();
        } else {
            self.disk.note("background pass");
            store.optimize();
            let _ = store.optimize_step();
        }
        Ok(())
    }

    /// A checkpoint; between its I/Os the world goes on.
    fn checkpoint(&mut self, store: &Arc<Store>) -> Result<(), String> {
        if self.plan.durability == Durability::Flush {
            // It waits for the commits in flight, which nobody else would finish.
            locked(&self.desk).finish_commits(store)?;
            if self.disk.has_failed() {
                return Ok(());
            }
        }
        self.disk.note("checkpoint");
        let failure: Arc<Mutex<Option<String>>> = Arc::default();
        let (desk, inside, seen) = (self.desk.clone(), store.clone(), failure.clone());
        self.disk.set_hook(Some(Box::new(move || {
            let mut desk = locked(&desk);
            let mut result = Ok(());
            for _ in 0..3 {
                if !desk.disk.has_failed() {
                    result = result.and_then(|()| desk.step(&inside));
                }
            }
            if let Err(reason) = result {
                *seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(reason);
            }
        })));
        let result = store.checkpoint();
        self.disk.set_hook(None);
        if let Some(reason) = failure.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(reason);
        }
        match result {
            Ok(()) => self.checkpoints += 1,
            Err(_) if self.disk.has_failed() => {}
            Err(error) => return Err(format!("a checkpoint: {error}")),
        }
        locked(&self.desk).collect()
    }

    /// The store is closed and opened again without a crash. What it has answered from memory is
    /// flushed first; that is up to who closes it.
    fn reopen(&mut self) -> Result<(), String> {
        let store = self.store()?;
        locked(&self.desk).settle(&store)?;
        let volume = locked(&self.desk).model.now.volumes[0].id;
        let flushed = store.execute(VolumeRequest::Flush { volume });
        if self.disk.has_failed() {
            return Ok(());
        }
        flushed.map_err(|error| format!("a flush: {error}"))?;
        self.disk.note("reopen");
        {
            let mut desk = locked(&self.desk);
            desk.time += 1;
            let time = desk.time;
            desk.model.flushed(time);
        }
        drop(store);
        self.store = None;
        self.open()
    }

    /// The power fails, now.
    fn crash(&mut self) -> Result<(), String> {
        locked(&self.desk).give_up();
        self.store = None;
        self.lose_power();
        self.open()
    }

    fn lose_power(&mut self) {
        const ANY: [Survival; 5] =
            [Survival::Nothing, Survival::All, Survival::Writes, Survival::Sectors, Survival::Torn];
        let drawn = ANY[self.survival_rng.below(5) as usize];
        let survival = self.plan.survival.unwrap_or(drawn);
        self.crashes += 1;
        self.disk.note(&format!("crash, survival {survival:?}"));
        self.disk.crash(survival, &mut self.survival_rng);
    }

    fn open(&mut self) -> Result<(), String> {
        let mut left = OPEN_CRASHES_MAX;
        loop {
            let by_chance = self.plan.random_crashes && left > 0 && self.survival_rng.chance(20);
            if let Some(io) = self.plan.open_fuse.take() {
                self.disk.set_fuse(Some(self.disk.io_count() + io));
            } else if by_chance {
                left -= 1;
                let io = self.survival_rng.between(1, 3);
                self.disk.set_fuse(Some(self.disk.io_count() + io));
            }
            match Store::open(self.disk.clone(), options(&self.plan)) {
                Ok(store) => {
                    self.disk.set_fuse(None);
                    return self.recovered(store);
                }
                Err(_) if self.disk.has_failed() => self.lose_power(),
                Err(error) => return Err(format!("recovery: {error}")),
            }
        }
    }

    /// The store is open: it must be sound, and hold what it may.
    fn recovered(&mut self, store: Store) -> Result<(), String> {
        let report = store.check(CheckOptions { data: true }).map_err(text)?;
        if let Some(first) = report.findings.first() {
            return Err(format!("check: {first} (and {} more)", report.findings.len() - 1));
        }
        let mut desk = locked(&self.desk);
        let found = read_state(&store, &desk.model)?;
        self.config = self.config.max(found.config);
        desk.model.resolve(found).map_err(|reason| format!("after recovery: {reason}"))?;
        desk.mailbox = Arc::default();
        desk.sink = store.register_sink(desk.mailbox.clone());
        drop(desk);
        self.store = Some(Arc::new(store));
        Ok(())
    }

    fn end(mut self) -> Result<Summary, String> {
        let store = self.store()?;
        locked(&self.desk).settle(&store)?;
        drop(store);
        self.disk.note("end");
        self.crash()?;
        let desk = locked(&self.desk);
        debug_assert!(desk.is_idle());
        Ok(Summary {
            trace: self.disk.trace(),
            io_count: self.disk.io_count() - self.first_io,
            answers: desk.answers,
            refused_full: desk.refused_full,
            crashes: self.crashes,
            checkpoints: self.checkpoints,
        })
    }
}

/// All that the pool holds, read through the store.
fn read_state(store: &Store, model: &Model) -> Result<State, String> {
    let config = store.config();
    let config = config.iter().find(|(key, _)| key == CONFIG_KEY).map(|(_, value)| {
        let mut eight = [0; 8];
        eight.iter_mut().zip(value).for_each(|(to, from)| *to = *from);
        u64::from_le_bytes(eight)
    });
    let mut volumes = Vec::new();
    for slot in 0..model.now.volumes.len() {
        let mut candidates = model.candidates(slot);
        candidates.sort_unstable();
        candidates.dedup();
        candidates.retain(|(id, _)| store.volume_status(*id).is_some());
        let [(id, sectors)] = candidates[..] else {
            return Err(format!("slot {slot} has {} volumes", candidates.len()));
        };
        if store.volume_status(id).is_some_and(|status| status.size.0 != sectors) {
            return Err(format!("volume {id} has changed its size"));
        }
        volumes.push(ModelVolume { id, tags: read_volume(store, id, sectors)? });
    }
    Ok(State { volumes, live: model.now.live, config: config.unwrap_or(0) })
}

fn read_volume(store: &Store, volume: block::VolumeId, sectors: u64) -> Result<Vec<Tag>, String> {
    let mut tags = Vec::with_capacity(sectors as usize);
    for start in (0..sectors).step_by(MIB as usize) {
        let range = SectorRange::new(start, MIB.min(sectors - start));
        match store.execute(VolumeRequest::Read { volume, range }) {
            Ok(VolumeReply::Data(data)) => {
                let read = tags_of(&data.to_vec());
                tags.extend(read.map_err(|at| {
                    format!("volume {volume}: sector {} was never written", start + at as u64)
                })?);
            }
            other => return Err(format!("reading volume {volume} at {start}: {other:?}")),
        }
    }
    Ok(tags)
}
