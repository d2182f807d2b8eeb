//! Sessions with their parameters and command counts, and refused logins, for display. Nothing here
//! delays a command.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use iscsi::Terms;
use parking_lot::Mutex;

use super::command_set::Nexus;
use super::counters::raise;
use super::mailbox::{Mailbox, Message};
use super::transport::{ConnectionId, NexusInfo, SessionId};

/// The most initiators whose refused logins are counted: unknown initiators may use any name.
const REFUSED_MAX: usize = 256;

/// A session, as the layers above iSCSI see it.
pub(super) struct Session {
    pub info: Arc<NexusInfo>,
    pub nexus: Arc<Nexus>,
    /// The names of both ports (RFC 7143, 4.4.3), except for the target's name, which is always the
    /// same.
    pub nexus_name: Arc<str>,
    peer: SocketAddr,
    commands: AtomicU64,
    queue_most: AtomicU64,
}

impl Session {
    pub(super) fn new(info: Arc<NexusInfo>, nexus: Arc<Nexus>, peer: SocketAddr) -> Self {
        let (commands, queue_most) = Default::default();
        let isid: String = info.host_port.iter().map(|byte| format!("{byte:02x}")).collect();
        let (name, port) = (&info.host_name, info.target_port);
        let nexus_name = format!("{name},i,0x{isid},t,0x{port:04x}").into();
        Self { info, nexus, nexus_name, peer, commands, queue_most }
    }

    /// Counts a command that arrived on a connection with `outstanding` commands in progress.
    pub(super) fn count(&self, outstanding: usize) {
        self.commands.fetch_add(1, Ordering::Relaxed);
        raise(&self.queue_most, outstanding as u64);
    }

    pub(super) fn snapshot(&self) -> SessionSnapshot {
        SessionSnapshot {
            initiator: self.info.host_name.clone(),
            isid: self.info.host_port,
            portal: self.info.target_port,
            peer: self.peer,
            terms: self.info.terms,
            commands: self.commands.load(Ordering::Relaxed),
            queue_most: self.queue_most.load(Ordering::Relaxed),
        }
    }
}

/// All sessions that have not ended, including their tasks.
#[derive(Default)]
pub(super) struct Sessions {
    pub(super) by_id: HashMap<SessionId, Arc<Session>>,
    /// Connections that wait for the end of a session: thread and id.
    waiting: Vec<(SessionId, usize, ConnectionId)>,
}

impl Sessions {
    /// Returns another session of the same I_T nexus.
    pub(super) fn predecessor(&self, info: &NexusInfo) -> Option<SessionId> {
        let same = |other: &&Arc<Session>| {
            other.info.host_name == info.host_name
                && other.info.host_port == info.host_port
                && other.info.target_port == info.target_port
                && other.info.session != info.session
        };
        self.by_id.values().find(same).map(|session| session.info.session)
    }

    /// Registers a thread's connection that waits for the end of a session.
    pub(super) fn wait_for_end(&mut self, of: SessionId, thread: usize, connection: ConnectionId) {
        self.waiting.push((of, thread, connection));
    }

    /// Removes an ended session, and resumes the connections that waited for it on their threads.
    pub(super) fn end(&mut self, ended: SessionId, mailboxes: &[Arc<Mailbox>]) {
        self.by_id.remove(&ended);
        self.waiting.retain(|(of, thread, connection)| {
            if *of == ended {
                mailboxes[*thread].post(Message::Resume(*connection));
            }
            *of != ended
        });
    }
}

/// The number of ended sessions that are remembered; each is the last of its initiator and portal.
const ENDED_MAX: usize = 4096;

/// Ended sessions with the time of their end, in milliseconds since 1970: a host that logs in only
/// briefly may never be seen otherwise.
#[derive(Default)]
pub(super) struct EndedSessions(Mutex<BTreeMap<(String, u16), (u64, SessionSnapshot)>>);

impl EndedSessions {
    pub(super) fn all(&self) -> Vec<(u64, SessionSnapshot)> {
        self.0.lock().values().cloned().collect()
    }

    pub(super) fn note(&self, session: &Session, now_ms: u64) {
        let snapshot = session.snapshot();
        let mut all = self.0.lock();
        let key = (snapshot.initiator.clone(), snapshot.portal);
        if all.len() >= ENDED_MAX && !all.contains_key(&key) {
            let oldest = all.iter().min_by_key(|(_, (ended_ms, _))| *ended_ms);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                all.remove(&oldest);
            }
        }
        all.insert(key, (now_ms, snapshot));
    }
}

/// A snapshot of a session.
#[derive(Clone, Debug)]
pub struct SessionSnapshot {
    /// The iSCSI name of the initiator.
    pub initiator: String,
    /// The initiator's part of the session id.
    pub isid: [u8; 6],
    /// The tag of the portal: from 1, in configuration order.
    pub portal: u16,
    /// The remote address of its first connection.
    pub peer: SocketAddr,
    /// The negotiated parameters.
    pub terms: Terms,
    /// The number of commands received.
    pub commands: u64,
    /// The most commands that one of its connections had in progress.
    pub queue_most: u64,
}

/// A day, in milliseconds.
const DAY_MS: u64 = 86_400_000;

/// An initiator's refused logins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The number since the start.
    pub count: u64,
    /// Status class and detail of the last one (RFC 7143, 11.13.5).
    pub status: (u8, u8),
    /// The time of the last one, in milliseconds since 1970.
    pub time_ms: u64,
    /// The address of the last one.
    pub address: IpAddr,
}

impl Refused {
    /// Returns the reason, in a few words.
    pub fn why(&self) -> &'static str {
        match self.status {
            (2, 1) => "it failed to authenticate (CHAP)",
            (2, 2) => "it is not a known host, or has no CHAP secret",
            (2, 3) => "it requested another target",
            _ => "its login was refused",
        }
    }

    /// Returns the eviction order when there is no space: first entries that were idle for a day,
    /// then those with the fewest and oldest refusals. An initiator that keeps trying is soon
    /// counted again.
    fn worth(&self, now_ms: u64) -> (bool, u64, u64) {
        (self.time_ms.saturating_add(DAY_MS) >= now_ms, self.count, self.time_ms)
    }
}

/// The initiators whose logins were refused.
#[derive(Default)]
pub struct Refusals(Mutex<BTreeMap<String, Refused>>);

impl Refusals {
    /// Returns all entries, by name.
    pub fn all(&self) -> BTreeMap<String, Refused> {
        self.0.lock().clone()
    }

    pub(super) fn note(&self, initiator: &str, status: (u8, u8), from: SocketAddr, now_ms: u64) {
        let mut all = self.0.lock();
        if all.len() >= REFUSED_MAX && !all.contains_key(initiator) {
            let least = all.iter().min_by_key(|(_, refused)| refused.worth(now_ms));
            if let Some(least) = least.map(|(name, _)| name.clone()) {
                all.remove(&least);
            }
        }
        let count = all.get(initiator).map_or(0, |refused| refused.count) + 1;
        let refused = Refused { count, status, time_ms: now_ms, address: from.ip() };
        all.insert(initiator.to_owned(), refused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(refusals: &Refusals, name: &str, status: (u8, u8), now_ms: u64) {
        refusals.note(name, status, ([192, 0, 2, 7], 700).into(), now_ms);
    }

    #[test]
    fn refusals_are_counted_and_unknown_initiators_take_bounded_space() {
        let refusals = Refusals::default();
        for _ in 0..3 {
            note(&refusals, "iqn.again", (2, 2), 1);
        }
        note(&refusals, "iqn.again", (2, 1), 2);
        for n in 0..2 * REFUSED_MAX {
            note(&refusals, &format!("iqn.{n}"), (2, 2), 10 + n as u64);
        }
        let all = refusals.all();
        assert_eq!(all.len(), REFUSED_MAX);
        let address = [192, 0, 2, 7].into();
        assert_eq!(all["iqn.again"], Refused { count: 4, status: (2, 1), time_ms: 2, address });
        // Of the initiators with one refusal, the latest are kept.
        assert!(all.contains_key(&format!("iqn.{}", 2 * REFUSED_MAX - 1)));
        assert!(!all.contains_key("iqn.0"));
    }

    #[test]
    fn initiators_idle_for_a_day_are_forgotten_first() {
        let refusals = Refusals::default();
        for _ in 0..3 {
            note(&refusals, "iqn.old", (2, 2), 1);
        }
        for n in 1..REFUSED_MAX {
            note(&refusals, &format!("iqn.{n}"), (2, 2), DAY_MS);
        }
        note(&refusals, "iqn.new", (2, 2), DAY_MS + 2);
        let all = refusals.all();
        assert!(all.len() == REFUSED_MAX && !all.contains_key("iqn.old"));
    }
}
