//! Rows of `cargo xtask bench --only growth`: one of two controllers takes over from the other one,
//! which has written much log since the last checkpoint.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::growth::{fill, wait_for_log};
use super::table::{Goal, Line};
use super::{Unit, plan};
use crate::bench::array::Array;
use crate::bench::options::Options;
use crate::bench::process::{self, Programs, words};
use crate::bench::{middle_of, number_of};

/// The goal for how long hosts have no response.
const KILLED_S_MAX: f64 = 0.5;
const SWITCHED_S_MAX: f64 = 0.1;
/// How long both controllers may take to be ready again.
const READY: Duration = Duration::from_secs(30);

/// How long a host with a session continues to send commands, and how long before the switch it
/// begins.
const PROBE_S: u32 = 3;
const PROBE_BEFORE: Duration = Duration::from_millis(700);

/// How the owner ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Killed by `kill -9`.
    Killed,
    /// A planned switch.
    Switched,
}

impl End {
    /// Returns the name of its row.
    pub fn row_id(self) -> &'static str {
        match self {
            Self::Killed => "growth-takeover",
            Self::Switched => "growth-switch",
        }
    }
}

/// A controller, as reported by the array.
#[derive(Clone, Debug, Deserialize)]
struct Controller {
    name: String,
    mode: String,
    status: String,
    pid: u32,
}

/// Returns both, once they are ready: the owner first.
fn both(array: &Array) -> Result<[Controller; 2]> {
    let begin = Instant::now();
    loop {
        ensure!(begin.elapsed() < READY, "the controllers are not ready");
        // While no controller has the pool, the verb fails.
        let told = array.verb("controller list --json").unwrap_or_else(|_| String::from("[]"));
        let mut all: Vec<Controller> = serde_json::from_str(&told)?;
        all.retain(|it| it.status == "ready");
        all.sort_by_key(|it| it.mode != "primary");
        if let Ok(both) = <[Controller; 2]>::try_from(all) {
            return Ok(both);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// Measures one in each round.
pub fn line(options: &Options, programs: &Programs, end: End) -> Result<Line> {
    let second = format!("127.0.0.1:{}", process::free_port()?);
    let plan = plan(options, "takeover", super::growth::KILLED_BYTES, super::QUIET)?;
    let array = Array::start_two(programs, &options.dir, &plan, &second)?;
    let first = array.create_volume("killed", super::growth::KILLED_VOLUME_BYTES, 1, "")?;
    let urls = [first, array.url_at(&second, 1)];
    fill(programs, &array, &urls[0])?;
    let mut found = Vec::new();
    for round in 1..=options.rounds {
        let (seconds, log_bytes) = take_over(programs, &array, &urls, end, round)?;
        eprintln!("round {round}: {} {seconds:.3} s, {} MiB of log", end.row_id(), log_bytes >> 20);
        found.push((seconds, log_bytes));
    }
    array.stop_and_remove()?;
    line_of(end, &found)
}

/// Ends the owner under writes, and waits for a response of the other one.
fn take_over(
    programs: &Programs,
    array: &Array,
    urls: &[String; 2],
    end: End,
    round: usize,
) -> Result<(f64, u64)> {
    let [owner, _] = both(array)?;
    let is_first = owner.name.eq_ignore_ascii_case("ct0");
    let [own, other] = if is_first { [&urls[0], &urls[1]] } else { [&urls[1], &urls[0]] };
    thread::scope(|scope| {
        let load = scope.spawn(move || {
            let load = "--rw randwrite --depth 32 --compressible 0 --ramp 0 --seconds 90";
            // It ends with an error, because its connection is lost.
            let _ = Unit::of_array(programs, array, own).load(&format!("{load} --seed {round}"));
        });
        let log_bytes = wait_for_log(array)?;
        let seconds = match end {
            End::Killed => {
                let start = Instant::now();
                kill(&owner)?;
                answered(programs, array, other, start)?
            }
            End::Switched => {
                let probe = scope.spawn(|| longest_answer(programs, array, other));
                thread::sleep(PROBE_BEFORE);
                array.verb("api POST /v1/controllers/switch --data {}")?;
                let seconds = probe.join().expect("the probe does not panic")?;
                // The load continues at the new owner.
                kill(&both(array)?[0])?;
                seconds
            }
        };
        load.join().expect("the load does not panic");
        Ok((seconds, log_bytes))
    })
}

fn kill(controller: &Controller) -> Result<()> {
    let pid = words(&format!("-KILL {}", controller.pid));
    process::output(Path::new("kill"), &pid).map(drop)
}

/// Returns how long it takes until a host that logs in gets a response.
fn answered(programs: &Programs, array: &Array, url: &str, start: Instant) -> Result<f64> {
    let one = "--command tur --ramp 0 --commands 1";
    // A connection at the last moment may be lost with the owner.
    while let Err(error) = Unit::of_array(programs, array, url).load(one) {
        ensure!(start.elapsed() < READY, "no controller took over: {error:#}");
    }
    Ok(start.elapsed().as_secs_f64())
}

/// Returns the longest time in which a host with a session has no response, in seconds; except
/// for the unit attention that its paths have changed, after which it retries.
fn longest_answer(programs: &Programs, array: &Array, url: &str) -> Result<f64> {
    let all = format!("--command tur --ramp 0 --seconds {PROBE_S}");
    let report = Unit::of_array(programs, array, url).load(&all)?;
    Ok(number_of(&report, "silence_us")? / 1e6)
}

fn line_of(end: End, found: &[(f64, u64)]) -> Result<Line> {
    let seconds: Vec<f64> = found.iter().map(|(seconds, _)| *seconds).collect();
    let longest = seconds.iter().copied().fold(0.0, f64::max);
    let middle = middle_of(seconds).context("--rounds 0 measures nothing")?;
    let log = found.iter().map(|(_, bytes)| bytes >> 20).min().unwrap_or(0);
    let (title, most) = match end {
        End::Killed => ("the other controller takes over after kill -9", KILLED_S_MAX),
        End::Switched => ("a planned switch of controllers", SWITCHED_S_MAX),
    };
    Ok(Line {
        id: end.row_id().to_owned(),
        title: title.to_owned(),
        figures: vec![Some(middle), Some(longest), Some(log as f64), None, None, None, None],
        goals: vec![Goal::at_most("longest", longest, most)],
    })
}
