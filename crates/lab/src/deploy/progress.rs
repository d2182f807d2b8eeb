//! A line that shows the progress of something long.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A line on standard error: overwritten on a terminal, printed once at the end elsewhere.
#[derive(Debug)]
pub struct Progress {
    what: String,
    total: u64,
    started: Instant,
    shown: Option<Instant>,
}

impl Progress {
    /// Creates the progress of `what`, which ends at `total` bytes.
    pub fn new(what: String, total: u64) -> Self {
        Self { what, total, started: Instant::now(), shown: None }
    }

    /// Shows the progress, at most five times per second.
    pub fn show(&mut self, done: u64) {
        let recently = self.shown.is_some_and(|t| t.elapsed() < Duration::from_millis(200));
        if !std::io::stderr().is_terminal() || recently {
            return;
        }
        self.shown = Some(Instant::now());
        let percent = done * 100 / self.total.max(1);
        eprint!("\r  {}: {percent}% of {} MiB  ", self.what, self.total >> 20);
        // A line that can't be shown is no reason to stop.
        let _ = std::io::stderr().flush();
    }

    /// Ends the line.
    pub fn finish(self) {
        let seconds = self.started.elapsed().as_secs_f64();
        let start = if std::io::stderr().is_terminal() { "\r" } else { "" };
        eprintln!("{start}  {}: {} MiB in {seconds:.2} s    ", self.what, self.total >> 20);
    }
}
