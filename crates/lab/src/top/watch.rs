//! Reads the file of a lab repeatedly.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::snapshot::Snapshot;

/// The interval between two reads.
const LOOK: Duration = Duration::from_millis(100);
/// A lab that is not running, and has not written for this long, did not end cleanly.
const GONE_AFTER: Duration = Duration::from_secs(3);
/// A lab that is running but has not written for this long hangs: it publishes each second, and no
/// login takes that long.
const STUCK_AFTER: Duration = Duration::from_secs(60);

/// What comes next from a lab.
#[derive(Debug)]
pub(super) enum Next {
    /// Newer counters.
    Snapshot(Snapshot),
    /// None yet, and the time is over.
    Nothing,
    /// The last counters, if they are newer: the lab has ended.
    Ended(Option<Snapshot>),
    /// The observer is to stop.
    Stopped,
}

/// A lab's file, and what was read from it.
pub(super) struct Watch {
    path: PathBuf,
    last: Snapshot,
    changed: Instant,
    stop: Box<dyn Fn() -> bool>,
}

impl Watch {
    /// Begins to read. `stop` returns whether to stop.
    ///
    /// # Errors
    /// If no lab publishes there now.
    pub(super) fn begin(path: &Path, stop: impl Fn() -> bool + 'static) -> Result<Self, String> {
        let last = Snapshot::read(path)?;
        if last.ended {
            return Err(format!(
                "the lab that published its counters in {} has ended: start it again first",
                path.display()
            ));
        }
        // How long ago it was, as far as the clock can be trusted.
        let age_ms = now_ms().saturating_sub(last.wall_ms);
        let age = Duration::from_millis(age_ms);
        let watch = Self {
            path: path.to_owned(),
            last,
            changed: Instant::now().checked_sub(age).unwrap_or_else(Instant::now),
            stop: Box::new(stop),
        };
        watch.judge()?;
        Ok(watch)
    }

    /// Returns the last snapshot.
    pub(super) fn last(&self) -> &Snapshot {
        &self.last
    }

    /// Returns for how long nothing has changed.
    pub(super) fn age(&self) -> Duration {
        self.changed.elapsed()
    }

    /// Waits for newer counters until `when`.
    ///
    /// # Errors
    /// If the file is gone, or its lab is, without having reported its end.
    pub(super) fn next(&mut self, when: Instant) -> Result<Next, String> {
        loop {
            if (self.stop)() {
                return Ok(Next::Stopped);
            }
            if let Some(next) = self.look()? {
                return Ok(next);
            }
            let left = when.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Next::Nothing);
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    fn look(&mut self) -> Result<Option<Next>, String> {
        let now = Snapshot::read(&self.path)?;
        let is_new = !now.is_of_the_run_of(&self.last) || now.sequence != self.last.sequence;
        if !is_new {
            if now.ended {
                return Ok(Some(Next::Ended(None)));
            }
            self.judge()?;
            return Ok(None);
        }
        self.changed = Instant::now();
        self.last = now.clone();
        Ok(Some(if now.ended { Next::Ended(Some(now)) } else { Next::Snapshot(now) }))
    }

    fn judge(&self) -> Result<(), String> {
        let (pid, age) = (self.last.pid, self.age());
        let what = match verdict(age, is_gone(pid)) {
            None => return Ok(()),
            Some(what) => what,
        };
        Err(format!(
            "{}: written {} s ago by process {pid}, which {what}: start the lab again",
            self.path.display(),
            age.as_secs()
        ))
    }
}

/// Returns the problem of a lab that last wrote this long ago; `None` if there is none.
fn verdict(age: Duration, is_gone: bool) -> Option<&'static str> {
    if is_gone && age > GONE_AFTER {
        return Some("has ended without reporting that");
    }
    (age > STUCK_AFTER).then_some("hangs, or runs on another machine")
}

/// Returns whether there is no such process, as far as can be determined.
pub(super) fn is_gone(pid: u32) -> bool {
    Path::new("/proc/self").exists() && !Path::new(&format!("/proc/{pid}")).exists()
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap_or_default().as_millis() as u64
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::top::snapshot::Series;

    fn put(path: &Path, snapshot: &Snapshot) {
        std::fs::write(path, serde_json::to_string(snapshot).unwrap()).unwrap();
    }

    #[test]
    fn the_state_of_a_lab_follows_from_age_and_process() {
        let s = Duration::from_secs;
        assert_eq!(verdict(s(1), true), None, "it may be between two writes");
        assert!(verdict(s(4), true).is_some());
        assert_eq!(verdict(s(20), false), None, "a login may take long");
        assert!(verdict(s(61), false).is_some());
        assert!(is_gone(u32::MAX) && !is_gone(std::process::id()));
    }

    #[test]
    fn an_old_missing_or_ended_lab_is_refused_in_one_line() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        let refused = |snapshot: &Snapshot| {
            put(&path, snapshot);
            let error = Watch::begin(&path, || false).err().unwrap();
            assert!(!error.contains('\n') && error.contains("start"), "{error}");
            error
        };
        let mut series = Series::begin();
        assert!(refused(&series.next(&[], true)).contains("has ended"));
        let now = series.next(&[], false);
        let gone = Snapshot { pid: u32::MAX, wall_ms: now.wall_ms - 10_000, ..now.clone() };
        assert!(refused(&gone).contains("ended without"));
        let stuck = Snapshot { wall_ms: now.wall_ms - 100_000, ..now };
        assert!(refused(&stuck).contains("hangs"));
    }

    #[test]
    fn a_watch_sees_each_change_and_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        let mut series = Series::begin();
        put(&path, &series.next(&[], false));
        let mut watch = Watch::begin(&path, || false).unwrap();
        assert!(matches!(watch.next(Instant::now()).unwrap(), Next::Nothing));
        put(&path, &series.next(&[], false));
        let Next::Snapshot(seen) = watch.next(Instant::now()).unwrap() else { panic!() };
        assert_eq!(seen.sequence, 1);
        let other = Snapshot { pid: seen.pid + 1, ..Series::begin().next(&[], false) };
        put(&path, &other);
        assert!(matches!(watch.next(Instant::now()).unwrap(), Next::Snapshot(_)));
        put(&path, &series.next(&[], true));
        assert!(matches!(watch.next(Instant::now()).unwrap(), Next::Ended(Some(_))));
        assert!(matches!(watch.next(Instant::now()).unwrap(), Next::Ended(None)));
        std::fs::remove_file(&path).unwrap();
        assert!(watch.next(Instant::now()).is_err());
    }

    #[test]
    fn a_stopped_watch_ends() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        put(&path, &Series::begin().next(&[], false));
        let looks = Cell::new(0);
        let stop = move || looks.replace(looks.get() + 1) > 0;
        let mut watch = Watch::begin(&path, stop).unwrap();
        let far = Instant::now() + Duration::from_secs(3600);
        assert!(matches!(watch.next(far).unwrap(), Next::Stopped));
    }
}
