//! Secrets, which are written only into files that only root can read, and into requests to the
//! array.

use std::fmt;

use serde::{Serialize, Serializer};

/// The longest value in a record of open-iscsi, in bytes: it reads lines without checking that.
const BYTES_MAX: usize = 255;

/// A secret. It can't be displayed, and it is not a string: nothing can make it an argument of a
/// program, which every user of the machine could read, or a part of a message.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a text; `None` if a record can't contain it.
    pub fn new(text: &str) -> Option<Self> {
        is_recordable(text).then(|| Self(text.to_owned()))
    }

    /// Appends the secret to the bytes of a record, which is written for root only.
    pub fn append_to(&self, record: &mut Vec<u8>) {
        record.extend_from_slice(self.0.as_bytes());
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

impl Serialize for Secret {
    /// Into the body of a request to the array.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

/// Returns whether a record of open-iscsi can contain this value as it is: on one line, as long as
/// it may be, and without spaces at its ends, which would be lost.
pub fn is_recordable(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= BYTES_MAX
        && text.trim() == text
        && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_that_a_record_would_change_is_refused() {
        let long = "x".repeat(256);
        let injected = "twelve-bytes\nnode.startup = automatic";
        for bad in ["", " twelve-bytes", "twelve-bytes\t", injected, "a\0b", &long] {
            assert_eq!(Secret::new(bad), None, "{bad:?}");
        }
        let mut record = Vec::new();
        Secret::new("with = and # and space").unwrap().append_to(&mut record);
        assert_eq!(record, b"with = and # and space");
    }
}
