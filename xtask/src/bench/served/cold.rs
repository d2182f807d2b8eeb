//! `cargo xtask bench --only cold`: reads that the device must serve, with metadata in memory and
//! without, compared with tgt and the raw device on the pool's own file.
//!
//! The array is restarted over a pool of unique data, so that none of it is in memory. With little
//! memory its metadata does not fit, with much all of it does. tgt (aio, with O_DIRECT) and fio
//! read the pool's file, where the data is stored: all of them read the same blocks of the device,
//! in turns.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::table::{Column, Goal, Line, Table, column};
use super::{QUIET, Unit, ratio, start, write_config};
use crate::bench::array::Array;
use crate::bench::options::Options;
use crate::bench::process::{Programs, words};
use crate::bench::targets::{self, Mode, Target};
use crate::bench::{Sample, median, middle_of, number_of, raw};

/// The least memory that can be configured.
const LITTLE_MIB: u64 = 64;

/// A seed that no round uses.
const SETTLE_SEED: u64 = 1 << 20;

pub const COLUMNS: &[Column] = &[
    column("/s", 0),
    column("MB/s", 0),
    column("p99, us", 0),
    column("CPU", 1),
    column("device reads / read", 2),
    column("device KiB / read", 1),
    column("metadata reads / read", 2),
    column("tgt /s", 0),
    column("tgt CPU", 1),
    column("rate / tgt", 2),
    column("raw /s", 0),
    column("rate / raw", 2),
];

/// A row.
#[derive(Clone, Copy, Debug)]
struct Row {
    id: &'static str,
    title: &'static str,
    /// How compressible the data is, in percent.
    compressible_percent: u32,
    /// Whether metadata is in memory.
    is_warm: bool,
    /// Whether it reads sequentially, 256 KiB at a time.
    is_sequential: bool,
    goals: fn(&Figures) -> Vec<Goal>,
}

impl Row {
    /// Returns how much of the pool's file, from its beginning, contains this much data: the rest
    /// was never written, and is read without the device.
    fn stored_bytes(&self, data_bytes: u64) -> u64 {
        let mib = (data_bytes >> 20) * u64::from(100 - self.compressible_percent) / 100;
        mib << 20
    }
}

const ROWS: &[Row] = &[
    Row {
        id: "cold-metadata",
        title: "4 KiB random, metadata from the device",
        compressible_percent: 0,
        is_warm: false,
        is_sequential: false,
        goals: |figures| vec![Goal::at_least("/s", figures.own.iops, 40e3)],
    },
    Row {
        id: "cold-data",
        title: "4 KiB random, data from the device",
        compressible_percent: 0,
        is_warm: true,
        is_sequential: false,
        goals: of_data,
    },
    Row {
        id: "cold-sequential",
        title: "256 KiB sequential, data from the device",
        compressible_percent: 0,
        is_warm: true,
        is_sequential: true,
        goals: |figures| vec![Goal::at_least("to raw", figures.to_raw(), 0.95)],
    },
    Row {
        id: "cold-2x-metadata",
        title: "4 KiB random, 2x compressible, metadata from the device",
        compressible_percent: 50,
        is_warm: false,
        is_sequential: false,
        goals: |figures| vec![Goal::at_least("/s", figures.own.iops, 40e3)],
    },
    Row {
        id: "cold-2x-data",
        title: "4 KiB random, 2x compressible, data from the device",
        compressible_percent: 50,
        is_warm: true,
        is_sequential: false,
        goals: of_data,
    },
];

fn of_data(figures: &Figures) -> Vec<Goal> {
    let Sample { iops, cpu_s_per_million, .. } = figures.own;
    vec![Goal::at_least("/s", iops, 60e3), Goal::at_most("CPU", cpu_s_per_million, 14.0)]
}

/// Returns the names of all rows.
pub fn row_ids() -> Vec<String> {
    ROWS.iter().map(|row| row.id.to_owned()).collect()
}

/// Measures the rows that the options request.
pub fn run(options: &Options, programs: &Programs) -> Result<Table> {
    let mut lines = Vec::new();
    for percent in [0, 50] {
        let of_pool = |row: &&Row| row.compressible_percent == percent && options.wants(row.id);
        let rows: Vec<&Row> = ROWS.iter().filter(of_pool).collect();
        if rows.is_empty() {
            continue;
        }
        let pool = fill(options, programs, percent)?;
        let bench = Bench { options, programs, pool };
        for row in rows {
            let figures = bench.measure(row)?;
            lines.push(figures.line(row));
        }
        std::fs::remove_dir_all(&bench.pool).context("removing a pool")?;
    }
    Ok(Table { title: "Reads from the device", text: text(options), columns: COLUMNS, lines })
}

/// Creates a pool with a full volume, which no process serves.
fn fill(options: &Options, programs: &Programs, compressible_percent: u32) -> Result<PathBuf> {
    let bytes = options.cold_size;
    eprintln!("cold: filling {} MiB, {compressible_percent}% compressible", bytes >> 20);
    // A quarter more: for metadata, and so that nothing must be reclaimed.
    let capacity = (bytes / 4 * 5).max(1 << 30) >> 20 << 20;
    let array = start(options, programs, "cold", capacity, QUIET)?;
    let url = array.create_volume("cold", bytes, 1, "")?;
    let unit = Unit::of_array(programs, &array, &url);
    unit.fill(&format!("--compressible {compressible_percent}"))?;
    array.stop()
}

/// Returns the memory in MiB in which all metadata of this much data fits, and little of the data.
fn much_mib(data_bytes: u64) -> u64 {
    ((data_bytes / 16) >> 20).max(4 * LITTLE_MIB)
}

/// A pool that no process serves.
struct Bench<'a> {
    options: &'a Options,
    programs: &'a Programs,
    pool: PathBuf,
}

impl Bench<'_> {
    fn measure(&self, row: &Row) -> Result<Figures> {
        let Self { options, programs, pool } = self;
        let file = pool.join("pool.data");
        let mib = if row.is_warm { much_mib(options.cold_size) } else { LITTLE_MIB };
        let config = write_config(options, "cold", &format!("memory = \"{mib}M\"\n{QUIET}"))?;
        let flags = words(&format!("--config {}", config.display()));
        let log = options.dir.join(format!("{}.log", row.id));
        let array = Array::serve(programs, pool.clone(), &flags, &log)?;
        let url = array.url(1);
        let own = Unit::of_array(programs, &array, &url);
        // Until memory has its later content, too; much of it, if there is space.
        let settle = if row.is_warm { 100_000 } else { 20_000 };
        // Other blocks than those that are measured, which must come from the device.
        let settle = format!("--commands {settle} --seconds 60 --seed {SETTLE_SEED}");
        own.load(&format!("--rw randread --depth 64 --ramp 0 {settle}"))?;
        let peer = targets::serve_by_tgt(&options.dir, Mode::Direct, &file)?;
        let mut rounds = Vec::new();
        for round in 1..=options.rounds {
            let figures = self.round(row, round, &array, own, &peer, &file)?;
            eprintln!("round {round}: {:<16} {}", row.id, figures.describe());
            rounds.push(figures);
        }
        drop(peer);
        array.stop()?;
        middle(&rounds).context("--rounds 0 measures nothing")
    }

    /// Measures the array, tgt and the raw device, one after the other.
    fn round(
        &self,
        row: &Row,
        round: usize,
        array: &Array,
        own: Unit<'_>,
        peer: &Target,
        file: &Path,
    ) -> Result<Figures> {
        let (seconds, bytes) = (self.options.seconds, self.options.cold_size);
        let load = if row.is_sequential {
            // At most once over the volume.
            let commands = bytes / (256 << 10);
            format!("--rw read --block 256k --depth 8 --ramp 0 --commands {commands}")
        } else {
            format!("--rw randread --depth 32 --ramp 0 --seed {round}")
        };
        let load = format!("{load} --seconds {seconds}");
        let before = Counted::of(array)?;
        let report = own.load(&load)?;
        let counted = Counted::of(array)?.since(&before);
        let commands = number_of(&report, "commands")?;
        let sample = crate::bench::sample(&report).context("no numbers")?;
        let fio = if row.is_sequential {
            "--rw=read --bs=256k --iodepth=8"
        } else {
            "--rw=randread --bs=4k --iodepth=32"
        };
        let stored = row.stored_bytes(bytes);
        let timed = format!("--readonly --time_based --runtime={seconds} --size={stored}");
        Ok(Figures {
            own: sample,
            device_reads: counted.reads as f64 / commands,
            device_kib: counted.bytes as f64 / 1024.0 / commands,
            metadata_reads: counted.misses as f64 / commands,
            peer: Unit::of_peer(self.programs, peer).sample(&format!("{load} --span {stored}"))?,
            raw_per_s: raw::run(file, &format!("{fio} {timed}"))?.0,
        })
    }
}

/// Counters of an array and of the kernel since its start.
#[derive(Clone, Copy, Debug)]
struct Counted {
    /// Reads that hosts' commands waited for.
    reads: u64,
    /// Bytes read from the device.
    bytes: u64,
    /// Pages and nodes of metadata that were not in memory.
    misses: u64,
}

impl Counted {
    fn of(array: &Array) -> Result<Self> {
        Ok(Self {
            reads: array.counter("/v1/devices", &["devices", "reads", "ok"])?,
            bytes: array.read_bytes()?,
            misses: array.counter("/v1/counters", &["memory", "misses"])?,
        })
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            reads: self.reads - before.reads,
            bytes: self.bytes - before.bytes,
            misses: self.misses - before.misses,
        }
    }
}

/// The results of a round, or the medians of all rounds.
#[derive(Clone, Debug)]
struct Figures {
    own: Sample,
    /// Per read of the host.
    device_reads: f64,
    device_kib: f64,
    metadata_reads: f64,
    peer: Sample,
    raw_per_s: f64,
}

impl Figures {
    fn to_raw(&self) -> f64 {
        ratio(self.own.iops, self.raw_per_s).unwrap_or(f64::NAN)
    }

    fn describe(&self) -> String {
        let Self { own, peer, raw_per_s, device_reads, .. } = self;
        format!(
            "{:>8.0}/s, CPU {:.1}, {device_reads:.2} device reads / read; tgt {:.0}/s, raw \
             {raw_per_s:.0}/s",
            own.iops, own.cpu_s_per_million, peer.iops
        )
    }

    fn line(&self, row: &Row) -> Line {
        let Self { own, peer, .. } = self;
        let figures = vec![
            Some(own.iops),
            Some(own.mb_per_s),
            Some(own.p99_us),
            Some(own.cpu_s_per_million),
            Some(self.device_reads),
            Some(self.device_kib),
            Some(self.metadata_reads),
            Some(peer.iops),
            Some(peer.cpu_s_per_million),
            ratio(own.iops, peer.iops),
            Some(self.raw_per_s),
            ratio(own.iops, self.raw_per_s),
        ];
        let goals = (row.goals)(self);
        Line { id: row.id.to_owned(), title: row.title.to_owned(), figures, goals }
    }
}

/// Returns the median of each figure; `None` without rounds.
fn middle(rounds: &[Figures]) -> Option<Figures> {
    let of = |figure: fn(&Figures) -> f64| middle_of(rounds.iter().map(figure).collect());
    Some(Figures {
        own: median(rounds.iter().map(|round| round.own.clone()).collect())?,
        device_reads: of(|round| round.device_reads)?,
        device_kib: of(|round| round.device_kib)?,
        metadata_reads: of(|round| round.metadata_reads)?,
        peer: median(rounds.iter().map(|round| round.peer.clone()).collect())?,
        raw_per_s: of(|round| round.raw_per_s)?,
    })
}

fn text(options: &Options) -> String {
    format!(
        "Reads of {} MiB of unique data, 4 KiB at depth 32 or 256 KiB at depth 8, after a start. \
         Metadata from the device: {LITTLE_MIB} MiB of memory; otherwise {} MiB, which holds \
         all metadata and little of the data. Device reads are for each host read. tgt (aio, \
         O_DIRECT) and fio (raw) read the part of the pool's own file that is written. CPU is in \
         seconds for a million reads.",
        options.cold_size >> 20,
        much_mib(options.cold_size)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(iops: f64, cpu_s_per_million: f64) -> Figures {
        let own = Sample { iops, mb_per_s: iops / 244.0, p99_us: 900.0, cpu_s_per_million };
        Figures {
            peer: own.clone(),
            own,
            device_reads: 1.0,
            device_kib: 4.0,
            metadata_reads: 0.0,
            raw_per_s: 100e3,
        }
    }

    fn missed(id: &str, figures: &Figures) -> Vec<&'static str> {
        let row = ROWS.iter().find(|row| row.id == id).unwrap();
        let goals = figures.line(row).goals;
        goals.iter().filter(|goal| !goal.is_met).map(|goal| goal.of).collect()
    }

    #[test]
    fn goals_are_those_of_the_row() {
        let none: [&str; 0] = [];
        assert_eq!(missed("cold-metadata", &figures(40e3, 99.0)), none);
        assert_eq!(missed("cold-metadata", &figures(39e3, 1.0)), ["/s"]);
        assert_eq!(missed("cold-data", &figures(60e3, 14.0)), none);
        assert_eq!(missed("cold-2x-data", &figures(59e3, 14.1)), ["/s", "CPU"]);
        assert_eq!(missed("cold-sequential", &figures(95e3, 99.0)), none);
        assert_eq!(missed("cold-sequential", &figures(94e3, 1.0)), ["to raw"]);
        assert_eq!(figures(1.0, 1.0).line(&ROWS[0]).figures.len(), COLUMNS.len());
    }

    #[test]
    fn rates_are_those_of_the_middle_round() {
        let rounds = [figures(10.0, 3.0), figures(30.0, 1.0), figures(20.0, 2.0)];
        let middle = middle(&rounds).unwrap();
        assert_eq!((middle.own.iops, middle.own.cpu_s_per_million), (20.0, 2.0));
        assert!(super::middle(&[]).is_none());
    }

    #[test]
    fn peers_read_only_the_written_part() {
        let stored = |at: usize| ROWS[at].stored_bytes(8 << 30);
        assert_eq!((stored(0), stored(4)), (8 << 30, 4 << 30));
    }

    #[test]
    fn large_memory_holds_metadata_but_not_data() {
        assert_eq!(much_mib(8 << 30), 512);
        assert_eq!(much_mib(1 << 30), 256);
    }
}
