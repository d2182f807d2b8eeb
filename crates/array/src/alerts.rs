//! Alerts: what is wrong with the array or its hosts, from when it began until it was over.
//!
//! Whoever watches says with [`Array::watch_alerts`] which conditions hold; the rest happens here.
//! A condition that begins to hold opens an alert. One that is over makes it *closing*, and after
//! [`CLOSING_MS`] without it *closed*: what comes and goes is one alert. Open ones and the last
//! [`ALERTS_CLOSED_MAX`] closed ones are kept in the pool.
//!
//! An alert that was closed by hand stays closed as long as its condition goes on, unless that
//! becomes graver.

mod code;
mod plan;

use std::collections::{BTreeMap, BTreeSet};

use store::Change;

pub use code::{AlertCode, Category};

use crate::{Array, Error, record};

/// For how long a condition is over before its alert is closed.
pub const CLOSING_MS: u64 = 300_000;
/// The most alerts that are not closed: what is least grave gives way, and is opened later.
pub const ALERTS_OPEN_MAX: usize = 500;
/// The most closed alerts that are kept; the oldest give way.
pub const ALERTS_CLOSED_MAX: usize = 1_000;
/// The most alerts that one commit stores.
const STORED_MAX: usize = 200;
/// The longest text of a condition, in bytes: a record stays below 1 KiB.
pub const ALERT_TEXT_BYTES_MAX: usize = 200;

/// How grave an alert is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something could be better.
    Info,
    /// It will get worse if nobody does anything.
    Warning,
    /// Data, or access to it, is lost or about to be.
    Critical,
}

impl Severity {
    /// All, in ascending order.
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Critical];

    /// Its name in settings and interfaces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// The one with this name; `None` if there is none.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.name() == name)
    }
}

/// The state of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertState {
    /// Its condition holds.
    Open,
    /// It does not hold any more, but has done so shortly before.
    Closing,
    /// It is over.
    Closed,
}

impl AlertState {
    /// Its name in settings and interfaces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closing => "closing",
            Self::Closed => "closed",
        }
    }

    /// The one with this name; `None` if there is none.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Open, Self::Closing, Self::Closed].into_iter().find(|state| state.name() == name)
    }
}

/// Something that is wrong now. Code and component are what tells it from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Its kind.
    pub code: AlertCode,
    /// The host, volume, group or other object that it is about.
    pub component: String,
    /// How grave it is.
    pub severity: Severity,
    /// What was seen.
    pub actual: String,
    /// What would be right.
    pub expected: String,
}

/// What somebody who watches knows of a condition. One that is not mentioned does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It holds.
    Holds(Condition),
    /// Nobody knows yet: what was known before stays.
    Unsure(AlertCode, String),
}

/// What others were told of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// Nothing.
    Nothing,
    /// That it is open, and as grave as this.
    Opened(Severity),
    /// That it is closed.
    Closed,
}

/// An alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// From 1; never used twice.
    pub number: u64,
    /// What it is about.
    pub condition: Condition,
    /// Its state.
    pub state: AlertState,
    /// When it was opened, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it has changed last.
    pub updated_ms: u64,
    /// When it was closed.
    pub closed_ms: Option<u64>,
    /// Whether somebody still has to look at it: true, until somebody says otherwise.
    pub flagged: bool,
    /// Whether it was closed by hand, and its condition has held ever since.
    pub dismissed: bool,
    /// What notifications have said of it.
    pub told: Told,
    /// When the last of them was sent, in milliseconds since 1970.
    pub told_ms: Option<u64>,
}

impl Alert {
    /// What is wrong, on one line.
    pub fn summary(&self) -> String {
        self.condition.code.summary(&self.condition.component)
    }

    /// What others are to be told of it, if it is not what they know.
    pub fn news(&self) -> Option<Told> {
        match (self.state, self.told) {
            (AlertState::Closed, Told::Opened(_)) => Some(Told::Closed),
            (AlertState::Closed, _) => None,
            (_, Told::Opened(severity)) if severity >= self.condition.severity => None,
            _ => Some(Told::Opened(self.condition.severity)),
        }
    }
}

/// All alerts that are kept.
#[derive(Default)]
pub(crate) struct Alerts {
    /// By number.
    by_number: BTreeMap<u64, Alert>,
    last_number: u64,
    /// What is not stored yet.
    unsaved: BTreeSet<u64>,
}

impl Alerts {
    /// Takes what was stored, in any order.
    pub(crate) fn load(&mut self, alert: Alert) {
        self.last_number = self.last_number.max(alert.number);
        self.by_number.insert(alert.number, alert);
    }

    /// Takes an alert as it shall be, which is not stored yet.
    fn change(&mut self, alert: Alert) {
        self.unsaved.insert(alert.number);
        self.load(alert);
    }

    /// An alert is stored in this form.
    fn stored(&mut self, alert: &Alert) {
        if self.by_number.get(&alert.number) == Some(alert) {
            self.unsaved.remove(&alert.number);
        }
    }

    fn find(&self, number: u64) -> Result<&Alert, Error> {
        self.by_number.get(&number).ok_or_else(|| Error::NoSuchAlert(number.to_string()))
    }
}

impl Array {
    /// Opens, changes and closes alerts according to `seen`, in memory only. Call it every few
    /// seconds, and [`Array::store_alerts`] afterwards. It never waits for the store, because an
    /// alert may be about the store.
    pub fn watch_alerts(&self, seen: &[Seen], now_ms: u64) {
        let alerts = &mut self.state.write().alerts;
        for alert in plan::next(alerts, seen, now_ms) {
            alerts.change(alert);
        }
    }

    /// Remembers what others were told, as [`Array::watch_alerts`] does.
    pub fn alerts_told(&self, told: &[(u64, Told)], now_ms: u64) {
        let alerts = &mut self.state.write().alerts;
        for (number, told) in told {
            if let Some(alert) = alerts.by_number.get(number).cloned() {
                alerts.change(Alert { told: *told, told_ms: Some(now_ms), ..alert });
            }
        }
    }

    /// Stores what has changed, and forgets closed alerts beyond [`ALERTS_CLOSED_MAX`]; commits
    /// nothing where nothing has changed. Waits for the store, so call it on a thread that nobody
    /// waits for.
    ///
    /// # Errors
    /// Those of the store: the rest is stored by the next call that it takes.
    pub fn store_alerts(&self) -> Result<(), Error> {
        loop {
            let _turn = self.turn.lock();
            let (mut change, mut stored) = (Change::default(), Vec::new());
            let dropped = {
                let alerts = &self.state.read().alerts;
                let dropped = plan::surplus(alerts);
                let unsaved = alerts.unsaved.iter().filter(|number| !dropped.contains(number));
                let unsaved = unsaved.filter_map(|number| alerts.by_number.get(number));
                for alert in unsaved.take(STORED_MAX) {
                    change.config.push(row(alert)?);
                    stored.push(alert.clone());
                }
                dropped
            };
            change.config.extend(dropped.iter().map(|number| (record::alert_key(*number), None)));
            if change.config.is_empty() {
                return Ok(());
            }
            self.backing.change(change)?;
            let alerts = &mut self.state.write().alerts;
            stored.iter().for_each(|alert| alerts.stored(alert));
            for number in dropped {
                alerts.by_number.remove(&number);
                alerts.unsaved.remove(&number);
            }
        }
    }

    /// Up to `limit` alerts, in the order of their numbers, from the first behind `after` on.
    pub fn alerts(&self, after: u64, limit: usize) -> Vec<Alert> {
        let alerts = &self.state.read().alerts.by_number;
        alerts
            .range(after.saturating_add(1)..)
            .take(limit)
            .map(|(_, alert)| alert.clone())
            .collect()
    }

    /// One alert.
    ///
    /// # Errors
    /// `no_such_alert`.
    pub fn alert(&self, number: u64) -> Result<Alert, Error> {
        self.state.read().alerts.find(number).cloned()
    }

    /// How many alerts are not closed, of each severity, in the order of [`Severity::ALL`].
    pub fn open_alerts(&self) -> [usize; Severity::ALL.len()] {
        let mut counts = [0; Severity::ALL.len()];
        let state = self.state.read();
        let open = state.alerts.by_number.values().filter(|a| a.state != AlertState::Closed);
        open.for_each(|alert| counts[alert.condition.severity as usize] += 1);
        counts
    }

    /// Says of alerts whether somebody still has to look at them.
    ///
    /// # Errors
    /// `no_such_alert`, `named_twice`, and those of the store.
    pub fn flag_alerts(&self, numbers: &[u64], flagged: bool) -> Result<Vec<Alert>, Error> {
        self.edit_alerts(numbers, |alert| Alert { flagged, ..alert })
    }

    /// Closes alerts by hand; one that is closed already stays as it is.
    ///
    /// # Errors
    /// `no_such_alert`, `named_twice`, and those of the store.
    pub fn close_alerts(&self, numbers: &[u64], now_ms: u64) -> Result<Vec<Alert>, Error> {
        self.edit_alerts(numbers, |alert| match alert.state {
            AlertState::Closed => alert,
            AlertState::Open | AlertState::Closing => plan::closed(&alert, now_ms, true),
        })
    }

    fn edit_alerts(
        &self,
        numbers: &[u64],
        edit: impl Fn(Alert) -> Alert,
    ) -> Result<Vec<Alert>, Error> {
        let mut seen = BTreeSet::new();
        if let Some(twice) = numbers.iter().find(|number| !seen.insert(**number)) {
            let text = format!("Alert {twice} is named twice.");
            return Err(Error::invalid("named_twice", text));
        }
        self.change_all(
            numbers,
            |state, _, number| {
                let alert = edit(state.alerts.find(*number)?.clone());
                let config = vec![row(&alert)?];
                Ok((Change { config, ..Change::default() }, alert))
            },
            |state, stored| {
                // Whoever watches may have changed it meanwhile.
                let current = state.alerts.find(stored.number).ok().cloned();
                let alert = edit(current.unwrap_or_else(|| stored.clone()));
                state.alerts.change(alert.clone());
                state.alerts.stored(&stored);
                alert
            },
        )
    }
}

fn row(alert: &Alert) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
    Ok((record::alert_key(alert.number), Some(record::alert(alert)?)))
}
