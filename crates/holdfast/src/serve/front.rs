//! A front-end thread, and its loop: one turn after the other.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use iscsi::{Connection, ConnectionId, Event, Opening};
use mio::{Events, Interest, Poll, Token};
use segments::{Channel, Completion};
use store::{Outcome, SinkId};

use super::counters::WireCounters;
use super::listen::{Accepted, Listeners};
use super::mailbox::{self, FrontSink, Message};
use super::management::Purpose;
use super::patience::Patience;
use super::shared::Shared;
use super::sockets::Peer;
use super::storage::{Writing, open_channel};
use super::tasks::Tasks;
use super::throttle::Tended;
use super::turn::Turn;

/// What a thread's poller calls the waker of its mailbox.
pub(super) const WAKER: Token = Token(0);
pub(super) const CHANNEL: Token = Token(1);
pub(super) const LISTENERS: usize = 2;
const PEERS: usize = 1 << 17;

/// Steps of a chain of requests that end at once, in a turn.
const CHAIN_MAX: usize = 4;
/// How often deadlines are looked at: login timeouts and pings are seconds long.
const TICK: Duration = Duration::from_millis(500);
/// How long the end waits for hosts to take their answers.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a thread that is ending looks around.
const STOP_TICK: Duration = Duration::from_millis(5);

/// One thread.
pub(super) struct FrontEnd {
    pub(super) shared: Arc<Shared>,
    pub(super) index: usize,
    pub(super) sink: SinkId,
    pub(super) channel: Box<dyn Channel>,
    pub(super) peers: Vec<Option<Peer>>,
    pub(super) places: HashMap<ConnectionId, usize>,
    pub(super) tasks: Tasks,
    /// Long reads that wait until their connection may run another, by their tasks' names.
    pub(super) waiting: VecDeque<u64>,
    /// What this turn may still do, and what waits for the next one.
    pub(super) turn: Turn,
    /// The limits of volumes that this thread looks after, and the generation of the LUN maps then.
    pub(super) tended: Vec<Tended>,
    pub(super) tended_generation: u64,
    /// The commits that this thread writes.
    pub(super) commits: Vec<Option<Writing>>,
    /// What watches are for, by their id.
    pub(super) watched: HashMap<u64, Purpose>,
    pub(super) next_watch: u64,
    poll: Poll,
    listeners: Listeners,
    free_peers: Vec<usize>,
    ready: Vec<usize>,
    touched: Vec<usize>,
    completions: Vec<Completion>,
    outcomes: Vec<(u64, Outcome)>,
    messages: Vec<Message>,
    pub(super) patience: Patience,
    /// When the turn began.
    pub(super) now: Duration,
    next_tick: Duration,
    /// When the end comes whatever is left, once it was asked for.
    stop_at: Option<Duration>,
}

impl FrontEnd {
    pub(super) fn new(shared: Arc<Shared>, index: usize, poll: Poll, listeners: Listeners) -> Self {
        mailbox::enter_thread(index);
        let sink = FrontSink::new(index, &shared.mailboxes[index]);
        let sink = shared.store.register_sink(Arc::new(sink));
        let channel = open_channel(&shared, index, &poll);
        let channel = channel.unwrap_or_else(|error| panic!("can't wait for the disk: {error}"));
        Self {
            shared,
            index,
            sink,
            channel,
            peers: Vec::new(),
            places: HashMap::new(),
            tasks: Tasks::default(),
            waiting: VecDeque::new(),
            turn: Turn::default(),
            tended: Vec::new(),
            tended_generation: 0,
            commits: Vec::new(),
            watched: HashMap::new(),
            next_watch: 0,
            poll,
            listeners,
            free_peers: Vec::new(),
            ready: Vec::new(),
            touched: Vec::new(),
            completions: Vec::new(),
            outcomes: Vec::new(),
            messages: Vec::new(),
            patience: Patience::default(),
            now: Duration::ZERO,
            next_tick: Duration::ZERO,
            stop_at: None,
        }
    }

    pub(super) fn run(mut self) {
        let mut events = Events::with_capacity(256);
        while !self.is_finished() {
            let busy = self.patience.is_left() || self.has_work();
            let timeout = if busy { Duration::ZERO } else { self.sleep_time() };
            match self.poll.poll(&mut events, Some(timeout)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => panic!("can't wait for events: {error}"),
            }
            let now = self.shared.clock.now();
            self.patience.looked(now, !events.is_empty());
            let mut woken = false;
            for event in &events {
                woken |= event.token() == WAKER;
                self.note(event);
            }
            self.turn(woken, now);
            self.shared.counters.turn_of(self.index).note(self.turn.spent_bytes());
        }
        (0..self.peers.len()).for_each(|slot| self.close(slot));
    }

    /// Whether there is something to do that the poller does not know of.
    fn has_work(&self) -> bool {
        self.channel.has_ended()
            || !self.ready.is_empty()
            || self.turn.has_parked()
            || mailbox::has_own_outcomes()
    }

    fn sleep_time(&self) -> Duration {
        let most = if self.stop_at.is_some() { STOP_TICK } else { TICK };
        let next = self.tend_at().map_or(self.next_tick, |at| at.min(self.next_tick));
        let most = self.channel.next_retry().map_or(most, |retry| retry.min(most));
        next.saturating_sub(self.shared.clock.now()).min(most)
    }

    /// Remembers what the poller said.
    fn note(&mut self, event: &mio::event::Event) {
        match event.token() {
            WAKER | CHANNEL => {}
            Token(token) if token < PEERS => self.listeners.set_pending(),
            Token(token) => {
                let slot = token - PEERS;
                let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_mut) else { return };
                peer.read_closed |= event.is_read_closed() || event.is_error();
                if event.is_readable() || peer.read_closed {
                    peer.readable = true;
                    self.push_ready(slot);
                }
                if event.is_writable() {
                    self.writable(slot);
                }
            }
        }
    }

    fn writable(&mut self, slot: usize) {
        if let Some(peer) = self.peers[slot].as_mut() {
            peer.writable = true;
            if peer.connection.has_output() {
                self.touch(slot);
            }
        }
    }

    /// Everything that can be done without waiting: what came, what ended, one commit for all of
    /// it, and one send a connection.
    fn turn(&mut self, woken: bool, now: Duration) {
        self.turn.begin();
        self.now = now;
        if woken {
            self.read_mailbox();
        }
        self.listeners.accept(&self.shared, now);
        for slot in std::mem::take(&mut self.ready) {
            self.receive(slot, now);
        }
        self.tend_buckets(now);
        self.work_off_parked();
        self.work_off_disk();
        self.start_commit();
        self.submit();
        self.work_off_touched();
        if now >= self.next_tick {
            self.tick(now);
        }
        while self.start_waiting() | self.end_held() {
            self.work_off_touched();
        }
        // Sending may have freed commands that were held back: their requests must not wait.
        self.start_commit();
        self.submit();
    }

    pub(super) fn submit(&mut self) {
        if let Err(error) = self.channel.submit() {
            panic!("can't give transfers to the kernel: {error}");
        }
    }

    /// Goes on with all that ended on the disk and in commits, and with what ends at once by that;
    /// not without end, as a long copy is a chain of such steps. What is left of that is had in the
    /// next turn ([`FrontEnd::has_work`]).
    fn work_off_disk(&mut self) {
        for _ in 0..CHAIN_MAX {
            let mut completions = std::mem::take(&mut self.completions);
            if let Err(error) = self.channel.complete(&mut completions) {
                panic!("can't take transfers from the kernel: {error}");
            }
            let mut outcomes = std::mem::take(&mut self.outcomes);
            let nothing = completions.is_empty();
            for completion in completions.drain(..) {
                self.transfer_ended(completion);
            }
            mailbox::take_own_outcomes(&mut outcomes);
            let done = nothing && outcomes.is_empty();
            for (id, outcome) in outcomes.drain(..) {
                self.request_ended(id, outcome);
            }
            (self.completions, self.outcomes) = (completions, outcomes);
            if done {
                return;
            }
        }
    }

    fn read_mailbox(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        self.shared.mailboxes[self.index].take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Serve(accepted) => self.serve(*accepted),
                Message::Outcome(id, outcome) => self.request_ended(id, outcome),
                Message::Saved(task) => self.reservations_saved(task),
                Message::Admitted(task) => self.begin_held(task),
                Message::Wake(id) => self.wake(id),
                Message::Abort(what, watch) => self.abort_here(&what, None, &watch),
                Message::WatchTasks(what, watch) => self.tasks.watch(what, &watch),
                Message::Watched(id) => self.watched(id),
                Message::Resume(id) => self.resume_session(id),
                Message::Stop => self.stop(),
            }
        }
        self.messages = messages;
    }

    /// Starts to serve a connection.
    fn serve(&mut self, accepted: Accepted) {
        let Accepted { mut stream, portal_index, local, peer } = accepted;
        let mut entropy = [0; 32];
        let slot = self.free_peers.pop().unwrap_or_else(|| {
            self.peers.push(None);
            self.peers.len() - 1
        });
        let interest = Interest::READABLE | Interest::WRITABLE;
        let ready = sys::entropy(&mut entropy).and_then(|()| {
            self.poll.registry().register(&mut stream, Token(PEERS + slot), interest)
        });
        if let Err(error) = ready.as_ref() {
            tracing::warn!("can't serve {peer}: {error}");
        }
        if ready.is_err() || self.stop_at.is_some() {
            self.free_peers.push(slot);
            self.wire().connections.fetch_sub(1, Ordering::Relaxed);
            self.shared.addresses.leave(peer.ip());
            return;
        }
        let now = self.shared.clock.now();
        let opening = Opening { portal_index, local, peer, entropy, now };
        let connection = Connection::new(self.shared.target.clone(), opening);
        let peer = Peer::new(stream, connection);
        self.places.insert(peer.id, slot);
        self.shared.places.lock().insert(peer.id, self.index);
        self.peers[slot] = Some(peer);
        self.push_ready(slot);
    }

    fn push_ready(&mut self, slot: usize) {
        if let Some(peer) = self.peers[slot].as_mut()
            && !std::mem::replace(&mut peer.in_ready, true)
        {
            self.ready.push(slot);
        }
    }

    /// The connection is looked at again before the turn ends: for events, output, and its end.
    pub(super) fn touch(&mut self, slot: usize) {
        if let Some(peer) = self.peers[slot].as_mut()
            && !std::mem::replace(&mut peer.in_touched, true)
        {
            self.touched.push(slot);
        }
    }

    fn receive(&mut self, slot: usize, now: Duration) {
        let Some(peer) = self.peers[slot].as_mut() else { return };
        peer.in_ready = false;
        if self.stop_at.is_some() {
            return self.touch(slot);
        }
        // What comes is parsed by what the host sees now.
        if let Some(nexus) = peer.session.as_ref().map(|session| session.nexus.clone()) {
            peer.refresh_luns(&*self.shared.luns, nexus.initiator().name.as_str());
        }
        let more = peer.receive(now, self.shared.counters.wire_of(self.index));
        self.work_off_events(slot);
        self.touch(slot);
        if more {
            self.push_ready(slot);
        }
    }

    /// Does what the machine asks for.
    pub(super) fn work_off_events(&mut self, slot: usize) {
        loop {
            let Some(peer) = self.peers[slot].as_mut() else { return };
            if peer.held.is_some() {
                return;
            }
            peer.connection.set_time(self.now);
            let Some(event) = peer.connection.next_event() else { return };
            match event {
                Event::Command(command) => self.execute(slot, command),
                Event::SessionStarted { nexus, .. } | Event::ConnectionAdded { nexus } => {
                    self.enter_session(slot, nexus);
                }
                Event::LoginRefused { initiator_name, status } => {
                    self.shared.refusals.note(&initiator_name, status);
                }
                Event::TaskManagement(request) => self.manage(slot, request),
                Event::Wake { connection } => self.shared.wake_connection(connection),
                Event::Acknowledged { name } => self.shared.store.acknowledged(name),
            }
        }
    }

    fn work_off_touched(&mut self) {
        while let Some(slot) = self.touched.pop() {
            self.work_off_events(slot);
            let Some(peer) = self.peers[slot].as_mut() else { continue };
            peer.in_touched = false;
            peer.transmit(self.shared.counters.wire_of(self.index));
            if peer.is_over() {
                self.close(slot);
            } else if peer.is_let_go() || peer.has_more() {
                self.push_ready(slot);
            }
        }
    }

    fn wake(&mut self, id: ConnectionId) {
        if let Some(slot) = self.places.get(&id).copied() {
            self.touch(slot);
        }
    }

    /// Lets time pass.
    fn tick(&mut self, now: Duration) {
        self.next_tick = now + TICK;
        self.listeners.set_pending();
        for slot in 0..self.peers.len() {
            let Some(peer) = self.peers[slot].as_mut() else { continue };
            if peer.connection.deadline().is_some_and(|deadline| deadline <= now) {
                peer.connection.tick(now);
                self.touch(slot);
            }
        }
        self.work_off_touched();
    }

    /// Closes a connection's socket, and tells what ended with it.
    fn close(&mut self, slot: usize) {
        let Some(mut peer) = self.peers[slot].take() else { return };
        if let Some(why) = peer.connection.take_complaint() {
            let (address, nexus) = (peer.connection.peer(), peer.connection.nexus());
            let name = nexus.map_or("", |nexus| &nexus.initiator_name);
            tracing::warn!("the connection of {name} at {address} was closed: {why}");
        }
        self.shared.addresses.leave(peer.connection.peer().ip());
        // Dropping the socket takes it out of the poller, too.
        let _ = self.poll.registry().deregister(&mut peer.stream);
        self.free_peers.push(slot);
        self.places.remove(&peer.id);
        self.shared.places.lock().remove(&peer.id);
        self.wire().connections.fetch_sub(1, Ordering::Relaxed);
        self.connection_ended(peer.connection.end());
    }

    fn wire(&self) -> &WireCounters {
        self.shared.counters.wire_of(self.index)
    }

    /// No new connections and commands from here on.
    fn stop(&mut self) {
        self.listeners = Listeners::default();
        self.stop_at.get_or_insert(self.shared.clock.now() + STOP_TIMEOUT);
        self.lift_limits();
        self.channel.end_retries();
        for slot in 0..self.peers.len() {
            if let Some(peer) = self.peers[slot].as_mut() {
                peer.connection.request_logout(0);
                self.touch(slot);
            }
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stop_at.is_some()
    }

    /// Whether the end was asked for, and all that is under way has ended.
    fn is_finished(&self) -> bool {
        let Some(stop_at) = self.stop_at else { return false };
        if self.commits.iter().any(Option::is_some) || self.channel.in_flight() > 0 {
            return false;
        }
        let mut peers = self.peers.iter().flatten();
        let settled = self.tasks.len() == 0 && !peers.any(|peer| peer.connection.has_output());
        settled || self.shared.clock.now() >= stop_at
    }
}
