//! A panic anywhere ends the process.
//!
//! A dead thread holds up others: a lock that is never released, a response that is never sent, a
//! checkpoint that is never written. It is better to start again, from the log, than to serve hosts
//! partially.

use std::panic::{self, PanicHookInfo};
use std::process;
use std::thread;

/// From here on a panic of any thread is logged, and ends the process at once (SIGABRT).
pub fn end_the_process() {
    let default = panic::take_hook();
    panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
        // First to the simplest output: the log may be what has panicked.
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

    /// Runs this test again, in a process of its own that dies by it.
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
