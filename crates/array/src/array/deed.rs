//! The request for which this thread works. Its first commit contains the entry of the audit log.

use std::cell::RefCell;

use store::Change;

use crate::error::Error;
use crate::objects::audit::{AuditEntry, DONE, Deed};
use crate::record::{self, Row};
use crate::tables::audit::AuditLog;

thread_local! {
    /// The request, until a commit contains its entry.
    static DEED: RefCell<Option<Deed>> = const { RefCell::new(None) };
}

/// Clears the deed on drop, also after a panic.
pub(super) struct Attribution;

impl Attribution {
    /// Sets the request for which this thread works from now on.
    pub(super) fn new(deed: Option<Deed>) -> Self {
        DEED.set(deed);
        Self
    }

    /// Ends the work. Returns whether a commit contained the entry.
    pub(super) fn end(self) -> bool {
        DEED.take().is_none()
    }
}

impl Drop for Attribution {
    fn drop(&mut self) {
        DEED.take();
    }
}

/// Adds the entry of this thread's deed to the first commit.
pub(super) fn account(log: &AuditLog, change: &mut Change) -> Result<Option<AuditEntry>, Error> {
    let Some(deed) = DEED.with_borrow(Clone::clone) else { return Ok(None) };
    let entry = log.next(deed, DONE);
    change.notes.push(audit_row(&entry)?);
    Ok(Some(entry))
}

/// Adds to the log in memory the entry that [`account`] added to a commit, once it is durable.
pub(super) fn entered(log: &mut AuditLog, entry: AuditEntry) {
    DEED.take();
    log.add(entry);
}

/// Returns the record of an entry.
pub(super) fn audit_row(entry: &AuditEntry) -> Result<Row, Error> {
    Ok((record::audit_key(entry.number), Some(record::audit(entry)?)))
}
