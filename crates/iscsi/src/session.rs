//! A session: the state that its connections share, possibly on several threads.

pub(crate) mod fence;
mod handing;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::budget::Share;
use crate::event::{ConnectionId, NexusInfo};
use crate::negotiate::Params;
use crate::session::fence::Progress;
use crate::task_set::{Queued, TaskSet, Turn};

/// Returns whether `a` precedes `b` in serial number arithmetic (RFC 1982).
pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// What a login claims when it enters full-feature phase.
pub(crate) struct Claim<'a> {
    pub(crate) initiator_name: &'a str,
    /// The entity that its address represents.
    pub(crate) address: IpAddr,
    pub(crate) isid: [u8; 6],
    /// 0 for a new session.
    pub(crate) tsih: u16,
    pub(crate) portal_tag: u16,
    pub(crate) discovery: bool,
    pub(crate) cmd_sn: u32,
    pub(crate) params: Params,
}

/// The result of admitting a request with a CmdSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It is the next.
    Now,
    /// An earlier one is missing.
    Held,
    /// It is outside the window or a duplicate, and is ignored (RFC 7143, 4.2.2.1).
    Dropped,
}

/// The place of a request without a response, until this is dropped. However the request, its PDU
/// or its connection ends, the window is restored, and no task waits for it any longer.
#[derive(Debug, Default)]
pub(crate) struct Place(Option<Taken>);

#[derive(Debug)]
struct Taken {
    session: Arc<Session>,
    /// Its CmdSN; unused for an immediate request.
    number: u32,
    /// The immediate requests of its connection, which have no place in the window.
    immediate: Option<Arc<AtomicU32>>,
    /// The place of a command in the task set.
    turn: Option<Turn>,
}

impl Place {
    /// Creates a place in the window of a session.
    fn in_window(session: &Arc<Session>, number: u32, turn: Option<Turn>) -> Self {
        Self(Some(Taken { session: session.clone(), number, immediate: None, turn }))
    }

    /// Creates a place among immediate requests, whose number is limited to `most`.
    pub(crate) fn immediate(
        session: &Arc<Session>,
        task: Option<Queued>,
        taken: &Arc<AtomicU32>,
        most: u32,
    ) -> Option<Self> {
        // Only the thread of the connection takes one.
        if taken.load(Ordering::Relaxed) >= most {
            return None;
        }
        taken.fetch_add(1, Ordering::Relaxed);
        let turn = task.map(|task| {
            let mut state = session.state.lock();
            let turn = state.tasks.enter(task, None);
            session.note_counts(&state);
            turn
        });
        let immediate = Some(taken.clone());
        Some(Self(Some(Taken { session: session.clone(), number: 0, immediate, turn })))
    }

    /// Returns the place of a command in the task set.
    pub(crate) fn turn(&self) -> Option<Turn> {
        self.0.as_ref()?.turn
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(Taken { session, number, immediate, turn }) = self.0.take() else { return };
        if let Some(turn) = turn {
            let mut state = session.state.lock();
            state.tasks.leave(turn);
            session.note_counts(&state);
        }
        match immediate {
            None => session.give_back(number),
            Some(taken) => drop(taken.fetch_sub(1, Ordering::Relaxed)),
        }
    }
}

/// A connection, as its session sees it.
#[derive(Debug)]
pub(crate) struct Member {
    pub(crate) cid: u16,
    pub(crate) id: ConnectionId,
    /// Tells the connection to close.
    pub(crate) closing: Arc<AtomicBool>,
    /// The progress of its output.
    pub(crate) progress: Arc<Progress>,
}

#[derive(Debug, Default)]
struct State {
    /// Requests after a gap: CmdSN and the connection that holds them; `None` if they ended with
    /// that connection, and their places are freed in their turn. At most a window.
    held: Vec<(u32, Option<ConnectionId>)>,
    /// Immediate requests that wait for all numbers before theirs: number and connection.
    behind: Vec<(u32, ConnectionId)>,
    /// Connections with responses that wait for output of others.
    fenced: Vec<ConnectionId>,
    members: Vec<Member>,
    tasks: TaskSet,
}

/// A session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) nexus: Arc<NexusInfo>,
    /// The entity that the address of its first connection represents.
    pub(crate) address: IpAddr,
    /// The parameters that the leading login negotiated.
    pub(crate) params: Params,
    /// Its initiator's share of the memory for data.
    pub(crate) share: Arc<Share>,
    /// The window, in commands.
    window: u32,
    expected: AtomicU32,
    max: AtomicU32,
    /// Whether the window no longer opens, because the session is handed over to another process.
    is_frozen: AtomicBool,
    dead: AtomicBool,
    /// The number of ORDERED tasks, and of tasks that wait for their turn: copies of the numbers in
    /// `state` that need no lock.
    ordered: AtomicUsize,
    waiting: AtomicUsize,
    /// Whether there was ever another connection besides the first.
    has_further: AtomicBool,
    /// The number of connections, and of those with responses that wait for output of others: also
    /// copies.
    connections: AtomicUsize,
    fences: AtomicUsize,
    state: Mutex<State>,
}

impl Session {
    pub(crate) fn new(nexus: NexusInfo, claim: &Claim<'_>, share: Arc<Share>, window: u32) -> Self {
        Self {
            nexus: Arc::new(nexus),
            address: claim.address,
            params: claim.params,
            share,
            window,
            is_frozen: AtomicBool::new(false),
            expected: AtomicU32::new(claim.cmd_sn),
            max: AtomicU32::new(claim.cmd_sn.wrapping_add(window).wrapping_sub(1)),
            dead: AtomicBool::new(false),
            ordered: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            has_further: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            fences: AtomicUsize::new(0),
            state: Mutex::default(),
        }
    }

    /// Returns ExpCmdSN.
    pub(crate) fn expected(&self) -> u32 {
        self.expected.load(Ordering::Acquire)
    }

    /// Returns MaxCmdSN.
    pub(crate) fn max(&self) -> u32 {
        self.max.load(Ordering::Acquire)
    }

    /// Opens the window by one after the response to a request with a place in it was sent. Because
    /// each request closes it by one, MaxCmdSN never decreases and bounds the number of requests.
    fn free_place(&self) {
        if !self.is_frozen.load(Ordering::Acquire) {
            self.max.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Returns whether it has ended, so that its connections must close.
    pub(crate) fn is_dead(&self) -> bool {
        self.dead.load(Ordering::Acquire)
    }

    /// Frees the place of a request. If its number is after a gap, the window opens only when the
    /// gap is filled; otherwise a host that keeps a gap open could make the target remember more
    /// and more numbers, by one connection after the other.
    fn give_back(&self, number: u32) {
        if !before(number, self.expected()) {
            let mut state = self.state.lock();
            if let Some((_, owner)) = state.held.iter_mut().find(|(held, _)| *held == number) {
                *owner = None;
                return;
            }
        }
        self.free_place();
    }

    /// Enters a request into the order, and a command into the task set. Adds to `wake` the other
    /// connections that may continue.
    pub(crate) fn admit(
        self: &Arc<Self>,
        cmd_sn: u32,
        task: Option<Queued>,
        connection: ConnectionId,
        wake: &mut Vec<ConnectionId>,
    ) -> (Admission, Place) {
        let mut state = self.state.lock();
        let expected = self.expected();
        let is_known = || state.held.iter().any(|(held, _)| *held == cmd_sn);
        if before(cmd_sn, expected) || before(self.max(), cmd_sn) || is_known() {
            return (Admission::Dropped, Place::default());
        }
        let behind = cmd_sn.wrapping_sub(expected);
        let turn = task.map(|task| state.tasks.enter(task, Some(behind)));
        // Before its number counts as received, so that any reader of that number sees it.
        self.note_counts(&state);
        let place = Place::in_window(self, cmd_sn, turn);
        if behind > 0 {
            state.held.push((cmd_sn, Some(connection)));
            return (Admission::Held, place);
        }
        let mut next = cmd_sn.wrapping_add(1);
        while let Some(place) = state.held.iter().position(|(held, _)| *held == next) {
            match state.held.swap_remove(place).1 {
                None => self.free_place(),
                Some(owner) if owner != connection && !wake.contains(&owner) => wake.push(owner),
                Some(_) => {}
            }
            next = next.wrapping_add(1);
        }
        state.tasks.advance(next.wrapping_sub(expected));
        self.expected.store(next, Ordering::Release);
        state.behind.retain(|(number, owner)| {
            let waits = before(next, *number);
            if !waits && *owner != connection && !wake.contains(owner) {
                wake.push(*owner);
            }
            waits
        });
        (Admission::Now, place)
    }

    fn note_counts(&self, state: &State) {
        let (ordered, waiting) = state.tasks.counts();
        self.ordered.store(ordered, Ordering::Release);
        self.waiting.store(waiting, Ordering::Release);
    }

    /// Returns whether a task that has all its data may be delivered; otherwise its connection is
    /// woken when it may. While no task is ORDERED this costs one comparison.
    pub(crate) fn may_go(&self, turn: Turn, connection: ConnectionId) -> bool {
        if self.ordered.load(Ordering::Acquire) == 0 {
            return true;
        }
        let mut state = self.state.lock();
        let may_go = state.tasks.may_go(turn, connection);
        self.note_counts(&state);
        may_go
    }

    /// Adds to `wake` the connections with waiting tasks that may now be delivered.
    pub(crate) fn take_ready(&self, wake: &mut Vec<ConnectionId>) {
        if self.waiting.load(Ordering::Acquire) > 0 {
            let mut state = self.state.lock();
            state.tasks.take_ready(wake);
            self.note_counts(&state);
        }
    }

    fn note_connections(&self, state: &State) {
        self.connections.store(state.members.len(), Ordering::Release);
        self.fences.store(state.fenced.len(), Ordering::Release);
    }

    /// Removes a connection, if it is still a member.
    fn take(
        &self,
        state: &mut State,
        is_it: impl Fn(&Member) -> bool,
        wake: &mut Vec<ConnectionId>,
    ) -> Option<Member> {
        let place = state.members.iter().position(is_it)?;
        let member = state.members.swap_remove(place);
        member.progress.gone();
        state.fenced.retain(|fenced| *fenced != member.id);
        state.behind.retain(|(_, owner)| *owner != member.id);
        self.note_connections(state);
        wake.extend(&state.fenced);
        Some(member)
    }

    /// Returns whether a CmdSN is in the window and was not received.
    pub(crate) fn is_awaited(&self, cmd_sn: u32) -> bool {
        let state = self.state.lock();
        !before(cmd_sn, self.expected())
            && !before(self.max(), cmd_sn)
            && !state.held.iter().any(|(held, _)| *held == cmd_sn)
    }

    /// Adds a connection. One with the same CID is closed (connection reinstatement, RFC 7143,
    /// 6.3.4), and returned. `Err` if there are too many, or the session has ended.
    pub(crate) fn join(
        &self,
        member: Member,
        wake: &mut Vec<ConnectionId>,
    ) -> Result<Option<ConnectionId>, JoinError> {
        let mut state = self.state.lock();
        if self.is_dead() {
            return Err(JoinError::Ended);
        }
        let mut replaced = None;
        if let Some(old) = self.take(&mut state, |old| old.cid == member.cid, wake) {
            old.closing.store(true, Ordering::Release);
            wake.push(old.id);
            replaced = Some(old.id);
        }
        if state.members.len() >= usize::from(self.params.max_connections) {
            return Err(JoinError::TooMany);
        }
        let is_further = replaced.is_some() || !state.members.is_empty();
        self.has_further.fetch_or(is_further, Ordering::AcqRel);
        state.members.push(member);
        self.note_connections(&state);
        Ok(replaced)
    }

    /// Tells a connection to close.
    pub(crate) fn close_member(&self, id: ConnectionId, wake: &mut Vec<ConnectionId>) {
        let mut state = self.state.lock();
        if let Some(member) = self.take(&mut state, |member| member.id == id, wake) {
            member.closing.store(true, Ordering::Release);
            wake.push(member.id);
        }
    }

    /// Returns the connection with this CID.
    pub(crate) fn member(&self, cid: u16) -> Option<ConnectionId> {
        let state = self.state.lock();
        state.members.iter().find(|member| member.cid == cid).map(|member| member.id)
    }

    /// Ends it: all its connections must close.
    pub(crate) fn kill(&self, wake: &mut Vec<ConnectionId>) {
        let state = self.state.lock();
        self.dead.store(true, Ordering::Release);
        wake.extend(state.members.iter().map(|member| member.id));
    }

    /// Removes a connection. A lost connection ends the session, because error recovery level 0
    /// recovers nothing less (RFC 7143, 7.1.4.4). Returns whether it was the last.
    pub(crate) fn leave(&self, id: ConnectionId, lost: bool, wake: &mut Vec<ConnectionId>) -> bool {
        let mut state = self.state.lock();
        if self.take(&mut state, |member| member.id == id, wake).is_none() {
            return false;
        }
        if state.members.is_empty() {
            self.dead.store(true, Ordering::Release);
            return true;
        }
        if lost {
            self.dead.store(true, Ordering::Release);
            wake.extend(state.members.iter().map(|member| member.id));
        }
        false
    }
}

/// The reason why a connection can't be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinError {
    Ended,
    TooMany,
}
