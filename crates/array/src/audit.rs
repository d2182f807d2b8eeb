//! The audit log: who asked for which change, and the outcome. A ring in the pool.
//!
//! Code that acts for a user says so with [`Array::attributed`]. The first change that it commits
//! carries the entry in the same commit, so there is no change without its entry, whatever crashes.
//! If nothing is committed (a refusal, the start of a pass), the entry follows immediately in a
//! commit of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;

use store::Change;

use crate::users::Role;
use crate::{Array, Error, record};

/// How many entries are kept; a new one replaces the oldest.
pub const AUDIT_ENTRIES_MAX: usize = 4_096;
/// The longest text of an entry, in bytes; also the limit for all names together. Users, methods
/// and addresses are short, so an entry takes less than 1 KiB, and the log less than 4 MiB.
pub const AUDIT_TEXT_BYTES_MAX: usize = 256;
/// The outcome of a successful request.
pub const DONE: &str = "done";

/// A request for a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// Who.
    pub user: String,
    /// With which role.
    pub role: Role,
    /// From which address.
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
    /// From 1; never used twice.
    pub number: u64,
    /// The request.
    pub deed: Deed,
    /// [`DONE`], or the code of the refusal.
    pub outcome: String,
}

/// The log in memory, by number.
#[derive(Default)]
pub(crate) struct AuditLog {
    entries: BTreeMap<u64, AuditEntry>,
    last_number: u64,
}

impl AuditLog {
    /// Adds a stored entry, in any order.
    pub(crate) fn load(&mut self, entry: AuditEntry) {
        self.push(entry);
    }

    fn push(&mut self, entry: AuditEntry) {
        self.last_number = self.last_number.max(entry.number);
        self.entries.insert(entry.number, entry);
        while self.entries.len() > AUDIT_ENTRIES_MAX {
            self.entries.pop_first();
        }
    }

    fn next(&self, deed: Deed, outcome: &str) -> AuditEntry {
        AuditEntry { number: self.last_number + 1, deed: deed.cut(), outcome: cut(outcome) }
    }
}

impl Deed {
    /// Makes each text one line, and cuts it to the limit.
    fn cut(mut self) -> Self {
        for text in
            [&mut self.user, &mut self.origin, &mut self.method, &mut self.path, &mut self.names]
        {
            *text = cut(text);
        }
        self
    }
}

/// The part that fits, without characters that are longer in JSON.
fn cut(text: &str) -> String {
    let mut kept = String::new();
    for c in text.chars() {
        let c = if c.is_control() || c == '"' || c == '\\' { '?' } else { c };
        if kept.len() + c.len_utf8() > AUDIT_TEXT_BYTES_MAX {
            break;
        }
        kept.push(c);
    }
    kept
}

thread_local! {
    /// What this thread does for a user, until a commit has recorded it.
    static DEED: RefCell<Option<Deed>> = const { RefCell::new(None) };
}

/// Clears the deed on drop, also after a panic.
struct Attribution;

impl Drop for Attribution {
    fn drop(&mut self) {
        DEED.take();
    }
}

impl Array {
    /// Does some work for a user, on this thread, and enters it into the audit log; `code` is what
    /// the log says of a refusal.
    ///
    /// # Errors
    /// [`Error::DeviceRefuses`] while the device refuses writes: the work is not begun then. Those
    /// of the work; if the work committed nothing, those of the store when the entry is
    /// written.
    pub fn attributed<T, E: From<Error>>(
        &self,
        deed: Deed,
        work: impl FnOnce() -> Result<T, E>,
        code: impl FnOnce(&E) -> &'static str,
    ) -> Result<T, E> {
        // Whoever waits for the device holds up all who come later, for as long as 15 minutes.
        if self.backing.is_device_refusing() {
            return Err(Error::DeviceRefuses.into());
        }
        let attribution = Attribution;
        DEED.set(Some(deed.clone()));
        let result = work();
        let is_entered = DEED.take().is_none();
        drop(attribution);
        match &result {
            Ok(_) if is_entered => {}
            Ok(_) => self.enter(deed, DONE)?,
            // The caller needs the refusal, even if the log can't be written either.
            Err(error) => drop(self.enter(deed, code(error))),
        }
        result
    }

    /// Does some work whose first commit carries an entry, if there is one.
    pub(crate) fn on_behalf<T>(&self, deed: Option<Deed>, work: impl FnOnce() -> T) -> T {
        let _attribution = Attribution;
        DEED.set(deed);
        work()
    }

    /// Writes an entry in a commit of its own.
    fn enter(&self, deed: Deed, outcome: &str) -> Result<(), Error> {
        self.change(
            |state| {
                let entry = state.audit.next(deed, outcome);
                let config = vec![audit_record(&entry)?];
                Ok((Change { config, ..Change::default() }, entry))
            },
            |state, entry| state.audit.push(entry),
        )
    }

    /// Adds the entry of this thread's deed to the first commit.
    pub(crate) fn account(
        &self,
        log: &AuditLog,
        change: &mut Change,
    ) -> Result<Option<AuditEntry>, Error> {
        let Some(deed) = DEED.with_borrow(Clone::clone) else { return Ok(None) };
        let entry = log.next(deed, DONE);
        change.config.push(audit_record(&entry)?);
        Ok(Some(entry))
    }

    /// Up to `limit` entries, the newest first, older than number `before`.
    pub fn audit_log(&self, before: Option<u64>, limit: usize) -> Vec<AuditEntry> {
        let log = &self.state.read().audit;
        let older = log.entries.range(..before.unwrap_or(u64::MAX));
        older.rev().take(limit).map(|(_, entry)| entry.clone()).collect()
    }
}

/// The entry that [`Array::account`] added is durable.
pub(crate) fn entered(log: &mut AuditLog, entry: AuditEntry) {
    DEED.take();
    log.push(entry);
}

fn audit_record(entry: &AuditEntry) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
    Ok((record::audit_key(entry.number), Some(record::audit(entry)?)))
}
