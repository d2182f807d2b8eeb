//! Users, their roles, and the API tokens and passwords that identify them.
//!
//! The layer above generates a token from at least 128 random bits, and shows it once. The pool
//! stores its SHA-256: reading the pool reveals no token, and a secret that can't be guessed needs
//! no slow hash. Tokens are looked up by their hash, so timing reveals nothing. A password can be
//! guessed: the layer above computes a slow hash of it, and checks passwords against it.

use store::Change;

use crate::array::Array;
use crate::error::Error;
use crate::objects::users::{
    NewToken, PasswordHash, Role, TOKENS_PER_USER_MAX, Token, TokenHash, TokenInfo, USERS_MAX,
    User, UserInfo, UserUpdate,
};
use crate::record;
use crate::state::State;
use crate::tables::users::Users;
use crate::values::name::UserName;
use crate::values::text::shown;

impl Array {
    /// Creates a user, without a token or a password; durable when it returns.
    ///
    /// # Errors
    /// `user_exists`, `limit_reached`, and those of the store.
    pub fn create_user(
        &self,
        name: UserName,
        role: Role,
        created_ms: u64,
    ) -> Result<UserInfo, Error> {
        self.create_user_with(name, role, None, created_ms)
    }

    /// Creates a user, without a token, with a password if one is given.
    ///
    /// # Errors
    /// Those of [`Array::create_user`].
    pub fn create_user_with(
        &self,
        name: UserName,
        role: Role,
        password: Option<PasswordHash>,
        created_ms: u64,
    ) -> Result<UserInfo, Error> {
        self.change_users(|users| {
            if users.find(name.as_str()).is_ok() {
                return Err(Error::UserExists(name.to_string()));
            }
            if users.count() >= USERS_MAX {
                return Err(Error::Limit { what: "users", limit: USERS_MAX });
            }
            let created_ms = Some(created_ms);
            Ok(User { name, role, created_ms, tokens: Vec::new(), password })
        })
    }

    /// Changes a user's role, from its next request on.
    ///
    /// # Errors
    /// Those of [`Array::update_user`].
    pub fn change_user(&self, name: &str, role: Role) -> Result<UserInfo, Error> {
        self.update_user(name, UserUpdate { role: Some(role), password: None })
    }

    /// Changes a user's role, its password, or both.
    ///
    /// # Errors
    /// `no_such_user`, `built_in_user`, and those of the store.
    pub fn update_user(&self, name: &str, update: UserUpdate) -> Result<UserInfo, Error> {
        self.change_users(|users| {
            let mut user = users.find(name)?.clone();
            let role = update.role.unwrap_or(user.role);
            if role != user.role {
                user.check_not_built_in()?;
            }
            user.role = role;
            user.password = update.password.unwrap_or(user.password);
            Ok(user)
        })
    }

    /// Returns the hash of a user's password; `None` if there is no such user, or it has none.
    pub fn password_of(&self, name: &str) -> Option<PasswordHash> {
        self.read().users.find(name).ok()?.password.clone()
    }

    /// Looks a user up by the [`PasswordHash::credential`] of the current password. Returns the
    /// name and the role.
    pub fn has_password(&self, credential: &TokenHash) -> Option<(String, Role)> {
        self.read().users.of_password(credential)
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
            let text = "The token would have expired already. Give a time in the future.";
            return Err(Error::invalid("invalid_expiry", text));
        }
        let name = new.name.to_string();
        let made = self.change_users(|users| {
            let mut user = users.find(user)?.clone();
            if user.token(new.name.as_str()).is_some() || users.has_token(&new.hash) {
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

    /// Revokes a token, and ends the sessions that were begun with it.
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

    /// Revokes all tokens of a user, and ends its sessions.
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

    /// Returns the owner of this token, and its current role; `None` if the token is unknown,
    /// revoked or expired. Records that it was used.
    pub fn authenticate(&self, hash: &TokenHash, now_ms: u64) -> Option<(String, Role)> {
        self.read().users.authenticate(hash, now_ms)
    }

    /// Returns a user.
    ///
    /// # Errors
    /// `no_such_user`.
    pub fn user(&self, name: &str) -> Result<UserInfo, Error> {
        self.read().users.named(name)
    }

    /// Returns up to `limit` users in the order of their names (ignoring case), after `after`.
    pub fn users(&self, after: Option<&str>, limit: usize) -> Vec<UserInfo> {
        self.read().users.list(after, limit)
    }

    /// Commits a change to one user.
    fn change_users(
        &self,
        changed: impl FnOnce(&Users) -> Result<User, Error>,
    ) -> Result<UserInfo, Error> {
        let plan = |state: &State| {
            let user = changed(&state.users)?;
            let mut change = Change::default();
            if state.users.get(&user.name.key()) != Some(&user) {
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
