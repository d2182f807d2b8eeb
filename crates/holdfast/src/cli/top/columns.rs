//! The columns, by the names that esxtop gives them (002, tables 2 and 3; 000, figure 22).

use Value::{Count, MbPerSecond, MeanMs, MeanMsFailed, PerSecond, PercentileUs};
use api::CommandCounters;

use super::rates::Line;
use super::sample::Kind;

/// A column: its name, what it shows, and how.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// The description of its value.
    pub what: &'static str,
    value: Value,
    /// Whether ports have it: the data of copies is not counted by port.
    of_ports: bool,
}

/// The source of a column's value.
#[derive(Clone, Copy, Debug)]
enum Value {
    /// The count since the start.
    Count(fn(&Line) -> u64),
    /// The count per second in the interval.
    PerSecond(fn(&Line) -> u64),
    /// MB per second in the interval.
    MbPerSecond(fn(&Line) -> u64),
    /// The mean latency in the interval of successful commands of a class, in milliseconds.
    MeanMs(&'static str),
    /// The same for failed ones.
    MeanMsFailed(&'static str),
    /// The latency that this percentage of the interval's successful commands of a class did not
    /// exceed, in microseconds.
    PercentileUs(&'static str, u8),
}

impl Column {
    /// Returns the value, for comparison.
    pub fn value(&self, line: &Line) -> f64 {
        let mean = |sum_us: u64, count: u64| match count {
            0 => 0.0,
            count => sum_us as f64 / count as f64 / 1000.0,
        };
        match self.value {
            Count(of) => of(line) as f64,
            PerSecond(of) => line.per_second(of(line)),
            MbPerSecond(of) => line.mb_per_second(of(line)),
            MeanMs(class) => {
                let CommandCounters { ok, ok_latency_us, .. } = line.recent.of(class);
                mean(ok_latency_us, ok)
            }
            MeanMsFailed(class) => {
                let CommandCounters { failed, failed_latency_us, .. } = line.recent.of(class);
                mean(failed_latency_us, failed)
            }
            PercentileUs(class, percent) => {
                line.recent.of(class).percentile_us(percent).unwrap_or_default() as f64
            }
        }
    }

    /// Returns the value as it is shown: counts as integers, others with two decimals, as in
    /// esxtop.
    pub fn text(&self, line: &Line) -> String {
        match self.value {
            Count(of) => of(line).to_string(),
            PercentileUs(..) => self.value(line).to_string(),
            _ => format!("{:.2}", self.value(line)),
        }
    }
}

const fn column(name: &'static str, what: &'static str, value: Value) -> Column {
    Column { name, what, value, of_ports: true }
}

/// Returns a column of volumes, and of hosts over all their volumes.
const fn copied(name: &'static str, what: &'static str, value: Value) -> Column {
    Column { of_ports: false, ..column(name, what, value) }
}

/// Returns the columns of a kind.
pub fn of_kind(kind: Kind) -> Vec<&'static Column> {
    COLUMNS.iter().filter(|column| column.of_ports || kind != Kind::Port).collect()
}

/// All of them, in the order in which they are shown, after the name.
pub const COLUMNS: &[Column] = &[
    column("CMDS/s", "commands", PerSecond(commands)),
    column("READS/s", "reads", PerSecond(|l| l.recent.of("read").ok)),
    column("WRITES/s", "writes", PerSecond(|l| l.recent.of("write").ok)),
    column("MBREAD/s", "MB read", MbPerSecond(|l| l.recent.of("read").bytes)),
    column("MBWRTN/s", "MB written", MbPerSecond(|l| l.recent.of("write").bytes)),
    column("LAT/rd", "ms of a read", MeanMs("read")),
    column("LAT/wr", "ms of a write", MeanMs("write")),
    column("P99US/rd", "us that 99 of 100 reads took at most", PercentileUs("read", 99)),
    column("P99US/wr", "us that 99 of 100 writes took at most", PercentileUs("write", 99)),
    copied("CLONE_RD", "copies that read it", Count(|l| l.all.copied_from.commands)),
    copied("CLONE_WR", "copies that wrote it", Count(|l| l.all.copied_to.commands)),
    column("CLONE_F", "failed copies", Count(|l| l.all.of("copy").failed)),
    copied("MBC_RD/s", "MB copied from it", MbPerSecond(|l| l.recent.copied_from.bytes)),
    copied("MBC_WR/s", "MB copied to it", MbPerSecond(|l| l.recent.copied_to.bytes)),
    column("ATS", "compares and writes", Count(|l| l.all.of("compare_and_write").ok)),
    column(
        "ATSF",
        "failed ones, including miscompares",
        Count(|l| l.all.of("compare_and_write").failed),
    ),
    column("ZERO", "fills with zeros", Count(|l| l.all.of("zero").ok)),
    column("ZERO_F", "failed ones", Count(|l| l.all.of("zero").failed)),
    column("MBZERO/s", "MB zeroed", MbPerSecond(|l| l.recent.of("zero").bytes)),
    column("DELETE", "unmaps", Count(|l| l.all.of("delete").ok)),
    column("DELETE_F", "failed ones", Count(|l| l.all.of("delete").failed)),
    column("MBDEL/s", "MB unmapped", MbPerSecond(|l| l.recent.of("delete").bytes)),
    column("CAVG/suc", "ms of a copy", MeanMs("copy")),
    column("CAVG/f", "ms of a failed one", MeanMsFailed("copy")),
    column("AAVG/suc", "ms of a compare and write", MeanMs("compare_and_write")),
    column("AAVG/f", "ms of a failed one", MeanMsFailed("compare_and_write")),
    column("ZAVG/suc", "ms of a fill", MeanMs("zero")),
    column("ZAVG/f", "ms of a failed one", MeanMsFailed("zero")),
    column("DELAVG/suc", "ms of an unmap", MeanMs("delete")),
    column("DELAVG/f", "ms of a failed one", MeanMsFailed("delete")),
    column("P50US/rd", "us that half of the reads took at most", PercentileUs("read", 50)),
    column("P50US/wr", "us that half of the writes took at most", PercentileUs("write", 50)),
];

/// Returns the number of commands of the interval, successful or not.
fn commands(line: &Line) -> u64 {
    line.recent.commands.values().map(|counted| counted.ok + counted.failed).sum()
}

#[cfg(test)]
pub(super) mod tests {
    use api::{Copied, LatencyBucket};

    use super::super::sample::Totals;
    use super::*;

    /// Returns a line with distinct values, over an interval of 2 s.
    pub(in crate::cli::top) fn line(name: &str) -> Line {
        let classes =
            ["read", "write", "copy", "compare_and_write", "zero", "delete", "other"].into_iter();
        let totals = |base: u64| {
            let commands = classes.clone().zip(1..).map(|(class, n)| {
                let counters = CommandCounters {
                    ok: 2 * (base + n),
                    failed: 4 * (base + n),
                    bytes: (6 * (base + n)) << 20,
                    ok_latency_us: 2 * (base + n) * n * 1000,
                    failed_latency_us: 4 * (base + n) * (n + 20) * 1000,
                    largest_bytes: 0,
                    latencies: vec![
                        LatencyBucket { up_to_us: Some(10 * n), count: base + n },
                        LatencyBucket { up_to_us: Some(1000 * n), count: base + n },
                    ],
                };
                (class.to_owned(), counters)
            });
            let copied = |n: u64| Copied { commands: base + n, bytes: (base + n) << 20 };
            Totals { commands: commands.collect(), copied_from: copied(50), copied_to: copied(60) }
        };
        let name = name.to_owned();
        Line { kind: Kind::Volume, name, seconds: 2.0, all: totals(100), recent: totals(0) }
    }

    #[test]
    fn each_column_shows_what_its_name_says() {
        let line = line("v");
        // Classes in their order: read 1, write 2, copy 3, ATS 4, zero 5, delete 6, other 7.
        let expected = [
            ("CMDS/s", "84.00"),
            ("READS/s", "1.00"),
            ("WRITES/s", "2.00"),
            ("MBREAD/s", "3.00"),
            ("MBWRTN/s", "6.00"),
            ("LAT/rd", "1.00"),
            ("LAT/wr", "2.00"),
            ("P99US/rd", "1000"),
            ("P99US/wr", "2000"),
            ("CLONE_RD", "150"),
            ("CLONE_WR", "160"),
            ("CLONE_F", "412"),
            ("MBC_RD/s", "25.00"),
            ("MBC_WR/s", "30.00"),
            ("ATS", "208"),
            ("ATSF", "416"),
            ("ZERO", "210"),
            ("ZERO_F", "420"),
            ("MBZERO/s", "15.00"),
            ("DELETE", "212"),
            ("DELETE_F", "424"),
            ("MBDEL/s", "18.00"),
            ("CAVG/suc", "3.00"),
            ("CAVG/f", "23.00"),
            ("AAVG/suc", "4.00"),
            ("AAVG/f", "24.00"),
            ("ZAVG/suc", "5.00"),
            ("ZAVG/f", "25.00"),
            ("DELAVG/suc", "6.00"),
            ("DELAVG/f", "26.00"),
            ("P50US/rd", "10"),
            ("P50US/wr", "20"),
        ];
        let shown: Vec<(&str, String)> =
            COLUMNS.iter().map(|column| (column.name, column.text(&line))).collect();
        let expected: Vec<(&str, String)> =
            expected.into_iter().map(|(name, text)| (name, text.to_owned())).collect();
        assert_eq!(shown, expected);
        assert_eq!(of_kind(Kind::Port).len(), COLUMNS.len() - 4);
        let idle = super::super::rates::gone(Kind::Volume, "v");
        assert!(COLUMNS.iter().all(|column| column.value(&idle) == 0.0));
    }
}
