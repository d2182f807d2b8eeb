//! kill -9, again and again, under a load that knows what every block must hold.
//!
//! A round: `holdfast-lab verify-load` loads a volume over several sessions with writes, compares
//! and offloads; at a moment that the seed decides the array is killed; `inspect` of the stopped
//! pool must find nothing; the array starts again, and the load, which waited, settles what was
//! not answered (wholly there or wholly not) and goes on. After the rounds every block is compared.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::arguments::Arguments;
use crate::array::{Array, Programs, Shape};
use crate::command;
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;

/// How long a round's load runs, the time in which the array is dead not counted.
const LOAD_SECONDS: f64 = 4.0;
/// When the array is killed after the load began, in milliseconds.
const KILL_AFTER_MS: std::ops::Range<u64> = 300..3_300;
/// How long a load may take to end after the array serves again.
const LOAD_PATIENCE: Duration = Duration::from_secs(60);

/// A load with its record of what must be where.
struct Load {
    lab: PathBuf,
    url: String,
    initiator: String,
    journal: PathBuf,
    log: PathBuf,
    seed: u64,
}

/// The group `kill`.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let mut array = crate::array(arguments, Shape::default())?;
    let target = array.volume("survivor", "1G", "peer", 1)?;
    let programs = crate::programs(arguments)?;
    kill(report, &mut array, &programs, &target, arguments.kill_rounds, arguments.seed);
    Ok(())
}

/// The group `devices`.
pub fn run_devices(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let mut array = crate::array(arguments, Shape { devices: 6, ..Shape::default() })?;
    let target = array.volume("survivor", "1G", "peer", 1)?;
    let (programs, seed) = (crate::programs(arguments)?, arguments.seed);
    let rounds = arguments.kill_rounds;
    without_devices(report, &mut array, &programs, &target, (rounds, seed));
    Ok(())
}

/// Kills the array `rounds` times under load.
fn kill(
    report: &mut Report,
    array: &mut Array,
    programs: &Programs,
    target: &Target,
    rounds: u32,
    seed: u64,
) {
    let load = Load::of(array, programs, target, seed);
    let mut random = Random::new(seed);
    for round in 1..=rounds {
        let after = KILL_AFTER_MS.start + random.below(KILL_AFTER_MS.end - KILL_AFTER_MS.start);
        let name = format!("kill -9 {round} of {rounds}, after {after} ms of load");
        let mut good = false;
        report.check(&name, || {
            let detail = one_round(array, &load, Duration::from_millis(after))?;
            good = true;
            Ok(detail)
        });
        if !good {
            // What follows would only repeat it. The seed makes it again.
            return;
        }
    }
    report.check("every acknowledged block is there", || load.verify());
    report.check("inspect finds nothing after an orderly stop", || {
        array.stop()?;
        array.inspect()?;
        Ok(String::new())
    });
}

/// Kills the array `rounds` times under load, each time while two of its devices are out.
fn without_devices(
    report: &mut Report,
    array: &mut Array,
    programs: &Programs,
    target: &Target,
    (rounds, seed): (u32, u64),
) {
    let load = Load::of(array, programs, target, seed);
    let mut random = Random::new(seed);
    let devices = u64::from(array.devices());
    for round in 1..=rounds {
        let first = random.below(devices);
        let lost = [first, (first + 1 + random.below(devices - 1)) % devices];
        let after = Duration::from_millis(300 + random.below(900));
        let name = format!("kill -9 {round} of {rounds}, without devices {lost:?}");
        report.check(&name, || {
            let detail = round_without(array, &load, lost, after)?;
            let rebuilt = all_return(array)?;
            Ok(format!("{detail}, all were in {} ms later", rebuilt.as_millis()))
        });
    }
    report.check("every acknowledged block is there", || load.verify());
    report.check("a scrub finds nothing", || {
        array.verb(&["pool", "scrub", "start"])?;
        let begin = Instant::now();
        loop {
            let status = array.verb(&["pool", "scrub", "status"])?;
            if status["running"] == false {
                ensure!(status["findings"] == 0, "it has found something: {status}");
                return Ok(format!("{} bytes", status["scrubbed_bytes"]));
            }
            ensure!(begin.elapsed() < LOAD_PATIENCE, "it does not end");
            std::thread::sleep(Duration::from_millis(100));
        }
    });
}

/// Two devices fail under load, one after the other; then the array is killed.
fn round_without(
    array: &mut Array,
    load: &Load,
    lost: [u64; 2],
    after: Duration,
) -> Result<String> {
    let process = load.start()?;
    let killed = lost.iter().try_for_each(|device| {
        std::thread::sleep(after);
        array.verb(&["device", "fail", &device.to_string()]).map(drop)
    });
    std::thread::sleep(after);
    killed.and_then(|()| killed_and_served(array, load, process))
}

/// Has all devices return that are out, and waits until they have caught up.
fn all_return(array: &Array) -> Result<Duration> {
    let begin = Instant::now();
    loop {
        let devices = array.verb(&["device", "list"])?;
        let devices = devices.as_array().context("no list of devices")?;
        let state = |device: &serde_json::Value| device["state"].as_str().map(str::to_owned);
        if devices.iter().all(|device| state(device).as_deref() == Some("in")) {
            return Ok(begin.elapsed());
        }
        for device in devices.iter().filter(|device| state(device).as_deref() == Some("out")) {
            array.verb(&["device", "return", &device["number"].to_string()])?;
        }
        ensure!(begin.elapsed() < LOAD_PATIENCE, "they do not catch up: {devices:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn one_round(array: &mut Array, load: &Load, after: Duration) -> Result<String> {
    let process = load.start()?;
    std::thread::sleep(after);
    killed_and_served(array, load, process)
}

/// Kills the array under a load, looks at the pool, and serves it again.
fn killed_and_served(array: &mut Array, load: &Load, mut process: Child) -> Result<String> {
    if let Some(status) = process.try_wait()? {
        bail!("the load ended early ({status}):\n{}", load.said());
    }
    array.must_run()?;
    array.kill()?;
    let inspected = array.inspect().context("inspect of the killed pool");
    let restarted = array.start();
    let result = inspected.and(restarted).and_then(|took| {
        load.wait(&mut process)?;
        array.must_run()?;
        Ok(format!("served again in {} ms", took.as_millis()))
    });
    if result.is_err() {
        // It would wait for an array that may never come. It may have ended meanwhile.
        let _ = process.kill();
        let _ = process.wait();
    }
    result
}

impl Load {
    fn of(array: &Array, programs: &Programs, target: &Target, seed: u64) -> Self {
        Self {
            lab: programs.lab.clone(),
            url: target.url(),
            initiator: target.initiator.clone(),
            journal: array.scratch().join("verify.journal"),
            log: array.scratch().join("verify.log"),
            seed,
        }
    }

    /// Starts a load, which takes up the journal if there is one.
    fn start(&self) -> Result<Child> {
        let log = File::create(&self.log)?;
        Command::new(&self.lab)
            .args(["verify-load", "--url", &self.url, "--initiator", &self.initiator])
            .arg("--journal")
            .arg(&self.journal)
            .args(["--seconds", &LOAD_SECONDS.to_string(), "--seed", &self.seed.to_string()])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("could not start {}", self.lab.display()))
    }

    /// Waits until a load has ended; it must have found nothing wrong.
    fn wait(&self, process: &mut Child) -> Result<()> {
        let begin = Instant::now();
        loop {
            if let Some(status) = process.try_wait()? {
                ensure!(status.success(), "the load found fault ({status}):\n{}", self.said());
                return Ok(());
            }
            if begin.elapsed() > LOAD_PATIENCE {
                bail!("the load does not end:\n{}", self.said());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Compares all that the journal knows.
    fn verify(&self) -> Result<String> {
        let lab = self.lab.display().to_string();
        let journal = self.journal.display().to_string();
        let arguments = [
            "verify-load",
            "--verify",
            "--url",
            &self.url,
            "--initiator",
            &self.initiator,
            "--journal",
            &journal,
        ];
        let text = command::run(180, &lab, &arguments)?.good()?;
        let summary: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("it printed: {text}"))?;
        let blocks = summary["verified_blocks"].as_u64().unwrap_or(0);
        ensure!(blocks > 0, "nothing was compared: {summary}");
        Ok(format!("{blocks} blocks, seed {}", self.seed))
    }

    fn said(&self) -> String {
        command::tail(&std::fs::read_to_string(&self.log).unwrap_or_default(), 10)
    }
}
