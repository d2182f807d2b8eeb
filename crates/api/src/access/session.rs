//! Sessions, which start with an API token or a password. They are in memory only, and bounded.

use std::collections::HashMap;

use std::net::IpAddr;

use array::TokenHash;

use super::Credential;
use super::directory::LIFE_MS;

/// How long a session may be idle before it ends.
pub(super) const IDLE_MS: u64 = 30 * 60 * 1000;
/// The maximum sessions of one credential: clients that never log out leave one behind per run.
const SESSIONS_PER_CREDENTIAL_MAX: usize = 256;
/// The maximum number of sessions: about 100 bytes each.
const SESSIONS_MAX: usize = 4_096;
/// The maximum number of addresses whose failures are kept. Failures are not entered into the audit
/// log: it is a ring, and guesses at tokens would push real changes out of it.
const FAILED_MAX: usize = 256;

struct Session {
    begun: Begun,
    /// The credential of the login. It is checked again at each request: a session never outlives
    /// its token or a role that was withdrawn.
    credential: Credential,
    began_ms: u64,
    used_ms: u64,
}

/// The kind of credential of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// An API token.
    Token,
    /// A user name and a password.
    Password,
}

/// The login that started a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Begun {
    /// The number of the event since the array was started, from 1.
    pub number: u64,
    /// The user.
    pub user: String,
    /// The kind of credential.
    pub method: Method,
    /// The address of the client.
    pub origin: IpAddr,
    /// The time, in milliseconds since 1970.
    pub at_ms: u64,
}

/// Failed logins from one address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    /// The number of the first event since the array was started, counted as for logins.
    pub number: u64,
    /// The address.
    pub origin: IpAddr,
    /// The time of the first one, in milliseconds since 1970.
    pub first_ms: u64,
    /// The time of the last one, in milliseconds since 1970.
    pub last_ms: u64,
    /// The number of failed logins.
    pub count: u64,
}

/// All sessions, by the hash of the secret that requests carry.
#[derive(Default)]
pub(super) struct Sessions {
    by_hash: HashMap<TokenHash, Session>,
    /// Addresses from which logins failed, the most recent last.
    failed: Vec<Failed>,
    /// The number of events so far: sessions started, and addresses that failed.
    count: u64,
}

impl Sessions {
    /// Starts a session, and assigns the number of the login. If the credential has too many
    /// sessions, replaces the longest idle one of these; if there are too many in total, replaces
    /// the longest idle one of all.
    pub(super) fn begin(
        &mut self,
        hash: TokenHash,
        credential: Credential,
        login: Begun,
        now_ms: u64,
    ) {
        self.by_hash.retain(|_, session| !session.is_over(now_ms));
        let own = self.by_hash.values().filter(|session| session.credential == credential).count();
        if own >= SESSIONS_PER_CREDENTIAL_MAX {
            self.end_idlest(|session| session.credential == credential);
        } else if self.by_hash.len() >= SESSIONS_MAX {
            self.end_idlest(|_| true);
        }
        self.count += 1;
        let begun = Begun { number: self.count, ..login };
        self.by_hash.insert(hash, Session { begun, credential, began_ms: now_ms, used_ms: now_ms });
    }

    fn end_idlest(&mut self, among: impl Fn(&Session) -> bool) {
        let sessions = self.by_hash.iter().filter(|(_, session)| among(session));
        let idlest = sessions.min_by_key(|(_, session)| session.used_ms).map(|(hash, _)| *hash);
        if let Some(hash) = idlest {
            self.by_hash.remove(&hash);
        }
    }

    /// Returns the credential of a session and the user's name. Marks the session as used.
    pub(super) fn use_one(
        &mut self,
        hash: &TokenHash,
        now_ms: u64,
    ) -> Option<(Credential, String)> {
        let session = self.by_hash.get_mut(hash)?;
        if session.is_over(now_ms) {
            self.by_hash.remove(hash);
            return None;
        }
        session.used_ms = now_ms;
        Some((session.credential, session.begun.user.clone()))
    }

    /// Ends the sessions of a user except `kept`; if that one started with a password, it then
    /// depends on the new one.
    pub(super) fn end_others(
        &mut self,
        user: &str,
        kept: Option<TokenHash>,
        password: Option<Credential>,
    ) {
        let is_own = |session: &Session| session.begun.user.eq_ignore_ascii_case(user);
        self.by_hash.retain(|hash, session| !is_own(session) || Some(*hash) == kept);
        let kept = kept.and_then(|hash| self.by_hash.get_mut(&hash));
        if let (Some(session), Some(password)) = (kept.filter(|it| is_own(it)), password)
            && matches!(session.credential, Credential::Password(_))
        {
            session.credential = password;
        }
    }

    /// Returns the logins of active sessions, the oldest first.
    pub(super) fn begun(&self, now_ms: u64) -> Vec<Begun> {
        let live = self.by_hash.values().filter(|session| !session.is_over(now_ms));
        let mut begun: Vec<_> = live.map(|session| session.begun.clone()).collect();
        begun.sort_by_key(|login| login.number);
        begun
    }

    /// Counts a failed login.
    pub(super) fn fail(&mut self, origin: IpAddr, at_ms: u64) {
        let known = self.failed.iter().position(|failed| failed.origin == origin);
        let failed = match known {
            Some(at) => {
                let failed = self.failed.remove(at);
                Failed { last_ms: at_ms, count: failed.count + 1, ..failed }
            }
            None => {
                self.count += 1;
                let number = self.count;
                Failed { number, origin, first_ms: at_ms, last_ms: at_ms, count: 1 }
            }
        };
        if self.failed.len() >= FAILED_MAX {
            self.failed.remove(0);
        }
        self.failed.push(failed);
    }

    /// Returns the addresses of the most recent failed logins.
    pub(super) fn failed(&self) -> &[Failed] {
        &self.failed
    }

    /// Ends a session.
    pub(super) fn end(&mut self, hash: &TokenHash) {
        self.by_hash.remove(hash);
    }
}

impl Session {
    fn is_over(&self, now_ms: u64) -> bool {
        let is_of_directory = matches!(self.credential, Credential::Directory { .. });
        now_ms.saturating_sub(self.used_ms) >= IDLE_MS
            || is_of_directory && now_ms.saturating_sub(self.began_ms) >= LIFE_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: usize) -> TokenHash {
        TokenHash::of(&n.to_le_bytes())
    }

    fn login(user: &str) -> Begun {
        let origin = std::net::Ipv4Addr::LOCALHOST.into();
        Begun { number: 0, user: user.into(), method: Method::Token, origin, at_ms: 7 }
    }

    #[test]
    fn only_sessions_that_have_not_ended_are_listed() {
        let mut sessions = Sessions::default();
        let reported = |sessions: &Sessions, now_ms| -> Vec<_> {
            sessions.begun(now_ms).into_iter().map(|login| (login.number, login.user)).collect()
        };
        for (n, user) in ["anna", "bert", "carl"].into_iter().enumerate() {
            sessions.begin(hash(n), Credential::Local, login(user), n as u64);
        }
        sessions.end(&hash(1));
        assert_eq!(reported(&sessions, 5), [(1, "anna".to_owned()), (3, "carl".to_owned())]);
        assert_eq!(reported(&sessions, IDLE_MS), [(3, "carl".to_owned())]);
        sessions.begin(hash(9), Credential::Local, login("dora"), IDLE_MS + 5);
        assert_eq!(reported(&sessions, IDLE_MS + 5), [(4, "dora".to_owned())]);
    }

    fn token(n: usize) -> Credential {
        Credential::Token(hash(1_000_000 + n))
    }

    #[test]
    fn failures_are_counted_by_address() {
        let mut sessions = Sessions::default();
        let address = |n: u32| IpAddr::from(std::net::Ipv4Addr::from(n));
        for (n, at_ms) in [(1, 10), (2, 20), (1, 30)] {
            sessions.fail(address(n), at_ms);
        }
        let reported =
            |failed: &Failed| (failed.number, failed.first_ms, failed.last_ms, failed.count);
        let all: Vec<_> = sessions.failed().iter().map(reported).collect();
        assert_eq!(all, [(2, 20, 20, 1), (1, 10, 30, 2)]);
        for n in 0..FAILED_MAX as u32 {
            sessions.fail(address(100 + n), 40);
        }
        assert_eq!(sessions.failed().len(), FAILED_MAX);
        assert!(sessions.failed().iter().all(|failed| failed.origin != address(1)));
    }

    #[test]
    fn a_session_ends_when_it_was_idle_for_half_an_hour() {
        let mut sessions = Sessions::default();
        let local = || Some((Credential::Local, String::new()));
        sessions.begin(hash(1), Credential::Local, login(""), 0);
        assert_eq!(sessions.use_one(&hash(1), IDLE_MS - 1), local());
        assert_eq!(sessions.use_one(&hash(1), 2 * IDLE_MS - 2), local());
        assert_eq!(sessions.use_one(&hash(1), 3 * IDLE_MS - 2), None);
        assert_eq!(sessions.use_one(&hash(1), 0), None, "it came back");
        sessions.begin(hash(2), Credential::Local, login(""), 0);
        sessions.end(&hash(2));
        assert_eq!(sessions.use_one(&hash(2), 0), None);
        sessions.begin(hash(3), Credential::Local, login(""), 0);
        sessions.begin(hash(4), Credential::Local, login(""), IDLE_MS);
        assert_eq!(sessions.by_hash.len(), 1, "what has ended takes room");
    }

    #[test]
    fn a_directory_users_session_ends_even_if_it_is_in_use() {
        let mut sessions = Sessions::default();
        let credential =
            Credential::Directory { user: hash(7), role: array::Role::ReadOnly, revision: 1 };
        sessions.begin(hash(1), credential, login("anna"), 0);
        let mut now_ms = 0;
        while now_ms + IDLE_MS / 2 < LIFE_MS {
            now_ms += IDLE_MS / 2;
            let used = sessions.use_one(&hash(1), now_ms);
            assert_eq!(used, Some((credential, "anna".into())), "{now_ms}");
        }
        assert_eq!(sessions.use_one(&hash(1), LIFE_MS), None);
    }

    #[test]
    fn too_many_sessions_end_the_idlest_of_their_own_token_first() {
        let mut sessions = Sessions::default();
        sessions.begin(hash(0), token(0), login(""), 0);
        for n in 1..=SESSIONS_PER_CREDENTIAL_MAX {
            sessions.begin(hash(n), token(1), login(""), n as u64);
        }
        sessions.use_one(&hash(1), 1_000);
        sessions.begin(hash(5_000), token(1), login(""), 1_001);
        assert!(sessions.use_one(&hash(2), 1_001).is_none());
        assert!(sessions.use_one(&hash(1), 1_001).is_some());
        assert!(sessions.by_hash.contains_key(&hash(0)), "another token paid for it");
        for n in 0..SESSIONS_MAX {
            sessions.begin(hash(10_000 + n), token(10_000 + n), login(""), 2_000);
        }
        assert_eq!(sessions.by_hash.len(), SESSIONS_MAX);
        assert!(!sessions.by_hash.contains_key(&hash(0)));
    }
}
