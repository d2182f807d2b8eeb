//! The event loop of one front-end thread: one turn after the other.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use segments::{Channel, Completion};
use store::{Outcome, SinkId};

use super::mailbox::{self, FrontSink, Message, OwnTurn};
use super::patience::Patience;
use super::peer::Peer;
use super::shared::Shared;
use super::tasks::Tasks;
use super::transport::{self, ConnectionId, Event, Opening, Transport};
use super::turn::Turn;
use super::wires::Wires;
use management::Purpose;
use storage::Writing;
use tending::Tended;

mod commands;
mod ending;
mod gather;
mod management;
mod parking;
mod storage;
mod tending;

/// The time that a turn spends on input of one connection: a host may send its whole queue at once.
const EVENTS_TIME: Duration = Duration::from_micros(60);
/// The interval for checking deadlines. Login timeouts and pings take seconds.
const TICK: Duration = Duration::from_millis(500);
/// The interval of turns while a thread stops.
const STOP_TICK: Duration = Duration::from_millis(5);

/// Some of an array's connections, a channel to its medium, and their commands in progress.
pub struct FrontEnd {
    shared: Arc<Shared>,
    index: usize,
    sink: SinkId,
    channel: Box<dyn Channel>,
    peers: Vec<Option<Peer>>,
    places: HashMap<ConnectionId, usize>,
    tasks: Tasks,
    /// Long reads that wait until their connection may start another one, by task name.
    waiting: VecDeque<u64>,
    /// The rest of this turn's budget, and the requests parked for the next one.
    turn: Turn,
    /// The limits of volumes that this thread watches, with the generation of the LUN maps at that
    /// time.
    tended: Vec<Tended>,
    tended_generation: u64,
    /// The commits that this thread writes.
    commits: Vec<Option<Writing>>,
    /// The purposes of watches, by id.
    watched: HashMap<u64, Purpose>,
    next_watch: u64,
    ready: Vec<usize>,
    touched: Vec<usize>,
    /// Completed disk requests that have not been processed.
    completions: VecDeque<Completion>,
    completed: Vec<Completion>,
    outcomes: Vec<(u64, Outcome)>,
    /// Outcomes of its own store calls that a turn has left.
    own_outcomes: Vec<(u64, Outcome)>,
    messages: Vec<Message>,
    patience: Patience,
    /// Whether there may be a commit to take: a request changed the pool, or another thread says
    /// so. Asking the store takes the writer's lock, which other threads may hold for long.
    may_commit: bool,
    /// Whether reads are queued that have not been submitted to the kernel.
    has_queued: bool,
    /// Whether they are submitted in the next turn.
    left_to_submit: bool,
    /// Whether the last turn did not collect completions.
    left_to_collect: bool,
    /// When the turn began.
    now: Duration,
    next_tick: Duration,
    /// When to stop at the latest, once a stop was requested.
    stop_at: Option<Duration>,
}

impl FrontEnd {
    /// Creates the front end with this index, which submits its requests to `channel`.
    pub fn new(shared: Arc<Shared>, index: usize, channel: Box<dyn Channel>) -> Self {
        let sink = FrontSink::new(index, &shared.mailboxes[index]);
        let sink = shared.store.register_sink(Arc::new(sink));
        let patience = Patience::new(shared.busy_threads.clone());
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
            ready: Vec::new(),
            touched: Vec::new(),
            completions: VecDeque::new(),
            completed: Vec::new(),
            outcomes: Vec::new(),
            own_outcomes: Vec::new(),
            messages: Vec::new(),
            patience,
            may_commit: true,
            has_queued: false,
            left_to_submit: false,
            left_to_collect: false,
            now: Duration::ZERO,
            next_tick: Duration::ZERO,
            stop_at: None,
        }
    }

    /// Starts serving a connection in a free slot. Data may have arrived already.
    pub fn open(&mut self, slot: usize, opening: Opening) {
        let connection = self.shared.transports.open(opening);
        self.add(slot, connection);
    }

    /// Continues a connection of another process, likewise. Returns false if that is impossible;
    /// the slot is then free.
    pub fn go_on_with(&mut self, slot: usize, opening: Opening, handed: transport::Handed) -> bool {
        let connection = self.shared.transports.go_on_with(opening, handed);
        let can = connection.is_some();
        if let Some(connection) = connection {
            self.add(slot, connection);
        }
        can
    }

    fn add(&mut self, slot: usize, connection: Box<dyn Transport>) {
        if slot >= self.peers.len() {
            self.peers.resize_with(slot + 1, || None);
        }
        assert!(self.peers[slot].is_none(), "slot {slot} is not free");
        let peer = Peer::new(connection);
        self.places.insert(peer.id, slot);
        self.shared.places.lock().insert(peer.id, self.index);
        self.peers[slot] = Some(peer);
        self.push_ready(slot);
    }

    /// Reports that a connection is readable, or that its peer sends no more (`closed`).
    pub fn readable(&mut self, slot: usize, closed: bool) {
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_mut) else { return };
        peer.read_closed |= closed;
        peer.readable = true;
        self.push_ready(slot);
    }

    /// Reports that a connection is writable again.
    pub fn writable(&mut self, slot: usize) {
        let Some(peer) = self.peers.get_mut(slot).and_then(Option::as_mut) else { return };
        peer.writable = true;
        if peer.connection.has_output() {
            self.touch(slot);
        }
    }

    /// Reports that the runner has polled at `now`, and whether it found anything. This determines
    /// how long it continues to busy-poll ([`FrontEnd::sleep_time`]).
    pub fn looked(&mut self, now: Duration, found: bool) {
        self.patience.looked(now, found);
    }

    /// Returns whether there is work to do without any event.
    fn has_work(&self) -> bool {
        self.has_disk_work()
            || self.left_to_submit
            || self.left_to_collect
            || !self.ready.is_empty()
            || self.turn.has_parked()
            || !self.own_outcomes.is_empty()
    }

    /// Returns how long the runner may wait for an event before it takes the next turn.
    pub fn sleep_time(&self) -> Duration {
        if self.patience.is_left() || self.has_work() {
            return Duration::ZERO;
        }
        let most = if self.stop_at.is_some() { STOP_TICK } else { TICK };
        let next = self.tend_at().map_or(self.next_tick, |at| at.min(self.next_tick));
        let most = self.channel.next_retry().map_or(most, |retry| retry.min(most));
        next.saturating_sub(self.shared.clock.now()).min(most)
    }

    /// Takes a turn: does everything that can be done without blocking. It processes input and
    /// completions, starts one commit for all of it, and sends once on each connection. `woken`:
    /// whether the thread was woken since the last turn ([`super::Wake`]).
    pub fn turn(&mut self, woken: bool, now: Duration, wires: &mut dyn Wires) {
        let own = OwnTurn::begin(self.index, std::mem::take(&mut self.own_outcomes));
        self.take_turn(woken, now, wires);
        self.own_outcomes = own.end();
        self.patience.note_under_way(self.tasks.len());
        mailbox::send_outcomes(&self.shared.mailboxes);
        self.shared.counters.turn_of(self.index).note(self.turn.spent_bytes());
    }

    fn take_turn(&mut self, woken: bool, now: Duration, wires: &mut dyn Wires) {
        self.turn.begin();
        self.now = now;
        if woken {
            self.may_commit = true;
            self.read_mailbox();
        }
        for slot in std::mem::take(&mut self.ready) {
            self.receive(slot, now, wires);
        }
        self.tend_buckets(now);
        self.work_off_parked();
        // Answer commands that need no disk before making any other system call.
        self.work_off_touched(wires);
        let has_waited = std::mem::take(&mut self.left_to_collect);
        let submits = std::mem::take(&mut self.left_to_submit);
        if submits {
            self.start_commit();
            self.submit();
        }
        // Completions wait for a turn that has time for them, but not for long.
        if self.is_late() && (submits || !has_waited) {
            self.left_to_collect = true;
            self.left_to_submit = self.has_queued;
            return;
        }
        self.collect();
        self.work_off_disk();
        let is_late = self.is_late();
        self.work_off_touched(wires);
        if now >= self.next_tick {
            self.tick(now, wires);
        }
        while self.start_waiting() | self.end_held() {
            self.work_off_touched(wires);
        }
        // Submit last and once: it takes the kernel tens of microseconds, however many requests
        // there are, and responses must not wait for that. If completions used up their time, new
        // input does not wait for it either, except for a commit, which many commands wait for.
        let begins_commit = self.start_commit();
        self.left_to_submit = is_late && self.has_queued && !begins_commit;
        if !self.left_to_submit {
            self.submit();
        }
    }

    fn read_mailbox(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        self.shared.mailboxes[self.index].take(&mut messages);
        for message in messages.drain(..) {
            match message {
                Message::Outcome(id, outcome) => self.request_ended(id, outcome),
                Message::Saved(task) => self.state_saved(task),
                Message::Admitted(task) => self.begin_held(task),
                Message::Wake(id) => self.wake(id),
                Message::Abort(what, by, watch) => self.abort_here(&what, by, &watch),
                Message::WatchTasks(what, watch) => self.tasks.watch(what, &watch),
                Message::Watched(id) => self.watched(id),
                Message::Resume(id) => self.resume_session(id),
                Message::Stop => self.stop(),
            }
        }
        self.messages = messages;
    }

    fn push_ready(&mut self, slot: usize) {
        if let Some(peer) = self.peers[slot].as_mut()
            && !std::mem::replace(&mut peer.in_ready, true)
        {
            self.ready.push(slot);
        }
    }

    /// Schedules the connection to be processed again before the turn ends: events, output, and its
    /// end.
    fn touch(&mut self, slot: usize) {
        if let Some(peer) = self.peers[slot].as_mut()
            && !std::mem::replace(&mut peer.in_touched, true)
        {
            self.touched.push(slot);
        }
    }

    fn receive(&mut self, slot: usize, now: Duration, wires: &mut dyn Wires) {
        let Some(peer) = self.peers[slot].as_mut() else { return };
        peer.in_ready = false;
        if self.stop_at.is_some() && !peer.connection.is_incomplete() {
            return self.touch(slot);
        }
        // Parse new input by the host's current LUN map.
        if let Some(nexus) = peer.session.as_ref().map(|session| session.nexus.clone()) {
            peer.refresh_luns(&*self.shared.luns, nexus.initiator().name.as_str());
        }
        let more = peer.receive(wires, slot, now, self.shared.counters.wire_of(self.index));
        self.work_off_events(slot);
        self.touch(slot);
        if more {
            self.push_ready(slot);
        }
    }

    /// Processes the connection's events; those that would take longer than [`EVENTS_TIME`]
    /// continue in the next turn.
    fn work_off_events(&mut self, slot: usize) {
        let until = self.shared.clock.now() + EVENTS_TIME;
        loop {
            let Some(peer) = self.peers[slot].as_mut() else { return };
            if peer.held.is_some() {
                return;
            }
            let now = self.shared.clock.now();
            if now >= until {
                return self.push_ready(slot);
            }
            peer.connection.set_time(self.now);
            let Some(event) = peer.connection.next_event() else { return };
            match event {
                Event::Command(command) => self.execute(slot, command, now),
                Event::Entered { nexus, replaces: None } => self.enter_session(slot, nexus),
                Event::Entered { nexus, replaces: Some(old) } => {
                    self.enter_after(slot, nexus, old);
                }
                Event::LoginRefused { host_name, status } => {
                    let (from, now_ms) = (peer.connection.peer(), self.shared.clock.wall_ms());
                    self.shared.refusals.note(&host_name, status, from, now_ms);
                }
                Event::TaskManagement(request) => self.manage(slot, request),
                Event::Wake { connection } => self.shared.wake_connection(connection),
                Event::Acknowledged { name } => self.shared.store.acknowledged(name),
            }
        }
    }

    fn work_off_touched(&mut self, wires: &mut dyn Wires) {
        while let Some(slot) = self.touched.pop() {
            let is_ready = self.peers[slot].as_ref().is_some_and(|peer| peer.in_ready);
            if !is_ready {
                self.work_off_events(slot);
            }
            let Some(peer) = self.peers[slot].as_mut() else { continue };
            peer.in_touched = false;
            peer.transmit(wires, slot, self.shared.counters.wire_of(self.index));
            if peer.is_over() {
                self.close(slot, wires);
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

    /// Checks deadlines.
    fn tick(&mut self, now: Duration, wires: &mut dyn Wires) {
        self.next_tick = now + TICK;
        self.may_commit = true;
        for slot in 0..self.peers.len() {
            let Some(peer) = self.peers[slot].as_mut() else { continue };
            if peer.connection.deadline().is_some_and(|deadline| deadline <= now) {
                peer.connection.tick(now);
                self.touch(slot);
            }
        }
        self.work_off_touched(wires);
    }
}
