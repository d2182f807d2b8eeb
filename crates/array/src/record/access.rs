//! The records of users, with what is kept of their tokens, and of the audit log.

use serde::{Deserialize, Serialize};

use super::{Stored, VERSION, damaged, encode, key};
use crate::Error;
use crate::audit::{AUDIT_ENTRIES_MAX, AuditEntry, Deed};
use crate::name::{TokenName, UserName};
use crate::users::{Role, TOKENS_PER_USER_MAX, Token, TokenHash, User};

#[derive(Serialize, Deserialize)]
pub(super) struct UserRow {
    v: u8,
    name: String,
    role: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    created_ms: Option<u64>,
    #[serde(default)]
    tokens: Vec<TokenRow>,
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

#[derive(Serialize, Deserialize)]
pub(super) struct AuditRow {
    v: u8,
    number: u64,
    time_ms: u64,
    user: String,
    role: String,
    origin: String,
    method: String,
    path: String,
    names: String,
    outcome: String,
}

pub(crate) fn user_key(name: &UserName) -> Vec<u8> {
    let mut key = vec![b'u'];
    key.extend_from_slice(name.key().as_bytes());
    key
}

/// The key of an entry: entries whose numbers differ by the size of the ring share one.
pub(crate) fn audit_key(number: u64) -> Vec<u8> {
    key(b'a', &[number % AUDIT_ENTRIES_MAX as u64])
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
    })
}

pub(crate) fn audit(entry: &AuditEntry) -> Result<Vec<u8>, Error> {
    let Deed { time_ms, user, role, origin, method, path, names } = entry.deed.clone();
    encode(&AuditRow {
        v: VERSION,
        number: entry.number,
        time_ms,
        user,
        role: role.name().to_owned(),
        origin,
        method,
        path,
        names,
        outcome: entry.outcome.clone(),
    })
}

pub(super) fn decode_user(key: &[u8], row: UserRow) -> Result<Stored, Error> {
    let token = |row: TokenRow| {
        let hash = hash(&row.sha256).ok_or_else(|| damaged(key, "a hash is damaged"))?;
        let name = TokenName::new(&row.name)?;
        Ok(Token { name, hash, created_ms: row.created_ms, expires_ms: row.expires_ms })
    };
    if row.tokens.len() > TOKENS_PER_USER_MAX {
        return Err(damaged(key, "there are too many tokens"));
    }
    let user = User {
        name: UserName::new(&row.name)?,
        role: role(key, &row.role)?,
        created_ms: row.created_ms,
        tokens: row.tokens.into_iter().map(token).collect::<Result<_, Error>>()?,
    };
    match user_key(&user.name) == key {
        true => Ok(Stored::User(user)),
        false => Err(damaged(key, "it is the record of another user")),
    }
}

fn role(key: &[u8], name: &str) -> Result<Role, Error> {
    Role::parse(name).map_err(|_| damaged(key, "a role that nobody knows"))
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

pub(super) fn decode_audit(key: &[u8], row: AuditRow) -> Result<Stored, Error> {
    if audit_key(row.number) != key {
        return Err(damaged(key, "the entry belongs elsewhere"));
    }
    let AuditRow { number, time_ms, user, origin, method, path, names, outcome, .. } = row;
    let role = role(key, &row.role)?;
    let deed = Deed { time_ms, user, role, origin, method, path, names };
    Ok(Stored::Audit(AuditEntry { number, deed, outcome }))
}
