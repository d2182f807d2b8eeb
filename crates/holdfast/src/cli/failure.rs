//! Exit codes, and their messages.

use std::fmt;
use std::process::ExitCode;

/// The end of every verb's help.
pub const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  the array or the pool refused the request: standard error says why
  2  the command line or the configuration is invalid
  3  no array can be reached, or several can
  4  this machine failed: a file, a device or an address is not available";

/// The reason why a verb failed: one line, which says what to do.
#[derive(Debug)]
pub enum Failure {
    /// The array or the pool refused.
    Refused(String),
    /// The command line or the configuration is invalid.
    Usage(String),
    /// No array can be reached, or the choice is ambiguous.
    Unreachable(String),
    /// A file, a device or an address is not available.
    Machine(String),
}

impl Failure {
    /// Returns the exit code.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Refused(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
            Self::Machine(_) => 4,
        })
    }

    /// Returns the failure for an error of the system on a file.
    pub fn of_file(what: &str, path: &std::path::Path, error: &std::io::Error) -> Self {
        Self::Machine(format!("can't {what} {}: {error}", path.display()))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Refused(text)
        | Self::Usage(text)
        | Self::Unreachable(text)
        | Self::Machine(text)) = self;
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        f.write_str(lines.next().unwrap_or("unknown"))?;
        lines.try_for_each(|line| write!(f, " {line}"))
    }
}

impl From<array::Error> for Failure {
    fn from(error: array::Error) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<management::Error> for Failure {
    fn from(error: management::Error) -> Self {
        match error {
            management::Error::Usage(text) => Self::Usage(text),
            management::Error::Machine(text) => Self::Machine(text),
        }
    }
}

impl From<store::StoreError> for Failure {
    fn from(error: store::StoreError) -> Self {
        match error {
            store::StoreError::Io(_) => Self::Machine(error.to_string()),
            other => Self::Refused(other.to_string()),
        }
    }
}
