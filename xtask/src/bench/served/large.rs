//! `cargo xtask bench --only large`: sequential writes of 32 KiB to 1 MiB, with reduction and
//! without, compared with durable tgt and with the raw device.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::table::{Column, Goal, Line, Table, column};
use super::{QUIET, Unit, cpu_s_per_gb, plan, ratio};
use crate::bench::array::{Array, Plan};
use crate::bench::options::Options;
use crate::bench::process::Programs;
use crate::bench::targets::{self, Mode, Target};
use crate::bench::{Sample, median, middle_of, raw};

const GIB: u64 = 1 << 30;
const POOL_BYTES: u64 = 10 * GIB;
/// The most bytes that one measurement writes: they fit the pool together with dead data that is
/// not free yet.
const WRITE_BYTES_MAX: u64 = 4 * GIB;
/// The file of tgt, and that of fio.
const PEER_BYTES: u64 = 2 * GIB;
/// The size of a volume whose end no measurement reaches.
const VOLUME_BYTES: u64 = 64 * GIB;
/// How long freeing the space of a measurement may take.
const FREEING_MAX: Duration = Duration::from_secs(60);

pub const COLUMNS: &[Column] = &[
    column("MB/s", 0),
    column("p99, us", 0),
    column("CPU", 2),
    column("tgt MB/s", 0),
    column("tgt CPU", 2),
    column("rate / tgt", 2),
    column("raw MB/s", 0),
    column("rate / raw", 2),
    column("raw, flushed, MB/s", 0),
    column("rate / raw, flushed", 2),
];

/// A row: a block size, reduced or not.
#[derive(Clone, Copy, Debug)]
struct Row {
    block: &'static str,
    block_bytes: u64,
    is_reduced: bool,
    /// The goal for the rate, in MB/s.
    rate_min: Option<f64>,
}

const fn row(block: &'static str, kib: u64, is_reduced: bool, rate_min: Option<f64>) -> Row {
    Row { block, block_bytes: kib << 10, is_reduced, rate_min }
}

const ROWS: &[Row] = &[
    row("32k", 32, true, Some(800.0)),
    row("256k", 256, true, Some(1150.0)),
    row("1M", 1024, true, None),
    row("32k", 32, false, None),
    row("256k", 256, false, None),
    row("1M", 1024, false, None),
];
/// The goal relative to the raw device's rate, without reduction.
const RAW_RATIO_MIN: f64 = 0.95;

impl Row {
    fn id(&self) -> String {
        let how = if self.is_reduced { "reduced" } else { "plain" };
        format!("large-{}-{how}", self.block.to_lowercase())
    }

    fn title(&self) -> String {
        let how = if self.is_reduced { "2x compressible" } else { "no reduction" };
        format!("{} KiB: {how}", self.block_bytes >> 10)
    }

    /// Returns the flags of its volume.
    fn flags(&self) -> &'static str {
        if self.is_reduced { "" } else { "--deduplication off --compression off" }
    }
}

/// Returns the names of all rows.
pub fn row_ids() -> Vec<String> {
    ROWS.iter().map(Row::id).collect()
}

/// Measures the rows that the options request.
pub fn run(options: &Options, programs: &Programs) -> Result<Table> {
    let rows: Vec<&Row> = ROWS.iter().filter(|row| options.wants(&row.id())).collect();
    let bench = Bench::start(options, programs)?;
    let mut rounds = vec![Vec::new(); rows.len()];
    for round in 1..=options.rounds {
        for (at, (row, rounds)) in rows.iter().zip(&mut rounds).enumerate() {
            // Data that no other measurement uses: earlier data may still be found as duplicates.
            let figures = bench.measure(row, round * ROWS.len() + at)?;
            eprintln!("round {round}: {:<18} {}", row.id(), figures.describe());
            rounds.push(figures);
        }
    }
    bench.remove()?;
    let line = |(row, rounds): (&&Row, &Vec<Figures>)| {
        let middle = middle(rounds).context("--rounds 0 measures nothing")?;
        Ok(middle.line(row))
    };
    let lines = rows.iter().zip(&rounds).map(line).collect::<Result<Vec<Line>>>()?;
    let text = "One session, depth 8, in order, unique data, acknowledged writes are durable: tgt \
                flushes each write, raw flushed (fio) each eighth, raw none. The files and the \
                pool were written before, like a device in use. CPU is the target's own, in \
                seconds for a GB.";
    let (title, text) = ("Large writes", text.to_owned());
    Ok(Table { title, text, columns: COLUMNS, lines })
}

/// The targets that are loaded in turns.
struct Bench<'a> {
    options: &'a Options,
    programs: &'a Programs,
    array: Array,
    peer: Target,
    raw: PathBuf,
}

impl<'a> Bench<'a> {
    fn start(options: &'a Options, programs: &'a Programs) -> Result<Self> {
        eprintln!("large: writing a pool and two files once");
        let plan = Plan { is_conditioned: true, ..plan(options, "large", POOL_BYTES, QUIET)? };
        let array = Array::start(programs, &options.dir, &plan)?;
        let peer = targets::start_tgt(&options.dir, Mode::Durable, PEER_BYTES)?;
        Unit::of_peer(programs, &peer).fill("")?;
        let raw = options.dir.join("raw.img");
        raw::run(&raw, &format!("--rw=write --bs=1M --iodepth=8 --size={PEER_BYTES}"))?;
        Ok(Self { options, programs, array, peer, raw })
    }

    fn remove(self) -> Result<()> {
        let Self { options, array, peer, .. } = self;
        array.remove()?;
        drop(peer);
        // The file of tgt, and that of fio.
        targets::clear(&options.dir)
    }

    fn measure(&self, row: &Row, seed: usize) -> Result<Figures> {
        let (seconds, block) = (self.options.seconds, row.block);
        let load = format!(
            "--rw write --block {block} --depth 8 --ramp 0 --compressible 50 --seed {seed} \
             --seconds {seconds}"
        );
        let fio = |flags: &str| {
            let fio = format!("--rw=write --bs={block} --iodepth=8 {flags}");
            let timed = format!("--time_based --runtime={seconds} --size={PEER_BYTES}");
            Ok::<f64, anyhow::Error>(raw::run(&self.raw, format!("{fio}{timed}").as_str())?.1)
        };
        Ok(Figures {
            own: self.own(row, &load)?,
            peer: Unit::of_peer(self.programs, &self.peer).sample(&load)?,
            raw: if row.is_reduced { None } else { Some([fio("")?, fio("--fdatasync=8 ")?]) },
        })
    }

    /// Writes a new volume, and waits until its space is free again.
    fn own(&self, row: &Row, load: &str) -> Result<Sample> {
        let array = &self.array;
        let before = array.pool()?.data_bytes;
        let url = array.create_volume("large", VOLUME_BYTES, 1, row.flags())?;
        let commands = WRITE_BYTES_MAX / row.block_bytes;
        let unit = Unit::of_array(self.programs, array, &url);
        let sample = unit.sample(&format!("{load} --commands {commands}"))?;
        array.verb("disconnect large lab")?;
        array.verb("volume destroy large --eradicate")?;
        let start = Instant::now();
        while array.pool()?.data_bytes > before {
            ensure!(start.elapsed() < FREEING_MAX, "the space of a volume was not freed");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(sample)
    }
}

/// The results of a round, or the medians of all rounds.
#[derive(Clone, Debug)]
struct Figures {
    own: Sample,
    peer: Sample,
    /// Million bytes per second of the raw device, without a flush and with. It writes the same
    /// data whether reduction is on or off, so it is measured together with one of the two rows.
    raw: Option<[f64; 2]>,
}

impl Figures {
    fn describe(&self) -> String {
        let Self { own, peer, raw } = self;
        let raw = raw.map_or(String::new(), |[raw, flushed]| {
            format!(", raw {raw:.0}, flushed {flushed:.0}")
        });
        format!("{:>6.0} MB/s; tgt {:.0}{raw}", own.mb_per_s, peer.mb_per_s)
    }

    fn line(&self, row: &Row) -> Line {
        let Self { own, peer, raw } = self;
        let rate = own.mb_per_s;
        let to_raw = |at: usize| raw.and_then(|raw| ratio(rate, raw[at]));
        let figures = vec![
            Some(rate),
            Some(own.p99_us),
            Some(cpu_s_per_gb(own)),
            Some(peer.mb_per_s),
            Some(cpu_s_per_gb(peer)),
            ratio(rate, peer.mb_per_s),
            raw.map(|raw| raw[0]),
            to_raw(0),
            raw.map(|raw| raw[1]),
            to_raw(1),
        ];
        let mut goals = Vec::new();
        goals.extend(row.rate_min.map(|least| Goal::at_least("MB/s", rate, least)));
        if !row.is_reduced {
            goals.push(Goal::at_least("to raw", to_raw(0).unwrap_or(f64::NAN), RAW_RATIO_MIN));
        }
        Line { id: row.id(), title: row.title(), figures, goals }
    }
}

/// Returns the median of each figure; `None` without rounds.
fn middle(rounds: &[Figures]) -> Option<Figures> {
    let of_raw = |at: usize| {
        middle_of(rounds.iter().filter_map(|round| round.raw.map(|raw| raw[at])).collect())
    };
    Some(Figures {
        own: median(rounds.iter().map(|round| round.own.clone()).collect())?,
        peer: median(rounds.iter().map(|round| round.peer.clone()).collect())?,
        raw: of_raw(0).zip(of_raw(1)).map(|(raw, flushed)| [raw, flushed]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(mb_per_s: f64) -> Figures {
        let own = Sample { iops: mb_per_s, mb_per_s, p99_us: 900.0, cpu_s_per_million: 100.0 };
        let peer = own.clone();
        Figures { own, peer, raw: Some([1000.0, 500.0]) }
    }

    fn missed(id: &str, mb_per_s: f64) -> usize {
        let row = ROWS.iter().find(|row| row.id() == id).unwrap();
        figures(mb_per_s).line(row).goals.iter().filter(|goal| !goal.is_met).count()
    }

    #[test]
    fn reduced_writes_have_an_absolute_goal_and_others_the_raw_rate() {
        assert_eq!(
            (missed("large-32k-reduced", 800.0), missed("large-32k-reduced", 799.0)),
            (0, 1)
        );
        assert_eq!(missed("large-256k-reduced", 1149.0), 1);
        assert_eq!(missed("large-1m-reduced", 1.0), 0);
        assert_eq!((missed("large-1m-plain", 950.0), missed("large-32k-plain", 949.0)), (0, 1));
        let line = figures(950.0).line(&ROWS[5]);
        assert_eq!(line.figures.len(), COLUMNS.len());
        assert_eq!((line.figures[7], line.figures[9]), (Some(0.95), Some(1.9)));
        let names: std::collections::HashSet<_> = row_ids().into_iter().collect();
        assert_eq!(names.len(), ROWS.len());
    }

    #[test]
    fn the_median_round_is_reported() {
        let rounds = [figures(1.0), figures(3.0), figures(2.0)];
        assert_eq!(middle(&rounds).unwrap().own.mb_per_s, 2.0);
        assert_eq!(middle(&rounds).unwrap().raw, Some([1000.0, 500.0]));
        let alone = Figures { raw: None, ..figures(1.0) };
        assert_eq!(alone.line(&ROWS[0]).figures[6..], [None; 4]);
        assert!(middle(&[alone]).unwrap().raw.is_none());
        assert!(middle(&[]).is_none());
    }
}
