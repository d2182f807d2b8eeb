//! One history: from a seed to a verdict.

mod administer;
mod kept;
mod opening;
mod turns;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use format::{Features, FormatVersion};
pub(crate) use kept::Kept;
pub use opening::OPEN_IOS;
pub(crate) use opening::read_state;
use store::{Change, Durability, Follower, OpenOptions, Store, StoreError, VolumeChange};
pub(crate) use turns::{Meanwhile, beside};

use crate::desk::Desk;
use crate::disk::{Faults, SimDisk};
use crate::generate::Generator;
use crate::model::{Model, ModelVolume, State};
use crate::plan::{Earlier, Failure, Plan, Summary, Upgrade};
use crate::pursuit::Pursuit;
use crate::rng::Rng;

struct History {
    plan: Plan,
    disk: Arc<SimDisk>,
    store: Option<Arc<Store>>,
    desk: Arc<Mutex<Desk>>,
    rng: Rng,
    survival_rng: Rng,
    first_io: u64,
    first_read: u64,
    config: u64,
    kept: Kept,
    /// The capacity of the pool; and the other possible one, if a crash came while it grew.
    capacity_bytes: u64,
    capacity_bytes_next: Option<u64>,
    /// The version of the pool, and whether it has all features.
    form: (u32, bool),
    openings_struck: usize,
    pursuit: Pursuit,
    done: Summary,
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
            let disk = || Follower::open(history.disk.clone(), options(plan, 0)).ok();
            history.pursuit.step(disk);
            step += 1;
        }
        history.end()
    });
    result.map_err(|reason| Failure { seed: plan.seed, step, reason, log: disk.take_log() })
}

/// Returns the smallest number of steps with which the plan still fails, and how.
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

/// Creates the volumes of a plan, and snapshots of them.
pub(crate) fn first_volumes(plan: &Plan, store: &Store) -> Result<Model, StoreError> {
    let mut volumes = Vec::new();
    let mut change = Change::default();
    for _ in 0..plan.volumes {
        let id = store.allocate_volume_id();
        let size = block::SectorCount(plan.volume_sectors);
        change.volumes.push(VolumeChange::Create { id, size });
        volumes.push(ModelVolume { id, tags: vec![0; plan.volume_sectors as usize] });
    }
    store.change(change)?;
    for _ in 0..plan.generations {
        administer::first_snapshots(store, &mut volumes, plan.volumes)?;
    }
    Ok(Model::new(State { volumes, live: plan.volumes, config: 0 }))
}

pub(crate) fn locked(desk: &Mutex<Desk>) -> MutexGuard<'_, Desk> {
    desk.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the options for the opening with this number, from 0.
pub(crate) fn options(plan: &Plan, opening: u64) -> OpenOptions {
    let Plan { durability, memory_bytes, checkpoint_log_bytes, tuning, .. } = *plan;
    let upgrade = match plan.upgrade {
        Upgrade::Made => true,
        Upgrade::AtOpening(first) => opening >= first,
        Upgrade::WhileUsed => false,
    };
    let discard = plan.discard;
    OpenOptions {
        durability,
        memory_bytes,
        checkpoint_log_bytes,
        tuning,
        upgrade,
        discard,
        takes_over: None,
        log_end: None,
    }
}

pub(crate) fn text(error: StoreError) -> String {
    error.to_string()
}

impl History {
    fn new(plan: &Plan, disk: Arc<SimDisk>) -> Result<Self, String> {
        let mut entropy = [0; 64];
        let mut rng = Rng::new(plan.seed);
        entropy.iter_mut().for_each(|byte| *byte = rng.draw() as u8);
        let of = match (plan.upgrade, plan.earlier) {
            (Upgrade::Made, _) => (FormatVersion::default(), Features::KNOWN),
            (_, Earlier::V3) => (FormatVersion::V3, Features::default()),
            (_, Earlier::V3Leaves) => {
                let incompatible = Features::LEAVES;
                (FormatVersion::V3, Features { incompatible, ..Features::default() })
            }
            (_, Earlier::V2) => (FormatVersion::V2, Features::default()),
        };
        Store::create_with(&*disk, &entropy, plan.segment_bytes, of).map_err(text)?;
        let store = Arc::new(Store::open(disk.clone(), options(plan, 0)).map_err(text)?);
        let kept = Kept::of(plan);
        kept.begin(&store).map_err(text)?;
        let model = first_volumes(plan, &store).map_err(text)?;
        let durable = plan.durability == Durability::Commit;
        let generator = Generator::new(plan.mix);
        let mut desk = Desk::new(disk.clone(), model, generator, rng.clone(), durable);
        desk.may_be_full = plan.may_be_full;
        desk.sink = store.register_sink(desk.mailbox.clone());
        let (lying_flush, no_fua) = (plan.lying_flush, !plan.fua);
        disk.set_faults(Faults { lying_flush, no_fua, ..Faults::that_pass(plan.hindered) });
        let (first_io, first_read) = (disk.io_count(), disk.read_count());
        disk.set_fuse(plan.fuse.map(|io| first_io + io));
        let history = Self {
            plan: *plan,
            disk,
            capacity_bytes: store.pool_status().capacity_bytes,
            capacity_bytes_next: None,
            openings_struck: 0,
            form: (of.0.number(), of.1 == Features::KNOWN),
            pursuit: Pursuit::new(plan),
            done: Summary::default(),
            store: Some(store),
            desk: Arc::new(Mutex::new(desk)),
            rng: Rng::new(rng.draw()),
            survival_rng: Rng::new(plan.survival_seed),
            first_io,
            first_read,
            config: 0,
            kept,
        };
        Ok(history)
    }

    fn store(&self) -> Result<Arc<Store>, String> {
        self.store.clone().ok_or_else(|| "the store is not open".to_string())
    }

    fn step(&mut self) -> Result<(), String> {
        self.disk.begin_step();
        let store = self.store()?;
        if self.disk.has_failed() {
            // Requests in flight fail; otherwise it hangs.
            locked(&self.desk).settle(&store)?;
            drop(store);
            return self.crash();
        }
        let crash = u64::from(self.plan.random_crashes);
        let kill = u64::from(self.plan.kills);
        let bad = 10 * u64::from(self.plan.bad_places);
        let upgrade = u64::from(self.plan.upgrade == Upgrade::WhileUsed);
        match self.rng.weighted(&[180, 5, 2, 4, 1, crash, crash, 4, 1, kill, kill, bad, upgrade]) {
            0 if store.checkpoint_due() && self.rng.chance(20) => self.checkpoint(&store),
            0 if store.maintenance_due() && self.rng.chance(15) => self.maintain(&store),
            0 => locked(&self.desk).step(&store),
            1 => self.checkpoint(&store),
            2 => {
                store.housekeep();
                self.done.turns += 1;
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
            8 => self.grow(&store),
            9 => {
                drop(store);
                self.kill()
            }
            10 => {
                self.disk.write_back();
                Ok(())
            }
            11 => {
                self.disk.go_bad(&mut self.rng);
                Ok(())
            }
            12 => self.upgrade(&store),
            _ => {
                self.disk.strike_soon(&mut self.rng);
                Ok(())
            }
        }
    }

    fn end(mut self) -> Result<Summary, String> {
        self.disk.begin_step();
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
            read_count: self.disk.read_count() - self.first_read,
            write_errors: self.disk.error_count(),
            refused_writes: self.disk.refused_count(),
            hindered_writes: self.disk.hindered_count(),
            failed_flushes: self.disk.failed_flushes(),
            answers: desk.answers,
            refused_full: desk.refused_full,
            followed: self.pursuit.records,
            takeovers: self.pursuit.takeovers,
            ..self.done
        })
    }
}
