//! The state that all connections of the target share: its configuration and the table of sessions.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::budget::Budget;
use crate::config::TargetConfig;
use crate::event::{ConnectionId, NexusInfo, SessionId};
use crate::guesses::Guesses;
use crate::session::{Claim, JoinError, Member, Session};

/// The state that all connections share.
pub struct Target {
    config: TargetConfig,
    next_connection: AtomicU64,
    sessions: Mutex<Table>,
    budget: Arc<Budget>,
    guesses: Mutex<Guesses>,
}

#[derive(Default)]
struct Table {
    by_tsih: HashMap<u16, Arc<Session>>,
    last_tsih: u16,
    next_session: u64,
}

/// The place of a connection in its session.
pub(crate) enum Membership {
    /// The first one of a session, which replaces another session.
    First { replaces: Option<SessionId> },
    /// A further one, which replaces another connection.
    Further { replaces: Option<ConnectionId> },
}

/// The result of a successful login.
pub(crate) struct Established {
    pub(crate) session: Arc<Session>,
    pub(crate) membership: Membership,
    pub(crate) wake: Vec<ConnectionId>,
}

/// The reason why a login failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClaimError {
    /// No session has this TSIH, ISID, name and portal group (020A).
    NoSuchSession,
    /// The session has as many connections as were negotiated (0206).
    TooManyConnections,
    /// The limit of sessions is reached: in total, of this name or of this address (0302).
    OutOfResources,
}

impl Target {
    /// Creates a target without sessions.
    pub fn new(mut config: TargetConfig) -> Arc<Target> {
        config.limits = config.limits.clamped();
        Arc::new(Self {
            budget: Budget::new(config.limits.data_bytes),
            config,
            next_connection: AtomicU64::new(1),
            sessions: Mutex::default(),
            guesses: Mutex::default(),
        })
    }

    /// Returns its configuration, with limits clamped to their ranges.
    pub fn config(&self) -> &TargetConfig {
        &self.config
    }

    /// Returns the existing sessions.
    pub fn sessions(&self) -> Vec<Arc<NexusInfo>> {
        self.sessions.lock().by_tsih.values().map(|session| session.nexus.clone()).collect()
    }

    /// Returns the memory of data in transit, of all connections.
    pub fn data_bytes(&self) -> usize {
        self.budget.used()
    }

    /// Returns whether an initiator at this address may try to authenticate.
    pub(crate) fn may_guess(&self, address: IpAddr, now: Duration) -> bool {
        self.guesses.lock().may(address, now)
    }

    /// Records a failed authentication from this address. Returns whether no further attempt is
    /// allowed for now.
    pub(crate) fn failed_guess(&self, address: IpAddr, now: Duration) -> bool {
        self.guesses.lock().failed(address, now)
    }

    pub(crate) fn new_connection_id(&self) -> ConnectionId {
        ConnectionId(self.next_connection.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the session that a login with a TSIH refers to.
    pub(crate) fn find(&self, claim: &Claim<'_>) -> Option<Arc<Session>> {
        let table = self.sessions.lock();
        let session = table.by_tsih.get(&claim.tsih)?;
        (is_same_port(&session.nexus, claim) && !session.is_dead()).then(|| session.clone())
    }

    /// Creates or finds the session of a login that enters full-feature phase.
    pub(crate) fn establish(
        &self,
        claim: &Claim<'_>,
        member: Member,
    ) -> Result<Established, ClaimError> {
        let mut wake = Vec::new();
        if claim.tsih != 0 {
            let session = self.find(claim).ok_or(ClaimError::NoSuchSession)?;
            let replaces = session.join(member, &mut wake).map_err(|error| match error {
                JoinError::Ended => ClaimError::NoSuchSession,
                JoinError::TooMany => ClaimError::TooManyConnections,
            })?;
            return Ok(Established { session, membership: Membership::Further { replaces }, wake });
        }
        let mut table = self.sessions.lock();
        let replaces = table.remove_same_port(claim, &mut wake);
        let limits = &self.config.limits;
        let count = |is: &dyn Fn(&Session) -> bool| {
            table.by_tsih.values().filter(|session| is(session)).count()
        };
        let own = count(&|session| session.nexus.initiator_name == claim.initiator_name);
        let near = count(&|session| session.address == claim.address);
        if table.by_tsih.len() >= limits.sessions
            || own >= limits.sessions_per_initiator
            || near >= limits.sessions_per_address
        {
            return Err(ClaimError::OutOfResources);
        }
        let session = table.insert(claim, limits.commands_per_session, &self.budget)?;
        session.join(member, &mut wake).map_err(|_| ClaimError::TooManyConnections)?;
        Ok(Established { session, membership: Membership::First { replaces }, wake })
    }

    /// Reserves the TSIHs of sessions that will be handed over to this process.
    pub fn expect(&self, tsihs: impl Iterator<Item = u16>) {
        let mut table = self.sessions.lock();
        table.last_tsih = tsihs.fold(table.last_tsih, u16::max);
    }

    /// Creates the session of a connection that was handed over, with its window and TSIH.
    pub(crate) fn go_on(
        &self,
        claim: &Claim<'_>,
        window: u32,
        member: Member,
    ) -> Result<Arc<Session>, ClaimError> {
        let mut table = self.sessions.lock();
        if table.by_tsih.values().any(|other| is_same_port(&other.nexus, claim)) {
            return Err(ClaimError::NoSuchSession); // its initiator has logged in again
        }
        let session = table.insert(claim, window, &self.budget)?;
        session.join(member, &mut Vec::new()).map_err(|_| ClaimError::TooManyConnections)?;
        Ok(session)
    }

    /// Ends a session: all its connections must close.
    pub(crate) fn kill(&self, session: &Arc<Session>, wake: &mut Vec<ConnectionId>) {
        session.kill(wake);
        self.sessions.lock().remove(session);
    }

    /// Removes a connection from its session. Returns whether it was the last.
    pub(crate) fn leave(
        &self,
        session: &Arc<Session>,
        id: ConnectionId,
        lost: bool,
        wake: &mut Vec<ConnectionId>,
    ) -> bool {
        let last = session.leave(id, lost, wake);
        if session.is_dead() {
            self.sessions.lock().remove(session);
        }
        last
    }
}

impl Table {
    /// Session reinstatement (RFC 7143, 6.3.5).
    fn remove_same_port(
        &mut self,
        claim: &Claim<'_>,
        wake: &mut Vec<ConnectionId>,
    ) -> Option<SessionId> {
        let session = self.by_tsih.values().find(|old| is_same_port(&old.nexus, claim))?.clone();
        session.kill(wake);
        self.remove(&session);
        Some(session.nexus.session)
    }

    fn remove(&mut self, session: &Arc<Session>) {
        let tsih = session.nexus.tsih;
        if self.by_tsih.get(&tsih).is_some_and(|there| Arc::ptr_eq(there, session)) {
            self.by_tsih.remove(&tsih);
        }
    }

    /// Adds a session, with the TSIH that it had in another process if it had one.
    fn insert(
        &mut self,
        claim: &Claim<'_>,
        window: u32,
        budget: &Arc<Budget>,
    ) -> Result<Arc<Session>, ClaimError> {
        let is_free = |tsih: &u16| *tsih != 0 && !self.by_tsih.contains_key(tsih);
        let found = match claim.tsih {
            0 => (1..=u16::MAX).map(|step| self.last_tsih.wrapping_add(step)).find(is_free),
            tsih => Some(tsih).filter(is_free),
        };
        let tsih = found.ok_or(ClaimError::OutOfResources)?;
        if claim.tsih == 0 {
            self.last_tsih = tsih;
        }
        self.next_session += 1;
        let nexus = NexusInfo {
            session: SessionId(self.next_session),
            initiator_name: claim.initiator_name.to_owned(),
            isid: claim.isid,
            tsih,
            portal_tag: claim.portal_tag,
            discovery: claim.discovery,
            terms: claim.params.terms(window),
        };
        let share = budget.share(claim.initiator_name);
        let session = Arc::new(Session::new(nexus, claim, share, window));
        self.by_tsih.insert(tsih, session.clone());
        Ok(session)
    }
}

fn is_same_port(nexus: &NexusInfo, claim: &Claim<'_>) -> bool {
    nexus.isid == claim.isid
        && nexus.initiator_name == claim.initiator_name
        && nexus.portal_tag == claim.portal_tag
        && nexus.discovery == claim.discovery
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target").field("config", &self.config).finish_non_exhaustive()
    }
}
