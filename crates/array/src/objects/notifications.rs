//! The receivers of alerts that are kept in the pool: the mail relay, the recipients of mail, and
//! syslog servers. The configuration of the program may contain others.

use std::collections::BTreeMap;
use std::fmt;

use super::snmp::SnmpManager;
use crate::error::Error;
use crate::values::name::SyslogServerName;
use crate::values::receivers::{
    HostPlace, MailAddress, SyslogUri, check_sender_domain, check_sender_username,
};
use crate::values::text::check_text;

/// The maximum number of alert watchers: each has a sending thread.
pub const WATCHERS_MAX: usize = 20;
/// The maximum number of syslog servers: each has a sending thread.
pub const SYSLOG_SERVERS_MAX: usize = 8;
/// The maximum length of the user at a relay, and of the password, in characters.
const CREDENTIAL_CHARS_MAX: usize = 255;
/// The maximum length of the text before each subject, in characters.
const SUBJECT_PREFIX_CHARS_MAX: usize = 64;
/// The maximum length of the text before each body, in characters.
const BODY_PREFIX_CHARS_MAX: usize = 256;
/// The default port of a relay (RFC 5321, 2.3.5).
const RELAY_PORT: u16 = 25;

/// How the connection to a relay is encrypted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encryption {
    /// No encryption.
    #[default]
    None,
    /// STARTTLS; without it, nothing is sent.
    StartTls,
    /// TLS from the first byte on.
    Tls,
}

impl Encryption {
    /// Returns its name; empty for none. Stable: it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::StartTls => "starttls",
            Self::Tls => "tls",
        }
    }

    /// Returns the encryption with this name.
    ///
    /// # Errors
    /// `invalid_relay`.
    pub fn parse(name: &str) -> Result<Self, Error> {
        let found = [Self::None, Self::StartTls, Self::Tls].into_iter().find(|e| e.name() == name);
        let text = "The encryption of mail is starttls, tls, or empty for none.";
        found.ok_or_else(|| Error::invalid("invalid_relay", text))
    }
}

/// The password of the array at a relay, which `Debug` does not show. Stored, because the relay
/// requires it in the clear; never shown, logged or returned.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RelayPassword(String);

impl RelayPassword {
    /// Returns this password; empty means that there is none.
    pub fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns the password itself, for the relay.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RelayPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RelayPassword(…)")
    }
}

/// The server that relays mail. An empty text is not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relay {
    /// `HOST`, or `HOST:PORT`. Without one no mail is sent.
    pub host: String,
    /// The domain of the sender's address.
    pub sender_domain: String,
    /// The part before the `@` of the sender's address; if empty, the name of the array.
    pub sender_username: String,
    /// The array's user at the relay.
    pub user: String,
    /// Its password.
    pub password: RelayPassword,
    /// How the connection is encrypted.
    pub encryption: Encryption,
    /// The text before each subject.
    pub subject_prefix: String,
    /// The text before each body.
    pub body_prefix: String,
}

/// A change to the relay; `None` leaves a setting as it is.
#[derive(Clone, Debug, Default)]
pub struct RelayChange {
    /// See [`Relay::host`].
    pub host: Option<String>,
    /// See [`Relay::sender_domain`].
    pub sender_domain: Option<String>,
    /// See [`Relay::sender_username`].
    pub sender_username: Option<String>,
    /// See [`Relay::user`]. Removing it removes the password.
    pub user: Option<String>,
    /// See [`Relay::password`].
    pub password: Option<RelayPassword>,
    /// See [`Relay::encryption`].
    pub encryption: Option<Encryption>,
    /// See [`Relay::subject_prefix`].
    pub subject_prefix: Option<String>,
    /// See [`Relay::body_prefix`].
    pub body_prefix: Option<String>,
}

impl Relay {
    /// Returns the host and port of the relay; `None` if there is none.
    pub fn place(&self) -> Option<(String, u16)> {
        let place = HostPlace::parse(&self.host)?;
        Some((place.host, place.port.unwrap_or(RELAY_PORT)))
    }

    /// Returns the relay after a change.
    pub(crate) fn changed(&self, change: RelayChange) -> Result<Self, Error> {
        let is_new_password = change.password.is_some();
        let old = self.clone();
        let mut new = Self {
            host: change.host.unwrap_or(old.host),
            sender_domain: change.sender_domain.unwrap_or(old.sender_domain),
            sender_username: change.sender_username.unwrap_or(old.sender_username),
            user: change.user.unwrap_or(old.user),
            password: change.password.unwrap_or(old.password),
            encryption: change.encryption.unwrap_or(old.encryption),
            subject_prefix: change.subject_prefix.unwrap_or(old.subject_prefix),
            body_prefix: change.body_prefix.unwrap_or(old.body_prefix),
        };
        if new.user.is_empty() && !is_new_password {
            new.password = RelayPassword::default();
        }
        // A user who may not know the password must not be able to redirect it.
        let goes_elsewhere = (&new.host, &new.user) != (&self.host, &self.user);
        if goes_elsewhere && !is_new_password && !new.password.expose().is_empty() {
            return refused("With another relay or user, give the password again.");
        }
        new.check()?;
        Ok(new)
    }

    /// Checks each setting, and their combination.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !self.host.is_empty() && self.place().is_none() {
            return refused("The relay is HOST or HOST:PORT; an IPv6 address is [ADDRESS]:PORT.");
        }
        if !self.sender_domain.is_empty() {
            check_sender_domain(&self.sender_domain)?;
        } else if !self.host.is_empty() {
            return refused("Mail needs the domain of its sender: give a sender domain.");
        }
        if !self.sender_username.is_empty() {
            check_sender_username(&self.sender_username)?;
        }
        let password = self.password.expose();
        for (what, text, most) in [
            ("user of a relay", &*self.user, CREDENTIAL_CHARS_MAX),
            ("password of a relay", password, CREDENTIAL_CHARS_MAX),
            ("prefix of subjects", &self.subject_prefix, SUBJECT_PREFIX_CHARS_MAX),
            ("prefix of bodies", &self.body_prefix, BODY_PREFIX_CHARS_MAX),
        ] {
            check_text("invalid_relay", what, text, 0, most)?;
        }
        if self.user.is_empty() != password.is_empty() {
            return refused("The user of a relay and its password go together.");
        }
        if !self.user.is_empty() && self.encryption == Encryption::None {
            return refused("A password is not sent without encryption: use starttls.");
        }
        Ok(())
    }
}

fn refused<T>(text: &str) -> Result<T, Error> {
    Err(Error::invalid("invalid_relay", text))
}

/// A recipient of mail about alerts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watcher {
    /// The address.
    pub address: MailAddress,
    /// Whether mail is sent.
    pub is_enabled: bool,
}

/// A syslog server, which receives alerts and changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyslogServer {
    /// The name of the syslog server.
    pub name: SyslogServerName,
    /// Its URI.
    pub uri: SyslogUri,
}

/// All receivers of alerts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notifications {
    /// The mail relay.
    pub relay: Relay,
    /// The recipients of mail, by address in lower case.
    pub(crate) watchers: BTreeMap<String, Watcher>,
    /// The syslog servers, by name in lower case.
    pub(crate) servers: BTreeMap<String, SyslogServer>,
    /// The SNMP managers, by name in lower case.
    pub(crate) managers: BTreeMap<String, SnmpManager>,
    /// The number of starts of the SNMP engine.
    pub(crate) snmp_boots: u32,
}

impl Notifications {
    /// Returns the recipients of mail, in the order of addresses.
    pub fn watchers(&self) -> impl Iterator<Item = &Watcher> {
        self.watchers.values()
    }

    /// Returns the syslog servers, in the order of names.
    pub fn servers(&self) -> impl Iterator<Item = &SyslogServer> {
        self.servers.values()
    }

    /// Returns the SNMP managers, in the order of names.
    pub fn managers(&self) -> impl Iterator<Item = &SnmpManager> {
        self.managers.values()
    }
}
