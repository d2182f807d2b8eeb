//! Follows the pool while another controller has it, so that taking over is quick: a thread
//! recovers what the owner writes ([`store::Follower`]).
//!
//! It works for a controller that may never need it, so it has lower priority than threads that
//! serve hosts, and nobody waits long for it: a controller that takes over does without its state
//! if that is not available at once. Other load may starve it, or it may read from a device that
//! hangs.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use rustix::process::setpriority_process;
use rustix::thread::gettid;
use segments::Shared;
use store::{Follower, Following, OpenOptions};

/// The interval for checking whether there is more to follow.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// The same while the log grows: this controller would still have to read as much in a takeover.
const BUSY_INTERVAL: Duration = Duration::from_millis(10);
/// The time until it retries after a failure: the pool may not exist yet, or the checkpoint was
/// replaced while it was read.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// The number of consecutive failures after which they are logged as a problem.
const FAILURES_TOLD: u32 = 10;
/// Threads that serve hosts have priority (`nice(1)`), but this one must still run on a busy
/// machine, or it would have nothing when it is needed.
const PRIORITY: i32 = 5;
/// How long a controller that takes over waits for this state: recovering the pool without it takes
/// longer.
const HANDED_WITHIN: Duration = Duration::from_millis(300);

/// Opens the pool's medium for reading while another process uses it.
pub type OpenBeside = Box<dyn Fn() -> Result<Shared, String> + Send>;

/// A thread that follows the pool.
pub struct Standby {
    found: Receiver<Option<Follower>>,
    /// Dropped to end the thread.
    goes_on: Sender<()>,
}

impl Standby {
    /// Starts following.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start(open: OpenBeside, options: OpenOptions) -> std::io::Result<Self> {
        let (goes_on, ends) = mpsc::channel();
        let (sender, found) = mpsc::sync_channel(1);
        let run = move || {
            // Otherwise hosts are only served more slowly while it has much to do.
            if let Err(error) = setpriority_process(Some(gettid()), PRIORITY) {
                tracing::debug!("the thread that follows the pool has its usual priority: {error}");
            }
            // A receiver that did not wait does without it.
            let _ = sender.send(follow(&open, &options, &ends));
        };
        thread::Builder::new().name("follower".into()).spawn(run)?;
        Ok(Self { found, goes_on })
    }

    /// Ends it. Returns its state, if that is usable and available at once.
    pub fn end(self) -> Option<Follower> {
        drop(self.goes_on);
        match self.found.recv_timeout(HANDED_WITHIN) {
            Ok(follower) => follower,
            // It can't have panicked: that ends the process.
            Err(_) => {
                tracing::warn!("the state of the follower is not available: the pool is recovered");
                None
            }
        }
    }
}

/// Follows until it must end.
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

/// How following from one checkpoint on ended.
enum Ended {
    /// It was asked to end.
    Asked(Box<Follower>),
    /// There is a newer checkpoint.
    Overtaken,
    Failed(String),
}

fn follow_one(mut follower: Follower, ends: &Receiver<()>, failures: &mut u32) -> Ended {
    loop {
        let records_before = follower.records();
        let wait = match follower.follow() {
            Ok(Following::Behind) => Duration::ZERO,
            Ok(Following::Current) => {
                *failures = 0;
                let is_busy = follower.records() > records_before;
                if is_busy { BUSY_INTERVAL } else { LOOK_INTERVAL }
            }
            Ok(Following::Overtaken) => return Ended::Overtaken,
            Err(error) => return Ended::Failed(error.to_string()),
        };
        if is_over(ends, wait) {
            return Ended::Asked(Box::new(follower));
        }
    }
}

/// Waits for this long. Returns whether it must end.
fn is_over(ends: &Receiver<()>, wait: Duration) -> bool {
    !matches!(ends.recv_timeout(wait), Err(RecvTimeoutError::Timeout))
}
