//! Alerts: what is wrong with the array or its hosts, from its beginning to its end.
//!
//! A watcher reports which conditions hold to [`Array::watch_alerts`]. A condition that begins to
//! hold opens an alert. When the condition ends, the alert is *closing*, and after [`CLOSING_MS`]
//! *closed*: an intermittent condition is one alert. Open alerts and the last [`ALERTS_CLOSED_MAX`]
//! closed ones are kept in the pool.
//!
//! An alert that was closed by hand stays closed while its condition lasts, unless that becomes
//! more serious.

use std::collections::BTreeSet;

use store::Change;

use crate::array::Array;
use crate::error::Error;
use crate::objects::alerts::{Alert, AlertState, Seen, Severity, Told};
use crate::record::{self, Row};
use crate::tables::alerts::closed;

/// The maximum number of alerts that one commit stores.
const STORED_MAX: usize = 200;

impl Array {
    /// Opens, changes and closes alerts according to `seen`, in memory only. Call it every few
    /// seconds, and [`Array::store_alerts`] afterwards. It never waits for the store, because an
    /// alert may be about the store.
    pub fn watch_alerts(&self, seen: &[Seen], now_ms: u64) {
        self.write().alerts.watch(seen, now_ms);
    }

    /// Records which notifications were sent, in memory only, as [`Array::watch_alerts`] does.
    pub fn alerts_told(&self, told: &[(u64, Told)], now_ms: u64) {
        let alerts = &mut self.write().alerts;
        for (number, told) in told {
            alerts.told(*number, *told, now_ms);
        }
    }

    /// Stores changed alerts, and drops closed alerts beyond [`ALERTS_CLOSED_MAX`]; commits nothing
    /// if nothing has changed. Waits for the store, so call it on a thread for which no other
    /// waits.
    ///
    /// # Errors
    /// Those of the store: the rest is stored by the next call that succeeds.
    pub fn store_alerts(&self) -> Result<(), Error> {
        loop {
            let _turn = self.turn();
            let (mut change, mut stored) = (Change::default(), Vec::new());
            let dropped = {
                let alerts = &self.read().alerts;
                let dropped = alerts.surplus();
                let unsaved = alerts.unsaved().filter(|alert| !dropped.contains(&alert.number));
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
            self.backing().change(change)?;
            let alerts = &mut self.write().alerts;
            stored.iter().for_each(|alert| alerts.stored(alert));
            dropped.into_iter().for_each(|number| alerts.remove(number));
        }
    }

    /// Returns up to `limit` alerts with numbers greater than `after`, in the order of their
    /// numbers.
    pub fn alerts(&self, after: u64, limit: usize) -> Vec<Alert> {
        self.read().alerts.list(after, limit)
    }

    /// Returns one alert.
    ///
    /// # Errors
    /// `no_such_alert`.
    pub fn alert(&self, number: u64) -> Result<Alert, Error> {
        self.read().alerts.find(number).cloned()
    }

    /// Returns the number of alerts that are not closed, for each severity, in the order of
    /// [`Severity::ALL`].
    pub fn open_alerts(&self) -> [usize; Severity::ALL.len()] {
        self.read().alerts.open_counts()
    }

    /// Sets or clears the flag of alerts: see [`Alert::flagged`].
    ///
    /// # Errors
    /// `no_such_alert`, `named_twice`, and those of the store.
    pub fn flag_alerts(&self, numbers: &[u64], flagged: bool) -> Result<Vec<Alert>, Error> {
        self.edit_alerts(numbers, |alert| Alert { flagged, ..alert })
    }

    /// Closes alerts by hand; those that are already closed do not change.
    ///
    /// # Errors
    /// `no_such_alert`, `named_twice`, and those of the store.
    pub fn close_alerts(&self, numbers: &[u64], now_ms: u64) -> Result<Vec<Alert>, Error> {
        self.edit_alerts(numbers, |alert| match alert.state {
            AlertState::Closed => alert,
            AlertState::Open | AlertState::Closing => closed(&alert, now_ms, true),
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
                // The watcher may have changed it meanwhile.
                let current = state.alerts.find(stored.number).ok().cloned();
                let alert = edit(current.unwrap_or_else(|| stored.clone()));
                state.alerts.change(alert.clone());
                state.alerts.stored(&stored);
                alert
            },
        )
    }
}

fn row(alert: &Alert) -> Result<Row, Error> {
    Ok((record::alert_key(alert.number), Some(record::alert(alert)?)))
}
