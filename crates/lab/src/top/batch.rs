//! Batch mode: lines of CSV.

use std::io::Write;
use std::time::{Duration, Instant};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::Ended;
use super::columns::COLUMNS;
use super::rates::{Line, rates};
use super::snapshot::Snapshot;
use super::watch::{Next, Watch};

/// Columns before those of esxtop.
const FIRST: [&str; 3] = ["TIME", "HOST", "DEVICE"];

/// How long to wait at a time for a lab that is late.
const LATE: Duration = Duration::from_secs(1);

/// Prints a header, then a line for each device, host and interval, up to `count` intervals.
///
/// # Errors
/// Those of reading, and if nothing can be printed.
pub(super) fn run(
    mut watch: Watch,
    interval: Duration,
    count: u64,
    out: impl Write,
) -> Result<Ended, String> {
    let mut table = csv::Writer::from_writer(out);
    let names = FIRST.into_iter().chain(COLUMNS.iter().map(|column| column.name));
    if is_closed(table.write_record(names).and_then(|()| Ok(table.flush()?)))? {
        return Ok(Ended::Looker);
    }
    let mut due = Instant::now();
    for _ in 0..count {
        let before = watch.last().clone();
        due += interval;
        let (after, end) = wait(&mut watch, due)?;
        if let Some(after) = after
            && is_closed(print(&mut table, &before, &after))?
        {
            return Ok(Ended::Looker);
        }
        if let Some(end) = end {
            return Ok(end);
        }
    }
    Ok(Ended::Looker)
}

/// Waits until an interval is over and something newer was published; returns that, and whether it
/// is the end.
fn wait(watch: &mut Watch, due: Instant) -> Result<(Option<Snapshot>, Option<Ended>), String> {
    let mut newest = None;
    loop {
        // A lab that publishes late makes the interval longer, not empty.
        let until = if newest.is_some() { due } else { due.max(Instant::now() + LATE) };
        match watch.next(until)? {
            Next::Snapshot(snapshot) => newest = Some(snapshot),
            Next::Nothing if newest.is_none() => {}
            Next::Nothing => return Ok((newest, None)),
            Next::Ended(last) => return Ok((last.or(newest), Some(Ended::Lab))),
            Next::Stopped => return Ok((newest, Some(Ended::Looker))),
        }
        if newest.is_some() && Instant::now() >= due {
            return Ok((newest, None));
        }
    }
}

fn print(
    table: &mut csv::Writer<impl Write>,
    before: &Snapshot,
    after: &Snapshot,
) -> csv::Result<()> {
    for line in rates(before, after) {
        table.write_record(record(after, &line))?;
    }
    // Each interval is written when it is over, for programs that follow the file.
    Ok(table.flush()?)
}

fn record(after: &Snapshot, line: &Line) -> Vec<String> {
    let mut fields = vec![time_of(after.wall_ms), line.host.clone(), line.device.clone()];
    fields.extend(COLUMNS.iter().map(|column| column.text(line)));
    fields
}

/// Formats a time by RFC 3339; as a number if it is beyond any calendar.
fn time_of(wall_ms: u64) -> String {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(wall_ms) * 1_000_000);
    let text = time.ok().and_then(|time| time.format(&Rfc3339).ok());
    text.unwrap_or_else(|| wall_ms.to_string())
}

/// Returns whether the reader has closed the pipe, as with `| head`: not an error.
fn is_closed(result: csv::Result<()>) -> Result<bool, String> {
    let Err(error) = result else { return Ok(false) };
    match error.kind() {
        csv::ErrorKind::Io(io) if io.kind() == std::io::ErrorKind::BrokenPipe => Ok(true),
        _ => Err(format!("the standard output: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::top::columns::tests::line;
    use crate::top::snapshot::{DeviceSnapshot, HostSnapshot};

    fn put(path: &Path, sequence: u64, ended: bool) -> Snapshot {
        let line = line();
        let devices = vec![DeviceSnapshot { name: line.device, lun: 1, totals: line.all }];
        let host = HostSnapshot { name: "esx, \"1\"".into(), devices, ..HostSnapshot::default() };
        let snapshot = Snapshot {
            form: 1,
            pid: std::process::id(),
            sequence,
            monotonic_us: sequence * 1_000_000,
            // Beyond any calendar, and still shown.
            wall_ms: u64::MAX,
            ended,
            hosts: vec![host],
            ..Snapshot::default()
        };
        std::fs::write(path, serde_json::to_string(&snapshot).unwrap()).unwrap();
        snapshot
    }

    fn lines(out: &[u8]) -> Vec<csv::StringRecord> {
        csv::Reader::from_reader(out).records().map(|record| record.unwrap()).collect()
    }

    #[test]
    fn the_last_counters_of_a_lab_are_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        put(&path, 0, false);
        let watch = Watch::begin(&path, || false).unwrap();
        put(&path, 1, true);
        let mut out = Vec::new();
        let far = Duration::from_secs(3600);
        assert_eq!(run(watch, far, 50, &mut out).unwrap(), Ended::Lab);
        let lines = lines(&out);
        assert_eq!(lines.len(), 1);
        assert_eq!((&lines[0][1], &lines[0][2], &lines[0][3]), ("esx, \"1\"", "naa.6", "300"));
        assert_eq!(lines[0].len(), FIRST.len() + COLUMNS.len());
        assert_eq!(&lines[0][0], u64::MAX.to_string());
    }

    #[test]
    fn times_are_formatted_as_dates() {
        assert_eq!(time_of(1_767_225_605_250), "2026-01-01T00:00:05.25Z");
    }

    #[test]
    fn batch_mode_ends_after_the_count() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        put(&path, 0, false);
        let watch = Watch::begin(&path, || false).unwrap();
        put(&path, 1, false);
        let mut out = Vec::new();
        assert_eq!(run(watch, Duration::ZERO, 1, &mut out).unwrap(), Ended::Looker);
        assert_eq!(lines(&out).len(), 1);
    }

    #[test]
    fn a_missing_reader_is_no_error_but_a_full_disk_is() {
        let error = |kind: std::io::ErrorKind| Err(csv::Error::from(std::io::Error::from(kind)));
        assert_eq!(is_closed(error(std::io::ErrorKind::BrokenPipe)), Ok(true));
        assert!(is_closed(error(std::io::ErrorKind::StorageFull)).is_err());
    }
}
