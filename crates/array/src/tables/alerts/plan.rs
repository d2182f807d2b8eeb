//! The changes of alerts: a function of the alerts, of the observed conditions, and of the time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::objects::alerts::{
    ALERT_TEXT_BYTES_MAX, ALERTS_CLOSED_MAX, ALERTS_OPEN_MAX, Alert, AlertCode, AlertState,
    CLOSING_MS, Condition, Seen, Told,
};
use crate::values::text::one_line;

/// The maximum number of alerts that one call changes or one commit drops; the others follow later.
const CHANGED_MAX: usize = 200;
/// The minimum time between two updates of the text of an alert.
const UPDATE_MS: u64 = 60_000;

type Key = (AlertCode, String);

/// Returns the changed alerts, and the new ones, according to the observed conditions.
pub(super) fn next(
    alerts: &BTreeMap<u64, Alert>,
    last_number: u64,
    seen: &[Seen],
    now_ms: u64,
) -> Vec<Alert> {
    let (holding, unsure) = sorted(seen);
    let mut all = Vec::new();
    let (mut known, mut open) = (BTreeSet::new(), 0);
    for alert in alerts.values() {
        let is_open = alert.state != AlertState::Closed;
        open += usize::from(is_open);
        let key = (alert.condition.code, alert.condition.component.clone());
        if !is_open && !alert.dismissed {
            continue;
        }
        if unsure.contains(&key) {
            known.insert(key);
            continue;
        }
        let (changed, is_known) = match (holding.get(&key), is_open) {
            (Some(condition), true) => (kept_open(alert, condition, now_ms), true),
            (Some(condition), false) => dismissed(alert, condition),
            (None, true) => (fading(alert, now_ms), true),
            (None, false) => (Some(Alert { dismissed: false, ..alert.clone() }), true),
        };
        if is_known {
            known.insert(key);
        }
        all.extend(changed);
    }
    let mut new: Vec<_> = holding.into_iter().filter(|(key, _)| !known.contains(key)).collect();
    new.sort_by_key(|(key, condition)| (Reverse(condition.severity), key.clone()));
    new.truncate(ALERTS_OPEN_MAX.saturating_sub(open));
    let numbers = last_number + 1..;
    let opened = new.into_iter().zip(numbers).map(|((_, c), number)| opened(c, number, now_ms));
    all.extend(opened);
    all.truncate(CHANGED_MAX);
    all
}

/// Returns the numbers of closed alerts that are to be dropped.
pub(super) fn surplus(alerts: &BTreeMap<u64, Alert>, last_number: u64) -> Vec<u64> {
    let closed = alerts.values().filter(|a| a.state == AlertState::Closed && !a.dismissed);
    let numbers: Vec<u64> = closed.map(|alert| alert.number).collect();
    let surplus = numbers.len().saturating_sub(ALERTS_CLOSED_MAX).min(CHANGED_MAX);
    // The last number must stay, because the next one is derived from it.
    let surplus = numbers.into_iter().take(surplus).filter(|number| *number < last_number);
    surplus.collect()
}

fn sorted(seen: &[Seen]) -> (BTreeMap<Key, Condition>, BTreeSet<Key>) {
    let (mut holding, mut unsure) = (BTreeMap::new(), BTreeSet::new());
    for seen in seen {
        match seen {
            Seen::Holds(condition) => {
                let condition = Condition {
                    component: one_line(&condition.component, ALERT_TEXT_BYTES_MAX),
                    actual: one_line(&condition.actual, ALERT_TEXT_BYTES_MAX),
                    expected: one_line(&condition.expected, ALERT_TEXT_BYTES_MAX),
                    ..condition.clone()
                };
                holding.insert((condition.code, condition.component.clone()), condition);
            }
            Seen::Unsure(code, component) => {
                unsure.insert((*code, one_line(component, ALERT_TEXT_BYTES_MAX)));
            }
        }
    }
    (holding, unsure)
}

fn opened(condition: Condition, number: u64, now_ms: u64) -> Alert {
    Alert {
        number,
        condition,
        state: AlertState::Open,
        created_ms: now_ms,
        updated_ms: now_ms,
        closed_ms: None,
        flagged: true,
        dismissed: false,
        told: Told::Nothing,
        told_ms: None,
    }
}

/// Returns the change of an alert that is not closed, and whose condition holds.
fn kept_open(alert: &Alert, condition: &Condition, now_ms: u64) -> Option<Alert> {
    let is_same = alert.condition == *condition;
    if alert.state == AlertState::Open && is_same {
        return None;
    }
    let is_new = alert.state != AlertState::Open
        || alert.condition.severity != condition.severity
        || is_past(alert.updated_ms, UPDATE_MS, now_ms);
    is_new.then(|| Alert {
        condition: condition.clone(),
        state: AlertState::Open,
        updated_ms: now_ms,
        ..alert.clone()
    })
}

/// Returns the change of an alert that was closed by hand, and whose condition holds; and whether
/// it stays closed.
fn dismissed(alert: &Alert, condition: &Condition) -> (Option<Alert>, bool) {
    if condition.severity <= alert.condition.severity {
        return (None, true);
    }
    (Some(Alert { dismissed: false, ..alert.clone() }), false)
}

/// Returns the change of an alert that is not closed, and whose condition does not hold.
fn fading(alert: &Alert, now_ms: u64) -> Option<Alert> {
    match alert.state {
        AlertState::Open => {
            let state = AlertState::Closing;
            Some(Alert { state, updated_ms: now_ms, ..alert.clone() })
        }
        _ if is_past(alert.updated_ms, CLOSING_MS, now_ms) => Some(closed(alert, now_ms, false)),
        _ => None,
    }
}

/// Returns an alert in closed form.
pub(crate) fn closed(alert: &Alert, now_ms: u64, dismissed: bool) -> Alert {
    Alert {
        state: AlertState::Closed,
        updated_ms: now_ms,
        closed_ms: Some(now_ms),
        dismissed,
        ..alert.clone()
    }
}

/// Returns whether this time has passed. If the clock was set back, it counts as passed.
fn is_past(since_ms: u64, time_ms: u64, now_ms: u64) -> bool {
    now_ms < since_ms || now_ms - since_ms >= time_ms
}
