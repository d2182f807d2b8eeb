//! Names of objects, of maximum length.

use serde_json::{Value, json};

/// The most names in one request.
pub const BATCH: usize = 500;
/// The longest name.
const NAME_CHARS: usize = 63;
/// The longest iSCSI name.
const ISCSI_NAME_BYTES: usize = 223;
/// The most names of volumes that one request may truncate.
pub const TRUNCATED: usize = 100;
/// The largest size of a volume: 64 TiB.
pub const SIZE: u64 = 64 << 40;

/// Returns the name of the `n`th object of a kind.
pub fn name(kind: &str, n: usize) -> String {
    let width = NAME_CHARS - kind.len() - 1;
    format!("{kind}-{n:0>width$}")
}

/// Returns the names of the `n`th batch of objects of a kind.
pub fn batch(kind: &str, n: usize) -> Vec<String> {
    (n * BATCH..(n + 1) * BATCH).map(|n| name(kind, n)).collect()
}

/// Returns the same, as a parameter.
pub fn listed(kind: &str, n: usize) -> String {
    batch(kind, n).join(",")
}

/// Returns the `n`th group of names that one request may truncate, as a parameter.
pub fn truncated(kind: &str, n: usize) -> String {
    let names = (n * TRUNCATED..(n + 1) * TRUNCATED).map(|n| name(kind, n));
    names.collect::<Vec<_>>().join(",")
}

/// Returns the snapshots with a suffix of the volumes of a batch, as a parameter.
pub fn snapshots(kind: &str, n: usize, suffix: &str) -> String {
    let all = batch(kind, n).into_iter().map(|volume| format!("{volume}.{suffix}"));
    all.collect::<Vec<_>>().join(",")
}

/// Returns the names of `count` initiators of the `n`th host.
pub fn initiators(n: usize, count: usize) -> Vec<String> {
    let start = "iqn.2026-01.com.example:";
    let width = ISCSI_NAME_BYTES - start.len();
    (0..count).map(|each| format!("{start}{:0>width$}", n * 1000 + each)).collect()
}

/// Returns `count` tags with the longest texts, each of `letter`.
pub fn tags(count: usize, letter: &str) -> Value {
    let tag = |n| {
        let name = |start: &str| format!("{start}{n:02}{}", letter.repeat(61));
        let value = letter.repeat(256);
        json!({"namespace": name("n"), "key": name("k"), "value": value, "copyable": true})
    };
    Value::Array((0..count).map(tag).collect())
}
