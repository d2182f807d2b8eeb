//! The records of users, with the hashes of their tokens and passwords.

use serde::{Deserialize, Serialize};

use super::row::{VERSION, damaged, encode};
use crate::error::Error;
use crate::objects::users::{PasswordHash, Role, TOKENS_PER_USER_MAX, Token, TokenHash, User};
use crate::values::name::{TokenName, UserName};

#[derive(Serialize, Deserialize)]
pub(super) struct UserRow {
    v: u8,
    name: String,
    role: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created_ms: Option<u64>,
    #[serde(default)]
    tokens: Vec<TokenRow>,
    /// A PHC string. Absent in records of versions without passwords.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    password: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct TokenRow {
    name: String,
    /// In hex.
    sha256: String,
    created_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_ms: Option<u64>,
}

pub(crate) fn user_key(name: &UserName) -> Vec<u8> {
    let mut key = vec![b'u'];
    key.extend_from_slice(name.key().as_bytes());
    key
}

pub(crate) fn user(user: &User) -> Result<Vec<u8>, Error> {
    let token = |token: &Token| TokenRow {
        name: token.name.to_string(),
        sha256: token.hash.0.iter().map(|byte| format!("{byte:02x}")).collect(),
        created_ms: token.created_ms,
        expires_ms: token.expires_ms,
    };
    encode(&UserRow {
        v: VERSION,
        name: user.name.to_string(),
        role: user.role.name().to_owned(),
        created_ms: user.created_ms,
        tokens: user.tokens.iter().map(token).collect(),
        password: user.password.as_ref().map(|hash| hash.as_str().to_owned()),
    })
}

pub(super) fn decode_user(key: &[u8], row: UserRow) -> Result<User, Error> {
    let token = |row: TokenRow| {
        let hash = hash(&row.sha256).ok_or_else(|| damaged(key, "a hash is damaged"))?;
        let name = TokenName::new(&row.name)?;
        Ok(Token { name, hash, created_ms: row.created_ms, expires_ms: row.expires_ms })
    };
    if row.tokens.len() > TOKENS_PER_USER_MAX {
        return Err(damaged(key, "there are too many tokens"));
    }
    let password =
        |phc: String| PasswordHash::new(&phc).ok_or_else(|| damaged(key, "a password is damaged"));
    let user = User {
        name: UserName::new(&row.name)?,
        role: role(key, &row.role)?,
        created_ms: row.created_ms,
        tokens: row.tokens.into_iter().map(token).collect::<Result<_, Error>>()?,
        password: row.password.map(password).transpose()?,
    };
    match user_key(&user.name) == key {
        true => Ok(user),
        false => Err(damaged(key, "it is the record of another user")),
    }
}

pub(super) fn role(key: &[u8], name: &str) -> Result<Role, Error> {
    Role::parse(name).map_err(|_| damaged(key, "unknown role"))
}

fn hash(hex: &str) -> Option<TokenHash> {
    let mut bytes = [0; 32];
    if hex.len() != 64 || !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(hex.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(TokenHash(bytes))
}
