//! Work besides the front ends: checkpoints and reclaim; schedules, eradication and tokens; space
//! for the log; signals and shutdown.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use front::Mailbox;
use parking_lot::{Condvar, Mutex};
use signal_hook::consts::{SIGINT, SIGTERM};
use store::{Next, ReadAhead, Store, StoreError};
use sys::attendant::{Attendant, Bell, LOOK_INTERVAL};
use sys::wall::now_ms;
use sys::{FileDisk, Preparer};

use super::ServeOptions;
use super::shared::Shared;

/// Ends the front end. Cheap to clone.
#[derive(Clone)]
pub struct Shutdown {
    mailboxes: Arc<Vec<Arc<Mailbox>>>,
    requested: Arc<(Mutex<bool>, Condvar)>,
}

impl Shutdown {
    pub(super) fn new(mailboxes: Arc<Vec<Arc<Mailbox>>>) -> Self {
        Self { mailboxes, requested: Arc::default() }
    }

    /// Makes [`super::run`] end: all front ends finish what is in progress. Once is enough.
    pub fn trigger(&self) {
        let (is_requested, changed) = &*self.requested;
        *is_requested.lock() = true;
        changed.notify_all();
    }

    /// Waits until the end is requested.
    pub(super) fn wait(&self) {
        let (is_requested, changed) = &*self.requested;
        changed.wait_while(&mut is_requested.lock(), |is_requested| !*is_requested);
    }

    /// Lets all front ends finish what is in progress, and accept no new commands.
    pub(super) fn stop_front_ends(&self) {
        self.mailboxes.iter().for_each(|mailbox| mailbox.stop());
    }
}

/// Whether SIGTERM or SIGINT has arrived since [`note_signals`].
static NOTED: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// Notes signals from now on. A controller that takes over handles none while it opens the pool,
/// and must not lose a request to end that arrives meanwhile.
pub(super) fn note_signals() -> io::Result<()> {
    let noted = NOTED.get_or_init(Arc::default);
    for signal in [SIGTERM, SIGINT] {
        signal_hook::flag::register(signal, noted.clone())?;
    }
    Ok(())
}

/// Returns whether a signal has asked this process to end.
pub fn was_asked_to_end() -> bool {
    NOTED.get().is_some_and(|noted| noted.load(Ordering::SeqCst))
}

/// A thread that turns SIGTERM and SIGINT into [`Shutdown::trigger`].
pub(super) struct Signals {
    handle: signal_hook::iterator::Handle,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    pub(super) fn start(shutdown: &Shutdown) -> io::Result<Self> {
        note_signals()?;
        let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT])?;
        let handle = signals.handle();
        let shutdown = shutdown.clone();
        let mut is_again = was_asked_to_end();
        if is_again {
            tracing::info!("a signal arrived before the pool was open: ending");
            shutdown.trigger();
        }
        let thread = thread::Builder::new().name("signals".into()).spawn(move || {
            for signal in signals.forever() {
                // A controller that hands over is already ending, and not because of a signal.
                if std::mem::replace(&mut is_again, true) {
                    tracing::warn!("signal {signal} again: ending at once, the log is replayed");
                    std::process::exit(128 + signal);
                }
                tracing::info!("signal {signal}: finishing commands in progress");
                shutdown.trigger();
            }
        })?;
        Ok(Self { handle, thread: Some(thread) })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        join(self.thread.take());
    }
}

/// The pause between two turns of work that can be spread over time while hosts are busy.
const PAUSE: Duration = Duration::from_millis(20);

/// The pause between two turns of work that must keep pace with hosts, and of freeing what was
/// dropped: about 8,000 nodes per second, which is 1 TiB and more if each refers to 256 MiB.
const SHORT_PAUSE: Duration = Duration::from_millis(2);

/// Starts two threads. One writes due checkpoints, frees what was dropped and reclaims, which never
/// ends while hosts overwrite a full pool. Therefore the other one does what is due by the clock:
/// taking and destroying snapshots, eradication, and the end of tokens.
pub(super) fn start(store: Arc<Store>, shared: &Arc<Shared>) -> io::Result<[Attendant; 2]> {
    start_with(move |ahead| store.maintain_with(ahead), shared)
}

/// The same with a replacement for one turn of maintenance.
pub(super) fn start_with(
    turn: impl Fn(&mut ReadAhead) -> Result<Next, StoreError> + Send + 'static,
    shared: &Arc<Shared>,
) -> io::Result<[Attendant; 2]> {
    // Before the first host logs in, so that the initial state is not reported as a change.
    watch_space(shared);
    let its_shared = shared.clone();
    let maintenance =
        Attendant::start("checkpoint", shared.checkpoint_bell.clone(), move |bell| {
            maintain(&turn, bell, &its_shared);
            LOOK_INTERVAL
        })?;
    let its_shared = shared.clone();
    let duties = Attendant::start("duties", Arc::default(), move |_| {
        its_shared.front.sweep_tokens();
        let now_ms = now_ms();
        its_shared.duties.pass_time(now_ms, its_shared.clock.now_ms());
        its_shared.duties.protect(now_ms);
        its_shared.duties.eradicate(now_ms);
        its_shared.front.forget_gone();
        LOOK_INTERVAL
    })?;
    Ok([maintenance, duties])
}

/// Checks how full the pool is, and notifies hosts if usage has crossed a threshold.
fn watch_space(shared: &Shared) {
    let (used_bytes, capacity_bytes) = shared.front.store.space_use();
    shared.front.scsi.space(&shared.duties.space_thresholds(), used_bytes, capacity_bytes);
}

/// Does all due maintenance, or what remains before the end.
fn maintain(
    turn: impl Fn(&mut ReadAhead) -> Result<Next, StoreError>,
    bell: &Bell,
    shared: &Shared,
) {
    let mut ahead = ReadAhead::default();
    while !bell.stopped() {
        watch_space(shared);
        match turn(&mut ahead) {
            Ok(Next::AtOnce) => {}
            Ok(Next::Gently) => thread::sleep(PAUSE),
            Ok(Next::Soon) => thread::sleep(SHORT_PAUSE),
            Ok(Next::Nothing) => {
                shared.troubles.set("maintenance", None);
                return;
            }
            Err(error @ StoreError::NoRoom { .. }) => {
                if shared.troubles.set("maintenance", Some(error.to_string())) {
                    tracing::error!("{error}");
                }
                return;
            }
            Err(error) => {
                // Durable data stays durable; a store that can't continue accepts no more writes.
                tracing::error!("maintenance failed: {error}");
                shared.troubles.set("maintenance", Some(error.to_string()));
                return;
            }
        }
    }
}

/// Starts the threads that keep space ready for the log, one for each file for which that is
/// configured.
pub(super) fn start_preparers(options: &ServeOptions) -> io::Result<Vec<Preparer>> {
    if options.prepare_ahead_bytes == 0 {
        return Ok(Vec::new());
    }
    let report = |text: &str| tracing::warn!("{text}");
    let start =
        |file: &Arc<FileDisk>| Preparer::start(file.clone(), options.prepare_ahead_bytes, report);
    options.files.iter().map(start).collect()
}

fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread {
        // A panic of that thread was printed when it happened.
        let _ = thread.join();
    }
}
