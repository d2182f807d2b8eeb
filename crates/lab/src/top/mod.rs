//! `holdfast-lab top`: the counters of the hosts of a running lab, as esxtop shows them.
//!
//! A lab publishes its counters in a file, each second ([`Publisher`]); `top` reads the file, in
//! another process, live or as lines of CSV. So it costs the lab almost nothing, and works over
//! anything that transports a file.

mod batch;
mod columns;
mod place;
mod publish;
mod rates;
mod screen;
mod snapshot;
mod table;
mod watch;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;

pub use columns::{COLUMNS, Column};
pub use place::default_place;
pub use publish::Publisher;
pub use rates::{Line, rates};
pub use snapshot::{DeviceSnapshot, HostSnapshot, Snapshot};

use watch::Watch;

/// The command line.
#[derive(Args, Debug)]
pub struct TopArgs {
    /// The file in which the lab publishes its counters, if it is not at the default path.
    #[arg(long, value_name = "FILE")]
    counters: Option<PathBuf>,
    /// Batch mode: print CSV, one line per device and interval.
    #[arg(short)]
    batch: bool,
    /// The interval in seconds, at least 1: the lab publishes once a second.
    #[arg(short = 'd', value_name = "SECONDS", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    delay: u64,
    /// End after this many intervals.
    #[arg(short = 'n', value_name = "COUNT")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

/// Shows counters until the lab ends, the count is reached, or the observer quits.
///
/// # Errors
/// In one line, with what to do: if nothing publishes there, or does so no longer.
pub fn run(args: &TopArgs) -> Result<(), String> {
    let path = match &args.counters {
        Some(path) => path.clone(),
        None => default_place(),
    };
    if !args.batch && !std::io::stdout().is_terminal() {
        return Err("the standard output is not a terminal; use -b to print CSV".into());
    }
    let stop = stopped_by_signals()?;
    let interval = Duration::from_secs(args.delay);
    let watch = Watch::begin(&path, move || stop.load(Ordering::Relaxed))?;
    let count = args.count.unwrap_or(u64::MAX);
    let end = if args.batch {
        batch::run(watch, interval, count, std::io::stdout().lock())?
    } else {
        screen::run(watch, interval, count)?
    };
    if end == Ended::Lab {
        eprintln!("holdfast-lab: the lab has ended");
    }
    Ok(())
}

/// Why `top` has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// The lab ended cleanly.
    Lab,
    /// The observer has quit.
    Looker,
}

/// Returns a flag that the usual signals set, so that the terminal is restored.
fn stopped_by_signals() -> Result<Arc<AtomicBool>, String> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())
            .map_err(|error| format!("signal {signal} can't be caught: {error}"))?;
    }
    Ok(stop)
}
