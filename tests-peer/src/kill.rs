//! kill -9, repeatedly, under a load that knows what every block must contain.
//!
//! A round: `holdfast-lab verify-load` loads a volume over several sessions with writes, compares
//! and offloads; at a moment that the seed determines the array is killed; `inspect` of the stopped
//! pool must find nothing; the array restarts, and the load, which waited, determines the result of
//! commands without a response (completely present or not at all) and continues. After the rounds
//! every block is compared.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::arguments::Arguments;
use crate::array::{Array, Programs, Shape};
use crate::devices;
use crate::load::Load;
use crate::process::Owned;
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;

/// The delay of the kill after the start of the load, in milliseconds.
const KILL_AFTER_MS: std::ops::Range<u64> = 300..3_300;
/// How long a load may take to end after the array serves again.
const LOAD_PATIENCE: Duration = Duration::from_secs(60);

/// Runs the group `kill`.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let mut array = crate::array(arguments, Shape::default())?;
    let target = array.volume("survivor", "1G", "peer", 1)?;
    let programs = crate::programs(arguments)?;
    kill(report, &mut array, &programs, &target, arguments.kill_rounds, arguments.seed);
    Ok(())
}

/// Runs the group `devices`.
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
            // Later rounds would only repeat the failure. The seed reproduces it.
            return;
        }
    }
    report.check("every acknowledged block is present", || {
        load.verify().map(|blocks| format!("{blocks} blocks, seed {seed}"))
    });
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
    let count = u64::from(array.devices());
    for round in 1..=rounds {
        let first = random.below(count);
        let lost = [first, (first + 1 + random.below(count - 1)) % count];
        let after = Duration::from_millis(300 + random.below(900));
        let name = format!("kill -9 {round} of {rounds}, without devices {lost:?}");
        report.check(&name, || {
            let detail = round_without(array, &load, lost, after)?;
            let rebuilt = devices::all_return(array, LOAD_PATIENCE)?;
            Ok(format!("{detail}, all devices were in after {} ms", rebuilt.as_millis()))
        });
    }
    report.check("every acknowledged block is present", || {
        load.verify().map(|blocks| format!("{blocks} blocks, seed {seed}"))
    });
    report.check("a scrub finds nothing", || {
        devices::scrub_finds_nothing(array).map(|bytes| format!("{bytes} bytes"))
    });
}

/// Two devices fail under load, one after the other; then the array is killed.
fn round_without(
    array: &mut Array,
    load: &Load,
    lost: [u64; 2],
    after: Duration,
) -> Result<String> {
    // On a busy machine devices may already be out because they were late.
    devices::all_return(array, LOAD_PATIENCE)?;
    let process = Owned(load.start()?);
    for device in lost {
        std::thread::sleep(after);
        let answer = array.try_verb(&["device", "fail", &device.to_string()])?;
        if answer.code != 0 {
            let out = devices::listed(array)?.iter().filter(|it| it.state != "in").count();
            ensure!(out >= lost.len(), "with {out} devices out: {}", answer.text);
        }
    }
    std::thread::sleep(after);
    killed_and_served(array, load, process)
}

fn one_round(array: &mut Array, load: &Load, after: Duration) -> Result<String> {
    let process = Owned(load.start()?);
    std::thread::sleep(after);
    killed_and_served(array, load, process)
}

/// Kills the array under a load, inspects the pool, and serves it again.
fn killed_and_served(array: &mut Array, load: &Load, mut process: Owned) -> Result<String> {
    load.must_run(&mut process.0)?;
    array.must_run()?;
    array.kill()?;
    let inspected = array.inspect().context("inspect of the killed pool");
    let took = array.start();
    inspected?;
    let took = took?;
    load.wait(&mut process.0, LOAD_PATIENCE)?;
    array.must_run()?;
    Ok(format!("served again in {} ms", took.as_millis()))
}
