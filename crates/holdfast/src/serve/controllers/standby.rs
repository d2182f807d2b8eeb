//! Following the pool while another controller has it, so that taking over is quick: a thread that
//! recovers what that one writes ([`store::Follower`]).
//!
//! It works for a controller that may never need it, so it is of lower priority than what serves
//! hosts, and nobody waits for it for long: whoever takes over does without what it has if that
//! does not come at once. It may be starved by what else runs, or read from a device that hangs.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::setpriority_process;
use rustix::thread::gettid;
use segments::Shared;
use store::{Follower, Following, OpenOptions};

/// How often it is looked whether there is more.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How long after a failure it is tried again: the pool may not be there yet, or the checkpoint was
/// replaced while it was read.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// After so many failures in a row people are told.
const FAILURES_TOLD: u32 = 10;
/// Who serves hosts comes first (`nice(1)`), but not so that it never has its turn: it would have
/// nothing when it is needed, on a machine that is busy.
const PRIORITY: i32 = 5;
/// How long whoever takes over waits for what it has: to recover the pool without it takes longer.
const HANDED_WITHIN: Duration = Duration::from_millis(300);

/// Opens what the pool is on, to be read while another process uses it.
pub type OpenBeside = Box<dyn Fn() -> Result<Shared, String> + Send>;

/// A thread that follows the pool.
pub struct Standby {
    found: Receiver<Option<Follower>>,
    /// Dropped when it is to end.
    goes_on: Sender<()>,
}

impl Standby {
    /// Starts to follow.
    ///
    /// # Errors
    /// If there can't be a thread.
    pub fn start(open: OpenBeside, options: OpenOptions) -> std::io::Result<Self> {
        let (goes_on, ends) = mpsc::channel();
        let (sender, found) = mpsc::sync_channel(1);
        let run = move || {
            // Without it hosts are served more slowly while it has much to do, and that is all.
            if let Err(error) = setpriority_process(Some(gettid()), PRIORITY) {
                tracing::debug!("the thread that follows the pool has its usual priority: {error}");
            }
            // Whoever has not waited for it does without.
            let _ = sender.send(follow(&open, &options, &ends));
        };
        thread::Builder::new().name("follower".into()).spawn(run)?;
        Ok(Self { found, goes_on })
    }

    /// Ends it: what it has, if that is of use and comes at once.
    pub fn end(self) -> Option<Follower> {
        drop(self.goes_on);
        match self.found.recv_timeout(HANDED_WITHIN) {
            Ok(follower) => follower,
            // It can't have panicked: that ends the process.
            Err(_) => {
                tracing::warn!("what was followed of the pool does not come: it is recovered");
                None
            }
        }
    }
}

/// Follows until it is to end.
fn follow(open: &OpenBeside, options: &OpenOptions, ends: &Receiver<()>) -> Option<Follower> {
    let mut failures = 0;
    loop {
        let opened = open().and_then(|pool| {
            Follower::open(pool, options.clone()).map_err(|error| error.to_string())
        });
        let error = match opened {
            Ok(follower) => match follow_one(follower, ends, &mut failures) {
                Ended::Asked(follower) => return Some(*follower),
                Ended::Overtaken => continue,
                Ended::Failed(error) => error,
            },
            Err(error) => error,
        };
        failures += 1;
        match failures {
            FAILURES_TOLD => tracing::warn!(
                "the pool can't be followed, so that taking it over would take longer: {error}"
            ),
            _ => tracing::debug!("the pool can't be followed: {error}"),
        }
        if is_over(ends, RETRY_INTERVAL) {
            return None;
        }
    }
}

/// How following from one checkpoint on came to its end.
enum Ended {
    /// It is not wanted any more.
    Asked(Box<Follower>),
    /// There is a newer one.
    Overtaken,
    Failed(String),
}

fn follow_one(mut follower: Follower, ends: &Receiver<()>, failures: &mut u32) -> Ended {
    loop {
        let wait = match follower.follow() {
            Ok(Following::Behind) => Duration::ZERO,
            Ok(Following::Current) => {
                *failures = 0;
                LOOK_INTERVAL
            }
            Ok(Following::Overtaken) => return Ended::Overtaken,
            Err(error) => return Ended::Failed(error.to_string()),
        };
        if is_over(ends, wait) {
            return Ended::Asked(Box::new(follower));
        }
    }
}

/// Waits for so long; whether it is to end.
fn is_over(ends: &Receiver<()>, wait: Duration) -> bool {
    !matches!(ends.recv_timeout(wait), Err(RecvTimeoutError::Timeout))
}
