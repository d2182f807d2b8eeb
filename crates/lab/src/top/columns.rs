//! The columns, with the names that esxtop gives them (002, tables 2 and 3; 000, figure 22).

use Value::{Count, MbPerSecond, MeanMs, PerSecond};

use super::rates::Line;
use crate::host::{Class, Tally};

/// A column: its name, what it shows, and how.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub what: &'static str,
    value: Value,
}

/// The source of a column's value.
#[derive(Clone, Copy, Debug)]
enum Value {
    /// The total so far.
    Count(fn(&Line) -> u64),
    /// The number per second, in the interval.
    PerSecond(fn(&Line) -> u64),
    /// MB per second, in the interval.
    MbPerSecond(fn(&Line) -> u64),
    /// The mean of the interval, in milliseconds.
    MeanMs(fn(&Line) -> Tally),
}

impl Column {
    /// Returns the value, for comparison.
    pub fn value(&self, line: &Line) -> f64 {
        match self.value {
            Value::Count(of) => of(line) as f64,
            Value::PerSecond(of) => line.per_second(of(line)),
            Value::MbPerSecond(of) => line.mb_per_second(of(line)),
            Value::MeanMs(of) => of(line).mean_ms(),
        }
    }

    /// Formats the value: counts as integers, everything else with two decimals, as esxtop does.
    pub fn text(&self, line: &Line) -> String {
        match self.value {
            Value::Count(of) => of(line).to_string(),
            _ => format!("{:.2}", self.value(line)),
        }
    }
}

const fn column(name: &'static str, what: &'static str, value: Value) -> Column {
    Column { name, what, value }
}

/// All of them, in the order in which they are shown, after host and device.
pub const COLUMNS: &[Column] = &[
    column("CLONE_RD", "copies with this device as source", Count(|l| l.all.clone_read.count)),
    column("CLONE_WR", "copies with it as destination", Count(|l| l.all.clone_written.count)),
    column("CLONE_F", "failed copies", Count(|l| l.all.of(Class::Clone).failed.count)),
    column("MBC_RD/s", "MB copied from it", MbPerSecond(|l| l.recent.clone_read.bytes)),
    column("MBC_WR/s", "MB copied to it", MbPerSecond(|l| l.recent.clone_written.bytes)),
    column("ATS", "compares and writes", Count(|l| l.all.of(Class::Ats).good.count)),
    column("ATSF", "failed ones, miscompares too", Count(|l| l.all.of(Class::Ats).failed.count)),
    column("ZERO", "fills with zeros", Count(|l| l.all.of(Class::Zero).good.count)),
    column("ZERO_F", "failed ones", Count(|l| l.all.of(Class::Zero).failed.count)),
    column("MBZERO/s", "MB zeroed", MbPerSecond(|l| l.recent.of(Class::Zero).good.bytes)),
    column("DELETE", "unmaps", Count(|l| l.all.of(Class::Delete).good.count)),
    column("DELETE_F", "failed ones", Count(|l| l.all.of(Class::Delete).failed.count)),
    column("MBDEL/s", "MB unmapped", MbPerSecond(|l| l.recent.of(Class::Delete).good.bytes)),
    column("CAVG/suc", "ms of a copy", MeanMs(|l| l.recent.of(Class::Clone).good)),
    column("CAVG/f", "ms of a failed one", MeanMs(|l| l.recent.of(Class::Clone).failed)),
    column("AAVG/suc", "ms of a compare and write", MeanMs(|l| l.recent.of(Class::Ats).good)),
    column("AAVG/f", "ms of a failed one", MeanMs(|l| l.recent.of(Class::Ats).failed)),
    column("ZAVG/suc", "ms of a fill", MeanMs(|l| l.recent.of(Class::Zero).good)),
    column("ZAVG/f", "ms of a failed one", MeanMs(|l| l.recent.of(Class::Zero).failed)),
    column("DELAVG/suc", "ms of an unmap", MeanMs(|l| l.recent.of(Class::Delete).good)),
    column("DELAVG/f", "ms of a failed one", MeanMs(|l| l.recent.of(Class::Delete).failed)),
    column("READS/s", "reads", PerSecond(|l| l.recent.of(Class::Read).good.count)),
    column("WRITES/s", "writes", PerSecond(|l| l.recent.of(Class::Write).good.count)),
    column("MBREAD/s", "MB read", MbPerSecond(|l| l.recent.of(Class::Read).good.bytes)),
    column("MBWRTN/s", "MB written", MbPerSecond(|l| l.recent.of(Class::Write).good.bytes)),
    column("LAT/rd", "ms of a read", MeanMs(|l| l.recent.of(Class::Read).good)),
    column("LAT/wr", "ms of a write", MeanMs(|l| l.recent.of(Class::Write).good)),
    column("CONS/s", "reservation conflicts", PerSecond(|l| l.recent.conflicts)),
];

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::host::{Ended, Totals};

    /// Returns a line in which everything differs, over an interval of 2 s.
    pub(in crate::top) fn line() -> Line {
        let tally =
            |n: u64| Tally { count: 2 * n, bytes: (4 * n) << 20, latency_us: 2 * n * n * 1000 };
        let totals = |base: u64| {
            let classes = Class::ALL.iter().zip(1..).map(|(class, n)| {
                (*class, Ended { good: tally(base + n), failed: tally(base + 20 + n) })
            });
            Totals {
                classes: classes.collect(),
                clone_read: tally(base + 50),
                clone_written: tally(base + 60),
                conflicts: base + 70,
                miscompares: base + 80,
                retries: base + 90,
            }
        };
        Line {
            host: "esx-1".into(),
            device: "naa.6".into(),
            lun: 1,
            seconds: 2.0,
            all: totals(100),
            recent: totals(0),
        }
    }

    #[test]
    fn each_column_shows_its_counter() {
        let line = line();
        let shown: Vec<(&str, String)> =
            COLUMNS.iter().map(|column| (column.name, column.text(&line))).collect();
        // In the order of `Class::ALL`: read 1, write 2, clone 3, ATS 4, zero 5, delete 6.
        let expected = [
            ("CLONE_RD", "300"),
            ("CLONE_WR", "320"),
            ("CLONE_F", "246"),
            ("MBC_RD/s", "100.00"),
            ("MBC_WR/s", "120.00"),
            ("ATS", "208"),
            ("ATSF", "248"),
            ("ZERO", "210"),
            ("ZERO_F", "250"),
            ("MBZERO/s", "10.00"),
            ("DELETE", "212"),
            ("DELETE_F", "252"),
            ("MBDEL/s", "12.00"),
            ("CAVG/suc", "3.00"),
            ("CAVG/f", "23.00"),
            ("AAVG/suc", "4.00"),
            ("AAVG/f", "24.00"),
            ("ZAVG/suc", "5.00"),
            ("ZAVG/f", "25.00"),
            ("DELAVG/suc", "6.00"),
            ("DELAVG/f", "26.00"),
            ("READS/s", "1.00"),
            ("WRITES/s", "2.00"),
            ("MBREAD/s", "2.00"),
            ("MBWRTN/s", "4.00"),
            ("LAT/rd", "1.00"),
            ("LAT/wr", "2.00"),
            ("CONS/s", "35.00"),
        ];
        let expected: Vec<(&str, String)> =
            expected.into_iter().map(|(name, text)| (name, text.to_owned())).collect();
        assert_eq!(shown, expected);
    }
}
