//! SNMP managers, which receive alerts as traps or informs.

use crate::error::Error;
use crate::values::name::SnmpManagerName;
use crate::values::password::KeptPassword;
use crate::values::receivers::HostPlace;
use crate::values::text::check_text;

/// The maximum number of SNMP managers: each has a sending thread.
pub const SNMP_MANAGERS_MAX: usize = 8;
/// The default port of a manager (RFC 3417, 3.1).
const PORT: u16 = 162;
/// The maximum length of a community and of a user, in characters (RFC 3411 specifies the latter).
const NAME_CHARS_MAX: usize = 32;
/// The minimum and maximum length of a passphrase, in characters (RFC 3414, 11.2, specifies the
/// minimum).
const PASSPHRASE_CHARS: (usize, usize) = (8, 63);

/// How messages are authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnmpAuth {
    /// HMAC-MD5-96.
    Md5,
    /// HMAC-SHA-96.
    Sha,
}

impl SnmpAuth {
    /// Returns its name. Stable: it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha => "SHA",
        }
    }

    /// Returns the protocol with this name.
    ///
    /// # Errors
    /// `invalid_snmp_manager`.
    pub fn parse(name: &str) -> Result<Self, Error> {
        let found = [Self::Md5, Self::Sha].into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| invalid("SNMP messages are authenticated by MD5 or SHA."))
    }
}

/// The sender of messages, and their protection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SnmpSecurity {
    /// Version 2c, with a community, which is sent in the clear.
    V2c {
        /// The community.
        community: KeptPassword,
    },
    /// Version 3.
    V3 {
        /// The user.
        user: String,
        /// The authentication of messages, and its passphrase.
        auth: Option<(SnmpAuth, KeptPassword)>,
        /// The passphrase of encryption (AES with 128 bits), if messages are encrypted.
        privacy: Option<KeptPassword>,
    },
}

impl SnmpSecurity {
    /// Returns the name of its version.
    pub fn version(&self) -> &'static str {
        match self {
            Self::V2c { .. } => "v2c",
            Self::V3 { .. } => "v3",
        }
    }
}

/// An SNMP manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnmpManager {
    /// The name of the SNMP manager.
    pub name: SnmpManagerName,
    /// `HOST`, or `HOST:PORT`.
    pub host: String,
    /// Whether it acknowledges messages (informs), so that lost ones are repeated.
    pub is_inform: bool,
    /// The sender of messages, and their protection.
    pub security: SnmpSecurity,
}

/// The settings of a new manager, or a change to one; `None` means not given, or no change.
#[derive(Clone, Debug, Default)]
pub struct SnmpManagerChange {
    /// See [`SnmpManager::host`].
    pub host: Option<String>,
    /// See [`SnmpManager::is_inform`].
    pub is_inform: Option<bool>,
    /// `v2c` or `v3`; it can't be changed.
    pub version: Option<String>,
    /// The community of version 2c.
    pub community: Option<KeptPassword>,
    /// Of version 3.
    pub user: Option<String>,
    /// The authentication of version 3; `Some(None)` removes it.
    pub auth: Option<Option<SnmpAuth>>,
    /// Of version 3.
    pub auth_passphrase: Option<KeptPassword>,
    /// Of version 3: whether messages are encrypted.
    pub privacy: Option<bool>,
    /// Of version 3.
    pub privacy_passphrase: Option<KeptPassword>,
}

impl SnmpManager {
    /// Returns its host and port; `None` if `host` is invalid.
    pub fn place(&self) -> Option<(String, u16)> {
        let HostPlace { host, port } = HostPlace::parse(&self.host)?;
        Some((host, port.unwrap_or(PORT)))
    }

    /// Returns a new manager.
    pub(crate) fn new(name: SnmpManagerName, change: SnmpManagerChange) -> Result<Self, Error> {
        let security = match change.version.as_deref() {
            Some("v2c") => SnmpSecurity::V2c { community: KeptPassword::default() },
            Some("v3") => SnmpSecurity::V3 { user: String::new(), auth: None, privacy: None },
            _ => return Err(invalid("The version of an SNMP manager is v2c or v3.")),
        };
        let blank = Self { name, host: String::new(), is_inform: false, security };
        blank.with(change)
    }

    /// Returns the manager after a change. A user who may not know a secret must not be able to
    /// redirect it.
    pub(crate) fn changed(&self, change: SnmpManagerChange) -> Result<Self, Error> {
        let is_moved = change.host.as_ref().is_some_and(|host| *host != self.host);
        // Version 3 sends no secrets.
        let is_told = matches!(self.security, SnmpSecurity::V2c { .. });
        if is_moved && is_told && change.community.is_none() {
            return Err(invalid("With another host, give the community again."));
        }
        self.clone().with(change)
    }

    fn with(mut self, change: SnmpManagerChange) -> Result<Self, Error> {
        if change.version.as_deref().is_some_and(|version| version != self.security.version()) {
            return Err(invalid("The version of an SNMP manager can't be changed."));
        }
        let is_of_v3 = change.user.is_some()
            || change.auth.is_some()
            || change.auth_passphrase.is_some()
            || change.privacy.is_some()
            || change.privacy_passphrase.is_some();
        match &self.security {
            SnmpSecurity::V2c { .. } if is_of_v3 => {
                return Err(invalid(
                    "A user and passphrases are for version 3; this manager is of v2c.",
                ));
            }
            SnmpSecurity::V3 { .. } if change.community.is_some() => {
                return Err(invalid("A community is for version 2c; this manager is of v3."));
            }
            _ => {}
        }
        self.host = change.host.unwrap_or(self.host);
        self.is_inform = change.is_inform.unwrap_or(self.is_inform);
        match &mut self.security {
            SnmpSecurity::V2c { community } => {
                if let Some(new) = change.community {
                    *community = new;
                }
            }
            SnmpSecurity::V3 { user, auth, privacy } => {
                if let Some(new) = change.user {
                    *user = new;
                }
                let (kept, secret) = auth.take().unzip();
                let how = change.auth.unwrap_or(kept);
                let secret = change.auth_passphrase.or(secret).unwrap_or_default();
                *auth = how.map(|how| (how, secret));
                let is_private = change.privacy.unwrap_or(privacy.is_some());
                let secret = change.privacy_passphrase.or(privacy.take()).unwrap_or_default();
                *privacy = is_private.then_some(secret);
            }
        }
        self.check()?;
        Ok(self)
    }

    /// Checks each setting, and their combination.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.place().is_none() {
            return Err(invalid("An SNMP manager is at HOST or HOST:PORT."));
        }
        let text = |what, text: &str, (least, most)| {
            check_text("invalid_snmp_manager", what, text, least, most)
        };
        match &self.security {
            SnmpSecurity::V2c { community } => {
                text("community", community.expose(), (1, NAME_CHARS_MAX))
            }
            SnmpSecurity::V3 { user, auth, privacy } => {
                text("user of SNMP", user, (1, NAME_CHARS_MAX))?;
                if let Some((_, secret)) = auth {
                    text("passphrase of authentication", secret.expose(), PASSPHRASE_CHARS)?;
                }
                if let Some(secret) = privacy {
                    text("passphrase of privacy", secret.expose(), PASSPHRASE_CHARS)?;
                }
                match privacy.is_some() && auth.is_none() {
                    true => Err(invalid("Encrypted messages must be authenticated, too.")),
                    false => Ok(()),
                }
            }
        }
    }
}

fn invalid(text: &str) -> Error {
    Error::invalid("invalid_snmp_manager", text)
}
