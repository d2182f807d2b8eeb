//! `top`: what hosts do to the array now, in the words of esxtop.
//!
//! * [`sample`]: a look at the array,
//! * [`rates`]: two of them, and what happened in between,
//! * [`columns`]: what is shown of that, by esxtop's names,
//! * [`batch`]: lines of CSV, [`view`] and [`screen`]: the live screen.
//!
//! Rates come of two looks at the counters of the array, from wherever it is managed. Nothing is
//! asked of the data path.

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

/// The longest time without a look at whether it is enough.
const NAP: Duration = Duration::from_millis(50);

/// Shows what hosts do, until it is enough.
pub fn run(common: &Common, options: &TopArgs) -> Result<(), Failure> {
    if !options.batch && !std::io::stdout().is_terminal() {
        let text = "the standard output is no terminal: -b prints lines of CSV";
        return Err(Failure::Usage(text.into()));
    }
    if common.form.json || (common.form.csv && !options.batch) {
        return Err(Failure::Usage("top has a form of its own for programs: -b".into()));
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

/// What the counters are looked at through.
trait Look {
    /// Looks at the array now.
    fn look(&mut self) -> Result<Sample, Failure>;

    /// Whether it is enough: a signal came.
    fn is_over(&self) -> bool;

    /// Waits until a moment; false where it is enough before.
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

/// Looks through the management interface.
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

/// A flag that the usual signals set, so that a terminal is left as it was found.
fn stopped_by_signals() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| Failure::Machine(format!("can't catch signal {signal}: {error}")))?;
    }
    Ok(stop)
}
