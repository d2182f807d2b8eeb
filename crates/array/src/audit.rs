//! The audit log: who asked for which change, and what came of it. A ring in the pool.
//!
//! Whoever does something for somebody says so with [`Array::attributed`]. The first change that is
//! committed meanwhile carries the entry in the same commit, so there is no change without its
//! entry, whatever crashes. What commits nothing (a refusal, the start of a pass) is entered right
//! behind it, by a commit of its own.

use std::cell::RefCell;
use std::collections::BTreeMap;

use store::Change;

use crate::users::Role;
use crate::{Array, Error, record};

/// How many entries are kept; an older one gives way to a newer.
pub const AUDIT_ENTRIES_MAX: usize = 4_096;
/// The longest text of an entry, in bytes, and how long all names together are. Users, methods and
/// addresses are short, so an entry takes less than 1 KiB, and the log less than 4 MiB.
pub const AUDIT_TEXT_BYTES_MAX: usize = 256;
/// What became of something that was done.
pub const DONE: &str = "done";

/// What somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deed {
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// Who.
    pub user: String,
    /// As what.
    pub role: Role,
    /// From which address.
    pub origin: String,
    /// What: the method of the request.
    pub method: String,
    /// Of what: its path.
    pub path: String,
    /// The names of objects in it. Never a secret.
    pub names: String,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// From 1; never used twice.
    pub number: u64,
    /// What was asked for.
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
    /// Takes what was stored, in any order.
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
    /// On one line each, and not longer than is kept.
    fn cut(mut self) -> Self {
        for text in
            [&mut self.user, &mut self.origin, &mut self.method, &mut self.path, &mut self.names]
        {
            *text = cut(text);
        }
        self
    }
}

/// What fits, without characters that are longer in JSON than here.
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
    /// What this thread does for somebody, as long as no commit tells of it.
    static DEED: RefCell<Option<Deed>> = const { RefCell::new(None) };
}

/// Takes the deed back at the end, panics included.
struct Attribution;

impl Drop for Attribution {
    fn drop(&mut self) {
        DEED.take();
    }
}

impl Array {
    /// Does some work for somebody, on this thread, and enters it into the audit log; `code` is
    /// what the log says of a refusal.
    ///
    /// # Errors
    /// Those of the work; and where the work committed nothing, those of the store that did not
    /// take the entry.
    pub fn attributed<T, E: From<Error>>(
        &self,
        deed: Deed,
        work: impl FnOnce() -> Result<T, E>,
        code: impl FnOnce(&E) -> &'static str,
    ) -> Result<T, E> {
        let attribution = Attribution;
        DEED.set(Some(deed.clone()));
        let result = work();
        let is_entered = DEED.take().is_none();
        drop(attribution);
        match &result {
            Ok(_) if is_entered => {}
            Ok(_) => self.enter(deed, DONE)?,
            // The refusal is what its reader needs, even where the log takes nothing either.
            Err(error) => drop(self.enter(deed, code(error))),
        }
        result
    }

    /// Enters something by a commit of its own.
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

    /// Adds the entry of what this thread does to what is committed first.
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

    /// Up to `limit` entries, the newest first, from the first one older than number `before`.
    pub fn audit_log(&self, before: Option<u64>, limit: usize) -> Vec<AuditEntry> {
        let log = &self.state.read().audit;
        let older = log.entries.range(..before.unwrap_or(u64::MAX));
        older.rev().take(limit).map(|(_, entry)| entry.clone()).collect()
    }
}

/// What [`Array::account`] added is durable.
pub(crate) fn entered(log: &mut AuditLog, entry: AuditEntry) {
    DEED.take();
    log.push(entry);
}

fn audit_record(entry: &AuditEntry) -> Result<(Vec<u8>, Option<Vec<u8>>), Error> {
    Ok((record::audit_key(entry.number), Some(record::audit(entry)?)))
}
