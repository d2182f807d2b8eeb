//! The common form of all records: a key of a kind and ids, and JSON with a version.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::Error;

/// The version of the form of all records.
pub(super) const VERSION: u8 = 1;

/// A key of the store, and its new value; `None` removes it.
pub(crate) type Row = (Vec<u8>, Option<Vec<u8>>);

#[derive(Deserialize)]
struct VersionOnly {
    v: u8,
}

/// Returns the key of a record: its kind, then ids as big endian numbers.
pub(super) fn key(kind: u8, ids: &[u64]) -> Vec<u8> {
    let mut key = vec![kind];
    ids.iter().for_each(|id| key.extend_from_slice(&id.to_be_bytes()));
    key
}

/// Returns the value of a record.
pub(super) fn encode<T: Serialize>(row: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(row).map_err(|error| Error::Damaged(format!("can't be encoded: {error}")))
}

/// Returns the error for a record that can't be used.
pub(super) fn damaged(key: &[u8], why: &str) -> Error {
    Error::Damaged(format!("record {}: {why}", key.escape_ascii()))
}

/// Returns the value of a record, if it has the version of this program.
pub(super) fn parse<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, Error> {
    // The text of serde's error could contain the value, and so a secret: only its position is
    // shown.
    let explain = |error: serde_json::Error| damaged(key, &format!("column {}", error.column()));
    let VersionOnly { v } = serde_json::from_slice(value).map_err(explain)?;
    if v != VERSION {
        return Err(damaged(key, &format!("has version {v}; this program knows {VERSION}")));
    }
    serde_json::from_slice(value).map_err(explain)
}
