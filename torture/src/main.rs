//! Torture: the real `holdfast` on six files, each behind a layer that injects device faults, under
//! a load from libiscsi that knows what every block must contain.
//!
//! A round: one or two devices are hurt, the array may be killed meanwhile, and everything
//! recovers; the next round begins only when all devices are in. At the end every block is
//! compared, and a scrub must find nothing. `cargo xtask torture --minutes N` builds and runs it.
//!
//! * [`schedule`]: what happens, from a seed; [`run`]: makes it happen,
//! * [`faults`], [`device`]: a device that fails; [`mount`]: one in place of a file, by FUSE.

mod bystanders;
mod controllers;
mod device;
mod faults;
mod mount;
mod run;
mod schedule;
mod summary;

#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use clap::Parser;
use tests_peer::array::Programs;

use run::{Plan, Torture};
use schedule::{BY_DEFAULT, Kind};

/// Tortures an array on six devices.
#[derive(Parser)]
struct Arguments {
    /// The duration in minutes; a round that has begun is finished.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
    /// The seed that decides what happens; from the clock by default.
    #[arg(long)]
    seed: Option<u64>,
    /// Only these faults.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = BY_DEFAULT)]
    faults: Vec<Kind>,
    /// Two controllers instead, on one healthy file.
    #[arg(long)]
    controllers: bool,
    /// With two controllers: ends once the owner was killed this often.
    #[arg(long, requires = "controllers")]
    kills: Option<u64>,
    /// With two controllers: without the array's supervisor, so that a stopped one resumes.
    #[arg(long, requires = "controllers")]
    unsupervised: bool,
    /// With two controllers: on six devices behind the layer, of which one or two are slow or fail
    /// meanwhile.
    #[arg(long, requires = "controllers")]
    devices: bool,
    /// With two controllers: a program that also judges their histories (`tests-linear/run`).
    #[arg(long, requires = "controllers")]
    judge: Option<PathBuf>,
    /// With two controllers: where their histories are written.
    #[arg(long, requires = "controllers")]
    histories: Option<PathBuf>,
    /// Never kill the array, to find out which of both causes a failure.
    #[arg(long)]
    no_kill: bool,
    /// Where `holdfast` and `holdfast-lab` are; next to this program by default.
    #[arg(long)]
    programs: Option<PathBuf>,
    /// This process already has its own mount namespace.
    #[arg(long, hide = true)]
    apart: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if !arguments.apart && (!arguments.controllers || arguments.devices) {
        let error = begin_apart();
        eprintln!("torture: could not enter a mount namespace with `unshare`: {error}");
        return ExitCode::from(2);
    }
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = arguments.seed.unwrap_or(clock.as_secs());
    println!("torture: --minutes {} --seed {seed}", arguments.minutes);
    match torture(&arguments, seed) {
        Ok(summary) => {
            println!("{summary}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("torture: failed; repeat with --seed {seed}: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Re-executes the program in its own mount namespace, which ends with it, however it ends. Returns
/// why that failed.
fn begin_apart() -> std::io::Error {
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return error,
    };
    let arguments = std::env::args_os().skip(1);
    // An unprivileged user becomes root of a user namespace, and may mount there.
    let user: &[&str] =
        if rustix::process::geteuid().is_root() { &[] } else { &["--map-root-user"] };
    Command::new("unshare").args(user).arg("--mount").arg(own).arg("--apart").args(arguments).exec()
}

fn torture(arguments: &Arguments, seed: u64) -> Result<Box<dyn Display>> {
    let lasts = Duration::try_from_secs_f64(arguments.minutes * 60.0)?;
    let programs = programs(arguments)?;
    if arguments.controllers {
        let plan = controllers::Plan {
            lasts,
            seed,
            kills: arguments.kills,
            is_supervised: !arguments.unsupervised,
            has_devices: arguments.devices,
            judge: arguments.judge.clone(),
            histories: arguments.histories.clone(),
        };
        return Ok(Box::new(controllers::run(&programs, plan)?));
    }
    mount::probe().context("FUSE is not available")?;
    let plan = Plan { lasts, seed, kinds: arguments.faults.clone(), kills: !arguments.no_kill };
    Ok(Box::new(Torture::start(&programs, plan)?.run()?))
}

fn programs(arguments: &Arguments) -> Result<Programs> {
    let own = std::env::current_exe()?;
    let beside = own.parent().context("the path of this program has no directory")?;
    let directory = arguments.programs.clone().unwrap_or(beside.to_owned());
    let programs =
        Programs { holdfast: directory.join("holdfast"), lab: directory.join("holdfast-lab") };
    for program in [&programs.holdfast, &programs.lab] {
        if !program.is_file() {
            bail!("{} does not exist; build it: cargo build -p holdfast -p lab", program.display());
        }
    }
    Ok(programs)
}
