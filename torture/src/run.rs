//! The array, its devices and its load, through all that happens.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tests_peer::array::{Array, Programs, Shape};
use tests_peer::devices;
use tests_peer::load::Load;
use tests_peer::random::Random;
use tests_peer::target::INITIATOR;

use crate::faults::{Counts, Faults};
use crate::mount::Mounted;
use crate::schedule::{DEVICES, Kill, Kind, Round, Victim};

/// What the pool holds, the least that it may: 256 MiB of each device.
const CAPACITY: &str = "1G";
/// What the load uses of its volume.
const SPAN: &str = "128M";
/// The least memory, so that not all reads of hosts are of that.
const SETTINGS: &str = "memory = \"64M\"\n";
/// How long it may take until all devices are in again.
const RETURN_PATIENCE: Duration = Duration::from_secs(120);
/// How long the array may take to notice that a device is gone, under load.
const NOTICE_PATIENCE: Duration = Duration::from_secs(20);
/// How long a load may take to end.
const LOAD_PATIENCE: Duration = Duration::from_secs(60);
/// How many devices remember what they had, behind the start: each takes as much as the device.
const REMEMBERED_MAX: usize = 2;
/// How much of the list of what a scrub has found is shown.
const DAMAGE_LINES: usize = 12;
const PAUSE: Duration = Duration::from_millis(20);

/// What is wanted.
pub struct Plan {
    /// How long; the round that has begun is finished.
    pub lasts: Duration,
    /// What decides what happens.
    pub seed: u64,
    /// Which faults there are.
    pub kinds: Vec<Kind>,
    /// Whether the array is killed.
    pub kills: bool,
}

/// What was done.
#[derive(Default)]
pub struct Summary {
    /// How often each fault happened.
    pub faults: BTreeMap<Kind, u64>,
    /// Rounds that ended with all devices in.
    pub rounds: u64,
    /// How often the array was killed, and how often with the power of all devices.
    pub kills: u64,
    pub power_losses: u64,
    /// What the devices did.
    pub devices: Counts,
    /// The longest time until all devices were in again.
    pub return_max: Duration,
    /// Operations of hosts that were acknowledged, and reads that were compared meanwhile.
    pub acknowledged: u64,
    pub reads: u64,
    /// Bytes that were compared at the end, and that the scrub read.
    pub verified_bytes: u64,
    pub scrubbed_bytes: u64,
}

/// What is tortured.
pub struct Torture {
    load: Child,
    journal: Load,
    // Before the devices: it has them open.
    array: Array,
    devices: Vec<Mounted>,
    begin: Instant,
    plan: Plan,
    random: Random,
    summary: Summary,
}

impl Torture {
    /// Makes a pool, puts a device in the place of each of its files, and starts the array and its
    /// load.
    ///
    /// # Errors
    /// What could not be started.
    pub fn start(programs: &Programs, plan: Plan) -> Result<Self> {
        let shape = Shape {
            capacity: CAPACITY,
            devices: DEVICES as u16,
            apart: true,
            settings: SETTINGS,
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
        Ok(Self { load, journal, array, devices, begin, plan, random, summary })
    }

    /// Has things happen until the time is over, and compares all in the end.
    ///
    /// # Errors
    /// What was wrong.
    pub fn run(mut self) -> Result<Summary> {
        let result = self.rounds().and_then(|()| self.compare());
        if result.is_err() {
            // What the array said is the first thing to look at.
            let log = std::env::temp_dir().join("holdfast-torture.log");
            let kept = std::fs::copy(self.array.scratch().join("serve.log"), &log);
            self.tell(match kept {
                Ok(_) => format!("what the array said is in {}", log.display()),
                Err(error) => format!("what the array said could not be kept: {error}"),
            });
            self.tell(format!("the devices are {:?}", devices::states(&self.array)));
        }
        // Both may have ended; nothing may hang on.
        let _ = self.load.kill();
        let _ = self.load.wait();
        for mounted in &self.devices {
            mounted.device().set(Faults::default());
            self.summary.devices.add(&mounted.device().counts());
        }
        // The array ends before its devices do, and the directory can be removed behind both. It
        // may have been stopped.
        let _ = self.array.kill();
        self.devices.clear();
        result.map(|()| self.summary)
    }

    fn rounds(&mut self) -> Result<()> {
        while self.begin.elapsed() < self.plan.lasts {
            let round = Round::draw(&mut self.random, &self.plan.kinds);
            self.round(&round).with_context(|| format!("in the round {round:?}"))?;
            self.summary.rounds += 1;
        }
        Ok(())
    }

    fn round(&mut self, round: &Round) -> Result<()> {
        for victim in &round.victims {
            sleep(victim.after);
            self.hurt(victim)?;
        }
        match round.kill.filter(|_| self.plan.kills) {
            Some(kill) => self.kill(kill, &round.victims)?,
            None => sleep(round.lasts),
        }
        round.victims.iter().try_for_each(|victim| self.mend(victim))?;
        let took = devices::all_return(&self.array, RETURN_PATIENCE)?;
        self.tell(format!("all devices are in, {:.1} s later", took.as_secs_f64()));
        self.summary.return_max = self.summary.return_max.max(took);
        self.array.must_run()?;
        if self.load.try_wait()?.is_some_and(|status| status.success()) {
            // It was to end about now.
            return Ok(());
        }
        self.journal.must_run(&mut self.load)
    }

    /// The fault begins.
    fn hurt(&mut self, victim: &Victim) -> Result<()> {
        self.tell(format!("device {}: {}", victim.device, victim.faults_text()));
        *self.summary.faults.entry(victim.kind).or_default() += 1;
        self.devices[victim.device].device().set(victim.faults.clone());
        match victim.faults.is_gone {
            true => self.wait_until_out(victim.device),
            false => Ok(()),
        }
    }

    /// The fault ends.
    fn mend(&self, victim: &Victim) -> Result<()> {
        let device = self.devices[victim.device].device();
        for [back, gone] in &victim.flaps {
            device.bring_back();
            self.tell(format!("device {}: back for {} ms", victim.device, back.as_millis()));
            // It may be refused, as long as the device is out for another reason.
            self.array.try_verb(&["device", "return", &victim.device.to_string()])?;
            sleep(*back);
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
        self.tell(format!("device {}: well again", victim.device));
        Ok(())
    }

    /// How many devices could be set back.
    fn remembered(&self) -> usize {
        self.devices.iter().filter(|mounted| mounted.device().remembers()).count()
    }

    /// A device that loses what was not flushed has to be missed, as one is whose cable was pulled.
    fn wait_until_out(&self, device: usize) -> Result<()> {
        let begin = Instant::now();
        loop {
            let states = devices::states(&self.array)?;
            if matches!(states[device].as_str(), "out" | "missing") {
                return Ok(());
            }
            let patient = begin.elapsed() < NOTICE_PATIENCE;
            ensure!(patient, "device {device} is gone, and nobody says so: {states:?}");
            sleep(PAUSE);
        }
    }

    /// Kills the array, and serves the pool again.
    fn kill(&mut self, kill: Kill, victims: &[Victim]) -> Result<()> {
        sleep(kill.after);
        self.array.must_run()?;
        self.array.kill()?;
        self.summary.kills += 1;
        if kill.loses_power {
            self.devices.iter().for_each(|mounted| mounted.device().lose_unflushed());
            self.summary.power_losses += 1;
        }
        // A start reads what it needs one after the other, and waits for it: of a slow device that
        // is minutes. Such a one is well before.
        for victim in victims.iter().filter(|victim| victim.kind == Kind::Late) {
            self.devices[victim.device].device().set(Faults::default());
        }
        let took = self.array.start()?;
        let power = if kill.loses_power { ", with its power," } else { "" };
        self.tell(format!("kill -9{power} and served again in {} ms", took.as_millis()));
        Ok(())
    }

    /// All is well: nothing may be lost.
    fn compare(&mut self) -> Result<()> {
        let done = self.journal.wait(&mut self.load, LOAD_PATIENCE)?;
        let count = |name: &str| done[name].as_u64().unwrap_or_default();
        (self.summary.acknowledged, self.summary.reads) = (count("acknowledged"), count("reads"));
        self.summary.verified_bytes = self.journal.verify()? * 4096;
        self.tell("every block that was acknowledged reads as it was written");
        let scrubbed = devices::scrub_finds_nothing(&self.array);
        if scrubbed.is_err() {
            let damage = self.array.run(&["pool", "damage", "--pool", &self.array.places()[0]])?;
            self.tell(damage.text.lines().take(DAMAGE_LINES).collect::<Vec<_>>().join("\n"));
        }
        self.summary.scrubbed_bytes = scrubbed?;
        self.tell("a scrub finds nothing");
        let states = devices::states(&self.array)?;
        ensure!(states == ["in"; DEVICES], "not all devices are in: {states:?}");
        self.array.stop()?;
        self.array.inspect().map(drop)
    }

    fn tell(&self, what: impl Display) {
        println!("{:8.3} s  {what}", self.begin.elapsed().as_secs_f64());
    }
}

impl Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let faults: Vec<String> =
            self.faults.iter().map(|(kind, count)| format!("{count} x {kind:?}")).collect();
        writeln!(f, "{} rounds; faults: {}", self.rounds, faults.join(", "))?;
        writeln!(f, "kill -9: {}, {} of them with the power", self.kills, self.power_losses)?;
        writeln!(f, "devices: {:?}", self.devices)?;
        writeln!(f, "all devices in again after {:.1} s at most", self.return_max.as_secs_f64())?;
        writeln!(f, "hosts: {} operations, {} reads compared", self.acknowledged, self.reads)?;
        let (verified, scrubbed) = (self.verified_bytes, self.scrubbed_bytes);
        write!(f, "{verified} bytes verified, 0 lost; {scrubbed} bytes scrubbed, nothing found")
    }
}
