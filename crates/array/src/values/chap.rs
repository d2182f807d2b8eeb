//! CHAP users and secrets (RFC 7143 section 12.1.3). Secrets are stored, because CHAP needs them in
//! the clear on both sides; they are never shown, logged or returned.

use std::fmt;

use crate::error::Error;

/// The minimum length of a secret: 96 bits (RFC 7143 section 9.2.1).
pub const SECRET_BYTES_MIN: usize = 12;
/// The maximum length of a secret.
pub const SECRET_BYTES_MAX: usize = 255;
/// The maximum length of a user name.
pub const USER_BYTES_MAX: usize = 255;

/// A secret, which `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Checks a secret.
    ///
    /// # Errors
    /// `invalid_chap`. The message never contains the secret.
    pub fn new(text: &str) -> Result<Self, Error> {
        let refuse = |why: &str| Err(Error::invalid("invalid_chap", why));
        if !(SECRET_BYTES_MIN..=SECRET_BYTES_MAX).contains(&text.len()) {
            return refuse("A CHAP secret must have 12 to 255 characters.");
        }
        if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            return refuse("A CHAP secret may contain only printable ASCII characters.");
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the secret itself, for computing a response.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// One side's user and secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChapUser {
    /// The user (CHAP_N).
    pub user: String,
    /// Its secret.
    pub secret: Secret,
}

impl ChapUser {
    /// Checks the user and the secret.
    ///
    /// # Errors
    /// `invalid_chap`.
    pub fn new(user: &str, secret: &str) -> Result<Self, Error> {
        let printable = user.chars().all(|c| !c.is_control());
        if user.is_empty() || user.len() > USER_BYTES_MAX || !printable {
            let text = "A CHAP user must have 1 to 255 printable characters.";
            return Err(Error::invalid("invalid_chap", text));
        }
        Ok(Self { user: user.to_owned(), secret: Secret::new(secret)? })
    }
}

/// How a host and the target authenticate each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chap {
    /// The credentials of the host.
    pub initiator: ChapUser,
    /// The credentials of the target, if the host asks for them (mutual CHAP).
    pub target: Option<ChapUser>,
}

impl Chap {
    /// Combines the credentials of both sides.
    ///
    /// # Errors
    /// `invalid_chap` if both directions have the same secret: a host could then be answered with
    /// its own challenge (RFC 7143 section 9.2.1).
    pub fn new(initiator: ChapUser, target: Option<ChapUser>) -> Result<Self, Error> {
        if target.as_ref().is_some_and(|t| t.secret == initiator.secret) {
            let text = "The two secrets of mutual CHAP must differ.";
            return Err(Error::invalid("invalid_chap", text));
        }
        Ok(Self { initiator, target })
    }
}

/// A change to how a host authenticates; `None` leaves a direction as it is.
#[derive(Clone, Debug, Default)]
pub struct ChapChange {
    /// The new credentials of the host; `Some(None)` removes them, and the target's as well.
    pub initiator: Option<Option<ChapUser>>,
    /// The new credentials of the target; `Some(None)` removes them.
    pub target: Option<Option<ChapUser>>,
}

impl ChapChange {
    /// Returns the CHAP of a host that had none before.
    ///
    /// # Errors
    /// `invalid_chap`, as for a change.
    pub fn of_new_host(self) -> Result<Option<Chap>, Error> {
        self.apply(None)
    }

    /// Returns the CHAP of a host after the change.
    ///
    /// # Errors
    /// `invalid_chap`: as [`Chap::new`], and if the target would authenticate to a host that does
    /// not authenticate itself.
    pub(crate) fn apply(self, old: Option<Chap>) -> Result<Option<Chap>, Error> {
        let (initiator, target) = old.map_or((None, None), |c| (Some(c.initiator), c.target));
        let is_taken_away = matches!(self.initiator, Some(None));
        let initiator = self.initiator.unwrap_or(initiator);
        let target = match self.target {
            None if is_taken_away => None,
            change => change.unwrap_or(target),
        };
        match (initiator, target) {
            (Some(initiator), target) => Chap::new(initiator, target).map(Some),
            (None, None) => Ok(None),
            (None, Some(_)) => {
                let text = "The target authenticates itself only to hosts that log in with CHAP.";
                Err(Error::invalid("invalid_chap", text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_checked_and_never_shown() {
        assert!(Secret::new("elevenchars").is_err());
        assert!(Secret::new("twelve\nchars").is_err());
        let user = ChapUser::new("esx1", "correct horse").unwrap();
        let shown = format!("{user:?}");
        assert!(shown.contains("esx1") && !shown.contains("horse"), "{shown}");
        let error = ChapUser::new("esx1", "short-horse").unwrap_err();
        assert!(!error.to_string().contains("horse"));
    }

    #[test]
    fn mutual_secrets_differ() {
        let a = ChapUser::new("esx1", "correct horse").unwrap();
        let b = ChapUser::new("array", "correct horse").unwrap();
        assert_eq!(Chap::new(a.clone(), Some(b)).unwrap_err().code(), "invalid_chap");
        assert!(Chap::new(a, None).is_ok());
    }

    #[test]
    fn an_omitted_direction_does_not_change() {
        let user = |name: &str| ChapUser::new(name, &format!("secret of {name}")).unwrap();
        let both = Chap::new(user("esx1"), Some(user("array"))).unwrap();
        let apply = |initiator: Option<Option<&str>>, target: Option<Option<&str>>, old| {
            let made = |change: Option<Option<&str>>| change.map(|name| name.map(user));
            let done =
                ChapChange { initiator: made(initiator), target: made(target) }.apply(old)?;
            let name = |user: ChapUser| user.user;
            Ok::<_, Error>(done.map(|c| (c.initiator.user, c.target.map(name))))
        };
        let expected_chap = |initiator: &str, target: Option<&str>| {
            Some((initiator.to_owned(), target.map(str::to_owned)))
        };
        let first = apply(Some(Some("esx1")), None, None).unwrap();
        assert_eq!(first, expected_chap("esx1", None));
        let second = apply(None, Some(Some("other")), Some(both.clone())).unwrap();
        assert_eq!(second, expected_chap("esx1", Some("other")));
        let other = apply(Some(Some("esx2")), None, Some(both.clone())).unwrap();
        assert_eq!(other, expected_chap("esx2", Some("array")));
        assert_eq!(
            apply(None, Some(None), Some(both.clone())).unwrap(),
            expected_chap("esx1", None)
        );
        assert_eq!(apply(Some(None), None, Some(both.clone())).unwrap(), None);
        assert_eq!(apply(None, None, Some(both)).unwrap(), expected_chap("esx1", Some("array")));
        assert!(apply(None, Some(Some("array")), None).is_err());
        assert_eq!(apply(None, Some(None), None).unwrap(), None);
    }
}
