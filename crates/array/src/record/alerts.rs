//! The records of alerts.

use serde::{Deserialize, Serialize};

use super::row::{VERSION, damaged, encode, key};
use crate::error::Error;
use crate::objects::alerts::{Alert, AlertCode, AlertState, Condition, Severity, Told};

/// A record of an alert. The last notification is the name of a severity, or `closed`.
#[derive(Serialize, Deserialize)]
pub(super) struct AlertRow {
    v: u8,
    number: u64,
    code: u32,
    component: String,
    severity: String,
    actual: String,
    expected: String,
    state: String,
    created_ms: u64,
    updated_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    closed_ms: Option<u64>,
    flagged: bool,
    #[serde(default)]
    dismissed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    told_ms: Option<u64>,
}

pub(crate) fn alert_key(number: u64) -> Vec<u8> {
    key(b'A', &[number])
}

pub(crate) fn alert(alert: &Alert) -> Result<Vec<u8>, Error> {
    let Condition { code, component, severity, actual, expected } = alert.condition.clone();
    encode(&AlertRow {
        v: VERSION,
        number: alert.number,
        code: code.number(),
        component,
        severity: severity.name().to_owned(),
        actual,
        expected,
        state: alert.state.name().to_owned(),
        created_ms: alert.created_ms,
        updated_ms: alert.updated_ms,
        closed_ms: alert.closed_ms,
        flagged: alert.flagged,
        dismissed: alert.dismissed,
        told: match alert.told {
            Told::Nothing => None,
            Told::Opened(severity) => Some(severity.name().to_owned()),
            Told::Closed => Some(CLOSED.to_owned()),
        },
        told_ms: alert.told_ms,
    })
}

const CLOSED: &str = "closed";

pub(super) fn decode_alert(key: &[u8], row: AlertRow) -> Result<Alert, Error> {
    if alert_key(row.number) != key {
        return Err(damaged(key, "the key is that of another alert"));
    }
    let severity =
        |name: &str| Severity::of_name(name).ok_or_else(|| damaged(key, "unknown severity"));
    let code = AlertCode::of_number(row.code);
    let state = AlertState::of_name(&row.state);
    let told = match row.told.as_deref() {
        None => Told::Nothing,
        Some(CLOSED) => Told::Closed,
        Some(name) => Told::Opened(severity(name)?),
    };
    Ok(Alert {
        number: row.number,
        condition: Condition {
            code: code.ok_or_else(|| damaged(key, "unknown code"))?,
            component: row.component,
            severity: severity(&row.severity)?,
            actual: row.actual,
            expected: row.expected,
        },
        state: state.ok_or_else(|| damaged(key, "unknown state"))?,
        created_ms: row.created_ms,
        updated_ms: row.updated_ms,
        closed_ms: row.closed_ms,
        flagged: row.flagged,
        dismissed: row.dismissed,
        told,
        told_ms: row.told_ms,
    })
}
