//! A panic anywhere ends the process.
//!
//! A thread that is gone holds up what others wait for: a lock that is never released, an answer
//! that never comes, a checkpoint that is never made. Better to start again, from the log, than to
//! serve hosts by halves.

use std::panic::{self, PanicHookInfo};
use std::process;
use std::thread;

/// From here on a panic of any thread is logged, and ends the process at once (SIGABRT).
pub fn end_the_process() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        // First to where it needs least: the log may be what has panicked.
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
    use std::process::Command;

    const CHILD: &str = "HOLDFAST_TEST_PANICS";
    const SIGABRT: i32 = 6;

    /// Runs this test once more, in a process of its own that ends by it.
    #[test]
    fn a_panic_of_any_thread_ends_the_process() {
        if std::env::var_os(CHILD).is_some() {
            super::end_the_process();
            let thread = std::thread::Builder::new().name("scrub".into());
            let thread = thread.spawn(|| panic!("out of luck")).unwrap();
            // As the runtime of management does: who joins it could go on.
            let _ = thread.join();
            std::process::exit(0);
        }
        let name = "cli::panics::tests::a_panic_of_any_thread_ends_the_process";
        let output = Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert_eq!(output.status.signal(), Some(SIGABRT), "{output:?}");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(told.contains("out of luck") && told.contains("'scrub'"), "{told}");
    }
}
