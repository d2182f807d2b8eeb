//! All alerts in memory, and which of them are not stored yet.

mod plan;

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Error;
use crate::objects::alerts::{Alert, AlertState, Seen, Severity, Told};
pub(crate) use plan::closed;

/// All kept alerts.
#[derive(Default)]
pub(crate) struct Alerts {
    /// The alerts, by number.
    by_number: BTreeMap<u64, Alert>,
    last_number: u64,
    /// The numbers of alerts that are not stored yet.
    unsaved: BTreeSet<u64>,
}

impl Alerts {
    /// Adds a stored alert, in any order.
    pub(crate) fn load(&mut self, alert: Alert) {
        self.last_number = self.last_number.max(alert.number);
        self.by_number.insert(alert.number, alert);
    }

    /// Adds or replaces an alert in a form that is not stored yet.
    pub(crate) fn change(&mut self, alert: Alert) {
        self.unsaved.insert(alert.number);
        self.load(alert);
    }

    /// Records that an alert is stored in this form.
    pub(crate) fn stored(&mut self, alert: &Alert) {
        if self.by_number.get(&alert.number) == Some(alert) {
            self.unsaved.remove(&alert.number);
        }
    }

    /// Returns an alert by its number.
    pub(crate) fn find(&self, number: u64) -> Result<&Alert, Error> {
        self.by_number.get(&number).ok_or_else(|| Error::NoSuchAlert(number.to_string()))
    }

    /// Opens, changes and closes alerts according to `seen`.
    pub(crate) fn watch(&mut self, seen: &[Seen], now_ms: u64) {
        for alert in plan::next(&self.by_number, self.last_number, seen, now_ms) {
            self.change(alert);
        }
    }

    /// Records that a notification of an alert was sent.
    pub(crate) fn told(&mut self, number: u64, told: Told, now_ms: u64) {
        if let Some(alert) = self.by_number.get(&number).cloned() {
            self.change(Alert { told, told_ms: Some(now_ms), ..alert });
        }
    }

    /// Returns the alerts that are not stored yet.
    pub(crate) fn unsaved(&self) -> impl Iterator<Item = &Alert> {
        self.unsaved.iter().filter_map(|number| self.by_number.get(number))
    }

    /// Returns closed alerts that are to be dropped.
    pub(crate) fn surplus(&self) -> Vec<u64> {
        plan::surplus(&self.by_number, self.last_number)
    }

    /// Drops an alert.
    pub(crate) fn remove(&mut self, number: u64) {
        self.by_number.remove(&number);
        self.unsaved.remove(&number);
    }

    /// Returns up to `limit` alerts with numbers greater than `after`, in their order.
    pub(crate) fn list(&self, after: u64, limit: usize) -> Vec<Alert> {
        let alerts = self.by_number.range(after.saturating_add(1)..);
        alerts.take(limit).map(|(_, alert)| alert.clone()).collect()
    }

    /// Returns the number of alerts that are not closed, for each severity, in the order of
    /// [`Severity::ALL`].
    pub(crate) fn open_counts(&self) -> [usize; Severity::ALL.len()] {
        let mut counts = [0; Severity::ALL.len()];
        let open = self.by_number.values().filter(|alert| alert.state != AlertState::Closed);
        open.for_each(|alert| counts[alert.condition.severity as usize] += 1);
        counts
    }
}
