//! The front end: sockets and disk on one side, the sans-IO crates on the other.
//!
//! [`run`] starts one thread a core. Each has a poller, sockets, a channel to the medium, and a
//! [`FrontEnd`](::front::FrontEnd), which does all that can be done without these:
//!
//! * [`threads`]: their start, [`runner`]: the loop of one, [`shared`]: what all of them share,
//! * [`listen`]: portals, and handing connections out, [`stream`]: their sockets,
//! * [`controllers`]: two of them on one pool,
//! * [`saver`]: making durable what hosts have set,
//! * [`background`]: checkpoints, what is due by the clock, and signals,
//! * [`passes`]: what goes over the whole pool, and gives way to hosts; [`scrub`]: reading all that
//!   is stored, [`optimize`]: the background pass of reduction,
//! * [`space`]: accounting for what is stored, when hosts leave time for it,
//! * [`tokens`]: the volume of ROD tokens,
//! * [`supervisor`]: who starts the array again, [`watchdog`]: what it hears of its health,
//! * [`observer`]: who is logged in, and what goes wrong.
//!
//! There is no policy here: who may log in, what a LUN is and what a command does is decided in
//! the crates that this wires together.

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

/// The most front-end threads that are started by default.
const THREADS_DEFAULT_MAX: usize = 8;

/// What an array has to do by the clock, and what hosts are told of its space.
pub trait Duties: Send + Sync {
    /// At how many percent of the pool in use hosts are told of it.
    fn space_thresholds(&self) -> Vec<u8>;

    /// Tells the time: in milliseconds since 1970, and of a monotonic clock. May wait.
    fn pass_time(&self, now_ms: u64, uptime_ms: u64);

    /// Takes the snapshots that are due at so many milliseconds since 1970, and destroys those that
    /// are kept no longer. May wait.
    fn protect(&self, now_ms: u64);

    /// Eradicates some of what is destroyed and whose time is over, at so many milliseconds since
    /// 1970. May wait.
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
                    tracing::info!("snapshots were taken that were due: {}", list(&ran.taken));
                }
                if !ran.let_go.is_empty() {
                    tracing::info!("snapshots are kept no longer: {}", list(&ran.let_go));
                }
                for (group, error) in &ran.missed {
                    tracing::warn!("the snapshots of group {group} that are due: {error}");
                }
            }
            Err(error) => tracing::warn!("snapshots that are due are taken later: {error}"),
        }
    }

    fn eradicate(&self, now_ms: u64) {
        if let Err(error) = self.eradicate_due(now_ms) {
            tracing::warn!("what is destroyed is eradicated later: {error}");
        }
    }
}

/// What to serve, and how.
pub struct ServeOptions {
    /// Where the pool lives: what `store` was opened on.
    pub medium: segments::Shared,
    /// The files or devices of it that space is kept ready on ahead of the log.
    pub files: Vec<Arc<FileDisk>>,
    /// What an administrator should know about these, one sentence each.
    pub notices: Vec<String>,
    /// The pool.
    pub store: Arc<Store>,
    /// A volume of `store` that nobody else uses, for what ROD tokens stand for, and its size.
    pub token_volume: (VolumeId, SectorCount),
    /// What hosts are told of the array.
    pub identity: ArrayIdentity,
    /// The target's alias, for people; empty for none.
    pub target_alias: String,
    /// Where to listen, one portal (and SCSI target port) each, at most [`array::PORTS_MAX`]. TCP
    /// port 0 takes a free one.
    pub portals: Vec<PortOptions>,
    /// Sockets that listen there already.
    pub kept: Kept,
    /// The other controller of the pool, if there is one.
    pub pair: Option<Pair>,
    /// Connections of hosts that it has handed over.
    pub handed: Option<HandedOver>,
    /// Until when hosts may be answered, where the pool is fenced by its devices.
    pub lease: Option<Arc<controllers::fence::Lease>>,
    /// Who may log in.
    pub access: Arc<dyn iscsi::Access>,
    /// What they see then.
    pub luns: Arc<dyn LunMaps>,
    /// What is due by the clock.
    pub duties: Arc<dyn Duties>,
    /// Where reservations are kept.
    pub reservations: Arc<dyn TargetRecords>,
    /// What bounds memory and time.
    pub limits: iscsi::Limits,
    /// How many connections hosts may have.
    pub connections: ConnectionLimits,
    /// How many front-end threads; 0 is one a core, at most 8.
    pub threads: usize,
    /// How many bytes of new space are kept ready ahead of the log; 0 for none.
    pub prepare_ahead_bytes: u64,
    /// How all is read and compared in the background.
    pub scrub: ScrubOptions,
    /// From the end of one background pass of reduction to the beginning of the next; `None`: only
    /// when one is asked for.
    pub optimize_interval: Option<Duration>,
}

/// A front end that serves: what management needs of it. Cheap to clone.
#[derive(Clone)]
pub struct Running {
    /// Where it listens, in the order of the options, with the ports that were taken; then the
    /// portals of the other controller.
    pub portals: Vec<SocketAddr>,
    /// Their relative target port identifiers, in the same order.
    pub port_ids: Vec<u16>,
    /// What it has done.
    pub counters: Arc<Counters>,
    /// Who uses it, and what is wrong.
    pub observer: Observer,
    /// Ends it.
    pub shutdown: Shutdown,
}

/// Why nothing is served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A portal's address can't be had.
    #[error("can't listen on {address}: {error}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// There is no portal, or there are too many.
    #[error(
        "an array needs 1 to {max} iSCSI addresses to listen on, not {0}",
        max = array::PORTS_MAX
    )]
    PortalCount(usize),
    /// A thread, a poller or a signal handler can't be had.
    #[error("can't start the front end: {0}")]
    Start(#[source] io::Error),
    /// What is kept of hosts can't be put in force.
    #[error(transparent)]
    Reservations(#[from] LoadError),
    /// The checkpoint at the end failed: nothing is lost, but the next start has to replay the log.
    #[error("the last checkpoint failed: {0}")]
    Checkpoint(#[source] StoreError),
}

/// Serves until SIGTERM, SIGINT or [`Shutdown::trigger`]: then it finishes what is under way, makes
/// a checkpoint, unless the pool is left to another controller, and returns. `ready` is called
/// once, when all portals listen.
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
    threads.join();
    supervisor::tell_stopping();
    drop(watchdog);
    drop((signals, saver, optimizer, scrubber, accountant, attendants, preparers));
    // When nothing is saved any more that hosts are to be told of.
    controllers::hand_over(&shared);
    drop(link);
    // The other controller has followed the log, and waits.
    let gives_way = options.pair.is_some_and(|pair| pair.gives_way.load(Ordering::Acquire));
    if gives_way && options.store.answers_are_durable() {
        return Ok(());
    }
    match options.store.checkpoint() {
        // What was answered is in the log, which the next start reads.
        Err(error @ StoreError::NoRoom { .. }) => {
            tracing::warn!("the array stops without a checkpoint: {error}");
            Ok(())
        }
        result => result.map_err(ServeError::Checkpoint),
    }
}

/// How many front-end threads to start.
pub fn thread_count(wanted: usize) -> usize {
    if wanted > 0 {
        return wanted;
    }
    std::thread::available_parallelism().map_or(1, |n| n.get()).min(THREADS_DEFAULT_MAX)
}
