//! Telling others: alerts and, where it is wanted, the audit log, to syslog, webhooks and mail.
//!
//! Each destination has a thread and a bounded queue. Whoever has something to tell puts it there
//! and goes on, whatever becomes of it: what can't be sent is tried again, later and later, and
//! given up in the end. While a destination fails, that is an alert of its own.
//!
//! * [`event`]: what is told,
//! * [`syslog`], [`webhook`], [`mail`]: how, [`tls`]: whom they trust.

mod event;
mod mail;
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

use array::Severity;
use parking_lot::{Condvar, Mutex};

pub use event::{Event, News};
pub use mail::{Mail, MailSecurity};
pub use syslog::{Syslog, Transport};
pub use tls::{TlsError, client_config};
pub use webhook::Webhook;

/// Events that wait for one destination; more are dropped, and that is logged.
const QUEUE_MAX: usize = 256;
/// How often an event is tried: with the pauses between, for about half an hour.
const ATTEMPTS_MAX: u32 = 12;
/// The pause behind the first failure; each further one is twice as long.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// How long a destination may take to answer.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the end waits for what is still to be sent.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// A way to tell somebody. Waits, for [`SEND_TIMEOUT`] or little more.
pub trait Sender: Send + Sync {
    /// Sends an event.
    ///
    /// # Errors
    /// Why not, on one line.
    fn send(&self, event: &Event) -> Result<(), String>;
}

/// An error while the clock says no time that mail and TLS can be had at.
fn must_be_dated() -> Result<(), String> {
    match super::wall::is_dated() {
        true => Ok(()),
        false => Err("the clock of this machine is before 1970 or after 9999".into()),
    }
}

/// Where events are sent, and which.
pub struct Destination {
    /// What it is called; no two have one name.
    pub name: String,
    /// Only alerts that are at least as grave.
    pub severity: Severity,
    /// Whether entries of the audit log are sent as well.
    pub audit: bool,
    /// How.
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
    /// Why the last attempt failed, if it did.
    trouble: Option<String>,
    dropped: u64,
}

struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

/// One destination with its thread.
struct Worker {
    destination: Arc<Destination>,
    queue: Arc<Queue>,
}

/// All destinations.
pub struct Notifier {
    workers: Vec<Worker>,
}

impl Notifier {
    /// Starts a thread for each destination.
    ///
    /// # Errors
    /// Where a thread can't be had.
    pub fn start(destinations: Vec<Destination>) -> io::Result<Self> {
        Self::with_pause(destinations, PAUSE_MIN)
    }

    fn with_pause(destinations: Vec<Destination>, pause: Duration) -> io::Result<Self> {
        let mut notifier = Self { workers: Vec::new() };
        for destination in destinations {
            let destination = Arc::new(destination);
            let state = Mutex::new(State::default());
            let queue = Arc::new(Queue { state, changed: Condvar::new() });
            let (its, its_queue) = (destination.clone(), queue.clone());
            notifier.workers.push(Worker { destination, queue });
            thread::Builder::new()
                .name("notify".into())
                .spawn(move || work(&its, &its_queue, pause))?;
        }
        Ok(notifier)
    }

    /// Whether there is nobody to be told.
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty()
    }

    /// Has an event sent to all who want it. Does not wait.
    pub fn tell(&self, event: &Arc<Event>) {
        for worker in self.workers.iter().filter(|worker| worker.destination.wants(event)) {
            let mut state = worker.queue.state.lock();
            if state.waiting.len() >= QUEUE_MAX {
                state.dropped += 1;
                if state.dropped.is_power_of_two() {
                    let (name, count) = (&worker.destination.name, state.dropped);
                    tracing::error!("{count} events for {name} were dropped: it is too slow");
                }
                continue;
            }
            state.waiting.push_back(event.clone());
            worker.queue.changed.notify_all();
        }
    }

    /// Each destination, and why the last attempt to reach it failed, if it did.
    pub fn troubles(&self) -> Vec<(String, Option<String>)> {
        let trouble = |worker: &Worker| worker.queue.state.lock().trouble.clone();
        let all = self.workers.iter();
        all.map(|worker| (worker.destination.name.clone(), trouble(worker))).collect()
    }

    /// Sends an event to each destination, once, all at the same time, and waits for what comes of
    /// it.
    pub fn test(&self, event: &Event) -> Vec<(String, Result<(), String>)> {
        thread::scope(|scope| {
            let send = |worker: &Worker| {
                let destination = worker.destination.clone();
                scope.spawn(move || destination.sender.send(event))
            };
            let sent: Vec<_> = self.workers.iter().map(|w| (w, send(w))).collect();
            let outcome = |sent: thread::ScopedJoinHandle<'_, Result<(), String>>| {
                sent.join().unwrap_or_else(|_| Err("it failed; the log says why".into()))
            };
            let named = sent
                .into_iter()
                .map(|(worker, sent)| (worker.destination.name.clone(), outcome(sent)));
            named.collect()
        })
    }
}

impl Drop for Notifier {
    /// What waits is sent, if it goes at once; nothing holds the end up for long.
    fn drop(&mut self) {
        let end = Instant::now() + END_TIMEOUT;
        for worker in &self.workers {
            let mut state = worker.queue.state.lock();
            state.stop = true;
            worker.queue.changed.notify_all();
            while state.trouble.is_none() && (state.is_sending || !state.waiting.is_empty()) {
                if worker.queue.changed.wait_until(&mut state, end).timed_out() {
                    break;
                }
            }
        }
    }
}

/// The life of a destination's thread.
fn work(destination: &Destination, queue: &Queue, pause_min: Duration) {
    loop {
        let event = {
            let mut state = queue.state.lock();
            while state.waiting.is_empty() && !state.stop {
                queue.changed.wait(&mut state);
            }
            let Some(event) = state.waiting.pop_front() else { return };
            state.is_sending = true;
            event
        };
        let goes_on = deliver(destination, queue, &event, pause_min);
        queue.state.lock().is_sending = false;
        queue.changed.notify_all();
        if !goes_on {
            return;
        }
    }
}

/// Sends an event, again and again if need be; false at the end.
fn deliver(destination: &Destination, queue: &Queue, event: &Event, pause_min: Duration) -> bool {
    let name = &destination.name;
    let mut pause = pause_min;
    for attempt in 1..=ATTEMPTS_MAX {
        let result = destination.sender.send(event);
        let mut state = queue.state.lock();
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
            while !state.stop && !queue.changed.wait_until(&mut state, end).timed_out() {}
        }
        if state.stop {
            tracing::warn!("a notification to {name} was not sent before the end");
            return false;
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
    tracing::error!("a notification to {name} is given up: {}", event.text());
    true
}
