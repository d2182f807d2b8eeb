//! Users, their roles, the hashes of their API tokens and of their passwords, as they are stored
//! and shown.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::error::Error;
use crate::values::name::{TokenName, UserName};
use crate::values::text::shown;

/// The maximum number of users of an array.
pub const USERS_MAX: usize = 1_000;
/// The maximum number of API tokens of a user: a record of them must fit one value of the store.
pub const TOKENS_PER_USER_MAX: usize = 32;
/// The user that always exists, and is always an array admin. The owner of the process acts as it,
/// so administrators can't be locked out of an array on their own machine.
pub const BUILT_IN_USER: &str = "admin";

/// What a user may do. The management interface maps requests to roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// All requests.
    ArrayAdmin,
    /// All requests for storage: volumes, snapshots, hosts, connections.
    StorageAdmin,
    /// Read only.
    ReadOnly,
}

impl Role {
    /// All roles, the most powerful first.
    pub const ALL: [Self; 3] = [Self::ArrayAdmin, Self::StorageAdmin, Self::ReadOnly];

    /// Returns its name. Stable: it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::ArrayAdmin => "array_admin",
            Self::StorageAdmin => "storage_admin",
            Self::ReadOnly => "readonly",
        }
    }

    /// Returns the role with this name.
    ///
    /// # Errors
    /// `invalid_role`.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| {
            let shown = shown(text);
            let text =
                format!("{shown} is not a role; roles are array_admin, storage_admin, readonly.");
            Error::invalid("invalid_role", text)
        })
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The stored hash of a token: its SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenHash(pub(crate) [u8; 32]);

impl TokenHash {
    /// Returns the hash of a token as it is sent.
    pub fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

/// The maximum length of a hash of a password, in bytes.
const PASSWORD_HASH_BYTES_MAX: usize = 256;

/// The stored hash of a password: slow to compute, with its salt and parameters, as a PHC string.
/// The layer above computes and checks it. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(String);

impl PasswordHash {
    /// Returns a PHC string of Argon2id as a hash; `None` if it is not one.
    pub fn new(phc: &str) -> Option<Self> {
        let is_good = phc.starts_with("$argon2id$")
            && phc.len() <= PASSWORD_HASH_BYTES_MAX
            && phc.bytes().all(|byte| byte.is_ascii_graphic());
        is_good.then(|| Self(phc.to_owned()))
    }

    /// Returns the PHC string.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns an identifier of this password of this user: another password has another salt.
    pub fn credential(&self) -> TokenHash {
        TokenHash::of(self.0.as_bytes())
    }
}

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PasswordHash(…)")
    }
}

/// A user as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: UserName,
    pub(crate) role: Role,
    /// The time of creation; `None` for the built-in user.
    pub(crate) created_ms: Option<u64>,
    pub(crate) tokens: Vec<Token>,
    /// The password; `None` if the user can't log in with one.
    pub(crate) password: Option<PasswordHash>,
}

/// A token as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) name: TokenName,
    pub(crate) hash: TokenHash,
    pub(crate) created_ms: u64,
    pub(crate) expires_ms: Option<u64>,
}

impl User {
    pub(crate) fn token(&self, name: &str) -> Option<usize> {
        let name = name.to_ascii_lowercase();
        self.tokens.iter().position(|token| token.name.key() == name)
    }

    pub(crate) fn check_not_built_in(&self) -> Result<(), Error> {
        match self.name.key() == BUILT_IN_USER {
            true => Err(Error::BuiltInUser(self.name.to_string())),
            false => Ok(()),
        }
    }
}

/// A user, as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserInfo {
    /// The name of the user, in requests and in the audit log.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// Whether it is [`BUILT_IN_USER`].
    pub is_built_in: bool,
    /// When it was created, in milliseconds since 1970; `None` for the built-in one.
    pub created_ms: Option<u64>,
    /// Its API tokens, in the order of their creation.
    pub tokens: Vec<TokenInfo>,
    /// Whether it has a password.
    pub has_password: bool,
}

/// An API token, as it is shown: never the token itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenInfo {
    /// The user that it belongs to.
    pub user: String,
    /// Its name, unique among the user's tokens.
    pub name: String,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it expires, in milliseconds since 1970; `None` if it does not.
    pub expires_ms: Option<u64>,
    /// When it was last used since the start of the program, in milliseconds since 1970.
    pub last_used_ms: Option<u64>,
}

/// A change to a user; `None` leaves a setting as it is.
#[derive(Clone, Debug, Default)]
pub struct UserUpdate {
    /// Its role, from its next request on.
    pub role: Option<Role>,
    /// Its new password; `Some(None)` removes it. Sessions that were begun with the old one end.
    pub password: Option<Option<PasswordHash>>,
}

/// An API token to create.
#[derive(Clone, Debug)]
pub struct NewToken {
    /// See [`TokenInfo::name`].
    pub name: TokenName,
    /// The hash of the token itself, which only the user keeps.
    pub hash: TokenHash,
    /// The time, in milliseconds since 1970.
    pub created_ms: u64,
    /// See [`TokenInfo::expires_ms`].
    pub expires_ms: Option<u64>,
}
