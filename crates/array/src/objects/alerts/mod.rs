//! Alerts as they are stored: what is wrong with the array or its hosts, since when and until when.

mod advice;
mod code;

pub use code::{AlertCode, Category};

/// For how long a condition must be over before its alert is closed.
pub const CLOSING_MS: u64 = 300_000;
/// The maximum number of alerts that are not closed. Beyond that, the least serious conditions get
/// an alert later.
pub const ALERTS_OPEN_MAX: usize = 500;
/// The maximum number of closed alerts that are kept; the oldest are dropped first.
pub const ALERTS_CLOSED_MAX: usize = 1_000;
/// The maximum length of each text of a condition, in bytes: a record stays below 1 KiB.
pub const ALERT_TEXT_BYTES_MAX: usize = 200;

/// How serious an alert is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Something could be improved.
    Info,
    /// The state will get worse without intervention.
    Warning,
    /// Data, or access to it, is lost or about to be.
    Critical,
}

impl Severity {
    /// All severities, in ascending order.
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Critical];

    /// Returns its name in settings and interfaces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// Returns the value with this name; `None` if there is none.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.name() == name)
    }
}

/// The state of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlertState {
    /// Its condition holds.
    Open,
    /// Its condition ended a short time ago.
    Closing,
    /// The alert is over.
    Closed,
}

impl AlertState {
    /// Returns its name in settings and interfaces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closing => "closing",
            Self::Closed => "closed",
        }
    }

    /// Returns the value with this name; `None` if there is none.
    pub fn of_name(name: &str) -> Option<Self> {
        [Self::Open, Self::Closing, Self::Closed].into_iter().find(|state| state.name() == name)
    }
}

/// A problem that exists now. Code and component identify it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// The kind of the problem.
    pub code: AlertCode,
    /// The affected host, volume, group or other object.
    pub component: String,
    /// Its severity.
    pub severity: Severity,
    /// The observed value.
    pub actual: String,
    /// The expected value.
    pub expected: String,
}

/// What a watcher reports about a condition. A condition that it does not report does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// It holds.
    Holds(Condition),
    /// It is not known yet: the alert does not change.
    Unsure(AlertCode, String),
}

/// The last notification of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// None was sent.
    Nothing,
    /// It was reported as open, with this severity.
    Opened(Severity),
    /// It was reported as closed.
    Closed,
}

/// An alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alert {
    /// The number of the alert, from 1; never reused.
    pub number: u64,
    /// The condition that it reports.
    pub condition: Condition,
    /// Its state.
    pub state: AlertState,
    /// When it was opened, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it last changed.
    pub updated_ms: u64,
    /// When it was closed.
    pub closed_ms: Option<u64>,
    /// Whether it still needs attention: true until an administrator clears it.
    pub flagged: bool,
    /// Whether it was closed by hand, and its condition has held ever since.
    pub dismissed: bool,
    /// The last notification.
    pub told: Told,
    /// When that was sent, in milliseconds since 1970.
    pub told_ms: Option<u64>,
}

impl Alert {
    /// Returns the summary, on one line.
    pub fn summary(&self) -> String {
        self.condition.code.summary(&self.condition.component)
    }

    /// Returns the next notification to send; `None` if there is nothing new.
    pub fn news(&self) -> Option<Told> {
        match (self.state, self.told) {
            (AlertState::Closed, Told::Opened(_)) => Some(Told::Closed),
            (AlertState::Closed, _) => None,
            (_, Told::Opened(severity)) if severity >= self.condition.severity => None,
            _ => Some(Told::Opened(self.condition.severity)),
        }
    }
}
