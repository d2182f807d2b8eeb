//! Secrets that are stored in the clear, because other services require them in that form.

use std::fmt;

/// A password or passphrase of the array at another service, which `Debug` does not show. Stored in
/// the clear; never shown, logged or returned.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct KeptPassword(String);

impl KeptPassword {
    /// Returns this password; empty means that there is none.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the password itself, for the service.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether there is no password.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for KeptPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeptPassword(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let password = KeptPassword::new("horse");
        assert_eq!(
            (format!("{password:?}"), password.expose()),
            ("KeptPassword(…)".into(), "horse")
        );
        assert!(KeptPassword::default().is_empty() && !password.is_empty());
    }
}
