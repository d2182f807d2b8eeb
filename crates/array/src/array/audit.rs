//! The audit log: who requested which change, and the outcome. A ring in the pool.
//!
//! Code that acts for a user calls [`Array::attributed`]. The first change that it commits contains
//! the entry in the same commit, so there is no change without its entry, even after a crash. If
//! nothing is committed (a refusal, the start of a pass), the entry follows immediately in a commit
//! of its own.

use std::sync::Arc;

use store::Change;

use super::Array;
use super::deed::{Attribution, audit_row};
use crate::error::Error;
use crate::objects::audit::{AuditEntry, DONE, Deed};

impl Array {
    /// Does some work for a user, on this thread, and enters it into the audit log. `code` returns
    /// the outcome to log for a refusal.
    ///
    /// # Errors
    /// [`Error::DeviceRefuses`] while the device refuses writes: then the work does not begin. The
    /// errors of the work. If the work committed nothing, those of the store when the entry is
    /// written.
    pub fn attributed<T, E: From<Error>>(
        &self,
        deed: Deed,
        work: impl FnOnce() -> Result<T, E>,
        code: impl FnOnce(&E) -> &'static str,
    ) -> Result<T, E> {
        // A request that waits for the device delays all later ones, for up to 15 minutes.
        if self.backing.is_device_refusing() {
            return Err(Error::DeviceRefuses.into());
        }
        let attribution = Attribution::new(Some(deed.clone()));
        let result = work();
        let is_entered = attribution.end();
        match &result {
            Ok(_) if is_entered => {}
            Ok(_) => self.enter(deed, DONE)?,
            // The caller needs the refusal, even if the log can't be written either.
            Err(error) => drop(self.enter(deed, code(error))),
        }
        result
    }

    /// Does some work. Its first commit contains the entry for `deed`, if there is one.
    pub(crate) fn on_behalf<T>(&self, deed: Option<Deed>, work: impl FnOnce() -> T) -> T {
        let _attribution = Attribution::new(deed);
        work()
    }

    /// Writes an entry in a commit of its own.
    fn enter(&self, deed: Deed, outcome: &str) -> Result<(), Error> {
        self.change(
            |state| {
                let entry = state.audit.next(deed, outcome);
                let notes = vec![audit_row(&entry)?];
                Ok((Change { notes, ..Change::default() }, entry))
            },
            |state, entry| state.audit.add(entry),
        )
    }

    /// Returns up to `limit` entries, the newest first, older than number `before`.
    pub fn audit_log(&self, before: Option<u64>, limit: usize) -> Vec<Arc<AuditEntry>> {
        self.read().audit.list(before, limit)
    }
}
