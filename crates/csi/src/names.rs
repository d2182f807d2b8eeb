//! Maps the orchestrator's names to names on the array: up to 128 arbitrary characters there, up to
//! 63 letters, digits and `-` here, case-insensitive.
//!
//! The mapping is deterministic, so that a repeated request finds what its first attempt created.
//! Two names never map to the same name: `--` appears only before an added suffix.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The longest name on the array.
const CHARS_MAX: usize = 63;
/// The suffix of another object with the same name: `--` and one digit.
const AGAIN_CHARS: usize = 2 + 1;
/// The suffix of names that are invalid on the array: `--` and 16 digits of a hash.
const HASH_CHARS: usize = 2 + 16;
/// How often a name may be reused while the array still keeps earlier objects.
const AGAIN_MAX: usize = 9;

/// Returns the possible names of an object, in order of preference: a name stays in use until the
/// array eradicates its object, a day later by default.
pub fn candidates(prefix: &str, name: &str) -> Vec<String> {
    let base = base(prefix, name);
    let again = (2..=AGAIN_MAX).map(|count| format!("{base}--{count}"));
    std::iter::once(base.clone()).chain(again).collect()
}

/// Returns the name of a node's host, by its initiator name.
pub fn host(prefix: &str, initiator: &str) -> String {
    format!("{prefix}node-{}", hash(&initiator.to_ascii_lowercase()))
}

fn base(prefix: &str, name: &str) -> String {
    let room = CHARS_MAX - AGAIN_CHARS - prefix.len();
    let is_plain = name.len() <= room
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && name.chars().any(|c| c.is_ascii_lowercase())
        && !name.contains("--")
        && !name.starts_with('-')
        && !name.ends_with('-');
    if is_plain {
        return format!("{prefix}{name}");
    }
    let kept: String =
        name.chars().filter(char::is_ascii_alphanumeric).take(room - HASH_CHARS).collect();
    let kept = if kept.is_empty() { "x" } else { &kept };
    format!("{prefix}{kept}--{}", hash(name))
}

fn hash(text: &str) -> String {
    let mut digits = String::new();
    for byte in &Sha256::digest(text.as_bytes())[..8] {
        let _ = write!(digits, "{byte:02x}");
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_array_and_differ_where_the_given_ones_do() {
        let pvc = "pvc-2b3c1f0e-6a4d-4e52-9a39-0f6a4f5f3a61";
        let given = [
            pvc,
            "a",
            "A",
            "a b",
            "a--2",
            "-a",
            "a-",
            "1",
            "ä",
            "a.b",
            "ab",
            &"x".repeat(128),
            &"x".repeat(127),
        ];
        let mut all = Vec::new();
        for name in given {
            for made in candidates("k8s-", name) {
                assert!(made.len() <= CHARS_MAX, "{made}");
                assert!(made.chars().all(|c| c.is_ascii_alphanumeric() || c == '-'), "{made}");
                assert!(made.ends_with(|c: char| c.is_ascii_alphanumeric()), "{made}");
                all.push(made.to_ascii_lowercase());
            }
        }
        assert_eq!(all[0], format!("k8s-{pvc}"));
        assert_eq!(all[1], format!("k8s-{pvc}--2"));
        let count = all.len();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
