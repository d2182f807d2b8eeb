//! What is printed: JSON and CSV for programs, tables for people.

use std::fmt;
use std::io::{self, Write};

use clap::Args;
use serde::Serialize;
use time::OffsetDateTime;

use super::failure::Failure;
use super::flat;

/// The output format of a verb; a table or sentences by default.
#[derive(Clone, Copy, Debug, Default, Args)]
pub struct Form {
    /// Print JSON.
    #[arg(long, global = true, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV (RFC 4180), a line for each object with the fields of the JSON output.
    #[arg(long, global = true)]
    pub csv: bool,
}

/// Prints lines. A reader that has closed the pipe (`| head`) is not a failure.
pub fn print(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::Machine(format!("can't write the output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints one line on the standard error. A line that can't be written is lost: unlike `eprintln!`,
/// which panics, this changes neither the exit code nor what a serving array does.
pub fn complain(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints `value` as JSON or CSV; otherwise the text of `human`.
pub fn show<T: Serialize>(
    form: Form,
    value: &T,
    human: impl FnOnce() -> String,
) -> Result<(), Failure> {
    if form.csv {
        return print(&flat::text(value)?);
    }
    if !form.json {
        return print(&human());
    }
    let text = serde_json::to_string_pretty(value)
        .map_err(|error| Failure::Machine(format!("can't write JSON: {error}")))?;
    print(&format!("{text}\n"))
}

/// The alignment of a column.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Returns an aligned table with a line of headings; without rows, `nothing`.
pub fn table(columns: &[(&str, Align)], rows: &[Vec<String>], nothing: &str) -> String {
    if rows.is_empty() {
        return format!("{nothing}\n");
    }
    let heads: Vec<String> = columns.iter().map(|(head, _)| (*head).to_owned()).collect();
    let lines: Vec<&Vec<String>> = std::iter::once(&heads).chain(rows).collect();
    let width = |at: usize| {
        let cells = lines.iter().filter_map(|line| line.get(at));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells =
            line.iter().zip(columns).zip(&widths).map(|((cell, (_, align)), &width)| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Returns lines of a name and a value.
pub fn facts(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0) + 1;
    let lines = rows.iter().map(|(name, value)| {
        let name = format!("{name}:");
        format!("{name:<width$} {value}\n")
    });
    lines.collect()
}

/// Returns a time as `2026-11-21 22:05:09 UTC`; beyond the year 9999, as milliseconds.
pub fn time(ms: u64) -> String {
    let at = OffsetDateTime::from_unix_timestamp((ms / 1000).cast_signed());
    let Ok(at) = at else { return format!("{ms} ms") };
    let (hour, minute, second) = at.to_hms();
    format!("{} {hour:02}:{minute:02}:{second:02} UTC", at.date())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned() {
        let columns = [("NAME", Align::Left), ("SIZE", Align::Right)];
        let rows = [vec!["a".into(), "10 GiB".into()], vec!["longer".into(), "1 B".into()]];
        assert_eq!(table(&columns, &rows, ""), "NAME      SIZE\na       10 GiB\nlonger     1 B\n");
        assert_eq!(table(&columns, &[], "No volumes."), "No volumes.\n");
    }

    #[test]
    fn times_follow_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_399, "2000-02-28 23:59:59 UTC"),
            (951_782_400, "2000-02-29 00:00:00 UTC"),
            (951_868_800, "2000-03-01 00:00:00 UTC"),
            (1_798_761_599, "2026-12-31 23:59:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(time(seconds * 1000), text);
        }
        assert_eq!(time(253_402_300_799_999), "9999-12-31 23:59:59 UTC");
        assert_eq!(time(253_402_300_800_000), "253402300800000 ms");
        assert_eq!(time(u64::MAX), "18446744073709551615 ms");
    }
}
