//! Entries of the audit log: who requested which change, and the outcome.

use super::users::Role;
use crate::values::text::one_line;

/// The number of entries that are kept; a new one replaces the oldest.
pub const AUDIT_ENTRIES_MAX: usize = 4_096;
/// The maximum length of each text of an entry, in bytes; also the limit for all names together.
/// Users, methods and addresses are short, so an entry takes less than 1 KiB, and the log less than
/// 4 MiB.
pub const AUDIT_TEXT_BYTES_MAX: usize = 256;
/// The outcome of a successful request.
pub const DONE: &str = "done";

/// A request for a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// The time of the request, in milliseconds since 1970.
    pub time_ms: u64,
    /// The user who made it.
    pub user: String,
    /// The role of the user.
    pub role: Role,
    /// The address from which it came.
    pub origin: String,
    /// The method of the request.
    pub method: String,
    /// The path of the request.
    pub path: String,
    /// The names of objects in the request. Never a secret.
    pub names: String,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The number of the entry, from 1; never reused.
    pub number: u64,
    /// The request.
    pub deed: Deed,
    /// [`DONE`], or the code of the refusal.
    pub outcome: String,
}

impl AuditEntry {
    /// Returns an entry whose texts are on one line each and within the limit.
    pub(crate) fn new(number: u64, deed: Deed, outcome: &str) -> Self {
        Self { number, deed: deed.cut(), outcome: one_line(outcome, AUDIT_TEXT_BYTES_MAX) }
    }
}

impl Deed {
    /// Puts each text on one line, and cuts it to the limit.
    fn cut(mut self) -> Self {
        for text in
            [&mut self.user, &mut self.origin, &mut self.method, &mut self.path, &mut self.names]
        {
            *text = one_line(text, AUDIT_TEXT_BYTES_MAX);
        }
        self
    }
}
