//! Errors of management.

use std::io;
use std::path::Path;

/// The reason why management is not available: one line, which says what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The configuration is invalid.
    #[error("{0}")]
    Usage(String),
    /// A file or an address is not available.
    #[error("{0}")]
    Machine(String),
}

impl Error {
    /// Returns the system's error for a file.
    pub fn of_file(what: &str, path: &Path, error: &io::Error) -> Self {
        Self::Machine(format!("can't {what} {}: {error}", path.display()))
    }
}
