//! Detects problems: a thread that checks counters and states every few seconds, opens and closes
//! alerts, and sends notifications.
//!
//! Nothing here is on the data path: it reads counters that exist anyway. The result of a [`Look`]
//! is a function of that and of earlier looks ([`judge`], [`device`], [`members`], [`health`],
//! [`hosts`], [`time`], [`directory`]), and can be tested without a clock.

mod device;
mod directory;
mod health;
mod hosts;
mod judge;
mod look;
mod members;
mod time;

#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use array::{Alert, AlertState, Array, Seen, Told};

use sys::attendant::{Attendant, Bell};
use sys::wall::now_ms;

use crate::notify::{Event, News, Notifier};

pub use look::{Certificate, Observed, Sources};

use judge::Judge;

/// The interval between looks.
const LOOK_PAUSE: Duration = Duration::from_secs(5);
/// The number of audit log entries read at once.
const CHANGES_AT_ONCE: usize = 32;

/// The thread that looks, and the one that stores the results. They end when this is dropped.
pub struct Watcher(#[allow(dead_code, reason = "they end when they are dropped")] [Attendant; 2]);

impl Watcher {
    /// Starts both.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start(sources: Sources, notifier: Arc<Notifier>) -> io::Result<Self> {
        let clock = sys::Clock::start();
        let (mut judge, mut known) = (Judge::default(), members::Known::default());
        let array = sources.array.clone();
        let (mut teller, mut keeper) =
            (Teller::new(array.clone(), notifier), Keeper { array, is_stored: true });
        let found = Arc::new(Bell::default());
        // On a separate thread, because it blocks on the device, which may itself be the problem.
        let storing = Attendant::start("alerts-store", found.clone(), move |_| {
            keeper.store();
            LOOK_PAUSE
        })?;
        let looking = Attendant::start("alerts", Arc::default(), move |_| {
            let now_ms = now_ms();
            let look = sources.look(now_ms, clock.now_ms(), &teller.notifier);
            known.log(&look.members);
            teller.note(&judge.judge(&look), now_ms);
            found.ring();
            LOOK_PAUSE
        })?;
        Ok(Self([looking, storing]))
    }
}

/// Stores the results, as soon as the store accepts them.
struct Keeper {
    array: Arc<Array>,
    is_stored: bool,
}

impl Keeper {
    fn store(&mut self) {
        let result = self.array.store_alerts();
        if let (Err(error), true) = (&result, self.is_stored) {
            tracing::error!("alerts can't be stored: {error}");
        }
        self.is_stored = result.is_ok();
    }
}

/// Returns the number of the newest entry of the audit log.
fn newest_change(array: &Array) -> u64 {
    array.audit_log(None, 1).first().map_or(0, |entry| entry.number)
}

/// Sends notifications of news.
struct Teller {
    array: Arc<Array>,
    notifier: Arc<Notifier>,
    /// The last entry of the audit log that was sent, or that existed at the start.
    last_change: u64,
}

impl Teller {
    fn new(array: Arc<Array>, notifier: Arc<Notifier>) -> Self {
        let last_change = newest_change(&array);
        Self { array, notifier, last_change }
    }

    /// Opens, changes and closes alerts according to `seen`, and sends notifications. Never blocks.
    fn note(&mut self, seen: &[Seen], now_ms: u64) {
        self.array.watch_alerts(seen, now_ms);
        self.tell(now_ms);
    }

    fn tell(&mut self, now_ms: u64) {
        if self.notifier.is_empty() {
            // Later recipients do not get earlier news.
            self.last_change = newest_change(&self.array);
            return;
        }
        let array = self.array.name();
        self.tell_changes(&array);
        let news = self.array.alerts(0, usize::MAX);
        let news: Vec<(Alert, Told)> = news
            .into_iter()
            .filter_map(|alert| alert.news().map(|reported| (alert, reported)))
            .collect();
        if news.is_empty() {
            return;
        }
        let reported: Vec<(u64, Told)> =
            news.iter().map(|(alert, reported)| (alert.number, *reported)).collect();
        for (alert, _) in news {
            let time_ms = alert.updated_ms;
            let news = match alert.state {
                AlertState::Closed => News::Closed(alert),
                AlertState::Open | AlertState::Closing => News::Opened(alert),
            };
            self.notifier.tell(&Arc::new(Event { news, time_ms, array: array.clone() }));
        }
        self.array.alerts_told(&reported, now_ms);
    }

    fn tell_changes(&mut self, array: &str) {
        let (mut newer, mut before) = (Vec::new(), None);
        loop {
            let older = self.array.audit_log(before, CHANGES_AT_ONCE);
            before = older.last().map(|entry| entry.number);
            let is_last = older.len() < CHANGES_AT_ONCE
                || before.is_none_or(|number| number <= self.last_change);
            newer.extend(older.into_iter().filter(|entry| entry.number > self.last_change));
            if is_last {
                break;
            }
        }
        for entry in newer.into_iter().rev() {
            self.last_change = entry.number;
            let (time_ms, array) = (entry.deed.time_ms, array.to_owned());
            let event = Event { news: News::Changed((*entry).clone()), time_ms, array };
            self.notifier.tell(&Arc::new(event));
        }
    }
}
