//! The directory service (LDAP) whose users may log in: its servers, the credentials of the array,
//! and the roles of its groups.

use std::fmt;
use std::net::IpAddr;

use super::users::Role;
use crate::error::Error;
use crate::values::password::KeptPassword;
use crate::values::receivers::HostPlace;
use crate::values::text::{check_text, shown};

/// The maximum number of servers: they are tried in order, and a login must end in time.
pub const DIRECTORY_URIS_MAX: usize = 3;
/// The maximum length of the text of a setting, in characters.
const TEXT_CHARS_MAX: usize = 255;
/// The maximum length of the certificates, in bytes: a chain of several.
const CERTIFICATE_BYTES_MAX: usize = 16 << 10;
/// The default ports of servers (RFC 4516, 2; and the usual port for TLS).
const PORT: u16 = 389;
const TLS_PORT: u16 = 636;

/// The URI of a server: `ldap://HOST[:PORT]` or `ldaps://HOST[:PORT]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryUri {
    text: String,
    host: String,
    port: u16,
    is_tls: bool,
}

impl DirectoryUri {
    /// Checks a URI.
    ///
    /// # Errors
    /// `invalid_directory`.
    pub fn new(text: &str) -> Result<Self, Error> {
        let parts = text.split_once("://").and_then(|(scheme, rest)| {
            let is_tls = match scheme.to_ascii_lowercase().as_str() {
                "ldap" => false,
                "ldaps" => true,
                _ => return None,
            };
            let place = HostPlace::parse(rest.strip_suffix('/').unwrap_or(rest))?;
            Some((is_tls, place))
        });
        let refuse = || {
            let text = shown(text);
            invalid(format!(
                "{text} is not the URI of a directory: give ldaps://HOST[:PORT] or ldap://…"
            ))
        };
        let (is_tls, HostPlace { host, port }) = parts.ok_or_else(refuse)?;
        let port = port.unwrap_or(if is_tls { TLS_PORT } else { PORT });
        Ok(Self { text: text.to_owned(), host, port, is_tls })
    }

    /// Returns the name or the address of the server.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns whether it speaks TLS from the first byte on; otherwise StartTLS begins TLS.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Returns whether the server is this machine.
    pub fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for DirectoryUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The group whose members have a role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DirectoryGroup {
    /// The common name of the group, or its whole DN; empty if no user has the role.
    pub group: String,
    /// The base of the group: a DN, which need not repeat the base DN.
    pub base: String,
}

/// The directory service. An empty text is not set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directory {
    /// Whether its users may log in.
    pub is_enabled: bool,
    /// Its servers, in the order in which they are tried.
    pub uris: Vec<DirectoryUri>,
    /// The base DN of users and groups.
    pub base_dn: String,
    /// The user as which the array binds: a DN, or another form that the directory accepts.
    pub bind_user: String,
    /// The password of that user.
    pub bind_password: KeptPassword,
    /// Certificates (PEM) of servers, or of their authorities; if empty, the authorities that the
    /// machine trusts.
    pub ca_certificate: String,
    /// The setting of clients, which has no effect: servers are always verified.
    pub check_peer: bool,
    /// The attribute that contains the name of a user; if empty, `uid` or `sAMAccountName`.
    pub user_login: String,
    /// The object class of users; if empty, any.
    pub user_class: String,
    /// The groups whose members have a role, in the order of [`Role::ALL`].
    pub(crate) groups: [DirectoryGroup; Role::ALL.len()],
    /// Increases with each change: a login is valid only for the settings by which it was made.
    pub(crate) revision: u64,
}

/// A change; `None` leaves a setting as it is.
#[derive(Clone, Debug, Default)]
pub struct DirectoryChange {
    /// See [`Directory::is_enabled`].
    pub is_enabled: Option<bool>,
    /// See [`Directory::uris`].
    pub uris: Option<Vec<DirectoryUri>>,
    /// See [`Directory::base_dn`].
    pub base_dn: Option<String>,
    /// See [`Directory::bind_user`]. Removing it removes the password.
    pub bind_user: Option<String>,
    /// See [`Directory::bind_password`].
    pub bind_password: Option<KeptPassword>,
    /// See [`Directory::ca_certificate`].
    pub ca_certificate: Option<String>,
    /// See [`Directory::check_peer`].
    pub check_peer: Option<bool>,
    /// See [`Directory::user_login`].
    pub user_login: Option<String>,
    /// See [`Directory::user_class`].
    pub user_class: Option<String>,
    /// Roles, each with its group, and with the base of that.
    pub groups: Vec<(Role, Option<String>, Option<String>)>,
}

impl Directory {
    /// The group whose members have a role.
    pub fn group(&self, role: Role) -> &DirectoryGroup {
        &self.groups[place(role)]
    }

    /// Returns the roles with a group, the most powerful first.
    pub fn roles(&self) -> impl Iterator<Item = (Role, &DirectoryGroup)> {
        let all = Role::ALL.into_iter().zip(&self.groups);
        all.filter(|(_, group)| !group.group.is_empty())
    }

    /// Returns the revision of the settings, which increases with each change and on which a login
    /// depends.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Sets the group whose members have a role.
    pub(crate) fn set_group(&mut self, role: Role, group: DirectoryGroup) {
        self.groups[place(role)] = group;
    }

    /// Returns the settings after a change.
    pub(crate) fn changed(&self, change: DirectoryChange) -> Result<Self, Error> {
        let is_new_password = change.bind_password.is_some();
        let old = self.clone();
        let mut new = Self {
            is_enabled: change.is_enabled.unwrap_or(old.is_enabled),
            uris: change.uris.unwrap_or(old.uris),
            base_dn: change.base_dn.unwrap_or(old.base_dn),
            bind_user: change.bind_user.unwrap_or(old.bind_user),
            bind_password: change.bind_password.unwrap_or(old.bind_password),
            ca_certificate: change.ca_certificate.unwrap_or(old.ca_certificate),
            check_peer: change.check_peer.unwrap_or(old.check_peer),
            user_login: change.user_login.unwrap_or(old.user_login),
            user_class: change.user_class.unwrap_or(old.user_class),
            groups: old.groups,
            revision: old.revision,
        };
        for (role, group, base) in change.groups {
            let DirectoryGroup { group: old_group, base: old_base } = new.group(role).clone();
            let group = group.unwrap_or(old_group);
            let base = if group.is_empty() { String::new() } else { base.unwrap_or(old_base) };
            new.set_group(role, DirectoryGroup { group, base });
        }
        if new.bind_user.is_empty() && !is_new_password {
            new.bind_password = KeptPassword::default();
        }
        // A user who may not know the password must not be able to redirect it.
        let goes_elsewhere = (&new.uris, &new.bind_user) != (&self.uris, &self.bind_user);
        if goes_elsewhere && !is_new_password && !new.bind_password.is_empty() {
            return refused("With another server or user, give the password of the user again.");
        }
        new.check()?;
        if new != *self {
            new.revision += 1;
        }
        Ok(new)
    }

    /// Checks each setting, and their combination.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.uris.len() > DIRECTORY_URIS_MAX {
            let count = self.uris.len();
            let text = format!("A directory has up to {DIRECTORY_URIS_MAX} servers, not {count}.");
            return Err(invalid(text));
        }
        let mut texts = vec![
            ("base DN", &*self.base_dn),
            ("user to bind as", &self.bind_user),
            ("password to bind with", self.bind_password.expose()),
            ("login attribute", &self.user_login),
            ("object class of users", &self.user_class),
        ];
        for DirectoryGroup { group, base } in &self.groups {
            texts.extend([("name of a group", &**group), ("base of a group", base)]);
        }
        for (what, text) in texts {
            check_text("invalid_directory", what, text, 0, TEXT_CHARS_MAX)?;
        }
        for (what, text) in [("attribute", &self.user_login), ("object class", &self.user_class)] {
            // RFC 4512, 1.4: a name, or the numbers of an OID.
            if !text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '.') {
                return refused(&format!("The {what} of users has only A-Z a-z 0-9 - and dots."));
            }
        }
        check_certificate(&self.ca_certificate)?;
        if self.bind_user.is_empty() != self.bind_password.is_empty() {
            return refused("The user to bind as and its password go together.");
        }
        let is_whole =
            !(self.uris.is_empty() || self.base_dn.is_empty() || self.bind_user.is_empty());
        match self.is_enabled && !is_whole {
            true => refused("A directory needs a URI, a base DN, and a user to bind as."),
            false => Ok(()),
        }
    }
}

fn place(role: Role) -> usize {
    Role::ALL.iter().position(|one| *one == role).unwrap_or_default()
}

/// Checks that a text looks like certificates; the user of the certificates parses them.
fn check_certificate(text: &str) -> Result<(), Error> {
    let is_good = text.trim_start().starts_with("-----BEGIN CERTIFICATE-----")
        && text.trim_end().ends_with("-----END CERTIFICATE-----")
        && text.is_ascii();
    match text.is_empty() || is_good && text.len() <= CERTIFICATE_BYTES_MAX {
        true => Ok(()),
        false => refused("Certificates are given as PEM, up to 16 KiB."),
    }
}

fn invalid(text: String) -> Error {
    Error::invalid("invalid_directory", text)
}

fn refused<T>(text: &str) -> Result<T, Error> {
    Err(invalid(text.into()))
}
