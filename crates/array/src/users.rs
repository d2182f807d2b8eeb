//! Users, their roles, and the API tokens that identify them. There are no passwords.
//!
//! The layer above generates a token from at least 128 random bits, and shows it once. The pool
//! keeps its SHA-256: reading the pool reveals no token, and a secret that can't be guessed needs
//! no slower hash. Tokens are looked up by their hash, so timing reveals nothing.

mod types;

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use store::Change;

pub use types::{NewToken, Role, TokenHash, TokenInfo, UserInfo};

use crate::name::{TokenName, UserName};
use crate::state::{State, shown};
use crate::{Array, Error, record};

/// The most users of an array.
pub const USERS_MAX: usize = 1_000;
/// The most API tokens of a user: a record of them must fit one value of the store.
pub const TOKENS_PER_USER_MAX: usize = 32;
/// The user that always exists, and is always an array admin. The owner of the process acts as it,
/// so administrators can't be locked out of an array on their own machine.
pub const BUILT_IN_USER: &str = "admin";

/// A user as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: UserName,
    pub(crate) role: Role,
    /// `None` for the built-in one.
    pub(crate) created_ms: Option<u64>,
    pub(crate) tokens: Vec<Token>,
}

/// A token as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) name: TokenName,
    pub(crate) hash: TokenHash,
    pub(crate) created_ms: u64,
    pub(crate) expires_ms: Option<u64>,
}

/// The owner of a token, and when it was last used; 0 if not since the start.
struct Held {
    user: String,
    expires_ms: Option<u64>,
    last_used_ms: AtomicU64,
}

/// All users, by name in lower case, and the owner of each token.
pub(crate) struct Users {
    by_name: BTreeMap<String, User>,
    held: HashMap<TokenHash, Held>,
}

impl Users {
    /// Only the built-in one, without a token. It is stored once it has one.
    pub(crate) fn built_in() -> Result<Self, Error> {
        let name = UserName::new(BUILT_IN_USER)?;
        let admin = User { name, role: Role::ArrayAdmin, created_ms: None, tokens: Vec::new() };
        let by_name = BTreeMap::from([(admin.name.key(), admin)]);
        Ok(Self { by_name, held: HashMap::new() })
    }

    pub(crate) fn load(&mut self, user: User) -> Result<(), Error> {
        let name = user.name.key();
        let is_wrong_admin = name == BUILT_IN_USER && user.role != Role::ArrayAdmin;
        if is_wrong_admin || user.tokens.iter().any(|token| self.held.contains_key(&token.hash)) {
            return Err(Error::Damaged(format!("user {name} contradicts what is there")));
        }
        self.replace(user);
        Ok(())
    }

    /// Adds a user, or replaces the one with its name.
    fn replace(&mut self, user: User) {
        let name = user.name.key();
        let mut old = self.remove(&name);
        for token in &user.tokens {
            let used = old.remove(&token.hash).map_or(0, AtomicU64::into_inner);
            let last_used_ms = AtomicU64::new(used);
            let held = Held { user: name.clone(), expires_ms: token.expires_ms, last_used_ms };
            self.held.insert(token.hash, held);
        }
        self.by_name.insert(name, user);
    }

    /// Removes a user; returns when its tokens were last used.
    fn remove(&mut self, name: &str) -> HashMap<TokenHash, AtomicU64> {
        let tokens = self.by_name.remove(name).map(|user| user.tokens).unwrap_or_default();
        let used = |token: Token| Some((token.hash, self.held.remove(&token.hash)?.last_used_ms));
        tokens.into_iter().filter_map(used).collect()
    }

    fn find(&self, name: &str) -> Result<&User, Error> {
        let found = self.by_name.get(&name.to_ascii_lowercase());
        found.ok_or_else(|| Error::NoSuchUser(shown(name)))
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
        }
    }

    fn named(&self, name: &str) -> Result<UserInfo, Error> {
        self.find(name).map(|user| self.info(user))
    }
}

impl User {
    fn token(&self, name: &str) -> Option<usize> {
        let name = name.to_ascii_lowercase();
        self.tokens.iter().position(|token| token.name.key() == name)
    }

    fn check_not_built_in(&self) -> Result<(), Error> {
        match self.name.key() == BUILT_IN_USER {
            true => Err(Error::BuiltInUser(self.name.to_string())),
            false => Ok(()),
        }
    }
}

impl Array {
    /// Makes a user, without a token; durable when it returns.
    ///
    /// # Errors
    /// `user_exists`, `limit_reached`, and those of the store.
    pub fn create_user(
        &self,
        name: UserName,
        role: Role,
        created_ms: u64,
    ) -> Result<UserInfo, Error> {
        self.change_users(|users| {
            if users.find(name.as_str()).is_ok() {
                return Err(Error::UserExists(name.to_string()));
            }
            if users.by_name.len() >= USERS_MAX {
                return Err(Error::Limit { what: "users", limit: USERS_MAX });
            }
            Ok(User { name, role, created_ms: Some(created_ms), tokens: Vec::new() })
        })
    }

    /// Changes a user's role, from its next request on.
    ///
    /// # Errors
    /// `no_such_user`, `built_in_user`, and those of the store.
    pub fn change_user(&self, name: &str, role: Role) -> Result<UserInfo, Error> {
        self.change_users(|users| {
            let user = users.find(name)?;
            if role != user.role {
                user.check_not_built_in()?;
            }
            Ok(User { role, ..user.clone() })
        })
    }

    /// Removes a user with its tokens; its sessions end.
    ///
    /// # Errors
    /// `no_such_user`, `built_in_user` (so that an array admin always remains), and those of the
    /// store.
    pub fn delete_user(&self, name: &str) -> Result<(), Error> {
        let plan = |state: &State| {
            let user = state.users.find(name)?;
            user.check_not_built_in()?;
            let config = vec![(record::user_key(&user.name), None)];
            Ok((Change { config, ..Change::default() }, user.name.key()))
        };
        self.change(plan, |state, name| drop(state.users.remove(&name)))
    }

    /// Gives a user another token.
    ///
    /// # Errors
    /// `no_such_user`, `token_exists`, `limit_reached`, `invalid_expiry`, and those of the store.
    pub fn create_token(&self, user: &str, new: NewToken) -> Result<TokenInfo, Error> {
        if new.expires_ms.is_some_and(|expires_ms| expires_ms <= new.created_ms) {
            let text = "The token would have expired already. Give it a time to come.";
            return Err(Error::invalid("invalid_expiry", text));
        }
        let name = new.name.to_string();
        let made = self.change_users(|users| {
            let mut user = users.find(user)?.clone();
            if user.token(new.name.as_str()).is_some() || users.held.contains_key(&new.hash) {
                let user = user.name.to_string();
                return Err(Error::TokenExists { user, token: new.name.to_string() });
            }
            if user.tokens.len() >= TOKENS_PER_USER_MAX {
                return Err(Error::Limit {
                    what: "API tokens of a user",
                    limit: TOKENS_PER_USER_MAX,
                });
            }
            let NewToken { name, hash, created_ms, expires_ms } = new;
            user.tokens.push(Token { name, hash, created_ms, expires_ms });
            Ok(user)
        })?;
        let token = made.tokens.into_iter().next_back();
        token.ok_or(Error::NoSuchToken { user: made.name, token: name })
    }

    /// Withdraws a token, and ends the sessions that were begun with it.
    ///
    /// # Errors
    /// `no_such_user`, `no_such_token`, and those of the store.
    pub fn delete_token(&self, user: &str, name: &str) -> Result<UserInfo, Error> {
        self.change_users(|users| {
            let mut user = users.find(user)?.clone();
            let Some(place) = user.token(name) else {
                let user = user.name.to_string();
                return Err(Error::NoSuchToken { user, token: shown(name) });
            };
            user.tokens.remove(place);
            Ok(user)
        })
    }

    /// Withdraws all tokens of a user, and ends its sessions.
    ///
    /// # Errors
    /// `no_such_user`, `no_such_token` if there are none, and those of the store.
    pub fn delete_tokens(&self, user: &str) -> Result<UserInfo, Error> {
        self.change_users(|users| {
            let user = users.find(user)?;
            if user.tokens.is_empty() {
                let (user, token) = (user.name.to_string(), "any".to_owned());
                return Err(Error::NoSuchToken { user, token });
            }
            Ok(User { tokens: Vec::new(), ..user.clone() })
        })
    }

    /// The owner of this token, and its current role; `None` if the token is unknown, withdrawn or
    /// expired. Notes that it was used.
    pub fn authenticate(&self, hash: &TokenHash, now_ms: u64) -> Option<(String, Role)> {
        let state = self.state.read();
        let held = state.users.held.get(hash)?;
        if held.expires_ms.is_some_and(|expires_ms| expires_ms <= now_ms) {
            return None;
        }
        held.last_used_ms.store(now_ms, Ordering::Relaxed);
        let user = state.users.by_name.get(&held.user)?;
        Some((user.name.to_string(), user.role))
    }

    /// A user.
    ///
    /// # Errors
    /// `no_such_user`.
    pub fn user(&self, name: &str) -> Result<UserInfo, Error> {
        self.state.read().users.named(name)
    }

    /// Up to `limit` users in the order of their names (ignoring case), after `after`.
    pub fn users(&self, after: Option<&str>, limit: usize) -> Vec<UserInfo> {
        let users = &self.state.read().users;
        let from = after.map_or(Bound::Unbounded, |n| Bound::Excluded(n.to_ascii_lowercase()));
        let found = users.by_name.range((from, Bound::Unbounded)).take(limit);
        found.map(|(_, user)| users.info(user)).collect()
    }

    /// Commits a change to one user.
    fn change_users(
        &self,
        changed: impl FnOnce(&Users) -> Result<User, Error>,
    ) -> Result<UserInfo, Error> {
        let plan = |state: &State| {
            let user = changed(&state.users)?;
            let mut change = Change::default();
            if state.users.by_name.get(&user.name.key()) != Some(&user) {
                change.config.push((record::user_key(&user.name), Some(record::user(&user)?)));
            }
            Ok((change, user))
        };
        let show = |state: &mut State, user: User| {
            let name = user.name.key();
            state.users.replace(user);
            name
        };
        let name = self.change(plan, show)?;
        self.user(&name)
    }
}
