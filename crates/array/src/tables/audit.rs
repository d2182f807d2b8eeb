//! The audit log in memory: a ring.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::objects::audit::{AUDIT_ENTRIES_MAX, AuditEntry, Deed};

/// The log in memory, by number.
#[derive(Default)]
pub(crate) struct AuditLog {
    /// Shared with readers, so that a list copies no entry.
    entries: BTreeMap<u64, Arc<AuditEntry>>,
    last_number: u64,
}

impl AuditLog {
    /// Adds a stored entry; when loading, in any order.
    pub(crate) fn add(&mut self, entry: AuditEntry) {
        self.last_number = self.last_number.max(entry.number);
        self.entries.insert(entry.number, Arc::new(entry));
        while self.entries.len() > AUDIT_ENTRIES_MAX {
            self.entries.pop_first();
        }
    }

    /// Returns the entry to store next.
    pub(crate) fn next(&self, deed: Deed, outcome: &str) -> AuditEntry {
        AuditEntry::new(self.last_number + 1, deed, outcome)
    }

    /// Returns up to `limit` entries, the newest first, older than number `before`.
    pub(crate) fn list(&self, before: Option<u64>, limit: usize) -> Vec<Arc<AuditEntry>> {
        let older = self.entries.range(..before.unwrap_or(u64::MAX));
        older.rev().take(limit).map(|(_, entry)| entry.clone()).collect()
    }
}
