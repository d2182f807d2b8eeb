//! A panic anywhere ends the process.
//!
//! A dead thread blocks others: a lock is never released, a response is never sent, a checkpoint is
//! never written. A restart with recovery from the log is better than serving hosts partially.

use std::panic::{self, PanicHookInfo};
use std::process;
use std::thread;

/// Makes a panic of any thread log a message and end the process at once (SIGABRT).
pub fn end_the_process() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        // First to the simplest output: the log itself may have panicked.
        default(info);
        let thread = thread::current();
        let name = thread.name().unwrap_or("without a name").to_owned();
        let place = info.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!("the thread {name} panicked at {place}: the process ends");
        process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::path::Path;
    use std::process::Command;
    use std::sync::Arc;
    use std::time::Duration;

    use super::super::args::Cli;

    const CHILD: &str = "HOLDFAST_TEST_PANICS";
    const SIGABRT: i32 = 6;

    /// Runs a test again, in a separate process that must die by a panic of a thread with this
    /// name.
    fn dies_by(test: &str, directory: &Path, thread: &str) {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([&format!("cli::panics::tests::{test}"), "--exact", "--nocapture"])
            .env(CHILD, directory)
            .output()
            .unwrap();
        assert_eq!(output.status.signal(), Some(SIGABRT), "{output:?}");
        let reported = String::from_utf8_lossy(&output.stderr);
        let panicked = format!("thread '{thread}'");
        let is_of_it = |line: &str| line.trim_start().starts_with(&panicked);
        assert!(
            reported.lines().any(is_of_it) && reported.lines().any(|line| line == "out of luck"),
            "{reported}"
        );
    }

    #[test]
    fn a_panic_of_any_thread_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            super::end_the_process();
            let thread = std::thread::Builder::new().name("scrub".into());
            let thread = thread.spawn(|| panic!("out of luck")).unwrap();
            // As in the runtime of management, where a join would let the caller continue.
            let _ = thread.join();
            std::process::exit(0);
        }
        dies_by("a_panic_of_any_thread_ends_the_process", Path::new("."), "scrub");
    }

    /// The verb itself sets the hook, before its first thread starts.
    #[test]
    fn a_panic_of_a_background_thread_ends_an_array_that_serves() {
        if let Some(directory) = std::env::var_os(CHILD) {
            let pool = Path::new(&directory).join("pool");
            std::fs::create_dir(&pool).unwrap();
            let words = ["holdfast", "serve", pool.to_str().unwrap(), "--capacity", "1G"];
            let addresses = ["--iscsi", "127.0.0.1:0", "--api", "127.0.0.1:0"];
            let cli = Cli::read(words.into_iter().chain(addresses)).unwrap();
            std::thread::spawn(move || {
                // It ends only if it can't serve: on a full disk, for example.
                _ = super::super::perform(&cli);
                std::process::exit(1);
            });
            while !pool.join("array.run").exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
            // A thread as the array starts them for its background work.
            let background = sys::attendant::Attendant::start("scrub", Arc::default(), |_| {
                panic!("out of luck")
            });
            drop(background.map(|_| std::thread::sleep(Duration::from_secs(10))));
            std::process::exit(0);
        }
        let directory = tempfile::tempdir().unwrap();
        let test = "a_panic_of_a_background_thread_ends_an_array_that_serves";
        dies_by(test, directory.path(), "scrub");
    }
}
