//! A pool on two to six disks, and their faults: two and three are mirrors, and from four on the
//! pool is striped, and any two may be lost.
//!
//! Requests are as in a [`crate::history`], in small segments, and are judged by the same model.
//! Disks disappear, return as they were or in an earlier state, fail, lie and are replaced, at any
//! time; the power fails for all of them at once, and not all return. As long as enough disks that
//! are in are healthy (one, or all but two of those in stripes), no request may fail, and nothing
//! may be lost.
//!
//! Some striped pools have spare room, and disks of different sizes: there the columns of a lost
//! disk are rebuilt on the others, and disks are removed and added ([`members`]).
//!
//! After each step the *promise* must hold ([`promise`]): the minimum number of the disks that are
//! in have, by themselves and durably, everything acknowledged; and one that is catching up is not
//! taken for one of them. At the end more are lost than a striped pool can lose ([`too_few`]).

mod drive;
mod faults;
mod members;
mod promise;
mod seen;
mod too_few;
mod turns;

use std::sync::{Arc, Mutex};

use segments::{Device, DeviceSet, DeviceSetError, DeviceState, Segments as _};
use store::{Durability, Follower, Store};

use crate::commits::Ground;
use crate::desk::Desk;
use crate::disk::Survival;
use crate::generate::Generator;
use crate::history::{Kept, first_volumes, locked, options, text};
use crate::plan::{Plan, Upgrade};
use crate::pursuit::Pursuit;
use crate::rng::Rng;
use drive::{Drive, Power, Trouble};
pub use seen::Seen;

/// The default number of steps of a run.
pub const STEPS: u64 = 1200;
/// The number of segments of a pool, apart from the first.
const SEGMENTS: u64 = 128;

struct World {
    plan: Plan,
    kept: Kept,
    power: Arc<Power>,
    drives: Vec<Arc<Drive>>,
    /// Until there is a store, those of the last one.
    pool: Option<Pool>,
    desk: Arc<Mutex<Desk>>,
    rng: Rng,
    /// Disks that had everything when they were last examined.
    were_in: Vec<usize>,
    /// Disks with trouble when the current step began, or that it takes out: if the power fails
    /// then, labels may say that they are out, or not.
    were_troubled: Vec<usize>,
    /// The disk that has something else than was written, if there is one.
    liar: Option<usize>,
    /// Which disks caught up while another one lied: they may have got what that one has, because
    /// it is not compared. A pool that has a liar and lacks a disk has lost two already.
    is_doubtful: Vec<bool>,
    /// Which disks were reset to an earlier state, or given up by opening the pool without them:
    /// what they say about the others does not count.
    is_stale: Vec<bool>,
    /// Earlier content of disks.
    earlier: Vec<crate::device::Device>,
    /// Disks that were catching up when they were last examined.
    catching_up: Vec<usize>,
    openings: u64,
    /// How many disks may be lost and rebuilt on the others.
    spares: usize,
    /// How many disks have a share of the pool, or had one when it was last open; and how many may
    /// have one after what is in progress.
    sharing: [usize; 2],
    /// The batch of columns that was being moved at the last check.
    moving: Option<u64>,
    /// The number of data columns of each segment at the last check.
    widths: Vec<u8>,
    pursuit: Pursuit,
    seen: Seen,
}

/// An open pool.
#[derive(Clone)]
struct Pool {
    devices: Arc<DeviceSet>,
    store: Arc<Store>,
}

/// Returns the plan of a seed, without what concerns single disks.
fn plan_of(seed: u64, steps: u64, with: With) -> Plan {
    let durability = [Durability::Commit, Durability::Flush][(seed / 2 % 2) as usize];
    let small = Plan::small_segments(seed / 4 * 8 + seed % 2 * 2, durability);
    Plan {
        seed,
        steps,
        pool_bytes: format::geometry::SEGMENT_BYTES_MIN + SEGMENTS * small.segment_bytes,
        may_be_full: false,
        upgrade: Upgrade::Made,
        steps_beside: 2,
        log: with.log,
        follows: with.follows,
        ..small
    }
}

/// What a run has in addition to its seed.
#[derive(Clone, Copy, Debug, Default)]
pub struct With {
    /// Whether a follower follows the pool while it is used, and takes over after crashes.
    pub follows: bool,
    /// Whether each I/O is recorded as a line.
    pub log: bool,
}

/// Runs the pool of a seed.
///
/// # Errors
/// What was wrong, after how many steps, and the lines.
pub fn run(seed: u64, steps: u64, with: With) -> Result<Seen, (u64, String, Vec<String>)> {
    let plan = plan_of(seed, steps, with);
    let power = Power::with_log(with.log);
    let mut step = 0;
    let result = World::new(plan, power.clone()).and_then(|mut world| {
        while step < steps {
            world.step()?;
            world.pursuit.step(|| follower(&world.drives, &plan));
            step += 1;
        }
        world.end()
    });
    result.map_err(|reason| (step, reason, power.take_log()))
}

fn device_of(drive: &Arc<Drive>) -> Device {
    Device::over(drive.clone(), drive.name.clone())
}

/// Opens a follower with its own view of the disks: it does not know their states.
fn follower(drives: &[Arc<Drive>], plan: &Plan) -> Option<Follower> {
    let devices = DeviceSet::open(drives.iter().map(device_of).collect(), true).ok()?;
    Follower::open(Arc::new(devices), options(plan, 0)).ok()
}

/// Returns the indices of the disks that are in a state.
fn disks_of(devices: &DeviceSet, state: DeviceState) -> Vec<usize> {
    let devices = devices.devices();
    let there = devices.iter().filter(|device| device.state == state);
    there.filter_map(|device| device.name.parse().ok()).collect()
}

impl World {
    fn new(plan: Plan, power: Arc<Power>) -> Result<Self, String> {
        let mut rng = Rng::new(plan.seed);
        let count = 2 + plan.seed % 5;
        let spares = usize::from(count >= 5 && plan.seed / 5 % 2 == 1);
        let drive = |at: u64| {
            // Mirrors do not use additional space.
            let more = if count > 3 { plan.seed.rotate_right(3 * at as u32 + 2) % 40 } else { 0 };
            let len_bytes = plan.pool_bytes + more * plan.segment_bytes;
            Drive::new(at.to_string(), len_bytes, plan.seed ^ at << 32, &power)
        };
        let drives: Vec<_> = (0..count).map(drive).collect();
        let mut entropy = [0; 64];
        entropy.iter_mut().for_each(|byte| *byte = rng.draw() as u8);
        let devices: Vec<_> = drives.iter().map(device_of).collect();
        let made = match count {
            ..=3 => Store::create_on_with_segments(&devices, &entropy, plan.segment_bytes),
            _ => {
                let sizes = (spares, Some(plan.pool_bytes), Some(plan.segment_bytes));
                Store::create_in_stripes(&devices, &entropy, sizes)
            }
        };
        made.map_err(text)?;
        let devices = DeviceSet::open(devices, false).map_err(|error| error.to_string())?;
        let devices = Arc::new(devices);
        members::set_patience(&devices, plan.seed);
        let store = Store::open(devices.clone(), options(&plan, 0)).map_err(text)?;
        let kept = Kept::of(&plan);
        kept.begin(&store).map_err(text)?;
        let model = first_volumes(&plan, &store).map_err(text)?;
        let durable = plan.durability == Durability::Commit;
        let generator = Generator::new(plan.mix);
        let mut desk = Desk::new(power.clone(), model, generator, rng.clone(), durable);
        desk.sink = store.register_sink(desk.mailbox.clone());
        Ok(Self {
            plan,
            kept,
            power,
            earlier: drives.iter().map(|drive| drive.disk.content()).collect(),
            drives,
            pool: Some(Pool { devices, store: Arc::new(store) }),
            desk: Arc::new(Mutex::new(desk)),
            rng: Rng::new(rng.draw()),
            were_in: Vec::new(),
            were_troubled: Vec::new(),
            liar: None,
            is_doubtful: vec![false; count as usize],
            is_stale: vec![false; count as usize],
            catching_up: Vec::new(),
            openings: 0,
            spares,
            sharing: [count as usize; 2],
            moving: None,
            widths: Vec::new(),
            pursuit: Pursuit::new(&plan),
            seen: Seen::default(),
        })
    }

    fn pool(&self) -> Result<Pool, String> {
        self.pool.clone().ok_or_else(|| "the pool is not open".to_string())
    }

    /// Returns the indices in `drives` of the disks that are in a state.
    fn disks(&self, state: DeviceState) -> Vec<usize> {
        self.pool.as_ref().map(|pool| disks_of(&pool.devices, state)).unwrap_or_default()
    }

    /// Returns whether a disk has what was written to it, and caught up from such disks.
    fn is_true(&self, at: usize) -> bool {
        self.liar != Some(at) && !self.is_doubtful[at]
    }

    /// Records from which disks those that begin to catch up do so.
    fn note_doubt(&mut self) {
        let is_sure = self.disks(DeviceState::In).iter().all(|at| self.is_true(*at));
        for at in self.disks(DeviceState::CatchingUp) {
            let has_begun = !self.catching_up.contains(&at);
            self.is_doubtful[at] = !is_sure || !has_begun && self.is_doubtful[at];
        }
    }

    fn step(&mut self) -> Result<(), String> {
        if self.power.has_failed() {
            return self.crash();
        }
        self.note_troubled();
        let pool = self.pool()?;
        match self.rng.weighted(&[180, 4, 6, 2, 6, 5, 2, 8, 2]) {
            0 if pool.store.checkpoint_due() && self.rng.chance(20) => self.checkpoint(&pool)?,
            0 if pool.store.maintenance_due() && self.rng.chance(15) => self.maintain(&pool)?,
            0 => locked(&self.desk).step(&pool.store)?,
            1 => self.checkpoint(&pool)?,
            2 => self.maintain(&pool)?,
            3 => self.background(&pool)?,
            4 => self.fault(&pool)?,
            5 => self.recovers(&pool)?,
            6 => self.power.set_fuse(Some(self.rng.between(1, 120))),
            7 if self.drives.len() > 4 => self.change_members(&pool)?,
            _ => self.promise()?,
        }
        self.look_at_states()
    }

    fn note_troubled(&mut self) {
        let is_troubled = |at: &usize| self.drives[*at].trouble() != Trouble::None;
        self.were_troubled = (0..self.drives.len()).filter(is_troubled).collect();
    }

    /// Records which disks are in now. Of three that were, two may have gone at once: no label of
    /// theirs says so, and together they are most of those that they know of.
    fn note_departures(&mut self) {
        let are_in = self.disks(DeviceState::In);
        let gone = self.were_in.len() - are_in.len().min(self.were_in.len());
        if gone > 1 && self.drives.len() <= 3 {
            let gone = self.were_in.iter().filter(|at| !are_in.contains(at));
            gone.for_each(|at| self.is_stale[*at] = true);
        }
        self.were_in = are_in;
    }

    /// Checks disks that were catching up: one that has caught up has everything.
    fn look_at_states(&mut self) -> Result<(), String> {
        self.note_sharing();
        self.note_departures();
        if self.power.has_failed() {
            return Ok(());
        }
        self.note_doubt();
        let now = self.disks(DeviceState::CatchingUp);
        let are_in = self.disks(DeviceState::In);
        now.iter().for_each(|at| self.is_stale[*at] = false);
        let began = now.iter().filter(|at| !self.catching_up.contains(at)).count();
        let done: Vec<_> = self.catching_up.iter().filter(|at| are_in.contains(at)).collect();
        self.seen.caught_up[0] += began as u64;
        self.seen.caught_up[1] += done.len() as u64;
        let has_changed = self.catching_up != now;
        self.catching_up = now;
        if has_changed { self.promise() } else { Ok(()) }
    }

    /// Makes the power fail, for all disks at once.
    fn crash(&mut self) -> Result<(), String> {
        const ANY: [Survival; 5] =
            [Survival::Nothing, Survival::All, Survival::Writes, Survival::Sectors, Survival::Torn];
        self.seen.crashes[0] += 1;
        if self.pool.is_some() {
            self.note_departures();
        }
        if let Some(pool) = self.pool.clone() {
            self.may_share(&pool.devices);
        }
        self.were_in.retain(|at| !self.were_troubled.contains(at));
        self.catching_up.clear();
        locked(&self.desk).give_up();
        self.pool = None;
        for drive in &self.drives {
            let survival = ANY[self.rng.below(5) as usize];
            self.power.note(&format!("disk {}: crash, survival {survival:?}", drive.name));
            drive.crash(survival, &mut self.rng);
        }
        self.power.restore();
        self.nobody_opens_less()?;
        self.come_back();
        self.open()
    }

    fn open(&mut self) -> Result<(), String> {
        self.openings += 1;
        self.note_troubled();
        if self.openings % 8 < 3 {
            self.power.set_fuse(Some(self.rng.between(1, 60)));
        }
        let opened = self.open_devices()?;
        let options = options(&self.plan, self.openings);
        let store = match self.pursuit.open_store(opened.clone(), options) {
            Ok(store) if !self.power.has_failed() => store,
            Err(error) if !self.power.has_failed() => return Err(format!("recovery: {error}")),
            _ => {
                self.seen.crashes[1] += 1;
                self.were_in = disks_of(&opened, DeviceState::In);
                self.may_share(&opened);
                return self.crash();
            }
        };
        self.power.set_fuse(None);
        let mut desk = locked(&self.desk);
        let found = promise::read_all(&store, &desk.model, self.kept)?;
        desk.model.resolve(found).map_err(|reason| format!("after recovery: {reason}"))?;
        desk.mailbox = Arc::default();
        desk.sink = store.register_sink(desk.mailbox.clone());
        drop(desk);
        self.pool = Some(Pool { devices: opened, store: Arc::new(store) });
        self.note_sharing();
        self.note_doubt();
        self.promise()
    }

    /// Opens the devices that are present; with the administrator's consent only if most of them
    /// were not in. Then those that are not present are lost, regardless of their content.
    fn open_devices(&mut self) -> Result<Arc<DeviceSet>, String> {
        let devices: Vec<_> = self.drives.iter().map(device_of).collect();
        let opened = match DeviceSet::open(devices.clone(), false) {
            Err(DeviceSetError::TooFew { .. }) => {
                let gone = self.drives.iter().map(|drive| drive.trouble() == Trouble::Gone);
                self.is_stale.iter_mut().zip(gone).for_each(|(is, gone)| *is |= gone);
                self.seen.forced += 1;
                DeviceSet::open(devices, true)
            }
            opened => opened,
        };
        let opened = opened.map_err(|error| format!("opening the devices: {error}"))?;
        members::set_patience(&opened, self.plan.seed);
        Ok(Arc::new(opened))
    }

    fn end(mut self) -> Result<Seen, String> {
        let pool = self.pool()?;
        locked(&self.desk).settle(&pool.store)?;
        self.lose_too_many(&pool)?;
        drop(pool);
        self.crash()?;
        let (writes, troubled) = self.power.counts();
        let answers = locked(&self.desk).answers;
        let trace = self.power.trace();
        let Pursuit { records: followed, takeovers, .. } = self.pursuit;
        Ok(Seen { trace, answers, writes, troubled, followed, takeovers, ..self.seen })
    }
}
