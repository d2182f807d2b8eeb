//! All users in memory, and the owner of each token and password.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::Error;
use crate::objects::users::{
    BUILT_IN_USER, PasswordHash, Role, Token, TokenHash, TokenInfo, User, UserInfo,
};
use crate::values::name::UserName;
use crate::values::text::shown;

/// The owner of a token, and the time of its last use; 0 if not since the start.
struct Held {
    user: String,
    expires_ms: Option<u64>,
    last_used_ms: AtomicU64,
}

/// All users, by name in lower case, and the owner of each token and password.
pub(crate) struct Users {
    by_name: BTreeMap<String, User>,
    held: HashMap<TokenHash, Held>,
    /// Looks a user up by the [`PasswordHash::credential`] of the current password.
    by_password: HashMap<TokenHash, String>,
}

impl Users {
    /// Returns only the built-in user, without a token. It is stored once it has a token.
    pub(crate) fn built_in() -> Result<Self, Error> {
        let name = UserName::new(BUILT_IN_USER)?;
        let admin = User {
            name,
            role: Role::ArrayAdmin,
            created_ms: None,
            tokens: Vec::new(),
            password: None,
        };
        let by_name = BTreeMap::from([(admin.name.key(), admin)]);
        Ok(Self { by_name, held: HashMap::new(), by_password: HashMap::new() })
    }

    pub(crate) fn load(&mut self, user: User) -> Result<(), Error> {
        let name = user.name.key();
        let is_wrong_admin = name == BUILT_IN_USER && user.role != Role::ArrayAdmin;
        if is_wrong_admin || user.tokens.iter().any(|token| self.held.contains_key(&token.hash)) {
            return Err(Error::Damaged(format!("user {name} contradicts another record")));
        }
        self.replace(user);
        Ok(())
    }

    /// Adds a user, or replaces the one with its name.
    pub(crate) fn replace(&mut self, user: User) {
        let name = user.name.key();
        let mut old = self.remove(&name);
        for token in &user.tokens {
            let used = old.remove(&token.hash).map_or(0, AtomicU64::into_inner);
            let last_used_ms = AtomicU64::new(used);
            let held = Held { user: name.clone(), expires_ms: token.expires_ms, last_used_ms };
            self.held.insert(token.hash, held);
        }
        let password = user.password.as_ref().map(PasswordHash::credential);
        self.by_password.extend(password.map(|credential| (credential, name.clone())));
        self.by_name.insert(name, user);
    }

    /// Removes a user; returns the times of the last use of its tokens.
    pub(crate) fn remove(&mut self, name: &str) -> HashMap<TokenHash, AtomicU64> {
        let old = self.by_name.remove(name);
        if let Some(password) = old.as_ref().and_then(|user| user.password.as_ref()) {
            self.by_password.remove(&password.credential());
        }
        let tokens = old.map(|user| user.tokens).unwrap_or_default();
        let used = |token: Token| Some((token.hash, self.held.remove(&token.hash)?.last_used_ms));
        tokens.into_iter().filter_map(used).collect()
    }

    /// Returns a user by its name, ignoring case.
    pub(crate) fn find(&self, name: &str) -> Result<&User, Error> {
        let found = self.by_name.get(&name.to_ascii_lowercase());
        found.ok_or_else(|| Error::NoSuchUser(shown(name)))
    }

    pub(crate) fn named(&self, name: &str) -> Result<UserInfo, Error> {
        self.find(name).map(|user| self.info(user))
    }

    fn token_info(&self, user: &User, token: &Token) -> TokenInfo {
        let held = self.held.get(&token.hash);
        let used = held.map(|held| held.last_used_ms.load(Ordering::Relaxed));
        TokenInfo {
            user: user.name.to_string(),
            name: token.name.to_string(),
            created_ms: token.created_ms,
            expires_ms: token.expires_ms,
            last_used_ms: used.filter(|used| *used > 0),
        }
    }

    fn info(&self, user: &User) -> UserInfo {
        UserInfo {
            name: user.name.to_string(),
            role: user.role,
            is_built_in: user.name.key() == BUILT_IN_USER,
            created_ms: user.created_ms,
            tokens: user.tokens.iter().map(|token| self.token_info(user, token)).collect(),
            has_password: user.password.is_some(),
        }
    }

    /// Returns a user by its name in lower case.
    pub(crate) fn get(&self, key: &str) -> Option<&User> {
        self.by_name.get(key)
    }

    /// Returns the number of users.
    pub(crate) fn count(&self) -> usize {
        self.by_name.len()
    }

    /// Returns whether a user has this token.
    pub(crate) fn has_token(&self, hash: &TokenHash) -> bool {
        self.held.contains_key(hash)
    }

    /// Returns up to `limit` users in the order of their names (ignoring case), after `after`.
    pub(crate) fn list(&self, after: Option<&str>, limit: usize) -> Vec<UserInfo> {
        let from = after.map_or(Bound::Unbounded, |n| Bound::Excluded(n.to_ascii_lowercase()));
        let found = self.by_name.range((from, Bound::Unbounded)).take(limit);
        found.map(|(_, user)| self.info(user)).collect()
    }

    /// See [`crate::Array::has_password`].
    pub(crate) fn of_password(&self, credential: &TokenHash) -> Option<(String, Role)> {
        let user = self.by_name.get(self.by_password.get(credential)?)?;
        Some((user.name.to_string(), user.role))
    }

    /// See [`crate::Array::authenticate`].
    pub(crate) fn authenticate(&self, hash: &TokenHash, now_ms: u64) -> Option<(String, Role)> {
        let held = self.held.get(hash)?;
        if held.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms) {
            return None;
        }
        held.last_used_ms.store(now_ms, Ordering::Relaxed);
        let user = self.by_name.get(&held.user)?;
        Some((user.name.to_string(), user.role))
    }
}
