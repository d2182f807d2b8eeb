//! Two controllers on one pool, killed, stopped, shut down, switched and cut off from each other,
//! while hosts at both send all kinds of commands to a few blocks.
//!
//! A round: hosts begin, a fault of the table happens, everything recovers and hosts continue; then
//! they finish, and what they saw is judged for linearizability. `cargo xtask torture
//! --controllers` builds and runs it.
//!
//! * [`schedule`]: the table; [`strikes`]: causes its faults,
//! * [`house`]: the processes; [`hosts`]: the hosts, and their [`places`]; [`counts`]: the results,
//! * [`shelf`]: faulty devices below, if requested,
//! * [`judges`]: judge whether what hosts saw is possible.

mod counts;
mod hosts;
mod house;
mod judges;
mod places;
mod schedule;
mod shelf;
mod strikes;

use std::fmt::Display;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tests_peer::array::{Array, Controllers, Programs, Shape};
use tests_peer::devices;
use tests_peer::linear::rounds::Rounds;
use tests_peer::linear::zone::VOLUMES;
use tests_peer::load::Load;
use tests_peer::pair;
use tests_peer::random::Random;
use tests_peer::target::{INITIATOR, Target, second};

use crate::schedule::DEVICES;
use counts::Counts;
use hosts::{Host, Mark, Shared, Told};
use house::{House, Running};
use judges::Judges;
use places::{HOST_COUNT, class, field, paths_of};
use schedule::{Fault, What, When, deck, millis};
use shelf::Shelf;
use strikes::{Done, strike};

/// The least log between checkpoints, so that there are many.
const SETTINGS: &str = "checkpoint_log = \"16M\"\n";
/// The responses that each host must get after recovery.
const GO_ON: u64 = 12;
/// How long recovery may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a controller may be ended within [`OFTEN_WITHIN`] before its supervisor delays each
/// restart. The supervisor is restarted before that.
const OFTEN: usize = 9;
const OFTEN_WITHIN: Duration = Duration::from_secs(61);
/// The duration of the load, in seconds, and the part of its volume that it uses.
const LOAD_SECONDS: f64 = 5.0;
const LOAD_SPAN: &str = "64M";
const LOAD_PATIENCE: Duration = Duration::from_secs(60);
/// How long to wait at a time until all devices are in again.
const RETURN: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);

/// The plan of a run.
pub struct Plan {
    /// The duration; a round that has begun is finished.
    pub lasts: Duration,
    /// The seed that decides what happens.
    pub seed: u64,
    /// The run ends once the owner was killed this often.
    pub kills: Option<u64>,
    /// Whether the array's own supervisor restarts processes.
    pub is_supervised: bool,
    /// Whether the pool is on six devices, of which some are slow or fail.
    pub has_devices: bool,
    /// Another judge: a program that reads histories.
    pub judge: Option<PathBuf>,
    /// Where all histories are written.
    pub histories: Option<PathBuf>,
}

/// Runs rounds until the time is over.
///
/// # Errors
/// What was wrong.
pub fn run(programs: &Programs, plan: Plan) -> Result<Counts> {
    let controllers = match plan.is_supervised {
        true => Controllers::Two,
        false => Controllers::First,
    };
    let (devices, apart) = if plan.has_devices { (DEVICES as u16, true) } else { (1, false) };
    let settings = SETTINGS;
    let made =
        Array::made(programs, Shape { devices, apart, settings, controllers, ..Shape::default() })?;
    let shelf = if plan.has_devices { Shelf::over(&made)? } else { Shelf::default() };
    let house = House::start(made, plan.is_supervised)?;
    let array = &house.array;
    array.host("torture", &[INITIATOR, &second(INITIATOR)])?;
    let first = array.volume("one", "1G", "torture", 1)?;
    let other = array.volume("two", "1G", "torture", 2)?;
    let loaded = array.volume("load", "1G", "torture", 3)?;
    let portal = array.portals[(plan.seed % 2) as usize].clone();
    let mut journal = Load::of(array, programs, &Target { portal, ..loaded }, plan.seed);
    (journal.seconds, journal.span) = (LOAD_SECONDS, LOAD_SPAN);
    let targets = [first, other];
    let shared = Shared {
        field: field(&targets)?,
        stop: AtomicBool::new(false),
        has_failed: AtomicBool::new(false),
        may_refuse: AtomicBool::new(!plan.is_supervised),
        marks: (0..HOST_COUNT).map(|_| Mark::default()).collect(),
    };
    let rounds = Rounds::new(shared.marks.len());
    let portals = array.portals.clone();
    thread::scope(|scope| {
        for number in 0..shared.marks.len() {
            let (shared, rounds, target) = (&shared, &rounds, &targets[number % VOLUMES]);
            let paths = paths_of(number, target, &portals);
            let seed = plan.seed.wrapping_mul(1000) + number as u64;
            scope.spawn(move || {
                let mut host = Host::new(shared, number, paths, number % VOLUMES, seed);
                rounds.work(Ok(move || host.round()));
            });
        }
        let (judge, histories) = (plan.judge.as_deref(), plan.histories.as_deref());
        let judges = Judges::new(targets.clone(), portals, judge, histories);
        let load = journal.start().map(Running);
        let both = judges.and_then(|judges| Ok((judges, load?)));
        let torture = both.map(|(judges, load)| {
            Torture::new((house, shelf), &shared, &rounds, load, judges, plan, programs)
        });
        let result = torture.and_then(|torture| torture.run(&journal));
        rounds.be_over();
        result
    })
}

/// The array under torture.
struct Torture<'a> {
    house: House,
    shelf: Shelf,
    shared: &'a Shared,
    rounds: &'a Rounds<Told>,
    load: Running,
    judges: Judges,
    plan: Plan,
    programs: &'a Programs,
    random: Random,
    counts: Counts,
    begin: Instant,
    /// When each controller was ended.
    ends: [Vec<Instant>; 2],
    /// Whether one has shut down cleanly, and is not restarted.
    lacks_one: bool,
    /// A switch in progress.
    switching: Option<Running>,
}

impl<'a> Torture<'a> {
    fn new(
        (house, shelf): (House, Shelf),
        shared: &'a Shared,
        rounds: &'a Rounds<Told>,
        load: Running,
        judges: Judges,
        plan: Plan,
        programs: &'a Programs,
    ) -> Self {
        let random = Random::new(plan.seed);
        let (counts, ends) = Default::default();
        let (begin, lacks_one, switching) = (Instant::now(), false, None);
        Self {
            house,
            shelf,
            shared,
            rounds,
            load,
            judges,
            plan,
            programs,
            random,
            counts,
            begin,
            ends,
            lacks_one,
            switching,
        }
    }

    fn run(mut self, journal: &Load) -> Result<Counts> {
        let result = self.all(journal);
        if result.is_err() {
            let log = std::env::temp_dir().join("holdfast-torture.log");
            let kept = std::fs::copy(self.house.array.scratch().join("serve.log"), &log);
            self.tell(format!("the array's log: {kept:?} bytes in {}", log.display()));
        }
        if self.shelf.is_there() {
            // The processes that have the devices open end before the devices do.
            self.house.kill();
            self.shelf.clear();
        }
        result.map(|()| self.counts)
    }

    fn all(&mut self, journal: &Load) -> Result<()> {
        self.judges.begin(self.shared)?;
        let mut cells = Vec::new();
        while !self.is_over() {
            if cells.is_empty() {
                cells = deck(&mut self.random);
            }
            let Some(fault) = cells.pop() else { continue };
            let number = self.counts.rounds;
            self.round(fault).with_context(|| format!("round {number}: {fault}"))?;
            if self.load.0.try_wait()?.is_some() {
                self.end_load(journal)?;
                self.load = Running(journal.start()?);
            }
        }
        self.compare(journal)
    }

    fn is_over(&self) -> bool {
        let are_enough = |kills| self.counts.owner_kills >= kills;
        self.begin.elapsed() >= self.plan.lasts || self.plan.kills.is_some_and(are_enough)
    }

    /// Runs one fault, and returns what hosts saw of it.
    fn round(&mut self, fault: Fault) -> Result<()> {
        self.have_both()?;
        let owner = pair::owner(&self.house.array)?.number();
        self.shared.stop.store(false, Ordering::Relaxed);
        self.rounds.begin();
        let done = self.happen(fault, owner);
        self.switching = None;
        self.shared.stop.store(true, Ordering::Relaxed);
        // A host's error is the cause.
        let all = self.rounds.end()?;
        let done = done?;
        self.counts.add_done(fault, &done);
        let now = Instant::now();
        for (ends, count) in self.ends.iter_mut().zip(done.ends) {
            ends.extend((0..count).map(|_| now));
        }
        let mut text = String::new();
        for (number, mark) in self.shared.marks.iter().enumerate() {
            let path = match class(number) {
                2 => 2,
                of => usize::from(of != owner),
            };
            if done.ended.is_some_and(|ended| ended == class(number)) {
                // It had no path at the end.
                text += " -";
                continue;
            }
            let gap = mark.longest.load(Ordering::Relaxed);
            self.counts.add_gap(fault, path, gap);
            text += &format!(" {}", gap / 1_000_000);
        }
        let mut steps = 0;
        for told in &all {
            self.counts.add_told(told);
            steps += told.seen.steps.len();
        }
        self.tell(format!("{fault}:{text} ms; {steps} steps"));
        let name = format!("seed {}, round {}: {fault}", self.plan.seed, self.counts.rounds);
        self.counts.rounds += 1;
        let judged = self.judges.judge(&name, self.shared, all)?;
        self.counts.undecided += u64::from(!judged.is_decided);
        self.counts.add_bytes(judged.bytes);
        Ok(())
    }

    /// Ensures that both are present, and that their supervisor will not delay restarts.
    fn have_both(&mut self) -> Result<()> {
        for ends in &mut self.ends {
            ends.retain(|end| end.elapsed() < OFTEN_WITHIN);
        }
        // A fault ends a controller twice at most.
        let is_often = self.ends.iter().any(|ends| ends.len() + 2 > OFTEN);
        if self.lacks_one || (is_often && !self.house.restarts_all()) {
            self.house.restart()?;
            self.ends = Default::default();
            self.lacks_one = false;
            self.shared.may_refuse.store(self.house.restarts_all(), Ordering::Relaxed);
        }
        Ok(())
    }

    fn happen(&mut self, fault: Fault, owner: usize) -> Result<Done> {
        thread::sleep(millis(&mut self.random, 150, 500));
        self.shared.marks.iter().for_each(|mark| mark.longest.store(0, Ordering::Relaxed));
        if fault.what == What::End {
            self.shared.may_refuse.store(true, Ordering::Relaxed);
        }
        let pool = self.house.array.pool();
        let mut command = Command::new(&self.programs.holdfast);
        command.args(["controller", "switch", "--pool"]).arg(&pool);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let switching = &mut self.switching;
        let hurt = self.shelf.hurt(&mut self.random);
        let done = strike(&self.house, fault, owner, &mut self.random, || {
            *switching = Some(Running(command.spawn()?));
            Ok(())
        });
        self.shelf.mend();
        let done = Done { hurt, ..done? };
        // It is not restarted, and is absent for hosts.
        let gone = done.ended.filter(|_| !self.house.restarts_all());
        self.lacks_one |= gone.is_some();
        if fault.what == What::Switch {
            self.wait_for_switch(fault, owner)?;
        }
        self.recover(gone)?;
        Ok(done)
    }

    /// Waits until the other controller has the pool after a switch, unless something else
    /// interfered.
    fn wait_for_switch(&mut self, fault: Fault, owner: usize) -> Result<()> {
        let Some(mut switching) = self.switching.take() else { bail!("no switch is in progress") };
        let status = switching.0.wait()?;
        if fault.when == When::After {
            // The other one may not have been present.
            return Ok(());
        }
        ensure!(status.success(), "the switch ended with {status}");
        let now = pair::owner(&self.house.array)?;
        ensure!(now.number() != owner, "{} still has the pool", now.name);
        Ok(())
    }

    /// Waits until all controllers are ready except one that is gone, and each host with a path
    /// continues.
    fn recover(&self, gone: Option<usize>) -> Result<()> {
        let wanted = if gone.is_some() { 1 } else { 2 };
        let begin = Instant::now();
        let check = |what: &str| {
            let has_failed = self.shared.has_failed.load(Ordering::Relaxed);
            ensure!(!has_failed, "a host has failed");
            let log = || self.house.array.log();
            ensure!(begin.elapsed() < PATIENCE, "{what}:\n{}", log());
            thread::sleep(PAUSE);
            Ok(())
        };
        while pair::ready(&self.house.array)?.len() < wanted {
            check("the controllers are not ready")?;
        }
        // A requested switch may still happen, and meanwhile hosts get no responses.
        while self.shelf.is_there() && devices::all_return(&self.house.array, RETURN).is_err() {
            check("not all devices are back in")?;
        }
        let answers = |mark: &Mark| mark.answers.load(Ordering::Relaxed);
        let before: Vec<u64> = self.shared.marks.iter().map(answers).collect();
        let marks = &self.shared.marks;
        let is_behind = |number: usize| {
            let has_path = Some(class(number)) != gone;
            has_path && answers(&marks[number]) < before[number] + GO_ON
        };
        while (0..marks.len()).any(is_behind) {
            check("a host does not continue")?;
        }
        Ok(())
    }

    /// Waits until the load has ended; it must have found nothing wrong.
    fn end_load(&mut self, journal: &Load) -> Result<()> {
        let done = journal.wait(&mut self.load.0, LOAD_PATIENCE)?;
        self.counts.load.0 += done["acknowledged"].as_u64().unwrap_or_default();
        Ok(())
    }

    /// With everything recovered, checks that nothing is lost, and that no process has ended by
    /// itself.
    fn compare(&mut self, journal: &Load) -> Result<()> {
        let told = self.judges.end(self.counts.rounds, self.counts.undecided)?;
        self.have_both()?;
        pair::both(&self.house.array)?;
        self.end_load(journal)?;
        self.counts.load.1 = journal.verify()? * 4096;
        self.house.stop()?;
        self.house.must_have_run()?;
        self.house.array.inspect()?;
        self.tell(told);
        Ok(())
    }

    fn tell(&self, what: impl Display) {
        println!("{:8.3} s  {what}", self.begin.elapsed().as_secs_f64());
    }
}
