//! `top`: the current activity of hosts, in the terms of esxtop.
//!
//! * [`sample`]: a sample of the array's counters,
//! * [`rates`]: the difference between two samples,
//! * [`columns`]: the columns, by esxtop's names,
//! * [`batch`]: lines of CSV, [`view`] and [`screen`]: the live screen.
//!
//! Rates are computed from two samples of the counters, by the management interface of the array.
//! The data path is not involved.

mod batch;
mod columns;
mod rates;
mod sample;
mod screen;
mod view;

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::args::{Common, TopArgs};
use super::client::Client;
use super::failure::Failure;

use sample::Sample;

/// The maximum time between checks whether to stop.
const NAP: Duration = Duration::from_millis(50);

/// Shows the activity until it is stopped.
pub fn run(common: &Common, options: &TopArgs) -> Result<(), Failure> {
    if !options.batch && !std::io::stdout().is_terminal() {
        let text = "the standard output is no terminal: -b prints lines of CSV";
        return Err(Failure::Usage(text.into()));
    }
    if common.form.json || (common.form.csv && !options.batch) {
        return Err(Failure::Usage("top has its own format for programs: -b".into()));
    }
    let mut looker = Looker { client: Client::find(common)?, stop: stopped_by_signals()? };
    let interval = Duration::from_secs(options.delay);
    match options.batch {
        true => {
            let lines = if options.rows { batch::Lines::Each } else { batch::Lines::Wide };
            batch::run(&mut looker, interval, options.count, lines, std::io::stdout().lock())
        }
        false => screen::run(&mut looker, interval, options.count),
    }
}

/// A source of samples.
trait Look {
    /// Takes a sample.
    fn look(&mut self) -> Result<Sample, Failure>;

    /// Returns whether to stop: a signal arrived.
    fn is_over(&self) -> bool;

    /// Waits until a point in time; returns false if it was stopped before.
    fn wait(&self, until: Instant) -> bool {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if self.is_over() || left.is_zero() {
                return !self.is_over();
            }
            thread::sleep(left.min(NAP));
        }
    }
}

/// Takes samples through the management interface.
struct Looker {
    client: Client,
    stop: Arc<AtomicBool>,
}

impl Look for Looker {
    fn look(&mut self) -> Result<Sample, Failure> {
        Sample::take(&self.client)
    }

    fn is_over(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Returns a flag that the usual signals set, so that the terminal is restored.
fn stopped_by_signals() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| Failure::Machine(format!("can't catch signal {signal}: {error}")))?;
    }
    Ok(stop)
}
