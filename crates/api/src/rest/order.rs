//! The order of a list, and positions in it.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Refused;
use super::filter::{FIELD_STEPS_MAX, lower, order_numbers};
use super::query::unquoted;

/// The maximum number of fields of an order.
const SORT_MAX: usize = 8;
/// The maximum length of a token, in bytes: this crate creates no longer ones.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// A field of an order.
#[derive(Debug)]
pub(super) struct SortKey {
    pub(super) path: Vec<String>,
    pub(super) descending: bool,
}

/// The position of a row in an order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Place {
    /// The values of the fields of the order.
    pub(super) values: Vec<Value>,
    pub(super) key: String,
}

/// Parses the fields of an order.
pub(super) fn sort_keys(parts: &[String]) -> Result<Vec<SortKey>, Refused> {
    if parts.len() > SORT_MAX {
        return Err(Refused::bad("sort", format!("At most {SORT_MAX} fields can be given.")));
    }
    let mut keys: Vec<SortKey> = Vec::new();
    for part in parts {
        let key = sort_key(part)?;
        // A repeated field does not change the order.
        if !keys.iter().any(|known| known.path == key.path) {
            keys.push(key);
        }
    }
    Ok(keys)
}

fn sort_key(part: &str) -> Result<SortKey, Refused> {
    let part = unquoted(part);
    let (name, descending) = match (part.strip_suffix('-'), part.strip_prefix('-')) {
        (Some(name), _) | (None, Some(name)) => (name, true),
        (None, None) => (part.strip_suffix('+').unwrap_or(part), false),
    };
    let is_name = |step: &str| {
        !step.is_empty() && step.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let path: Vec<String> = name.split('.').map(str::to_owned).collect();
    if path.len() > FIELD_STEPS_MAX || !path.iter().all(|step| is_name(step)) {
        return Err(Refused::bad("sort", "A field to sort by is misspelt."));
    }
    Ok(SortKey { path, descending })
}

/// Returns the value of a row at a path; `null` if there is none.
pub(super) fn at_path<'a>(row: &'a Value, path: &[String]) -> &'a Value {
    path.iter().try_fold(row, |value, step| value.get(step)).unwrap_or(&Value::Null)
}

/// Compares values. Absent values come first; values of different types are ordered by their type.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    let sort = |value: &Value| match value {
        Value::Null => 0,
        Value::Bool(_) => 1,
        Value::Number(_) => 2,
        Value::String(_) => 3,
        Value::Array(_) => 4,
        Value::Object(_) => 5,
    };
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Number(a), Value::Number(b)) => order_numbers(a, b).unwrap_or(Ordering::Equal),
        (Value::String(a), Value::String(b)) => lower(a).cmp(&lower(b)),
        _ if sort(a) == sort(b) && sort(a) > 3 => a.to_string().cmp(&b.to_string()),
        _ => sort(a).cmp(&sort(b)),
    }
}

/// Adds whole numbers, also within objects. Ratios can't be added, and are left out.
pub(super) fn add(sum: &mut Value, value: &Value) {
    match value {
        Value::Number(number) => {
            if let Some(more) = number.as_u64() {
                *sum = Value::from(sum.as_u64().unwrap_or(0).saturating_add(more));
            }
        }
        Value::Object(fields) => {
            let mut sums = sum.take().as_object().cloned().unwrap_or_default();
            for (name, value) in fields.iter().filter(|(_, v)| v.is_u64() || v.is_object()) {
                add(sums.entry(name.clone()).or_insert(Value::Null), value);
            }
            *sum = Value::Object(sums);
        }
        _ => {}
    }
}

/// Encodes a position as a token: JSON in hex, so that it needs no quoting in a URL.
pub(super) fn token(place: &Place) -> Result<String, Refused> {
    let bytes = serde_json::to_vec(place).map_err(|_| Refused::broken())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Decodes the position in a token.
pub(super) fn place(token: &str) -> Result<Place, Refused> {
    let refuse = || Refused::bad("continuation_token", "This is not a token of this array.");
    let digits = unquoted(token).as_bytes();
    if digits.len() > TOKEN_BYTES_MAX || !digits.len().is_multiple_of(2) {
        return Err(refuse());
    }
    let byte = |pair: &[u8]| {
        let text = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(text, 16).ok()
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    serde_json::from_slice(&bytes.ok_or_else(refuse)?).map_err(|_| refuse())
}
