//! What is published: the counters of all hosts at one time.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use serde::{Deserialize, Serialize};

use crate::host::{Host, Totals};

/// The format of the file. Another format gets another number.
const FORM: u32 = 1;

/// All counters of a lab's hosts at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The format of the file.
    pub form: u32,
    /// The process that publishes.
    pub pid: u32,
    /// When it began to, in milliseconds since 1970: identifies this run, together with `pid`.
    pub began_ms: u64,
    /// How many snapshots of this run came before.
    pub sequence: u64,
    /// The time since it began, in microseconds, by a monotonic clock.
    pub monotonic_us: u64,
    /// The wall-clock time, in milliseconds since 1970.
    pub wall_ms: u64,
    /// This is the last one: the lab has ended cleanly.
    pub ended: bool,
    /// Each host.
    pub hosts: Vec<HostSnapshot>,
}

/// The counters of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostSnapshot {
    /// The name of the host.
    pub name: String,
    /// The number of paths that can be used now.
    pub paths_up: usize,
    /// The number of its paths.
    pub paths: usize,
    /// Commands that all paths have carried, including repeated ones.
    pub commands: u64,
    /// Bytes sent on all paths.
    pub sent_bytes: u64,
    /// Bytes received on all paths.
    pub received_bytes: u64,
    /// Each device that it uses, or has used.
    pub devices: Vec<DeviceSnapshot>,
}

/// A host's counters of a device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceSnapshot {
    /// `naa.` and digits.
    pub name: String,
    /// Its LUN.
    pub lun: u16,
    /// The counters.
    #[serde(flatten)]
    pub totals: Totals,
}

impl HostSnapshot {
    /// Returns a host's current counters.
    pub fn of(host: &Host) -> Self {
        let wire = host.wire_bytes();
        let device = |((name, lun), totals)| DeviceSnapshot { name, lun, totals };
        Self {
            name: host.name().to_owned(),
            paths_up: host.paths().iter().filter(|path| path.is_up()).count(),
            paths: host.paths().len(),
            commands: host.commands(),
            sent_bytes: wire.sent,
            received_bytes: wire.received,
            devices: host.totals().into_iter().map(device).collect(),
        }
    }
}

impl Snapshot {
    /// Reads a file.
    ///
    /// # Errors
    /// If it does not exist, or is not what a lab publishes, with what to do.
    pub fn read(path: &Path) -> Result<Self, String> {
        let place = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => format!(
                "no lab publishes its counters in {place}: start one, or specify its file with \
                 --counters"
            ),
            _ => format!("{place}: {error}"),
        })?;
        let wrong = |why: String| format!("{place} does not contain counters of a lab: {why}");
        let snapshot: Self =
            serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        if snapshot.form != FORM {
            return Err(wrong(format!("its format is {}, not {FORM}", snapshot.form)));
        }
        Ok(snapshot)
    }

    /// Returns whether two are of the same run of a lab.
    pub fn is_of_the_run_of(&self, other: &Self) -> bool {
        (self.pid, self.began_ms) == (other.pid, other.began_ms)
    }

    /// Returns the time between two. From the start of the run if `before` is of another.
    pub fn time_since(&self, before: &Self) -> Duration {
        let begin = if self.is_of_the_run_of(before) { before.monotonic_us } else { 0 };
        Duration::from_micros(self.monotonic_us.saturating_sub(begin))
    }
}

/// Creates the snapshots of one run.
#[derive(Debug)]
pub(super) struct Series {
    began: Instant,
    began_ms: u64,
    sequence: u64,
}

impl Series {
    pub(super) fn begin() -> Self {
        Self { began: Instant::now(), began_ms: wall_ms(), sequence: 0 }
    }

    pub(super) fn next(&mut self, hosts: &[Host], ended: bool) -> Snapshot {
        let sequence = self.sequence;
        self.sequence += 1;
        Snapshot {
            form: FORM,
            pid: std::process::id(),
            began_ms: self.began_ms,
            sequence,
            monotonic_us: self.began.elapsed().as_micros() as u64,
            wall_ms: wall_ms(),
            ended,
            hosts: hosts.iter().map(HostSnapshot::of).collect(),
        }
    }
}

fn wall_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{Class, Ended, Tally};

    #[test]
    fn a_snapshot_round_trips() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        let mut snapshot = Series::begin().next(&[], false);
        let mut device = DeviceSnapshot { name: "naa.6".into(), lun: 3, ..Default::default() };
        let good = Tally { count: 1, bytes: 2, latency_us: 3 };
        device.totals.classes.insert(Class::Delete, Ended { good, ..Ended::default() });
        snapshot.hosts.push(HostSnapshot { devices: vec![device], ..Default::default() });
        let text = serde_json::to_string(&snapshot).unwrap();
        assert!(text.contains(r#""delete":{"good":{"count":1"#), "{text}");
        std::fs::write(&path, &text).unwrap();
        assert_eq!(Snapshot::read(&path).unwrap(), snapshot);
    }

    #[test]
    fn a_file_without_a_snapshot_is_a_one_line_error_with_its_path() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        let error = |text: &str| {
            std::fs::write(&path, text).unwrap();
            Snapshot::read(&path).unwrap_err()
        };
        let mut other = Series::begin().next(&[], false);
        other.form = 9;
        let other = serde_json::to_string(&other).unwrap();
        let missing = Snapshot::read(&directory.path().join("none")).unwrap_err();
        assert!(missing.contains("--counters"), "{missing}");
        for error in [error(""), error("{}"), error("[1]"), error(&other), missing] {
            assert!(!error.contains('\n'), "{error}");
            assert!(error.contains(directory.path().to_str().unwrap()), "{error}");
        }
    }
}
