//! Sessions: what a login gives for an API token. In memory only, and bounded.

use std::collections::HashMap;

use array::TokenHash;

use super::Credential;

/// After how much idle time a session ends.
pub(super) const IDLE_MS: u64 = 30 * 60 * 1000;
/// The most sessions of one token: clients that never log out have one more with each run.
const SESSIONS_PER_CREDENTIAL_MAX: usize = 256;
/// The most sessions of all: some 100 bytes each.
const SESSIONS_MAX: usize = 4_096;

struct Session {
    /// What it was begun with. It is asked again at each request: a session never outlives its
    /// token, nor a role that was taken away.
    credential: Credential,
    used_ms: u64,
}

/// All sessions, by the hash of what requests carry.
#[derive(Default)]
pub(super) struct Sessions(HashMap<TokenHash, Session>);

impl Sessions {
    /// Begins one. Where there are too many, the one that was idle longest gives way: of the same
    /// token first.
    pub(super) fn begin(&mut self, hash: TokenHash, credential: Credential, now_ms: u64) {
        self.0.retain(|_, session| !session.is_over(now_ms));
        let own = self.0.values().filter(|session| session.credential == credential).count();
        if own >= SESSIONS_PER_CREDENTIAL_MAX {
            self.end_idlest(|session| session.credential == credential);
        } else if self.0.len() >= SESSIONS_MAX {
            self.end_idlest(|_| true);
        }
        self.0.insert(hash, Session { credential, used_ms: now_ms });
    }

    fn end_idlest(&mut self, among: impl Fn(&Session) -> bool) {
        let sessions = self.0.iter().filter(|(_, session)| among(session));
        let idlest = sessions.min_by_key(|(_, session)| session.used_ms).map(|(hash, _)| *hash);
        if let Some(hash) = idlest {
            self.0.remove(&hash);
        }
    }

    /// What a session was begun with; it is in use again.
    pub(super) fn use_one(&mut self, hash: &TokenHash, now_ms: u64) -> Option<Credential> {
        let session = self.0.get_mut(hash)?;
        if session.is_over(now_ms) {
            self.0.remove(hash);
            return None;
        }
        session.used_ms = now_ms;
        Some(session.credential)
    }

    /// Ends one.
    pub(super) fn end(&mut self, hash: &TokenHash) {
        self.0.remove(hash);
    }
}

impl Session {
    fn is_over(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.used_ms) >= IDLE_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(n: usize) -> TokenHash {
        TokenHash::of(&n.to_le_bytes())
    }

    fn token(n: usize) -> Credential {
        Credential::Token(hash(1_000_000 + n))
    }

    #[test]
    fn a_session_ends_when_it_was_idle_for_half_an_hour() {
        let mut sessions = Sessions::default();
        sessions.begin(hash(1), Credential::Local, 0);
        assert_eq!(sessions.use_one(&hash(1), IDLE_MS - 1), Some(Credential::Local));
        assert_eq!(sessions.use_one(&hash(1), 2 * IDLE_MS - 2), Some(Credential::Local));
        assert_eq!(sessions.use_one(&hash(1), 3 * IDLE_MS - 2), None);
        assert_eq!(sessions.use_one(&hash(1), 0), None, "it came back");
        sessions.begin(hash(2), Credential::Local, 0);
        sessions.end(&hash(2));
        assert_eq!(sessions.use_one(&hash(2), 0), None);
        sessions.begin(hash(3), Credential::Local, 0);
        sessions.begin(hash(4), Credential::Local, IDLE_MS);
        assert_eq!(sessions.0.len(), 1, "what has ended takes room");
    }

    #[test]
    fn too_many_sessions_push_out_the_idlest_of_their_own_token_first() {
        let mut sessions = Sessions::default();
        sessions.begin(hash(0), token(0), 0);
        for n in 1..=SESSIONS_PER_CREDENTIAL_MAX {
            sessions.begin(hash(n), token(1), n as u64);
        }
        sessions.use_one(&hash(1), 1_000);
        sessions.begin(hash(5_000), token(1), 1_001);
        assert!(sessions.use_one(&hash(2), 1_001).is_none());
        assert!(sessions.use_one(&hash(1), 1_001).is_some());
        assert!(sessions.0.contains_key(&hash(0)), "another token paid for it");
        for n in 0..SESSIONS_MAX {
            sessions.begin(hash(10_000 + n), token(10_000 + n), 2_000);
        }
        assert_eq!(sessions.0.len(), SESSIONS_MAX);
        assert!(!sessions.0.contains_key(&hash(0)));
    }
}
