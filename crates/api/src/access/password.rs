//! Hashing and checking of passwords. Argon2id needs time and memory, so it runs on a blocking
//! thread, one hash at a time, and the number of waiting logins is limited.
//!
//! A refused login reveals only that it was wrong: for a user that does not exist or has no
//! password, it takes as long and returns the same response.

use std::ops::RangeInclusive;
use std::sync::{Arc, LazyLock};

use argon2::password_hash::phc;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use argon2::{Algorithm, Argon2, Params, Version};
use array::{PasswordHash, TokenHash};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::denied::Denied;
use super::directory::wait_for_a_step;
use super::limit::neighbourhood;
use super::session::{Begun, Method};
use super::{Caller, Credential, Origin, Token};
use crate::Interface;

/// The permitted number of characters of a password.
const CHARS: RangeInclusive<usize> = 8..=128;
/// The memory of a hash, in KiB; with these passes and lanes it is the first choice for Argon2id in
/// OWASP's password storage cheat sheet.
const MEMORY_KIB: u32 = 19 * 1024;
/// The number of passes over this memory.
const PASSES: u32 = 2;
/// The number of lanes, which could run in parallel.
const LANES: u32 = 1;
/// The maximum memory, passes and lanes of a stored hash: a damaged record must not use more.
const STORED_MAX: (u32, u32, u32) = (64 * 1024, 8, 4);
/// The number of bytes of salt in each hash.
const SALT_BYTES: usize = 16;
/// The maximum number of waiting logins.
const WAITING_MAX: usize = 16;

/// The permits for hashing.
pub(super) struct Turns {
    hashing: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        let semaphore = |permits| Arc::new(Semaphore::new(permits));
        Self { hashing: semaphore(1), waiting: semaphore(WAITING_MAX) }
    }
}

impl Turns {
    /// Waits for a permit.
    async fn take(&self) -> Result<OwnedSemaphorePermit, Denied> {
        self.hashing.clone().acquire_owned().await.map_err(|_| Denied::Broken)
    }
}

/// Checks the length and the characters of a password.
fn check(password: &str) -> Result<(), Denied> {
    let is_good = CHARS.contains(&password.chars().count());
    match is_good && !password.chars().any(char::is_control) {
        true => Ok(()),
        false => Err(Denied::BadPassword),
    }
}

fn hash(password: &str, salt: &[u8]) -> Option<PasswordHash> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).ok()?;
    let argon = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
    let made: phc::PasswordHash = argon.hash_password_with_salt(password.as_bytes(), salt).ok()?;
    PasswordHash::new(&made.to_string())
}

/// The hash that is checked where there is no password, so that the check takes as long.
static NONE: LazyLock<Option<PasswordHash>> = LazyLock::new(|| hash("", &[0; SALT_BYTES]));

/// Returns whether a password is right; without a stored hash it never is.
fn is_right(password: &str, stored: Option<&PasswordHash>) -> bool {
    let Some(compared) = stored.or(NONE.as_ref()) else { return false };
    let Ok(parsed) = phc::PasswordHash::new(compared.as_str()) else { return false };
    let Ok(params) = Params::try_from(&parsed) else { return false };
    let (memory, passes, lanes) = STORED_MAX;
    if params.m_cost() > memory || params.t_cost() > passes || params.p_cost() > lanes {
        tracing::error!(
            "a stored password hash needs more memory or time than any that this array creates"
        );
        return false;
    }
    let is_same = Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok();
    is_same && stored.is_some()
}

impl Interface {
    /// Returns the hash to store of a new password.
    pub(crate) async fn password_hash(&self, password: String) -> Result<PasswordHash, Denied> {
        check(&password)?;
        let salt = self.access.random().ok_or(Denied::NoEntropy)?;
        let turn = self.access.passwords.take().await?;
        let work = move || {
            let _turn = turn;
            hash(&password, salt.get(..SALT_BYTES)?)
        };
        tokio::task::spawn_blocking(work).await.ok().flatten().ok_or(Denied::Broken)
    }

    /// Checks the password of a user of the array; a wrong one counts against the client's address.
    /// Returns the credential for a session.
    pub(crate) async fn check_password(
        &self,
        user: &str,
        password: String,
        origin: Origin,
    ) -> Result<Credential, Denied> {
        match self.compare(user, password, origin).await? {
            Some(credential) => {
                self.was_right(origin);
                Ok(credential)
            }
            None => Err(self.was_wrong(origin)),
        }
    }

    /// Reverts the failure counted for a login from this address.
    fn was_right(&self, origin: Origin) {
        self.access.failures.lock().give_back(&neighbourhood(origin.0));
    }

    /// Records a failed login.
    fn was_wrong(&self, origin: Origin) -> Denied {
        self.access.sessions.lock().fail(origin.0, (self.now_ms)());
        tracing::warn!("a wrong password came from {}", origin.0);
        Denied::WrongPassword
    }

    /// Compares a password with that of a user of the array. The attempt counts as a failure from
    /// its start until it is reverted.
    async fn compare(
        &self,
        user: &str,
        password: String,
        origin: Origin,
    ) -> Result<Option<Credential>, Denied> {
        let access = &self.access;
        let place = access.passwords.waiting.clone().try_acquire_owned();
        let place = place.map_err(|_| Denied::Busy)?;
        let turn = access.passwords.take().await?;
        // Only now, after the wait: otherwise concurrent attempts would all pass for the price of
        // one.
        let (from, now_ms) = (neighbourhood(origin.0), (access.sources.uptime_ms)());
        let checked = access.failures.lock().check(&from, now_ms);
        checked.map_err(|seconds| Denied::TooManyFailures { seconds })?;
        let stored = self.array.password_of(user);
        let credential = stored.as_ref().map(PasswordHash::credential);
        // The permit is held until the work ends even if the client has gone away, and so is the
        // count of the failure: it is taken first, and returned on success.
        access.failures.lock().spend(from, now_ms);
        let work = move || {
            let _turn = (turn, place);
            is_right(&password, stored.as_ref())
        };
        let is_right = tokio::task::spawn_blocking(work).await.map_err(|_| Denied::Broken)?;
        Ok(credential.filter(|_| is_right).map(Credential::Password))
    }

    /// Starts a session by password for a user of the array or of its directory service.
    pub(super) async fn log_in_by_password(
        &self,
        user: &str,
        password: String,
        origin: Origin,
    ) -> Result<(Token, Caller), Denied> {
        if !self.has_directory() {
            let credential = self.check_password(user, password, origin).await?;
            let caller = self.caller(credential, "").ok_or(Denied::WrongPassword)?;
            return self.begin(caller, credential, Method::Password, origin);
        }
        let uptime_ms = &self.access.sources.uptime_ms;
        let begun_ms = uptime_ms();
        let Some((caller, credential)) = self.known_anywhere(user, password, origin).await? else {
            self.was_wrong(origin);
            wait_for_a_step(uptime_ms().saturating_sub(begun_ms)).await;
            return Err(Denied::NotKnown);
        };
        self.was_right(origin);
        self.begin(caller, credential, Method::Password, origin)
    }

    /// Returns the owner of this password, in the array or its directory service.
    async fn known_anywhere(
        &self,
        user: &str,
        password: String,
        origin: Origin,
    ) -> Result<Option<(Caller, Credential)>, Denied> {
        if let Some(credential) = self.compare(user, password.clone(), origin).await? {
            return Ok(self.caller(credential, "").map(|caller| (caller, credential)));
        }
        // The directory service is not asked about users of the array. It is asked about unknown
        // users, so that the response takes as long.
        let is_own = self.is_own(user);
        let nobody = Token::of_api(&self.access.random().ok_or(Denied::NoEntropy)?);
        let (user, password) = match is_own {
            true => (nobody.expose(), nobody.expose().to_owned()),
            false => (user, password),
        };
        let found = self.ask_directory(user, password).await.filter(|_| !is_own);
        Ok(found.map(|caller| {
            let credential = self.directory_credential(&caller);
            (caller, credential)
        }))
    }

    /// Starts a session.
    pub(super) fn begin(
        &self,
        caller: Caller,
        credential: Credential,
        method: Method,
        origin: Origin,
    ) -> Result<(Token, Caller), Denied> {
        self.count(credential)?;
        let session = Token::from_entropy(&self.access.random().ok_or(Denied::NoEntropy)?);
        let user = caller.user.clone();
        let login = Begun { number: 0, user, method, origin: origin.0, at_ms: (self.now_ms)() };
        let uptime_ms = (self.access.sources.uptime_ms)();
        self.access.sessions.lock().begin(session.hash(), credential, login, uptime_ms);
        Ok((session, caller))
    }

    /// Ends the sessions of a user whose password has changed, except `kept`, which continues with
    /// the new one.
    pub(crate) fn password_changed(
        &self,
        user: &str,
        kept: Option<TokenHash>,
        password: Option<&PasswordHash>,
    ) {
        let credential = password.map(|hash| Credential::Password(hash.credential()));
        self.access.sessions.lock().end_others(user, kept, credential);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_checked_against_its_hash() {
        let kept = hash("correct horse", &[7; SALT_BYTES]).unwrap();
        assert!(kept.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{}", kept.as_str());
        assert_ne!(hash("correct horse", &[8; SALT_BYTES]).unwrap(), kept, "each has its salt");
        assert!(is_right("correct horse", Some(&kept)));
        for wrong in ["", "correct hors", "Correct horse", "correct horse\0"] {
            assert!(!is_right(wrong, Some(&kept)), "{wrong:?}");
        }
        assert!(!is_right("", None), "an absent password never matches");
    }

    #[test]
    fn a_stored_hash_cant_demand_too_much() {
        let kept = hash("correct horse", &[7; SALT_BYTES]).unwrap();
        for (of, to) in [("m=19456", "m=4194304"), ("t=2", "t=1000"), ("p=1", "p=16")] {
            let other = PasswordHash::new(&kept.as_str().replace(of, to)).unwrap();
            assert!(!is_right("correct horse", Some(&other)), "{to}");
        }
        let broken = PasswordHash::new("$argon2id$broken").unwrap();
        assert!(!is_right("correct horse", Some(&broken)));
    }

    #[test]
    fn a_password_has_8_to_128_characters() {
        for good in ["12345678", &"ä".repeat(128), "with blanks in it"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "1234567", &"x".repeat(129), "1234567\n"] {
            assert_eq!(check(bad), Err(Denied::BadPassword), "{bad:?}");
        }
    }
}
