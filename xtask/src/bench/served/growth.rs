//! `cargo xtask bench --only growth`: costs that should not grow: a start after kill -9 with a
//! large log, freeing the space of eradicated volumes, writes with many volumes.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::table::{Column, Goal, Line, Table, column};
use super::takeover::{self, End};
use super::{QUIET, Unit, ratio, start};
use crate::bench::array::Array;
use crate::bench::options::Options;
use crate::bench::process::{Programs, words};
use crate::bench::{middle_of, reduction};

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

/// The pool whose server is killed, its volume, and the log that is written after a checkpoint
/// first: a checkpoint is due after 512 MiB of it.
pub(super) const KILLED_BYTES: u64 = 6 * GIB;
pub(super) const KILLED_VOLUME_BYTES: u64 = 2 * GIB;
const LOG_BYTES: u64 = 400 * MIB;
/// How long writing that log may take.
const LOG_TIME_MAX: Duration = Duration::from_secs(60);
const RECOVERY_S_MAX: f64 = 1.0;

const FREED_BYTES: [u64; 2] = [TIB, 10 * TIB];
const FREED_TIB_PER_S_MIN: f64 = 1.0;

const VOLUME_COUNT: usize = 1000;
const VOLUMES_POOL_BYTES: u64 = 6 * GIB;
const VOLUME_BYTES: u64 = 256 * MIB;
const VOLUMES_RATIO_MIN: f64 = 0.95;

const RECOVERY: &str = "growth-recovery";
const SPACE: &str = "growth-space-back";
const VOLUMES: &str = "growth-volumes";

const ENDS: [End; 2] = [End::Killed, End::Switched];

pub const COLUMNS: &[Column] = &[
    column("seconds", 3),
    column("longest, seconds", 3),
    column("log, MiB", 0),
    column("TiB/s", 2),
    column("/s", 0),
    column("with one volume /s", 0),
    column("ratio", 3),
];

/// Returns the names of all rows.
pub fn row_ids() -> Vec<String> {
    let [killed, switched] = ENDS.map(End::row_id);
    [RECOVERY, killed, switched, SPACE, VOLUMES].map(String::from).to_vec()
}

/// Measures the rows that the options request.
pub fn run(options: &Options, programs: &Programs) -> Result<Table> {
    let mut lines = Vec::new();
    if options.wants(RECOVERY) {
        lines.push(recovery_line(&recoveries(options, programs)?)?);
    }
    for end in ENDS.into_iter().filter(|end| options.wants(end.row_id())) {
        lines.push(takeover::line(options, programs, end)?);
    }
    if options.wants(SPACE) {
        let freed_s = reduction::freed_s(options, programs, &FREED_BYTES)?;
        let freed = FREED_BYTES.iter().zip(freed_s);
        lines.extend(freed.map(|(bytes, seconds)| space_line(*bytes, seconds)));
    }
    if options.wants(VOLUMES) {
        lines.push(volumes_line(&writes_with_volumes(options, programs)?)?);
    }
    let text = "Recovery: from the start of `serve` after kill -9 under 4 KiB random writes until \
                the response to a first command; log is its length since the last checkpoint. \
                Takeover: from the kill of the controller that has the pool until a new login at \
                the other one gets its first response. Switch: the longest time a host whose \
                session continues has no response; log as before. Space: until that of an \
                eradicated volume, full of copies of its first 240 MiB, is free. Volumes: 4 KiB \
                random writes to one of them, depth 32, compared with an array with that volume \
                alone, in turns; the ratio is the median of adjacent measurements.";
    let (title, text) = ("What should not grow", text.to_owned());
    Ok(Table { title, text, columns: COLUMNS, lines })
}

/// A start after kill -9.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    seconds: f64,
    log_bytes: u64,
}

/// Measures one recovery in each round.
fn recoveries(options: &Options, programs: &Programs) -> Result<Vec<Recovery>> {
    let mut array = start(options, programs, "recovery", KILLED_BYTES, QUIET)?;
    let url = array.create_volume("killed", KILLED_VOLUME_BYTES, 1, "")?;
    fill(programs, &array, &url)?;
    let config = match &options.config {
        Some(path) => path.clone(),
        None => options.dir.join("recovery.toml"),
    };
    let flags = words(&format!("--config {}", config.display()));
    let mut recoveries = Vec::new();
    for round in 1..=options.rounds {
        let (pool, log_bytes) = kill_under_writes(programs, array, round)?;
        let log = options.dir.join("recovery.log");
        let (again, time) = Array::serve_timed(programs, pool, &flags, &log)?;
        array = again;
        let seconds = time.as_secs_f64();
        eprintln!("round {round}: {RECOVERY} {seconds:.3} s, {} MiB of log", log_bytes / MIB);
        recoveries.push(Recovery { seconds, log_bytes });
    }
    array.remove()?;
    Ok(recoveries)
}

/// Writes the whole volume once.
pub(super) fn fill(programs: &Programs, array: &Array, url: &str) -> Result<()> {
    eprintln!("filling {} MiB", KILLED_VOLUME_BYTES / MIB);
    Unit::of_array(programs, array, url).fill("--compressible 0 --seed 1000")
}

/// Writes until much log was written since a checkpoint, and kills the array.
fn kill_under_writes(
    programs: &Programs,
    array: Array,
    round: usize,
) -> Result<(std::path::PathBuf, u64)> {
    let url = array.url(1);
    let unit = Unit::of_array(programs, &array, &url);
    std::thread::scope(|scope| {
        let load = scope.spawn(move || {
            let load = "--rw randwrite --depth 32 --compressible 0 --ramp 0 --seconds 90";
            // It ends with an error, because the array is killed.
            let _ = unit.load(&format!("{load} --seed {round}"));
        });
        let log_bytes = wait_for_log(&array);
        let pool = array.kill();
        load.join().expect("the load does not panic");
        Ok((pool, log_bytes?))
    })
}

/// Waits until [`LOG_BYTES`] were written to the log without a checkpoint.
pub(super) fn wait_for_log(array: &Array) -> Result<u64> {
    let start = Instant::now();
    let counted = || -> Result<(u64, u64)> {
        let of = |name: &str| array.counter("/v1/counters", &["written", name]);
        Ok((of("checkpoint_bytes")?, of("log_bytes")?))
    };
    let mut since = counted()?;
    while start.elapsed() < LOG_TIME_MAX {
        let (checkpoints, log) = counted()?;
        if checkpoints != since.0 {
            since = (checkpoints, log);
        }
        if log - since.1 >= LOG_BYTES {
            return Ok(log - since.1);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    bail!("could not write {} MiB of log without a checkpoint", LOG_BYTES / MIB)
}

fn recovery_line(recoveries: &[Recovery]) -> Result<Line> {
    let middle = middle_of(recoveries.iter().map(|one| one.seconds).collect());
    let middle = middle.context("--rounds 0 measures nothing")?;
    let longest = recoveries.iter().map(|one| one.seconds).fold(0.0, f64::max);
    let log = recoveries.iter().map(|one| one.log_bytes).min().unwrap_or(0) / MIB;
    let figures = [Some(middle), Some(longest), Some(log as f64), None, None, None, None];
    Ok(Line {
        id: RECOVERY.to_owned(),
        title: String::from("recovery after kill -9"),
        figures: figures.to_vec(),
        goals: vec![Goal::at_most("longest", longest, RECOVERY_S_MAX)],
    })
}

fn space_line(bytes: u64, seconds: f64) -> Line {
    let tib = bytes as f64 / TIB as f64;
    let speed = tib / seconds.max(1e-3);
    Line {
        id: SPACE.to_owned(),
        title: format!("space freed, {tib} TiB"),
        figures: vec![Some(seconds), None, None, Some(speed), None, None, None],
        goals: vec![Goal::at_least("TiB/s", speed, FREED_TIB_PER_S_MIN)],
    }
}

/// Measures writes per second with many volumes, and with one, in each round.
fn writes_with_volumes(options: &Options, programs: &Programs) -> Result<Vec<(f64, f64)>> {
    let one = with_volumes(options, programs, "volumes-1", 0)?;
    eprintln!("{VOLUMES}: making {VOLUME_COUNT} volumes");
    let many = with_volumes(options, programs, "volumes-many", VOLUME_COUNT - 1)?;
    let mut rounds = Vec::new();
    for round in 1..=options.rounds {
        let load = format!(
            "--rw randwrite --depth 32 --compressible 0 --seconds {} --seed {round}",
            options.seconds
        );
        let rate = |array: &Array| -> Result<f64> {
            Ok(Unit::of_array(programs, array, &array.url(1)).sample(&load)?.iops)
        };
        // The order alternates from round to round.
        let pair = if round % 2 == 0 {
            let alone = rate(&one)?;
            (rate(&many)?, alone)
        } else {
            (rate(&many)?, rate(&one)?)
        };
        eprintln!("round {round}: {VOLUMES} {:.0}/s, with one volume {:.0}/s", pair.0, pair.1);
        rounds.push(pair);
    }
    one.remove()?;
    many.remove()?;
    Ok(rounds)
}

/// Creates an array with a full volume, and this many more volumes that its host sees and that
/// contain data.
fn with_volumes(
    options: &Options,
    programs: &Programs,
    name: &'static str,
    more: usize,
) -> Result<Array> {
    let array = start(options, programs, name, VOLUMES_POOL_BYTES, QUIET)?;
    let url = array.create_volume("written", VOLUME_BYTES, 1, "")?;
    Unit::of_array(programs, &array, &url).fill("--compressible 0 --seed 1000")?;
    if more > 0 {
        let url = array.create_volume("other", 64 * MIB, 2, "")?;
        Unit::of_array(programs, &array, &url).fill("--compressible 0 --seed 1001")?;
    }
    for number in 1..more {
        array.verb(&format!("volume clone other other-{number}"))?;
        array.verb(&format!("connect other-{number} lab --lun {}", number + 2))?;
    }
    Ok(array)
}

fn volumes_line(rounds: &[(f64, f64)]) -> Result<Line> {
    let middle = |figure: fn(&(f64, f64)) -> f64| {
        middle_of(rounds.iter().map(figure).collect()).context("--rounds 0 measures nothing")
    };
    let of_neighbours = rounds.iter().filter_map(|(many, one)| ratio(*many, *one)).collect();
    let ratio = middle_of(of_neighbours).context("there was no measurement")?;
    let (many, one) = (middle(|round| round.0)?, middle(|round| round.1)?);
    Ok(Line {
        id: VOLUMES.to_owned(),
        title: format!("writes with {VOLUME_COUNT} volumes"),
        figures: vec![None, None, None, None, Some(many), Some(one), Some(ratio)],
        goals: vec![Goal::at_least("ratio", ratio, VOLUMES_RATIO_MIN)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_met(line: &Line) -> bool {
        assert_eq!(line.figures.len(), COLUMNS.len());
        line.goals.iter().all(|goal| goal.is_met)
    }

    #[test]
    fn the_longest_recovery_and_the_shortest_log_are_reported() {
        let of = |seconds, mib| Recovery { seconds, log_bytes: mib * MIB };
        let line = recovery_line(&[of(0.5, 400), of(0.9, 390), of(0.4, 420)]).unwrap();
        assert_eq!(line.figures[..3], [Some(0.5), Some(0.9), Some(390.0)]);
        assert!(is_met(&line));
        assert!(!is_met(&recovery_line(&[of(0.5, 400), of(1.1, 400), of(0.5, 400)]).unwrap()));
        assert!(recovery_line(&[]).is_err());
    }

    #[test]
    fn space_is_freed_at_a_rate_per_tebibyte() {
        let line = space_line(10 * TIB, 5.0);
        assert_eq!((line.title.as_str(), line.figures[3]), ("space freed, 10 TiB", Some(2.0)));
        assert!(is_met(&line) && !is_met(&space_line(TIB, 1.1)));
    }

    #[test]
    fn the_ratio_is_the_median_of_adjacent_pairs() {
        // The machine gets slower and slower.
        let line = volumes_line(&[(96.0, 100.0), (48.0, 50.0), (9.6, 10.0)]).unwrap();
        assert_eq!(line.figures[4..], [Some(48.0), Some(50.0), Some(0.96)]);
        assert!(is_met(&line));
        assert!(!is_met(&volumes_line(&[(94.0, 100.0)]).unwrap()));
        assert!(volumes_line(&[]).is_err());
    }
}
