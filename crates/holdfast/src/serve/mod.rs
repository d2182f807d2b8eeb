//! The front end: sockets and disk on one side, the sans-IO crates on the other.
//!
//! [`run`] starts one thread per core. Each has a poller, sockets, a channel to the medium, and a
//! [`FrontEnd`](::front::FrontEnd), which does everything that needs none of these:
//!
//! * [`threads`]: start and end of the threads, [`runner`]: the loop of one, [`shared`]: what all
//!   of them share,
//! * [`listen`]: portals, and assigning connections to threads, [`stream`]: their sockets,
//! * [`controllers`]: two controllers on one pool,
//! * [`saver`]: makes durable what hosts have set,
//! * [`background`]: checkpoints, work that is due by the clock, and signals,
//! * [`passes`]: passes over the whole pool that give way to hosts; [`scrub`]: reads everything
//!   stored, [`optimize`]: the background pass of reduction,
//! * [`space`]: accounts for stored data when hosts leave time for it,
//! * [`tokens`]: the volume of ROD tokens,
//! * [`supervisor`]: the protocol with the process that restarts the array, [`watchdog`]: reports
//!   to it that the array is alive,
//! * [`observer`]: sessions, and problems in the background.
//!
//! This module contains no policy: the crates that it wires together decide who may log in, what a
//! LUN is and what a command does.

mod background;
pub mod controllers;
mod listen;
mod observer;
mod optimize;
mod passes;
mod runner;
mod saver;
mod scrub;
mod shared;
mod space;
mod stream;
mod supervisor;
mod threads;
mod tokens;
mod watchdog;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use block::{ArrayIdentity, SectorCount, VolumeId};
use front::{Counters, LoadError, LunMaps, PortOptions, TargetRecords};
use store::{Store, StoreError};
use sys::FileDisk;

pub use background::{Shutdown, was_asked_to_end};
pub use controllers::{HandedOver, Pair};
pub use listen::{ConnectionLimits, check_count as check_portal_count};
pub use observer::Observer;
pub use scrub::ScrubOptions;
pub use supervisor::{HELD, Holding, Kept, tell_alive, tell_ready, watchdog_limit};

/// The most front-end threads started by default.
const THREADS_DEFAULT_MAX: usize = 8;

/// Work of an array that is due by the clock, and the space thresholds of hosts.
pub trait Duties: Send + Sync {
    /// Returns the percentages of pool usage at which hosts are notified.
    fn space_thresholds(&self) -> Vec<u8>;

    /// Sets the time: in milliseconds since 1970, and of a monotonic clock. May block.
    fn pass_time(&self, now_ms: u64, uptime_ms: u64);

    /// Takes the snapshots that are due at this time, in milliseconds since 1970, and destroys
    /// those that retention does not keep. May block.
    fn protect(&self, now_ms: u64);

    /// Eradicates some destroyed objects whose delay is over. `now_ms`: milliseconds since 1970.
    /// May block.
    fn eradicate(&self, now_ms: u64);
}

impl Duties for array::Array {
    fn space_thresholds(&self) -> Vec<u8> {
        self.settings().space_thresholds.percents().to_vec()
    }

    fn pass_time(&self, now_ms: u64, uptime_ms: u64) {
        let (jump_ms, kept) = array::Array::pass_time(self, now_ms, uptime_ms);
        if jump_ms != 0 {
            tracing::warn!(
                "the clock has jumped by {} s, or the array was off: the time before destroyed \
                 objects are eradicated does not count that",
                jump_ms / 1000
            );
        }
        if let Err(error) = kept {
            tracing::warn!("the time is stored later: {error}");
        }
    }

    fn protect(&self, now_ms: u64) {
        match self.run_due(now_ms) {
            Ok(ran) => {
                let list = |names: &[String]| names.join(", ");
                if !ran.taken.is_empty() {
                    tracing::info!("scheduled snapshots were taken: {}", list(&ran.taken));
                }
                if !ran.let_go.is_empty() {
                    tracing::info!("snapshots were destroyed by retention: {}", list(&ran.let_go));
                }
                for (group, error) in &ran.missed {
                    tracing::warn!("can't take the due snapshots of group {group}: {error}");
                }
            }
            Err(error) => tracing::warn!("due snapshots are taken later: {error}"),
        }
    }

    fn eradicate(&self, now_ms: u64) {
        if let Err(error) = self.eradicate_due(now_ms) {
            tracing::warn!("destroyed objects are eradicated later: {error}");
        }
    }
}

/// The configuration of the front end.
pub struct ServeOptions {
    /// The pool's medium, on which `store` was opened.
    pub medium: segments::Shared,
    /// Its files or devices on which space is kept ready ahead of the log.
    pub files: Vec<Arc<FileDisk>>,
    /// Notes for the administrator about these, one sentence each.
    pub notices: Vec<String>,
    /// The pool.
    pub store: Arc<Store>,
    /// A volume of `store` that is reserved for the data of ROD tokens, and its size.
    pub token_volume: (VolumeId, SectorCount),
    /// The identity that hosts see.
    pub identity: ArrayIdentity,
    /// The target's alias for display; empty for none.
    pub target_alias: String,
    /// The portals, each of which is a SCSI target port; at most [`array::PORTS_MAX`]. TCP port 0
    /// takes a free one.
    pub portals: Vec<PortOptions>,
    /// Sockets that already listen there.
    pub kept: Kept,
    /// The other controller of the pool, if there is one.
    pub pair: Option<Pair>,
    /// Connections of hosts that it has handed over.
    pub handed: Option<HandedOver>,
    /// The lease to answer hosts, if the pool's devices are fenced.
    pub lease: Option<Arc<controllers::fence::Lease>>,
    /// Decides who may log in.
    pub access: Arc<dyn iscsi::Access>,
    /// The LUN maps of hosts.
    pub luns: Arc<dyn LunMaps>,
    /// Work that is due by the clock.
    pub duties: Arc<dyn Duties>,
    /// Where the state of hosts is stored.
    pub reservations: Arc<dyn TargetRecords>,
    /// Limits on memory and time.
    pub limits: iscsi::Limits,
    /// Limits on hosts' connections.
    pub connections: ConnectionLimits,
    /// The number of front-end threads; 0 means one per core, at most 8.
    pub threads: usize,
    /// The number of bytes of new space kept ready ahead of the log; 0 for none.
    pub prepare_ahead_bytes: u64,
    /// The options of background scrubbing.
    pub scrub: ScrubOptions,
    /// The time from the end of one background pass of reduction to the beginning of the next;
    /// `None`: only on request.
    pub optimize_interval: Option<Duration>,
}

/// What management needs of a front end that serves. Cheap to clone.
#[derive(Clone)]
pub struct Running {
    /// Its portals, in the order of the options, with the actual TCP ports; then the portals of the
    /// other controller.
    pub portals: Vec<SocketAddr>,
    /// Their relative target port identifiers, in the same order.
    pub port_ids: Vec<u16>,
    /// Its counters.
    pub counters: Arc<Counters>,
    /// Its users, and its problems.
    pub observer: Observer,
    /// Stops it.
    pub shutdown: Shutdown,
}

/// The reason why serving failed.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A portal's address can't be used.
    #[error("can't listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The error.
        error: io::Error,
    },
    /// There is no portal, or there are too many.
    #[error(
        "an array needs 1 to {max} iSCSI addresses to listen on, not {0}",
        max = array::PORTS_MAX
    )]
    PortalCount(usize),
    /// A thread, a poller or a signal handler can't be created.
    #[error("can't start the front end: {0}")]
    Start(#[source] io::Error),
    /// The stored state of hosts can't be restored.
    #[error(transparent)]
    Reservations(#[from] LoadError),
    /// The final checkpoint failed: nothing is lost, but the next start must replay the log.
    #[error("the last checkpoint failed: {0}")]
    Checkpoint(#[source] StoreError),
}

/// Serves until SIGTERM, SIGINT or [`Shutdown::trigger`]: then it finishes what is in progress,
/// writes a checkpoint, unless the pool is handed over to another controller, and returns. `ready`
/// is called once, when all portals listen.
///
/// # Errors
/// See [`ServeError`].
pub fn run(mut options: ServeOptions, ready: impl FnOnce(Running)) -> Result<(), ServeError> {
    let addresses: Vec<SocketAddr> = options.portals.iter().map(|p| p.address).collect();
    let moving = options.pair.as_ref().and_then(|pair| pair.addresses.as_deref());
    let bound = listen::bind(&addresses, std::mem::take(&mut options.kept), moving)?;
    let own: Vec<SocketAddr> = bound.iter().map(|(address, _)| *address).collect();
    let shared = shared::Shared::new(&options, &own).map_err(ServeError::Start)?;
    let portals = shared.ports.iter().map(|port| port.address).collect();
    let port_ids = shared.ports.iter().map(|port| port.id).collect();
    shared.front.restore(&*options.reservations)?;
    for notice in &options.notices {
        tracing::warn!("{notice}");
    }
    let preparers = background::start_preparers(&options).map_err(ServeError::Start)?;
    let attendants =
        background::start(options.store.clone(), &shared).map_err(ServeError::Start)?;
    let accountant = space::start(&shared).map_err(ServeError::Start)?;
    let scrubber = scrub::start(options.scrub, &shared).map_err(ServeError::Start)?;
    let optimizer =
        optimize::start(options.optimize_interval, &shared).map_err(ServeError::Start)?;
    let saver = saver::start(&shared, options.reservations.clone()).map_err(ServeError::Start)?;
    let signals = background::Signals::start(&shared.shutdown).map_err(ServeError::Start)?;
    controllers::take_on(&shared, options.handed.take());
    let link = controllers::listen(&shared, options.pair.as_ref()).map_err(ServeError::Start)?;
    let bound = bound.into_iter().map(|(_, listener)| listener).enumerate();
    let bound = bound.chain(controllers::listen_elsewhere(&shared)?).collect();
    let threads = threads::start(&shared, bound).map_err(ServeError::Start)?;
    let watchdog = watchdog::start(&shared).map_err(ServeError::Start)?;
    ready(Running {
        portals,
        port_ids,
        counters: shared.front.counters.clone(),
        observer: Observer::new(shared.clone()),
        shutdown: shared.shutdown.clone(),
    });
    shared.shutdown.wait();
    let gives_way = options.pair.is_some_and(|pair| pair.gives_way.load(Ordering::Acquire));
    let mut background = Some((optimizer, scrubber, accountant, attendants, preparers));
    if gives_way {
        // First, because hosts are still served: a checkpoint under load takes half a second.
        drop(background.take());
    }
    shared.shutdown.stop_front_ends();
    threads.join();
    supervisor::tell_stopping();
    drop(watchdog);
    drop((signals, saver, background));
    // Once nothing is being saved of which hosts must be notified.
    controllers::hand_over(&shared);
    drop(link);
    // The other controller has followed the log, and waits.
    if gives_way && options.store.answers_are_durable() {
        return Ok(());
    }
    match options.store.checkpoint() {
        // Everything acknowledged is in the log, which the next start reads.
        Err(error @ StoreError::NoRoom { .. }) => {
            tracing::warn!("the array stops without a checkpoint: {error}");
            Ok(())
        }
        result => result.map_err(ServeError::Checkpoint),
    }
}

/// Returns how many front-end threads to start.
pub fn thread_count(wanted: usize) -> usize {
    if wanted > 0 {
        return wanted;
    }
    std::thread::available_parallelism().map_or(1, |n| n.get()).min(THREADS_DEFAULT_MAX)
}
