//! A running lab publishes its hosts' counters.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::place::replace;
use super::snapshot::{Series, Snapshot};
use super::watch::is_gone;
use crate::engine::{Reactor, Task};
use crate::host::Host;

/// How often to publish.
const PERIOD: Duration = Duration::from_secs(1);

/// Writes counters to a file, each second and at the end.
pub struct Publisher<F: Fn() -> Vec<Host>> {
    series: Series,
    hosts: F,
    path: PathBuf,
    complained: bool,
}

impl<F: Fn() -> Vec<Host> + 'static> Publisher<F> {
    /// Publishes the counters of the existing hosts, until the task or its engine is dropped, which
    /// writes them a last time.
    ///
    /// # Errors
    /// If the file can't be written, or another lab publishes there.
    pub fn start(reactor: &Reactor, hosts: F, path: &Path) -> Result<Task<()>, String> {
        if let Some(pid) = occupant(path) {
            return Err(format!(
                "the lab with process id {pid} publishes its counters in {}: specify another file \
                 with --counters",
                path.display()
            ));
        }
        let mut publisher =
            Self { series: Series::begin(), hosts, path: path.to_owned(), complained: false };
        publisher.write(false)?;
        let own = reactor.clone();
        Ok(reactor.spawn(async move {
            loop {
                own.sleep(PERIOD).await;
                publisher.try_write(false);
            }
        }))
    }
}

impl<F: Fn() -> Vec<Host>> Publisher<F> {
    fn write(&mut self, ended: bool) -> Result<(), String> {
        let snapshot = self.series.next(&(self.hosts)(), ended);
        let text = serde_json::to_string(&snapshot).map_err(|error| error.to_string())?;
        replace(&self.path, &(text + "\n"))
    }

    /// A lab does not depend on its counters: it continues without them, and reports that once.
    fn try_write(&mut self, ended: bool) {
        match self.write(ended) {
            Ok(()) => self.complained = false,
            Err(error) if !self.complained => {
                eprintln!("holdfast-lab: counters can't be published: {error}");
                self.complained = true;
            }
            Err(_) => {}
        }
    }
}

impl<F: Fn() -> Vec<Host>> Drop for Publisher<F> {
    fn drop(&mut self) {
        self.try_write(true);
    }
}

/// Returns another lab that publishes in a file now, if there is one.
fn occupant(path: &Path) -> Option<u32> {
    let snapshot = Snapshot::read(path).ok()?;
    let is_over = snapshot.ended || snapshot.pid == std::process::id() || is_gone(snapshot.pid);
    (!is_over).then_some(snapshot.pid)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Engine;

    #[test]
    fn counters_are_published_at_once_and_the_last_are_marked() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        let mut engine = Engine::new();
        let task = Publisher::start(&engine.reactor(), Vec::new, &path).unwrap();
        let first = Snapshot::read(&path).unwrap();
        assert_eq!((first.ended, first.sequence, first.pid), (false, 0, std::process::id()));
        drop(task);
        let reactor = engine.reactor();
        engine.run(async move { reactor.step_back().await }).unwrap();
        let last = Snapshot::read(&path).unwrap();
        assert!(last.ended && last.is_of_the_run_of(&first), "{last:?}");
        assert!(last.sequence > 0 && last.monotonic_us >= first.monotonic_us);
    }

    #[test]
    fn the_end_of_the_engine_ends_the_series() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        let engine = Engine::new();
        let task = Publisher::start(&engine.reactor(), Vec::new, &path).unwrap();
        drop(engine);
        assert!(Snapshot::read(&path).unwrap().ended);
        drop(task);
    }

    #[test]
    fn a_file_of_another_running_lab_is_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("counters");
        let engine = Engine::new();
        let publish = |pid: u32, ended: bool| {
            let snapshot = Snapshot { pid, ..Series::begin().next(&[], ended) };
            std::fs::write(&path, serde_json::to_string(&snapshot).unwrap()).unwrap();
            Publisher::start(&engine.reactor(), Vec::new, &path).map(drop)
        };
        let parent = std::os::unix::process::parent_id();
        let error = publish(parent, false).unwrap_err();
        assert!(error.contains("--counters"), "{error}");
        publish(parent, true).unwrap();
        publish(u32::MAX, false).unwrap();
    }
}
