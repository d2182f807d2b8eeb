//! The records of the audit log: a ring.

use serde::{Deserialize, Serialize};

use super::row::{VERSION, damaged, encode, key};
use super::users::role;
use crate::error::Error;
use crate::objects::audit::{AUDIT_ENTRIES_MAX, AuditEntry, Deed};

#[derive(Serialize, Deserialize)]
pub(super) struct AuditRow {
    v: u8,
    number: u64,
    time_ms: u64,
    user: String,
    role: String,
    origin: String,
    method: String,
    path: String,
    names: String,
    outcome: String,
}

/// Returns the key of an entry: entries whose numbers differ by the size of the ring share one.
pub(crate) fn audit_key(number: u64) -> Vec<u8> {
    key(b'a', &[number % AUDIT_ENTRIES_MAX as u64])
}

pub(crate) fn audit(entry: &AuditEntry) -> Result<Vec<u8>, Error> {
    let Deed { time_ms, user, role, origin, method, path, names } = entry.deed.clone();
    encode(&AuditRow {
        v: VERSION,
        number: entry.number,
        time_ms,
        user,
        role: role.name().to_owned(),
        origin,
        method,
        path,
        names,
        outcome: entry.outcome.clone(),
    })
}

pub(super) fn decode_audit(key: &[u8], row: AuditRow) -> Result<AuditEntry, Error> {
    if audit_key(row.number) != key {
        return Err(damaged(key, "the key is that of another entry"));
    }
    let AuditRow { number, time_ms, user, origin, method, path, names, outcome, .. } = row;
    let role = role(key, &row.role)?;
    let deed = Deed { time_ms, user, role, origin, method, path, names };
    Ok(AuditEntry { number, deed, outcome })
}
