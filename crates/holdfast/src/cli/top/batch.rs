//! Batch mode: lines of CSV.
//!
//! As in esxtop, each interval is one line, and each column has the array, the object and the value
//! in its name (the form of Windows' performance logs, "PDH-CSV"), so the same tools read both. The
//! columns are those of the first sample, so volumes created later have none; with `--rows` there
//! is instead a line for each object, including later ones.

use std::io::Write;
use std::time::{Duration, Instant};

use super::Look;
use super::columns::{self, COLUMNS};
use super::rates::{Line, array_rates, gone, rates};
use super::sample::{Kind, Sample};
use crate::cli::failure::Failure;
use crate::cli::flat;
use crate::cli::output::time;

/// The output for each interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    /// One line.
    Wide,
    /// A line for each object.
    Each,
}

/// The name of the first column of a performance log: its form, and the time zone.
const FIRST: &str = "(PDH-CSV 4.0) (UTC)(0)";
/// The columns of the pool.
const POOL: [&str; 4] = ["Data reduction", "Total reduction", "Used MB", "Used %"];

/// Prints a header and the lines of `count` intervals; without a count, runs until it is stopped.
pub fn run(
    looker: &mut impl Look,
    interval: Duration,
    count: Option<u64>,
    lines: Lines,
    out: impl Write,
) -> Result<(), Failure> {
    let mut table = flat::writer(out);
    let mut before = looker.look()?;
    let things: Vec<(Kind, String)> = before.totals.keys().cloned().collect();
    let header = match lines {
        Lines::Wide => wide_header(&before, &things),
        Lines::Each => each_header(),
    };
    if is_closed(table.write_record(header).and_then(|()| Ok(table.flush()?)))? {
        return Ok(());
    }
    let mut left = count.unwrap_or(u64::MAX);
    let mut due = Instant::now();
    while left > 0 {
        due += interval;
        if !looker.wait(due) {
            return Ok(());
        }
        let after = looker.look()?;
        let records = match lines {
            Lines::Wide => vec![wide(&before, &after, &things)],
            Lines::Each => each(&before, &after),
        };
        for record in records {
            if is_closed(table.write_record(record))? {
                return Ok(());
            }
        }
        // Each interval is written when it is over, for programs that follow the file.
        if is_closed(table.flush().map_err(csv::Error::from))? {
            return Ok(());
        }
        (before, left) = (after, left - 1);
    }
    Ok(())
}

fn wide_header(sample: &Sample, things: &[(Kind, String)]) -> Vec<String> {
    let array = &sample.array;
    let mut header = vec![FIRST.to_owned()];
    header.extend(POOL.map(|name| format!("\\\\{array}\\Pool\\{name}")));
    header.extend(COLUMNS.iter().map(|column| format!("\\\\{array}\\Array\\{}", column.name)));
    for (kind, name) in things {
        let of_thing = columns::of_kind(*kind).into_iter();
        header
            .extend(of_thing.map(|c| format!("\\\\{array}\\{}({name})\\{}", kind.name(), c.name)));
    }
    header
}

fn wide(before: &Sample, after: &Sample, things: &[(Kind, String)]) -> Vec<String> {
    let mut record = vec![log_time(after.wall_ms)];
    record.extend(pool(after));
    record.extend(values(&array_rates(before, after)));
    let lines = rates(before, after);
    for (kind, name) in things {
        let found = lines.iter().find(|line| (line.kind, &line.name) == (*kind, name));
        let of_it = found.cloned().unwrap_or_else(|| gone(*kind, name));
        record.extend(columns::of_kind(*kind).into_iter().map(|column| column.text(&of_it)));
    }
    record
}

fn each_header() -> Vec<String> {
    let first = ["TIME", "KIND", "NAME"].into_iter();
    first.chain(COLUMNS.iter().map(|column| column.name)).map(str::to_owned).collect()
}

fn each(before: &Sample, after: &Sample) -> Vec<Vec<String>> {
    let at = time(after.wall_ms).replace(" UTC", "Z").replace(' ', "T");
    let array = array_rates(before, after);
    let record = |kind: &str, line: &Line| {
        let mut record = vec![at.clone(), kind.to_owned(), line.name.clone()];
        record.extend(values(line));
        record
    };
    let things = rates(before, after);
    let things = things.iter().map(|line| record(line.kind.name(), line));
    std::iter::once(record("Array", &array)).chain(things).collect()
}

/// Returns the values of all columns; empty if the object does not have one.
fn values(line: &Line) -> Vec<String> {
    let has = columns::of_kind(line.kind);
    let text = |column: &columns::Column| match has.iter().any(|own| own.name == column.name) {
        true => column.text(line),
        false => String::new(),
    };
    COLUMNS.iter().map(text).collect()
}

fn pool(sample: &Sample) -> [String; POOL.len()] {
    let pool = &sample.pool;
    let ratio = |ratio: Option<f64>| ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
    let percent = pool.used_bytes as f64 * 100.0 / pool.capacity_bytes.max(1) as f64;
    [
        ratio(pool.data_reduction),
        ratio(pool.total_reduction),
        (pool.used_bytes >> 20).to_string(),
        format!("{percent:.2}"),
    ]
}

/// Returns a time in the form of performance logs: `11/21/2026 22:05:09`.
fn log_time(ms: u64) -> String {
    let text = time(ms);
    let mut parts = text.split(' ');
    let (date, clock) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let mut date = date.split('-');
    let mut next = || date.next().unwrap_or_default();
    let (year, month, day) = (next(), next(), next());
    format!("{month}/{day}/{year} {clock}")
}

/// Returns whether the reader has closed the pipe, as with `| head`: not a failure.
fn is_closed(result: csv::Result<()>) -> Result<bool, Failure> {
    let Err(error) = result else { return Ok(false) };
    match error.kind() {
        csv::ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::BrokenPipe => Ok(true),
        _ => Err(Failure::Machine(format!("can't write the output: {error}"))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::sample::tests::{path, sample};
    use super::*;

    /// A source of prepared samples.
    pub(in crate::cli::top) struct Made(pub Vec<Sample>);

    impl Look for Made {
        fn look(&mut self) -> Result<Sample, Failure> {
            match self.0.is_empty() {
                true => Err(Failure::Unreachable("gone".into())),
                false => Ok(self.0.remove(0)),
            }
        }

        fn is_over(&self) -> bool {
            false
        }
    }

    fn printed(samples: Vec<Sample>, count: u64, lines: Lines) -> Vec<csv::StringRecord> {
        let mut out = Vec::new();
        let mut looker = Made(samples);
        run(&mut looker, Duration::ZERO, Some(count), lines, &mut out).unwrap();
        assert!(out.ends_with(b"\r\n"));
        let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&out[..]);
        reader.records().map(|record| record.unwrap()).collect()
    }

    fn three() -> Vec<Sample> {
        let paths = |count| vec![path("iqn.a", "v, \"1\"", count)];
        vec![
            sample(1, 0, paths(10)),
            sample(1, 1, paths(15)),
            sample(1, 2, vec![path("iqn.a", "new", 3)]),
        ]
    }

    #[test]
    fn a_header_and_a_line_each_interval() {
        let lines = printed(three(), 2, Lines::Wide);
        assert_eq!(lines.len(), 3);
        let value = |line: usize, name: &str| {
            let column = lines[0].iter().position(|head| head == name);
            lines[line][column.unwrap_or_else(|| panic!("no {name}: {:?}", lines[0]))].to_owned()
        };
        assert_eq!(&lines[0][0], FIRST);
        assert_eq!(&lines[1][0], "01/01/2026 00:00:01");
        assert_eq!(value(1, "\\\\attic\\Volume(v, \"1\")\\WRITES/s"), "5.00");
        assert_eq!(value(1, "\\\\attic\\Host(esx)\\CLONE_WR"), "15");
        assert_eq!(value(1, "\\\\attic\\Port(192.0.2.1:3260)\\LAT/wr"), "2.00");
        assert_eq!(value(1, "\\\\attic\\Pool\\Data reduction"), "3.12");
        assert_eq!(value(1, "\\\\attic\\Pool\\Used %"), "25.00");
        assert_eq!(value(1, "\\\\attic\\Array\\MBWRTN/s"), "5.00");
        // An object that is gone keeps its columns, and is idle.
        assert_eq!(value(2, "\\\\attic\\Volume(v, \"1\")\\WRITES/s"), "0.00");
    }

    #[test]
    fn rows_include_all_current_objects() {
        let lines = printed(three(), 2, Lines::Each);
        let names: Vec<_> =
            lines.iter().map(|line| (line[1].to_owned(), line[2].to_owned())).collect();
        let of = |kind: &str, name: &str| (kind.to_owned(), name.to_owned());
        assert_eq!(names[1], of("Array", "attic"));
        assert!(names.contains(&of("Volume", "new")), "{names:?}");
        assert_eq!(&lines[1][0], "2026-01-01T00:00:01Z");
        assert!(lines.iter().all(|line| line.len() == 3 + COLUMNS.len()));
    }

    #[test]
    fn a_missing_reader_is_no_failure_but_a_full_disk_is() {
        let error = |kind: std::io::ErrorKind| Err(csv::Error::from(std::io::Error::from(kind)));
        assert!(is_closed(error(std::io::ErrorKind::BrokenPipe)).unwrap());
        assert!(is_closed(error(std::io::ErrorKind::StorageFull)).is_err());
    }
}
