//! The names on the array of what the orchestrator names: up to 128 characters of any kind there,
//! up to 63 letters, digits and `-` here, whose case does not matter.
//!
//! The same name gives the same names each time, so that a request that is repeated finds what its
//! first attempt made. Two names never give the same: `--` stands only before what is added.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// The longest name of the array.
const CHARS_MAX: usize = 63;
/// What may be added for the next of the same name: `--` and one digit.
const AGAIN_CHARS: usize = 2 + 1;
/// What is added to names that the array does not take: `--` and 16 digits of a hash.
const HASH_CHARS: usize = 2 + 16;
/// How often a name may be made again while the array still keeps what had it.
const AGAIN_MAX: usize = 9;

/// The names that a thing may have, the first of them in the first place: a name stays in use until
/// the array eradicates what had it, a day later by default.
pub fn candidates(prefix: &str, name: &str) -> Vec<String> {
    let base = base(prefix, name);
    let again = (2..=AGAIN_MAX).map(|count| format!("{base}--{count}"));
    std::iter::once(base.clone()).chain(again).collect()
}

/// The name of the host that a node is, by its initiator name.
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
