//! Notifications: alerts and, if requested, the audit log, to syslog, webhooks, mail and SNMP.
//!
//! Each destination has a thread and a bounded queue. A sender of notifications puts them there and
//! continues, whatever happens to them: failed attempts are repeated at increasing intervals, and
//! finally given up. While a destination fails, that is an alert of its own.
//!
//! * [`event`]: the content, [`config`]: the destinations in the configuration, [`kept`]: those in
//!   the pool,
//! * [`syslog`], [`webhook`], [`mail`], [`snmp`]: the protocols, [`tls`]: trusted authorities.

pub mod config;
mod event;
mod kept;
mod mail;
pub mod snmp;
mod syslog;
mod tls;
mod webhook;

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use array::{Dns, Severity};
use network::Names;
use parking_lot::{Condvar, Mutex, RwLock};

pub use event::{Event, News};
use kept::Kept;
pub use kept::Source;
pub use mail::{Mail, MailSecurity};
pub use syslog::{Syslog, Transport};
pub use tls::{TlsError, client_config};
pub use webhook::Webhook;

/// Events queued for one destination; more are dropped, and that is logged.
const QUEUE_MAX: usize = 256;
/// The number of attempts for an event: with the pauses in between, they take about half an hour.
const ATTEMPTS_MAX: u32 = 12;
/// The pause after the first failure; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// How long a destination may take to respond.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long shutdown waits for queued events.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// A protocol for notifications. Blocks, for [`SEND_TIMEOUT`] or slightly more.
pub trait Sender: Send + Sync {
    /// Sends an event, and resolves names by `names`.
    ///
    /// # Errors
    /// The reason for the failure, on one line.
    fn send(&self, event: &Event, names: &Names) -> Result<(), String>;
}

/// Returns an error while the clock has no valid time, which mail and TLS need.
fn must_be_dated() -> Result<(), String> {
    match sys::wall::is_dated() {
        true => Ok(()),
        false => Err("the clock of this machine is before 1970 or after 9999".into()),
    }
}

/// Where events are sent, and which ones.
pub struct Destination {
    /// Its name, unique among destinations.
    pub name: String,
    /// The lowest severity of alerts that are sent.
    pub severity: Severity,
    /// Whether entries of the audit log are sent as well.
    pub audit: bool,
    /// The protocol.
    pub sender: Arc<dyn Sender>,
}

impl Destination {
    fn wants(&self, event: &Event) -> bool {
        match &event.news {
            News::Opened(alert) | News::Closed(alert) => alert.condition.severity >= self.severity,
            News::Changed(_) => self.audit,
            News::Test => true,
        }
    }
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<Event>>,
    is_sending: bool,
    stop: bool,
    /// Whether the destination was changed since the last attempt.
    is_renewed: bool,
    /// Why the last attempt failed, if it did.
    trouble: Option<String>,
    dropped: u64,
}

/// A destination with its queue, which a thread processes.
struct Worker {
    destination: RwLock<Arc<Destination>>,
    names: Arc<Names>,
    state: Mutex<State>,
    changed: Condvar,
}

impl Worker {
    /// Starts the thread.
    fn start(
        destination: Destination,
        names: &Arc<Names>,
        pause: Duration,
    ) -> io::Result<Arc<Self>> {
        let worker = Arc::new(Self {
            destination: RwLock::new(Arc::new(destination)),
            names: names.clone(),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let its = worker.clone();
        thread::Builder::new().name("notify".into()).spawn(move || work(&its, pause))?;
        Ok(worker)
    }

    /// Returns the current destination.
    fn destination(&self) -> Arc<Destination> {
        self.destination.read().clone()
    }

    /// Changes the destination of queued and later events, and sends queued ones at once.
    fn renew(&self, destination: Destination) {
        *self.destination.write() = Arc::new(destination);
        self.hurry();
    }

    /// Retries queued events at once.
    fn hurry(&self) {
        self.state.lock().is_renewed = true;
        self.changed.notify_all();
    }

    /// Ends the thread, after queued events if these can be sent at once.
    fn stop(&self) {
        self.state.lock().stop = true;
        self.changed.notify_all();
    }

    fn tell(&self, event: &Arc<Event>) {
        let destination = self.destination();
        if !destination.wants(event) {
            return;
        }
        let mut state = self.state.lock();
        if state.waiting.len() >= QUEUE_MAX {
            state.dropped += 1;
            if state.dropped.is_power_of_two() {
                let (name, count) = (&destination.name, state.dropped);
                tracing::error!("{count} events for {name} were dropped: it is too slow");
            }
            return;
        }
        state.waiting.push_back(event.clone());
        self.changed.notify_all();
    }
}

/// All destinations: those of the configuration, and those that are currently set in the pool.
pub struct Notifier {
    fixed: Vec<Arc<Worker>>,
    kept: Kept,
    names: Arc<Names>,
    /// The settings of name resolution at the last check.
    dns: Mutex<Dns>,
}

impl Notifier {
    /// Starts a thread for each destination; `source` returns the settings of the pool.
    ///
    /// # Errors
    /// If a thread can't be created.
    pub fn start(
        destinations: Vec<Destination>,
        source: Source,
        names: Arc<Names>,
    ) -> io::Result<Self> {
        Self::with_pause(destinations, source, names, PAUSE_MIN)
    }

    fn with_pause(
        destinations: Vec<Destination>,
        source: Source,
        names: Arc<Names>,
        pause: Duration,
    ) -> io::Result<Self> {
        let fixed = destinations.into_iter().map(|it| Worker::start(it, &names, pause));
        Ok(Self {
            fixed: fixed.collect::<io::Result<_>>()?,
            kept: Kept::new(source, names.clone(), pause),
            dns: Mutex::new(names.dns()),
            names,
        })
    }

    /// Returns all current destinations. If name resolution has changed, queued events are retried
    /// at once.
    fn workers(&self) -> Vec<Arc<Worker>> {
        let all: Vec<_> = self.fixed.iter().cloned().chain(self.kept.workers()).collect();
        let (mut before, dns) = (self.dns.lock(), self.names.dns());
        if *before != dns {
            *before = dns;
            all.iter().for_each(|worker| worker.hurry());
        }
        all
    }

    /// Returns whether there are no destinations.
    pub fn is_empty(&self) -> bool {
        self.workers().is_empty()
    }

    /// Queues an event for all destinations that want it. Does not block.
    pub fn tell(&self, event: &Arc<Event>) {
        self.workers().iter().for_each(|worker| worker.tell(event));
    }

    /// Returns each destination, and why the last attempt to reach it failed, if it did.
    pub fn troubles(&self) -> Vec<(String, Option<String>)> {
        let trouble = |worker: Arc<Worker>| {
            (worker.destination().name.clone(), worker.state.lock().trouble.clone())
        };
        self.workers().into_iter().map(trouble).collect()
    }

    /// Sends an event once to each selected destination, all at the same time, and waits for the
    /// results.
    pub fn test(
        &self,
        event: &Event,
        is_wanted: impl Fn(&str) -> bool,
    ) -> Vec<(String, Result<(), String>)> {
        let all = self.workers().into_iter().map(|worker| worker.destination());
        let wanted: Vec<_> = all.filter(|destination| is_wanted(&destination.name)).collect();
        thread::scope(|scope| {
            let send = |destination: &Arc<Destination>| {
                let destination = destination.clone();
                scope.spawn(move || destination.sender.send(event, &self.names))
            };
            let sent: Vec<_> = wanted.iter().map(|it| (it, send(it))).collect();
            let outcome = |sent: thread::ScopedJoinHandle<'_, Result<(), String>>| {
                sent.join().unwrap_or_else(|_| Err("it failed; the log says why".into()))
            };
            let named = sent.into_iter().map(|(it, sent)| (it.name.clone(), outcome(sent)));
            named.collect()
        })
    }
}

impl Drop for Notifier {
    /// Sends queued events if that is possible at once; shutdown is not delayed for long.
    fn drop(&mut self) {
        let end = Instant::now() + END_TIMEOUT;
        for worker in self.fixed.iter().cloned().chain(self.kept.started()) {
            worker.stop();
            let mut state = worker.state.lock();
            while state.trouble.is_none() && (state.is_sending || !state.waiting.is_empty()) {
                if worker.changed.wait_until(&mut state, end).timed_out() {
                    break;
                }
            }
        }
    }
}

/// Runs a destination's thread.
fn work(worker: &Worker, pause_min: Duration) {
    loop {
        let event = {
            let mut state = worker.state.lock();
            while state.waiting.is_empty() && !state.stop {
                worker.changed.wait(&mut state);
            }
            let Some(event) = state.waiting.pop_front() else { return };
            state.is_sending = true;
            event
        };
        let goes_on = deliver(worker, &event, pause_min);
        worker.state.lock().is_sending = false;
        worker.changed.notify_all();
        if !goes_on {
            return;
        }
    }
}

/// Sends an event, repeatedly if necessary; returns false at the end.
fn deliver(worker: &Worker, event: &Event, pause_min: Duration) -> bool {
    let mut pause = pause_min;
    for attempt in 1..=ATTEMPTS_MAX {
        let destination = worker.destination();
        let name = &destination.name;
        let result = destination.sender.send(event, &worker.names);
        let mut state = worker.state.lock();
        match result {
            Ok(()) => {
                if state.trouble.take().is_some() {
                    tracing::info!("notifications to {name} are sent again");
                }
                return true;
            }
            Err(why) => {
                if state.trouble.is_none() {
                    tracing::warn!("a notification to {name} can't be sent: {why}");
                }
                state.trouble = Some(why);
            }
        }
        if attempt < ATTEMPTS_MAX && !state.stop {
            let end = Instant::now() + pause;
            while !state.stop
                && !state.is_renewed
                && !worker.changed.wait_until(&mut state, end).timed_out()
            {}
        }
        if state.stop {
            tracing::warn!("a notification to {name} was not sent before the end");
            return false;
        }
        pause = match std::mem::take(&mut state.is_renewed) {
            true => pause_min,
            false => (pause * 2).min(PAUSE_MAX),
        };
    }
    let name = &worker.destination().name;
    tracing::error!("a notification to {name} is given up: {}", event.text());
    true
}

/// Returns the name of this machine.
pub fn hostname() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
