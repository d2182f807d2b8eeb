//! The array, its devices and its load, throughout a run.

use std::fmt::Display;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail, ensure};
use tests_peer::array::{Array, Programs, Shape};
use tests_peer::devices;
use tests_peer::load::Load;
use tests_peer::random::Random;
use tests_peer::target::INITIATOR;

use crate::bystanders::{Bystanders, Hurt};
use crate::faults::Faults;
use crate::mount::Mounted;
use crate::schedule::{DEVICES, Kill, Kind, Round, Victim};
use crate::summary::Summary;

/// The capacity of the pool, the least possible: 256 MiB of each device.
const CAPACITY: &str = "1G";
/// The part of its volume that the load uses.
const SPAN: &str = "128M";
/// The least memory, so that not all reads of hosts are served from it. With an even seed a device
/// that is out for a second counts as lost, and its columns are rebuilt on the others.
const SETTINGS: [&str; 2] = ["memory = \"64M\"\nrebuild_after = \"1s\"\n", "memory = \"64M\"\n"];
/// How long it may take until all devices are in again.
const RETURN_PATIENCE: Duration = Duration::from_secs(120);
/// How long the array may take to notice, under load, that a device is gone.
const NOTICE_PATIENCE: Duration = Duration::from_secs(20);
/// How long a healthy device may take to be in again while others are hurt.
const OTHERS_PATIENCE: Duration = Duration::from_secs(30);
/// How long a load may take to end.
const LOAD_PATIENCE: Duration = Duration::from_secs(60);
/// How many devices remember their content, after the start: each takes as much space as the
/// device.
const REMEMBERED_MAX: usize = 2;
/// How many lines of a scrub's findings are shown.
const DAMAGE_LINES: usize = 12;
const PAUSE: Duration = Duration::from_millis(50);

/// The plan of a run.
pub struct Plan {
    /// The duration; a round that has begun is finished.
    pub lasts: Duration,
    /// The seed that decides what happens.
    pub seed: u64,
    /// The kinds of faults.
    pub kinds: Vec<Kind>,
    /// Whether the array is killed.
    pub kills: bool,
}

/// The array ended without being killed or asked to.
#[derive(Debug)]
struct Ended;

impl Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the array ended unexpectedly")
    }
}

/// The array under torture.
pub struct Torture {
    load: Child,
    journal: Load,
    // Before the devices, because it has them open.
    array: Array,
    devices: Vec<Mounted>,
    begin: Instant,
    plan: Plan,
    random: Random,
    summary: Summary,
    /// The devices hurt in this round, and those that are out besides.
    hurt: Vec<Hurt>,
    bystanders: Bystanders,
}

impl Torture {
    /// Creates a pool, mounts a device in place of each of its files, and starts the array and its
    /// load.
    ///
    /// # Errors
    /// What could not be started.
    pub fn start(programs: &Programs, plan: Plan) -> Result<Self> {
        let shape = Shape {
            capacity: CAPACITY,
            devices: DEVICES as u16,
            apart: true,
            settings: SETTINGS[(plan.seed % 2) as usize],
            ..Shape::default()
        };
        let mut array = Array::made(programs, shape)?;
        let places = array.places().into_iter();
        let files = places.map(|place| std::path::PathBuf::from(place).join("pool.data"));
        let devices = files.map(|file| Mounted::over(&file)).collect::<Result<Vec<_>>>()?;
        devices.iter().try_for_each(|mounted| mounted.device().remember())?;
        array.start()?;
        array.host("peer", &[INITIATOR])?;
        let target = array.volume("tortured", "1G", "peer", 1)?;
        let mut journal = Load::of(&array, programs, &target, plan.seed);
        (journal.seconds, journal.span) = (plan.lasts.as_secs_f64(), SPAN);
        let load = journal.start()?;
        let summary = Summary::default();
        let (begin, random) = (Instant::now(), Random::new(plan.seed));
        let (hurt, bystanders) = Default::default();
        Ok(Self { load, journal, array, devices, begin, plan, random, summary, hurt, bystanders })
    }

    /// Runs rounds until the time is over, and compares everything at the end.
    ///
    /// # Errors
    /// What was wrong.
    pub fn run(mut self) -> Result<Summary> {
        let result = self.rounds().and_then(|()| self.compare());
        if result.is_err() {
            // The array's log is the first thing to read.
            let log = std::env::temp_dir().join("holdfast-torture.log");
            let kept = std::fs::copy(self.array.scratch().join("serve.log"), &log);
            self.tell(match kept {
                Ok(_) => format!("the array's log is in {}", log.display()),
                Err(error) => format!("the array's log could not be kept: {error}"),
            });
            self.tell(format!("the devices are {:?}", devices::listed(&self.array)));
        }
        // Both may have ended; nothing may remain.
        let _ = self.load.kill();
        let _ = self.load.wait();
        for mounted in &self.devices {
            mounted.device().set(Faults::default());
            self.summary.devices.add(&mounted.device().counts());
        }
        // The array ends before its devices do, and then the directory can be removed. It may have
        // been stopped.
        let _ = self.array.kill();
        self.devices.clear();
        result.map(|()| self.summary)
    }

    fn rounds(&mut self) -> Result<()> {
        while self.begin.elapsed() < self.plan.lasts {
            let round = Round::draw(&mut self.random, &self.plan.kinds);
            let result = self.round(&round);
            self.summary.bystanders += self.bystanders.count() as u64;
            match result {
                Err(error) if self.are_three_out(&error)? => self.begin_anew(&error),
                result => result,
            }
            .with_context(|| format!("in round {round:?}"))?;
            self.summary.rounds += 1;
        }
        Ok(())
    }

    fn round(&mut self, round: &Round) -> Result<()> {
        (self.hurt, self.bystanders) = Default::default();
        let mut hurt = Vec::new();
        for victim in &round.victims {
            sleep(victim.after);
            if self.are_others_in()? {
                self.hurt.push(Hurt { device: victim.device, fails: victim.kind.fails() });
                hurt.push(victim);
                self.hurt(victim)?;
            }
        }
        match round.kill.filter(|_| self.plan.kills) {
            Some(kill) => self.kill(kill, &hurt)?,
            None => sleep(round.lasts),
        }
        self.look()?;
        hurt.into_iter().try_for_each(|victim| self.mend(victim))?;
        let took = devices::all_return(&self.array, RETURN_PATIENCE)?;
        self.tell(format!("all devices are back in after {:.1} s", took.as_secs_f64()));
        self.summary.return_max = self.summary.return_max.max(took);
        self.must_run()?;
        if self.load.try_wait()?.is_some_and(|status| status.success()) {
            // It was due to end about now.
            return Ok(());
        }
        self.journal.must_run(&mut self.load)
    }

    /// Returns the state of each device. Notes which are out although nothing was done to them.
    fn look(&mut self) -> Result<Vec<String>> {
        let listed = devices::listed(&self.array)?;
        let before = self.bystanders.count();
        self.bystanders.note(&listed, &self.hurt)?;
        if self.bystanders.count() > before {
            self.tell(format!("late although healthy: {}", self.bystanders.text()));
        }
        Ok(listed.into_iter().map(|device| device.state).collect())
    }

    /// Waits until all devices are in except hurt ones: only then may another one be hurt. If it
    /// takes too long, that is skipped.
    fn are_others_in(&mut self) -> Result<bool> {
        let begin = Instant::now();
        loop {
            let states = self.look()?;
            let is_hurt = |number: usize| self.hurt.iter().any(|hurt| hurt.device == number);
            let away = |number: &usize| states[*number] != "in" && !is_hurt(*number);
            let Some(number) = (0..DEVICES).find(away) else { return Ok(true) };
            if begin.elapsed() > OTHERS_PATIENCE {
                self.tell(format!("skipped: device {number} is {}", states[number]));
                self.summary.left_out += 1;
                return Ok(false);
            }
            if states[number] == "out" {
                // It may be refused for a while.
                self.array.try_verb(&["device", "return", &number.to_string()])?;
            }
            sleep(PAUSE);
        }
    }

    /// Returns whether a round has failed because more devices were out than the array tolerates,
    /// including a late one to which nothing was done. Wrong data, and an array that ends by
    /// itself, are failures regardless of the devices that are out.
    fn are_three_out(&mut self, error: &Error) -> Result<bool> {
        // Devices that are out now count, if the array reports them.
        let _ = self.look();
        Ok(self.bystanders.were_too_many()
            && !error.is::<Ended>()
            && self.journal.has_found_no_fault(&mut self.load)?)
    }

    /// Recovers everything, and restarts the array, which may have failed its hosts permanently.
    /// Acknowledged writes must be present at the end.
    fn begin_anew(&mut self, error: &Error) -> Result<()> {
        self.summary.three_out += 1;
        self.tell(format!(
            "three devices are out, including {}: {error:#}",
            self.bystanders.text()
        ));
        // No unflushed data is lost, because a device that can't be spared would not be taken out.
        for hurt in &self.hurt {
            self.devices[hurt.device].device().set(Faults::default());
        }
        // It has ended if it could not start.
        let _ = self.array.kill();
        self.array.start()?;
        devices::all_return(&self.array, RETURN_PATIENCE)?;
        if self.load.try_wait()?.is_some_and(|status| !status.success()) {
            let left = self.plan.lasts.saturating_sub(self.begin.elapsed());
            self.journal.seconds = left.as_secs_f64();
            self.load = self.journal.start()?;
        }
        self.tell("all devices are back in, and hosts continue");
        Ok(())
    }

    /// Returns an error if the array has ended by itself.
    fn must_run(&mut self) -> Result<()> {
        self.array.must_run().context(Ended)
    }

    /// Begins the fault.
    fn hurt(&mut self, victim: &Victim) -> Result<()> {
        self.tell(format!("device {}: {}", victim.device, victim.faults_text()));
        *self.summary.faults.entry(victim.kind).or_default() += 1;
        self.devices[victim.device].device().set(victim.faults.clone());
        match victim.faults.is_gone {
            true => self.wait_until_out(victim.device),
            false => Ok(()),
        }
    }

    /// Ends the fault.
    fn mend(&mut self, victim: &Victim) -> Result<()> {
        let device = self.devices[victim.device].device().clone();
        for [back, gone] in &victim.flaps {
            device.bring_back();
            self.tell(format!("device {}: back for {} ms", victim.device, back.as_millis()));
            // It may be refused as long as the device is out for another reason.
            self.array.try_verb(&["device", "return", &victim.device.to_string()])?;
            sleep(*back);
            if !self.are_others_in()? {
                break;
            }
            device.tear_out();
            self.wait_until_out(victim.device)?;
            sleep(*gone);
        }
        match victim.kind {
            Kind::OldData => {
                let set_back = device.set_back()?;
                self.tell(format!("device {}: set back: {set_back}", victim.device));
            }
            Kind::TornOut if self.remembered() < REMEMBERED_MAX => device.remember()?,
            _ => {}
        }
        if victim.faults.is_gone {
            device.bring_back();
        }
        device.set(Faults::default());
        self.tell(format!("device {}: healthy again", victim.device));
        Ok(())
    }

    /// Returns how many devices could be set back.
    fn remembered(&self) -> usize {
        self.devices.iter().filter(|mounted| mounted.device().remembers()).count()
    }

    /// Waits until the array has noticed a device that lost unflushed data, like one whose cable
    /// was pulled.
    fn wait_until_out(&mut self, device: usize) -> Result<()> {
        let begin = Instant::now();
        loop {
            let states = self.look()?;
            if matches!(states[device].as_str(), "out" | "missing") {
                return Ok(());
            }
            if self.bystanders.are_too_many() {
                bail!("device {device} is gone, but the array has to keep it: {states:?}");
            }
            let patient = begin.elapsed() < NOTICE_PATIENCE;
            ensure!(
                patient,
                "device {device} is gone, but the array does not report it: {states:?}"
            );
            sleep(PAUSE);
        }
    }

    /// Kills the array, and serves the pool again.
    fn kill(&mut self, kill: Kill, victims: &[&Victim]) -> Result<()> {
        sleep(kill.after);
        self.must_run()?;
        if !self.are_others_in()? {
            return Ok(());
        }
        self.array.kill()?;
        self.summary.kills += 1;
        if kill.loses_power {
            self.devices.iter().for_each(|mounted| mounted.device().lose_unflushed());
            self.summary.power_losses += 1;
        }
        // A start reads sequentially, which takes minutes on a slow device; so a slow one is made
        // healthy first.
        for victim in victims.iter().filter(|victim| victim.kind == Kind::Late) {
            self.devices[victim.device].device().set(Faults::default());
        }
        let took = self.array.start()?;
        let power = if kill.loses_power { " with a power failure" } else { "" };
        self.tell(format!("kill -9{power}, served again in {} ms", took.as_millis()));
        Ok(())
    }

    /// With everything recovered, checks that nothing is lost.
    fn compare(&mut self) -> Result<()> {
        let done = self.journal.wait(&mut self.load, LOAD_PATIENCE)?;
        let count = |name: &str| done[name].as_u64().unwrap_or_default();
        (self.summary.acknowledged, self.summary.reads) = (count("acknowledged"), count("reads"));
        self.summary.verified_bytes = self.journal.verify()? * 4096;
        self.tell("every acknowledged block reads as written");
        self.scrub()?;
        devices::all_return(&self.array, RETURN_PATIENCE)?;
        self.array.stop()?;
        self.array.inspect().map(drop)
    }

    /// Checks that a scrub finds nothing. If devices lied, the first scrub may: a returning
    /// device is rebuilt from what the others return, and with as many out as allowed there is no
    /// redundancy left to verify that against. The first scrub then repairs everything: the second
    /// one repairs nothing, and lists no more than the repairs of the first one.
    fn scrub(&mut self) -> Result<()> {
        let mut scrubbed = devices::scrub(&self.array)?;
        if self.summary.faults.contains_key(&Kind::Lies) && !scrubbed.is_nothing_found() {
            self.tell(format!("devices have lied: a scrub repairs the damage: {scrubbed:?}"));
            let listed_later = scrubbed.mended;
            self.summary.repaired = scrubbed.mended.max(scrubbed.found);
            ensure!(scrubbed.damaged == 0, "it can't repair everything: {scrubbed:?}");
            scrubbed = devices::scrub(&self.array)?;
            scrubbed.found = scrubbed.found.saturating_sub(listed_later);
        }
        if !scrubbed.is_nothing_found() {
            let damage = self.array.run(&["pool", "damage", "--pool", &self.array.places()[0]])?;
            self.tell(damage.text.lines().take(DAMAGE_LINES).collect::<Vec<_>>().join("\n"));
            bail!("a scrub found damage: {scrubbed:?}");
        }
        self.summary.scrubbed_bytes = scrubbed.bytes;
        self.tell("a scrub finds nothing");
        Ok(())
    }

    fn tell(&self, what: impl Display) {
        println!("{:8.3} s  {what}", self.begin.elapsed().as_secs_f64());
    }
}
