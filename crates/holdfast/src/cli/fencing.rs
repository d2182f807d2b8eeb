//! `serve --fence reservations`: the devices of the pool are reserved for one of two controllers on
//! two machines (RFC 0015).

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use sys::{FileDisk, Reservable, ReservationError, ReservedDevice};

use super::failure::Failure;
use super::medium::Medium;
use super::place::{Place, Places};
use super::serve::of_serving;
use super::supervised::GIVES_WAY;
use crate::serve::ServeError;
use crate::serve::controllers::fence::{Guard, Held, Named, TakeError, Turn, quorum};
use crate::serve::controllers::{AwaitTurn, Claim, Controller, Meeting};

/// How long a process of this machine that was just ended may still hold the claim.
const CLAIMED_WITHIN: Duration = Duration::from_secs(5);
const LOOK_INTERVAL: Duration = Duration::from_millis(50);
/// The timeout after which a device without response counts as missing.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The proof that this process has the pool: the reserved devices, and the guard that keeps them.
#[derive(Clone)]
pub struct Fence {
    guard: Arc<Guard>,
    names: BTreeSet<String>,
    serves_from: Instant,
}

/// A process that waits for the pool.
pub struct Fencing {
    turn: Turn,
    claim: Claim,
    fence: Arc<Mutex<Option<Fence>>>,
}

impl Fencing {
    /// Opens the devices of the pool, which must support reservations.
    pub fn begin(own: Controller, pool: &[PathBuf], meeting: &Meeting) -> Result<Self, Failure> {
        let mut named = Vec::new();
        for (path, opened) in open_all(pool) {
            match opened {
                Ok(device) => named.push(device),
                Err(ReservationError::Failed(error)) => {
                    tracing::warn!("{}: {error}: the pool is taken without it", path.display());
                }
                Err(error) => {
                    let text = format!("--fence reservations: {}: {error}", path.display());
                    return Err(Failure::Usage(text));
                }
            }
        }
        let (there, least) = (named.len(), quorum(pool.len()));
        if there < least {
            let all = pool.len();
            return Err(Failure::Refused(format!(
                "only {there} of {all} devices are available, and {least} are needed to know that \
                 no other controller has the pool"
            )));
        }
        let claim = claim_of_machine(meeting)?;
        let failed = |error| of_serving(ServeError::Start(error));
        let turn = Turn::new(own, pool.len(), named).map_err(failed)?;
        Ok(Self { turn, claim, fence: Arc::default() })
    }

    /// Takes the pool if it is available at once.
    pub fn attempt(mut self) -> Result<Result<(Claim, Fence), Self>, Failure> {
        match self.turn.attempt().map_err(of_turn)? {
            None => Ok(Err(self)),
            Some(held) => {
                let fence = Fence::keep(&held).map_err(of_turn)?;
                Ok(Ok((self.claim, fence)))
            }
        }
    }

    /// Returns a function that waits until the pool is available, and the place where it stores the
    /// fence.
    pub fn wait(self) -> (AwaitTurn, Arc<Mutex<Option<Fence>>>) {
        let Self { turn, claim, fence } = self;
        let taken = fence.clone();
        let wait = move |has_turn: Box<dyn FnOnce() + Send>| {
            // No other process of this machine serves the pool, and this one watches: a controller
            // that gives up the pool waits longer.
            has_turn();
            let held = turn.wait()?;
            *taken.lock() = Some(Fence::keep(&held)?);
            Ok(claim)
        };
        (Box::new(wait), fence)
    }
}

fn of_turn(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::Unsupported => Failure::Usage(format!("--fence reservations: {error}")),
        _ => of_serving(ServeError::Start(error)),
    }
}

/// Takes the claim of this machine. The devices can't distinguish processes of one machine, so
/// there must be only one.
fn claim_of_machine(meeting: &Meeting) -> Result<Claim, Failure> {
    let begun = Instant::now();
    loop {
        let claimed = Claim::try_take(meeting);
        let claimed = claimed.map_err(|error| of_serving(ServeError::Start(error)))?;
        match claimed {
            Some(claim) => return Ok(claim),
            None if begun.elapsed() < CLAIMED_WITHIN => thread::sleep(LOOK_INTERVAL),
            None => {
                let text = "another process of this machine serves this pool, or waits for it: \
                            with --fence reservations each controller is on a machine of its own";
                return Err(Failure::Refused(text.into()));
            }
        }
    }
}

type Opened<'a> = (&'a PathBuf, Result<Named, ReservationError>);

/// Opens all devices in parallel, to query their reservations.
fn open_all(pool: &[PathBuf]) -> Vec<Opened<'_>> {
    let begin = |path: &PathBuf| {
        let ((sender, receiver), path) = (mpsc::channel(), path.clone());
        // The receiver is gone after a timeout.
        thread::spawn(move || drop(sender.send(open(&path))));
        receiver
    };
    let opening: Vec<_> = pool.iter().map(|path| (path, begin(path))).collect();
    let begun = Instant::now();
    let late = || ReservationError::Failed(io::ErrorKind::TimedOut.into());
    let wait = |(path, receiver): (_, mpsc::Receiver<_>)| {
        let left = ANSWERS_WITHIN.saturating_sub(begun.elapsed());
        (path, receiver.recv_timeout(left).unwrap_or_else(|_| Err(late())))
    };
    opening.into_iter().map(wait).collect()
}

/// Opens a device, with the name of its place.
fn open(path: &Path) -> Result<Named, ReservationError> {
    let path = path.canonicalize()?;
    let device = ReservedDevice::open(&path)?;
    device.registered()?;
    let name = Place { data: path.clone(), pool: path }.name();
    Ok(Named { name, device: Arc::new(device) })
}

impl Fence {
    fn keep(held: &Held) -> io::Result<Self> {
        let guard = Arc::new(Guard::start(held, Box::new(end_process))?);
        let names = held.names().map(str::to_owned).collect();
        Ok(Self { guard, names, serves_from: held.serves_from })
    }

    /// Returns the guard that keeps the reservations.
    pub fn guard(&self) -> &Arc<Guard> {
        &self.guard
    }

    /// Returns the places whose devices are reserved. The others count as missing.
    pub fn of(&self, places: Places) -> Places {
        let Places { all, mut missing } = places;
        let is_held = |place: &Place| self.names.contains(&place.name());
        let (held, left): (Vec<_>, Vec<_>) = all.into_iter().partition(is_held);
        missing.extend(left.into_iter().map(|place| place.pool));
        Places { all: held, missing }
    }

    /// Refuses a pool of which another controller may have a quorum, because it has more devices
    /// than were named. Ends this process when one of its devices reports that it is fenced.
    pub fn look_at(&self, medium: &Medium) -> Result<(), Failure> {
        let files = medium.files();
        for (name, file) in &files {
            self.watch(name, file);
        }
        let (opened, all) = (files.len(), medium.devices().len());
        if self.guard.is_enough(opened, all) {
            return Ok(());
        }
        Err(Failure::Refused(format!(
            "{opened} of the {all} devices of the pool are reserved for this controller, and it \
             takes {}: name all of them",
            quorum(all)
        )))
    }

    /// Ends this process when a device to which it writes reports that it is fenced.
    pub fn watch(&self, name: &str, file: &FileDisk) {
        file.when_fenced(self.guard.when_fenced(name.to_owned()));
    }

    /// Reserves a device that is added to the pool, before anything else is done to it.
    pub fn admit(&self, path: &Path) -> Result<(), Failure> {
        let refuse = |error: TakeError| {
            Failure::Refused(format!("{}: {error}: it can't be reserved", path.display()))
        };
        let named = open(path).map_err(|error| refuse(error.into()))?;
        self.guard.add(&named).map_err(refuse)
    }

    /// Gives up the devices after the last write to the pool: the other controller may take it.
    pub fn end(&self) {
        self.guard.end();
    }

    /// Waits until hosts may be served.
    pub fn wait(&self) {
        thread::sleep(self.serves_from.saturating_duration_since(Instant::now()));
    }
}

/// Ends the fenced process at once, with all connections of hosts, regardless of what they sent.
fn end_process(why: &str) {
    tracing::error!("{why}: this controller no longer has the pool, and ends");
    process::exit(i32::from(GIVES_WAY));
}
