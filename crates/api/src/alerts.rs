//! `/v1/alerts/{number}/close`, which REST 2.x lacks; and the delivery state of notifications.

use array::{AlertCode, Told};
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Refusal, Shared, blocking};

/// The document that describes each alert.
const DOCUMENT: &str = "docs/alerts.md";

/// An alert, as it is closed, and as webhooks get it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// From 1; never used twice.
    pub number: u64,
    /// What kind of alert it is: a number that does not change.
    #[schema(example = 401)]
    pub code: u32,
    /// The same as a name.
    #[schema(example = "host-one-path")]
    pub name: String,
    /// `array`, `hardware` or `software`.
    pub category: String,
    /// `info`, `warning` or `critical`.
    #[schema(value_type = crate::words::AlertSeverity)]
    pub severity: String,
    /// `open`, `closing` or `closed`.
    #[schema(value_type = crate::words::AlertState)]
    pub state: String,
    /// The type of the component.
    #[schema(example = "host")]
    pub component_type: String,
    /// The object that it is about.
    pub component: String,
    /// What is wrong, on one line.
    pub summary: String,
    /// The observed value.
    pub actual: String,
    /// The expected value.
    pub expected: String,
    /// What to do about it.
    pub advice: String,
    /// The document that describes it.
    pub document: String,
    /// When it was opened, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it last changed, in milliseconds since 1970.
    pub updated_ms: u64,
    /// When it was closed, in milliseconds since 1970.
    #[schema(required = true)]
    pub closed_ms: Option<u64>,
    /// When a notification of it was last sent, in milliseconds since 1970; `null` if none was.
    #[schema(required = true)]
    pub told_ms: Option<u64>,
    /// Whether it still needs attention.
    pub flagged: bool,
}

impl From<array::Alert> for Alert {
    fn from(alert: array::Alert) -> Self {
        let code = alert.condition.code;
        Self {
            number: alert.number,
            code: code.number(),
            name: code.name().into(),
            category: code.category().name().into(),
            severity: alert.condition.severity.name().into(),
            state: alert.state.name().into(),
            component_type: code.component_type().into(),
            summary: alert.summary(),
            advice: code.advice().into(),
            document: document(code),
            created_ms: alert.created_ms,
            updated_ms: alert.updated_ms,
            closed_ms: alert.closed_ms,
            told_ms: alert.told_ms.filter(|_| alert.told != Told::Nothing),
            flagged: alert.flagged,
            component: alert.condition.component,
            actual: alert.condition.actual,
            expected: alert.condition.expected,
        }
    }
}

/// Returns the section of the program's documents that describes an alert.
pub(crate) fn document(code: AlertCode) -> String {
    format!("{DOCUMENT}#{}", code.name())
}

/// The prefix of the destination names of alert watchers.
pub const WATCHERS: &str = "alert-watchers/";
/// The prefix of the destination names of syslog servers of the pool.
pub const SYSLOG_SERVERS: &str = "syslog-servers/";

/// The prefix of the destination names of SNMP managers of the pool.
pub const SNMP_MANAGERS: &str = "snmp-managers/";

/// Returns the destination name of an alert watcher.
pub fn watcher_destination(address: &str) -> String {
    format!("{WATCHERS}{address}")
}

/// Returns the destination name of a syslog server of the pool.
pub fn syslog_destination(name: &str) -> String {
    format!("{SYSLOG_SERVERS}{name}")
}

/// Returns the destination name of an SNMP manager of the pool.
pub fn snmp_destination(name: &str) -> String {
    format!("{SNMP_MANAGERS}{name}")
}

/// The result of a test event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotificationTest {
    /// The destination's name in the configuration; or `alert-watchers/` and an address, or
    /// `syslog-servers/` and a name, if the pool keeps it.
    pub destination: String,
    /// Why it could not be sent; `null` if it was sent.
    #[schema(required = true)]
    pub error: Option<String>,
}

/// The results of test events, one for each destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotificationTests {
    /// In the order of the configuration, then those of the pool.
    pub tests: Vec<NotificationTest>,
}

/// Closes an alert. It stays closed while its condition lasts, unless its severity rises.
#[utoipa::path(post, path = "/v1/alerts/{number}/close", params(("number" = u64, Path)), responses(
    (status = 200, body = Alert),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn close(
    State(interface): Shared,
    number: Result<Path<u64>, PathRejection>,
) -> Result<Json<Alert>, ApiError> {
    let Path(number) = number?;
    blocking(interface, move |interface| {
        let closed = interface.array.close_alerts(&[number], (interface.now_ms)())?;
        let closed = closed.into_iter().next();
        let closed = closed.ok_or_else(|| array::Error::NoSuchAlert(number.to_string()))?;
        Ok(Json(closed.into()))
    })
    .await
}

/// Sends one test event to each destination, and returns the results.
#[utoipa::path(post, path = "/v1/notifications/test", responses(
    (status = 200, body = NotificationTests),
    (status = 401, body = Refusal),
    (status = 403, body = Refusal),
))]
pub(crate) async fn test(State(interface): Shared) -> Result<Json<NotificationTests>, ApiError> {
    blocking(interface, |interface| {
        Ok(Json(NotificationTests { tests: interface.watch.test_notifications(&|_| true) }))
    })
    .await
}
