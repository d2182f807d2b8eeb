//! The names of volume groups and pods.

use std::fmt;

use super::naming::check;
use crate::container_kind::ContainerKind;
use crate::error::Error;

/// The name of a volume group or a pod, with the rules of a volume's own name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContainerName {
    kind: ContainerKind,
    name: String,
}

impl ContainerName {
    /// Checks a name.
    ///
    /// # Errors
    /// `invalid_name`.
    pub fn new(kind: ContainerKind, text: &str) -> Result<Self, Error> {
        check(kind.one(), text, "A-Z a-z 0-9 - _", |c| c == '-' || c == '_')?;
        Ok(Self { kind, name: text.to_owned() })
    }

    /// Returns the kind of the container.
    pub fn kind(&self) -> ContainerKind {
        self.kind
    }

    /// Returns it as it was given.
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Returns it in lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.name.to_ascii_lowercase()
    }
}

impl fmt::Display for ContainerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
