//! The operating system of a host, as its administrator set it.
//!
//! It is only stored and shown. All hosts are served by the standards, regardless of it.

use std::fmt;

use crate::error::Error;

/// The operating systems that REST 2.x lists.
const NAMES: [&str; 7] =
    ["aix", "esxi", "hitachi-vsp", "hpux", "oracle-vm-server", "solaris", "vms"];

/// The operating system of a host: one of a fixed set of names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Personality(&'static str);

impl Personality {
    /// Parses a name.
    ///
    /// # Errors
    /// `invalid_personality` if the name is unknown.
    pub fn new(text: &str) -> Result<Self, Error> {
        let found = NAMES.into_iter().find(|name| *name == text);
        found.map(Self).ok_or_else(|| {
            let text = format!("A personality is one of {}.", NAMES.join(", "));
            Error::invalid("invalid_personality", text)
        })
    }
}

impl fmt::Display for Personality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
