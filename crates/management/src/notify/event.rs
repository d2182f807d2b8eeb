//! The content of notifications.

use api::{Alert, AuditEntry};
use array::Severity;
use serde_json::{Value, json};

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// What happened.
    pub news: News,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// The name of the array.
    pub array: String,
}

/// What happened.
#[derive(Clone, Debug)]
pub enum News {
    /// An alert was opened, or its severity has increased.
    Opened(array::Alert),
    /// An alert was closed.
    Closed(array::Alert),
    /// A change was requested: an entry of the audit log.
    Changed(array::AuditEntry),
    /// A test of whether notifications arrive.
    Test,
}

impl Event {
    /// Returns the kind of event, for programs.
    pub fn kind(&self) -> &'static str {
        match self.news {
            News::Opened(_) => "alert_opened",
            News::Closed(_) => "alert_closed",
            News::Changed(_) => "change",
            News::Test => "test",
        }
    }

    /// Returns its severity; `None` if no action is needed.
    pub fn severity(&self) -> Option<Severity> {
        match &self.news {
            News::Opened(alert) => Some(alert.condition.severity),
            News::Closed(_) | News::Changed(_) | News::Test => None,
        }
    }

    /// Returns it as text on one line.
    pub fn text(&self) -> String {
        match &self.news {
            News::Opened(alert) => {
                let (condition, summary) = (&alert.condition, alert.summary());
                format!(
                    "alert {} {} ({}) is open: {summary} Actual: {}. Expected: {}. Action: {}",
                    alert.number,
                    condition.code.name(),
                    condition.severity.name(),
                    condition.actual,
                    condition.expected,
                    condition.code.advice()
                )
            }
            News::Closed(alert) => {
                let code = alert.condition.code.name();
                format!("alert {} {code} is closed: {}", alert.number, alert.summary())
            }
            News::Changed(entry) => {
                let deed = &entry.deed;
                format!(
                    "{} ({}) from {}: {} {} {}: {}",
                    deed.user,
                    deed.role.name(),
                    deed.origin,
                    deed.method,
                    deed.path,
                    deed.names,
                    entry.outcome
                )
            }
            News::Test => "this is a test of notifications; no action is needed".into(),
        }
    }

    /// Returns it as JSON.
    pub fn json(&self) -> Value {
        let mut value = json!({
            "v": 1,
            "event": self.kind(),
            "time_ms": self.time_ms,
            "array": self.array,
            "text": self.text(),
        });
        let part = match self.news.clone() {
            News::Opened(alert) | News::Closed(alert) => ("alert", json!(Alert::from(alert))),
            News::Changed(entry) => ("change", json!(AuditEntry::from(&entry))),
            News::Test => return value,
        };
        value[part.0] = part.1;
        value
    }
}
