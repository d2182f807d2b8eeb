//! `cargo xtask bench --only sessions`: the ordinary rows with the same number of commands in
//! flight over one, several and many sessions, with their ratios to one session.

use anyhow::Result;

use super::ratio;
use super::table::{Column, Goal, Line, Table, column};
use crate::bench::options::Options;
use crate::bench::process::Programs;
use crate::bench::rows::{ROWS, Row};
use crate::bench::{Measured, Sample, measure_rows, targets};

/// The part of the names of these rows before the number of sessions.
const MARK: &str = "-sessions-";
/// The most by which the CPU time per command may grow compared with one session.
const CPU_RATIO_MAX: f64 = 1.3;

pub const COLUMNS: &[Column] = &[
    column("/s", 0),
    column("p99, us", 0),
    column("CPU", 1),
    column("rate / one session", 2),
    column("CPU / one session", 2),
    column("tgt /s", 0),
    column("tgt CPU", 1),
    column("rate / tgt", 2),
];

fn is_here(row: &&'static Row) -> bool {
    row.id.contains(MARK)
}

/// Returns the names of all rows.
pub fn row_ids() -> Vec<String> {
    ROWS.iter().filter(is_here).map(|row| row.id.to_owned()).collect()
}

/// Measures the rows that the options request.
pub fn run(options: &Options, programs: &Programs) -> Result<Table> {
    let rows: Vec<&'static Row> =
        ROWS.iter().filter(is_here).filter(|row| options.wants(row.id)).collect();
    let (targets, measured) = measure_rows(options, programs, &rows)?;
    Ok(table(&targets, &measured))
}

/// Returns the table of these rows among others.
pub fn table(targets: &[String], rows: &[Measured]) -> Table {
    let at = |name: &str| targets.iter().position(|target| target == name);
    let own = at(targets::HOLDFAST);
    let peer = at("tgt durable");
    let of = |row: &Measured, at: Option<usize>| row.targets.get(at?)?.clone();
    let lines = rows.iter().filter(|row| row.row.id.contains(MARK)).filter_map(|row| {
        let one = rows.iter().find(|other| is_one_of(other.row, row.row));
        let one = one.and_then(|one| of(one, own));
        Some(line(row.row, &of(row, own)?, one.as_ref(), of(row, peer).as_ref()))
    });
    let text = "As many commands in flight over one session, over some and over many. CPU is the \
                target's own, in seconds for a million commands. tgt's writes are flushed each.";
    let (title, text) = ("Many sessions", text.to_owned());
    Table { title, text, columns: COLUMNS, lines: lines.collect() }
}

/// Returns whether a row is the other one with one session.
fn is_one_of(row: &Row, other: &Row) -> bool {
    let kind = other.id.split(MARK).next();
    row.id.split_once(MARK).is_some_and(|(what, count)| count == "1" && Some(what) == kind)
}

fn line(row: &Row, own: &Sample, one: Option<&Sample>, peer: Option<&Sample>) -> Line {
    let rate = one.and_then(|one| ratio(own.iops, one.iops));
    let cpu = one.and_then(|one| ratio(own.cpu_s_per_million, one.cpu_s_per_million));
    let figures = vec![
        Some(own.iops),
        Some(own.p99_us),
        Some(own.cpu_s_per_million),
        rate,
        cpu,
        peer.map(|peer| peer.iops),
        peer.map(|peer| peer.cpu_s_per_million),
        peer.and_then(|peer| ratio(own.iops, peer.iops)),
    ];
    let mut goals = Vec::new();
    if row.id.ends_with("-64") {
        goals.extend(rate.map(|rate| Goal::at_least("rate", rate, 1.0)));
        goals.extend(cpu.map(|cpu| Goal::at_most("CPU", cpu, CPU_RATIO_MAX)));
    }
    Line { id: row.id.to_owned(), title: row.title.to_owned(), figures, goals }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(id: &str, own: (f64, f64), peer: f64) -> Measured {
        let row = ROWS.iter().find(|row| row.id == id).unwrap();
        let sample = |iops, cpu_s_per_million| {
            Some(Sample { iops, mb_per_s: 0.0, p99_us: 900.0, cpu_s_per_million })
        };
        Measured { row, targets: vec![sample(own.0, own.1), sample(peer, 50.0)] }
    }

    #[test]
    fn each_row_is_compared_with_one_session_of_its_kind() {
        let targets = [targets::HOLDFAST, "tgt durable"].map(String::from);
        let rows = [
            measured("read-4k-1", (1.0, 1.0), 1.0),
            measured("read-4k-sessions-1", (100e3, 5.0), 40e3),
            measured("read-4k-sessions-64", (99e3, 6.5), 30e3),
            measured("write-4k-sessions-1", (40e3, 20.0), 20e3),
            measured("write-4k-sessions-8", (20e3, 30.0), 20e3),
            measured("write-4k-sessions-64", (40e3, 26.1), 20e3),
        ];
        let table = table(&targets, &rows);
        assert_eq!(table.lines.len(), 5);
        assert!(table.lines.iter().all(|line| line.figures.len() == COLUMNS.len()));
        let read = &table.lines[1];
        assert_eq!(read.figures[3..5], [Some(0.99), Some(1.3)]);
        assert_eq!(read.goals.iter().map(|goal| goal.is_met).collect::<Vec<_>>(), [false, true]);
        let write = &table.lines[4];
        assert_eq!(write.goals.iter().map(|goal| goal.is_met).collect::<Vec<_>>(), [true, false]);
        assert!(table.lines[3].goals.is_empty());
    }

    #[test]
    fn without_one_session_there_is_no_ratio() {
        let targets = [targets::HOLDFAST.to_owned()];
        let lines = table(&targets, &[measured("read-4k-sessions-64", (1.0, 1.0), 1.0)]).lines;
        assert_eq!(lines[0].figures[3..], [None; 5]);
        assert!(lines[0].goals.is_empty());
    }
}
