//! One connection: its parts, and its interface to the layer above.

mod acknowledge;
mod command;
mod data_out;
pub(crate) mod handing;
mod management;
mod order;
mod receive;
mod requests;
mod respond;
mod text;
mod time;

use std::collections::VecDeque;
use std::io::{IoSlice, IoSliceMut};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use block::LunMap;

use order::Held;

use crate::budget::{Grant, Share};
use crate::event::{ConnectionId, Ended, Event, NexusInfo, Opening, TaskHandle};
use crate::login::Login;
use crate::negotiate::Params;
use crate::pdu::{Bhs, RejectReason, build};
use crate::receive::Receive;
use crate::session::fence::Progress;
use crate::session::{Admission, Place, Session};
use crate::target::Target;
use crate::task::{Task, TaskState, Tasks};
use crate::transmit::{OutData, Transmit};

/// Output that may be queued on each connection, however little memory there is, in bytes.
const OUTPUT_BYTES_FREE: usize = 262_144;
/// The change of queued output, in bytes, from which the share is updated.
const OUTPUT_STEP_BYTES: usize = 16_384;

/// The state of a PDU between its header and its end.
// A command is stored inline: boxing would cost an allocation for each.
#[allow(clippy::large_enum_variant)]
enum Plan {
    /// A SCSI command, with its admission to the session's order.
    Command(Task, Admission),
    /// Data of the task with this serial number.
    DataOut(u32),
    /// Any other request.
    Other,
    /// Receive it and do nothing.
    Ignore,
}

/// The StatSN of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatSn {
    /// The next one, which it uses up.
    Advance,
    /// The next one, without using it up.
    Current,
    /// None.
    Absent,
}

/// A connection. Owned by the thread that serves its socket.
pub struct Connection {
    target: Arc<Target>,
    id: ConnectionId,
    local: SocketAddr,
    peer: SocketAddr,
    /// Set by other connections of the session that make this one close.
    closing: Arc<AtomicBool>,
    /// Until full-feature phase.
    login: Option<Box<Login>>,
    /// From full-feature phase on.
    session: Option<Arc<Session>>,
    params: Params,
    stat_sn: u32,
    awaited: acknowledge::Awaited,
    receive: Receive<Plan>,
    transmit: Transmit,
    events: VecDeque<Event>,
    wake: Vec<ConnectionId>,
    /// Whether it was woken itself.
    woken: bool,
    tasks: Tasks,
    next_serial: u32,
    held: Vec<(u32, Held)>,
    /// The tags of tasks that have all their data and wait for their turn.
    in_order: Vec<u32>,
    /// Tasks that wait for memory: tag and serial number.
    starved: VecDeque<(u32, u32)>,
    /// Memory for data that was or will be solicited.
    granted_bytes: usize,
    /// The part of its output that is accounted in its initiator's share.
    shared_output: Grant,
    /// Data of non-command requests in `held`, in bytes.
    held_bytes: usize,
    /// Whether the buffer may contain unprocessed PDUs.
    input_left: bool,
    /// The initiator's LUN map, to determine the length of its commands; `None` until it is set.
    luns: Option<Arc<LunMap>>,
    /// Why it was closed, if that is worth logging.
    complaint: Option<&'static str>,
    /// Immediate requests without a response.
    immediate: Arc<AtomicU32>,
    /// Task management requests without a response.
    managements: Vec<(crate::event::ManagementHandle, Place)>,
    /// Task management requests that wait for requests of other connections.
    behind: Vec<management::Behind>,
    /// Responses to task management that wait until the initiator has received earlier ones.
    fenced: Vec<management::Fenced>,
    /// Progress of this connection's output, for responses that wait on other connections.
    progress: Arc<Progress>,
    /// The number of PDUs sent up to the last one with a status.
    sent_with_status: u32,
    /// The last ping: its transfer tag, and the number of PDUs sent up to and including it.
    ping: Option<(u32, u32)>,
    text: Option<text::Exchange>,
    clock: time::Clock,
    closed: bool,
    /// Whether it is to be handed over to another process.
    is_handed: bool,
    /// A logout without a response.
    leaving: Option<(crate::event::ManagementHandle, crate::event::ManagementFunction)>,
    /// Whether it was logged out, so that its end is not a loss.
    logged_out: bool,
    ended: bool,
}

impl Connection {
    /// Creates the state of a connection that was just accepted.
    pub fn new(target: Arc<Target>, opening: Opening) -> Connection {
        let portal_tag =
            target.config().portals.get(opening.portal_index).map_or(1, |portal| portal.tag);
        let peer = opening.peer.ip();
        let login = Login::new(target.clone(), portal_tag, peer, opening.entropy);
        Self {
            id: target.new_connection_id(),
            clock: time::Clock::new(opening.now),
            target,
            local: opening.local,
            peer: opening.peer,
            closing: Arc::default(),
            login: Some(Box::new(login)),
            session: None,
            params: Params::default(),
            stat_sn: 1,
            awaited: acknowledge::Awaited::default(),
            receive: Receive::new(),
            transmit: Transmit::default(),
            events: VecDeque::new(),
            wake: Vec::new(),
            woken: false,
            tasks: Tasks::default(),
            next_serial: 0,
            held: Vec::new(),
            in_order: Vec::new(),
            starved: VecDeque::new(),
            granted_bytes: 0,
            shared_output: Grant::default(),
            held_bytes: 0,
            input_left: false,
            luns: None,
            complaint: None,
            immediate: Arc::default(),
            managements: Vec::new(),
            behind: Vec::new(),
            fenced: Vec::new(),
            progress: Arc::default(),
            sent_with_status: 0,
            ping: None,
            text: None,
            closed: false,
            is_handed: false,
            leaving: None,
            logged_out: false,
            ended: false,
        }
    }

    /// Returns its id.
    pub fn id(&self) -> ConnectionId {
        self.id
    }

    /// Returns the address of the peer.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// Returns the nexus, from full-feature phase on.
    pub fn nexus(&self) -> Option<&Arc<NexusInfo>> {
        self.session.as_ref().map(|session| &session.nexus)
    }

    /// Returns the number of commands without a response.
    pub fn outstanding(&self) -> usize {
        self.tasks.len()
    }

    /// Appends to `out` where the next bytes from the socket go, in order: the receive buffer or,
    /// in the middle of a long data segment, first the frames of its command, so that data is not
    /// copied. At most 257 slices. None if nothing is to be received: the connection is closed, too
    /// much output is queued, or there is enough to process ([`Connection::has_input`]). After
    /// reading, call [`Connection::received`] before anything else.
    pub fn receive_slices<'a>(&'a mut self, out: &mut impl Extend<IoSliceMut<'a>>) {
        if !self.closed && !self.input_left && !self.is_output_full() && self.takes_input() {
            self.receive.slices(out);
        }
    }

    /// Sets the initiator's LUN map, which determines the length of its commands. Must be called
    /// before processing input received after a change.
    pub fn set_luns(&mut self, luns: Arc<LunMap>) {
        self.luns = Some(luns);
    }

    /// Returns whether [`Connection::go_on`] has something to do: more was received than one call
    /// processes, and there is space for responses.
    pub fn has_input(&self) -> bool {
        self.input_left && !self.closed && !self.is_output_full() && self.takes_input()
    }

    /// Returns whether [`Connection::next_event`] has an event, or something to check.
    pub fn has_events(&self) -> bool {
        !self.events.is_empty() || self.woken
    }

    /// Processes received bytes that were not processed yet.
    pub fn go_on(&mut self) {
        if self.has_input() {
            self.process();
        }
    }

    /// Returns, once, why it was closed, if that is worth logging.
    pub fn take_complaint(&mut self) -> Option<&'static str> {
        self.complaint.take()
    }

    fn complain(&mut self, why: &'static str) {
        self.complaint = Some(why);
    }

    /// Notes that `bytes` were read into the slices, from the first on, and parses part of the
    /// input.
    ///
    /// # Panics
    /// If `bytes` exceeds the slices.
    pub fn received(&mut self, bytes: usize, now: Duration) {
        if bytes > 0 {
            self.clock.heard(bytes, now);
        }
        self.receive.received(bytes);
        self.process();
    }

    /// Returns the next event. A command that was aborted meanwhile has none.
    pub fn next_event(&mut self) -> Option<Event> {
        if self.events.is_empty() {
            self.look_around();
        }
        loop {
            match self.events.pop_front()? {
                Event::Command(command) if self.is_aborted(command.task) => {
                    self.forget(command.task);
                }
                event => return Some(event),
            }
        }
    }

    fn is_aborted(&self, handle: TaskHandle) -> bool {
        let task = self.tasks.get(&handle.tag);
        task.is_none_or(|task| task.serial != handle.serial || task.aborted)
    }

    /// Appends what to send next to `out`: slices of up to `bytes_max` bytes in total (at most
    /// 512).
    pub fn transmit_slices<'a>(&'a self, out: &mut impl Extend<IoSlice<'a>>, bytes_max: usize) {
        self.transmit.slices(out, bytes_max);
    }

    /// Notes that `bytes` of them were sent. This may lead to new events, because requests that
    /// waited for space continue.
    ///
    /// # Panics
    /// If `bytes` exceeds the queued output.
    pub fn transmitted(&mut self, bytes: usize) {
        self.transmit.transmitted(bytes);
        let left = self.has_output();
        self.clock.taken(left);
        self.share_output();
        self.go_on();
    }

    /// Returns whether there is output.
    pub fn has_output(&self) -> bool {
        self.transmit.waiting_bytes() > 0
    }

    /// Returns the number of bytes of queued output.
    pub fn output_bytes(&self) -> usize {
        self.transmit.waiting_bytes()
    }

    /// Closes it after all output was sent.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Returns whether it must be closed after all output was sent.
    pub fn is_closed(&self) -> bool {
        self.closed || self.is_told_to_close()
    }

    /// Ends a connection whose socket is lost or closed. Returns what ended with it.
    pub fn end(mut self) -> Ended {
        self.detach()
    }

    /// Returns whether so much output is queued that nothing more is received, and nothing long
    /// should be prepared ([`crate::Limits::output_bytes`]).
    pub fn is_output_full(&self) -> bool {
        let waiting = self.transmit.waiting_bytes();
        waiting > self.target.config().limits.output_bytes
            || waiting > OUTPUT_BYTES_FREE && self.share().is_some_and(|share| share.is_over())
    }

    fn share(&self) -> Option<&Arc<Share>> {
        self.session.as_ref().map(|session| &session.share)
    }

    /// Updates the queued output in the share, if it has changed much or is empty.
    fn share_output(&mut self) {
        let waiting = self.transmit.waiting_bytes();
        let told = self.shared_output.bytes();
        if waiting.abs_diff(told) < OUTPUT_STEP_BYTES && waiting > 0 || waiting == told {
            return;
        }
        let Some(session) = &self.session else { return };
        match waiting.checked_sub(told) {
            Some(more) => self.shared_output.merge(session.share.add(more)),
            None => self.shared_output.shrink_to(waiting),
        }
        self.tell_wakes();
    }

    /// Returns whether another connection made it close.
    fn is_told_to_close(&self) -> bool {
        let dead = self.session.as_ref().is_some_and(|session| session.is_dead());
        dead || self.closing.load(Ordering::Acquire)
    }

    /// Checks what other connections of the session have done.
    fn look_around(&mut self) {
        self.woken = false;
        if self.is_told_to_close() {
            self.closed = true;
        } else {
            self.release_held();
            self.feed_starved();
            self.deliver_waiting();
            self.answer_fenced();
            if self.progress.take_asked() {
                self.ask_for_sign();
            }
        }
    }

    /// Rejects a PDU.
    fn reject(&mut self, bhs: &Bhs, reason: RejectReason) {
        let data = OutData::Bytes(bhs.0.to_vec());
        self.send(build::reject(reason), data, StatSn::Advance);
    }

    /// Rejects a PDU that violates the protocol, and closes the connection, because its peer is out
    /// of step.
    fn protocol_error(&mut self, bhs: &Bhs) {
        self.reject(bhs, RejectReason::Protocol);
        self.closed = true;
    }

    fn tell_wakes(&mut self) {
        if self.ended {
            return; // [`Ended::wake`] does that
        }
        if let Some(session) = &self.session {
            session.share.take_woken(&mut self.wake);
            session.take_ready(&mut self.wake);
        }
        for connection in self.wake.drain(..) {
            match connection == self.id {
                true => self.woken = true,
                false => self.events.push_back(Event::Wake { connection }),
            }
        }
    }

    fn handle(&self, tag: u32, serial: u32) -> TaskHandle {
        TaskHandle { connection: self.id, tag, serial }
    }

    fn detach(&mut self) -> Ended {
        let mut ended = Ended::default();
        if std::mem::replace(&mut self.ended, true) {
            return ended;
        }
        self.closed = true;
        // Release all memory and places in the window now, for those that wait for them.
        for (tag, mut task) in std::mem::take(&mut self.tasks) {
            if task.state == TaskState::Delivered {
                ended.tasks.push(self.handle(tag, task.serial));
                ended.memory.0.push(std::mem::take(&mut task.incoming.taken));
            }
        }
        self.receive.end();
        self.text = None;
        self.held.clear();
        self.managements.clear();
        self.behind.clear();
        self.fenced.clear();
        self.shared_output = Grant::default();
        if let Some(session) = self.session.clone() {
            session.share.forget(self.id);
            session.share.take_woken(&mut self.wake);
            session.take_ready(&mut self.wake);
            ended.wake.append(&mut self.wake);
            let lost = !self.logged_out;
            if self.target.leave(&session, self.id, lost, &mut ended.wake) {
                ended.session = Some(session.nexus.clone());
            }
        }
        ended
    }
}

impl Drop for Connection {
    /// A connection that is dropped without [`Connection::end`] leaves its session too.
    fn drop(&mut self) {
        self.detach();
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.id)
            .field("peer", &self.peer)
            .field("nexus", &self.nexus())
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}
