//! Messages between front-end threads, and from the store to them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use block::VolumeId;
use parking_lot::Mutex;
use store::Outcome;

use super::command_set::AnswerAfter;
use super::transport::{ConnectionId, ManagementHandle, SessionId};
use super::wires::Wake;

/// A message to a thread.
pub(super) enum Message {
    /// A queued request has ended.
    Outcome(u64, Outcome),
    /// The state that a task waits for was saved, or saving failed.
    Saved(u64),
    /// A task that waited for the limits of its volume may begin.
    Admitted(u64),
    /// A connection of this thread may have work to do.
    Wake(ConnectionId),
    /// Abort tasks, for a task management request or not; drop the watch when they have ended.
    Abort(AbortWhat, Option<AbortedBy>, Arc<Watch>),
    /// Have such tasks hold the watch, which is dropped when they have ended.
    WatchTasks(AnswerAfter, Arc<Watch>),
    /// Everything that a watch waited for has ended.
    Watched(u64),
    /// A session that waited for the end of another one may continue.
    Resume(ConnectionId),
    /// Finish commands in progress, then end.
    Stop,
}

/// A request that aborts tasks: those of its session that arrived before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AbortedBy {
    pub(super) session: SessionId,
    pub(super) handle: ManagementHandle,
}

/// The tasks to abort: those on a volume, regardless of its LUN for each host, or those of a
/// session or a connection.
#[derive(Clone, Debug)]
pub(super) enum AbortWhat {
    /// All tasks on some volumes, of any session.
    Volumes(Arc<BTreeSet<VolumeId>>),
    /// The tasks of one session on a volume.
    OfSession(SessionId, VolumeId),
    /// All tasks of a session.
    Session(SessionId),
    /// All tasks of a connection of a session. Tasks of that session that were aborted before are
    /// waited for as well: they may belong to a connection that this one replaced and waits for.
    Connection(SessionId, ConnectionId),
}

impl AbortWhat {
    /// Returns whether this selects a task of this session, on this volume if it has one.
    pub(super) fn has(
        &self,
        volume: Option<VolumeId>,
        session: SessionId,
        connection: ConnectionId,
    ) -> bool {
        match self {
            Self::Volumes(volumes) => volume.is_some_and(|volume| volumes.contains(&volume)),
            Self::OfSession(by, of) => (Some(*of), *by) == (volume, session),
            Self::Session(by) => *by == session,
            Self::Connection(_, on) => *on == connection,
        }
    }

    /// Returns whether to wait for a task of this session that was aborted before, on any
    /// connection.
    pub(super) fn has_left(&self, session: SessionId) -> bool {
        matches!(self, Self::Connection(of, _) if *of == session)
    }
}

/// The messages to a thread. Only the first message wakes it.
pub struct Mailbox {
    messages: Mutex<Vec<Message>>,
    /// Whether the thread was woken and has not read the mailbox since.
    woken: AtomicBool,
    waker: Box<dyn Wake>,
}

impl Mailbox {
    /// Creates the mailbox of a thread that `waker` wakes.
    pub fn new(waker: Box<dyn Wake>) -> Self {
        Self { messages: Mutex::default(), woken: AtomicBool::new(false), waker }
    }

    /// Posts a message.
    pub(super) fn post(&self, message: Message) {
        self.messages.lock().push(message);
        self.wake();
    }

    /// Posts several messages with one wake-up.
    fn post_all(&self, messages: &mut Vec<Message>) {
        self.messages.lock().append(messages);
        self.wake();
    }

    /// Tells the thread to finish commands in progress and to end.
    pub fn stop(&self) {
        self.post(Message::Stop);
    }

    /// Wakes the thread.
    pub fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// Takes all messages. Must be called after each wake-up.
    pub(super) fn take(&self, into: &mut Vec<Message>) {
        // Clear the flag first: a message posted after this wakes the thread again.
        self.woken.swap(false, Ordering::AcqRel);
        into.append(&mut self.messages.lock());
    }
}

/// Notifies a thread when all references to it were dropped.
pub(super) struct Watch {
    mailbox: Arc<Mailbox>,
    id: u64,
}

impl Watch {
    /// Creates a watch that notifies the thread of this mailbox, with this id.
    pub(super) fn new(mailbox: Arc<Mailbox>, id: u64) -> Arc<Self> {
        Arc::new(Self { mailbox, id })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.mailbox.post(Message::Watched(self.id));
    }
}

thread_local! {
    /// The index of the front end that takes its turn on this thread.
    static FRONT_END: Cell<Option<usize>> = const { Cell::new(None) };
    /// Outcomes for it that its own store calls produced.
    static OUTCOMES: RefCell<Vec<(u64, Outcome)>> = const { RefCell::new(Vec::new()) };
    /// Outcomes for other front ends, by index. One commit ends requests of all front ends: each is
    /// woken once, and finds all its outcomes.
    static FOR_OTHERS: RefCell<Vec<Vec<Message>>> = const { RefCell::new(Vec::new()) };
}

/// A turn of a front end on this thread, during which outcomes of its own store calls need no
/// message. One thread may run several front ends in turn.
pub(super) struct OwnTurn(());

impl OwnTurn {
    /// Begins a turn. `left`: its own outcomes that the last turn has left.
    pub(super) fn begin(index: usize, left: Vec<(u64, Outcome)>) -> Self {
        FRONT_END.set(Some(index));
        OUTCOMES.with_borrow_mut(|outcomes| *outcomes = left);
        Self(())
    }

    /// Ends the turn. Returns the outcomes left for the next one.
    pub(super) fn end(self) -> Vec<(u64, Outcome)> {
        FRONT_END.set(None);
        OUTCOMES.with_borrow_mut(std::mem::take)
    }
}

/// Takes the outcomes that store calls of this turn produced for this front end.
pub(super) fn take_own_outcomes(into: &mut Vec<(u64, Outcome)>) {
    OUTCOMES.with_borrow_mut(|outcomes| into.append(outcomes));
}

/// Posts the outcomes that store calls of this turn produced for the other front ends.
pub(super) fn send_outcomes(mailboxes: &[Arc<Mailbox>]) {
    FOR_OTHERS.with_borrow_mut(|all| {
        for (mailbox, messages) in mailboxes.iter().zip(all) {
            if !messages.is_empty() {
                mailbox.post_all(messages);
            }
        }
    });
}

fn keep_for(thread: usize, message: Message) {
    FOR_OTHERS.with_borrow_mut(|all| {
        if all.len() <= thread {
            all.resize_with(thread + 1, Vec::new);
        }
        all[thread].push(message);
    });
}

/// The sink of a front-end thread's outcomes. It needs no lock and no wake-up if that thread itself
/// finished the commit, and one of each for all outcomes if another thread did.
pub(super) struct FrontSink {
    thread: usize,
    /// Weak, because the store outlives the front end.
    mailbox: Weak<Mailbox>,
}

impl FrontSink {
    pub(super) fn new(thread: usize, mailbox: &Arc<Mailbox>) -> Self {
        Self { thread, mailbox: Arc::downgrade(mailbox) }
    }

    fn is_own(&self) -> bool {
        FRONT_END.get() == Some(self.thread)
    }
}

impl store::Sink for FrontSink {
    fn complete(&self, id: u64, outcome: Outcome) {
        if self.is_own() {
            OUTCOMES.with_borrow_mut(|outcomes| outcomes.push((id, outcome)));
        } else if FRONT_END.get().is_some() {
            keep_for(self.thread, Message::Outcome(id, outcome));
        } else if let Some(mailbox) = self.mailbox.upgrade() {
            mailbox.post(Message::Outcome(id, outcome));
        }
    }

    fn commit_wanted(&self) {
        // A front end asks the store for a commit at the end of each turn anyway.
        if !self.is_own()
            && let Some(mailbox) = self.mailbox.upgrade()
        {
            mailbox.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use block::VolumeReply;
    use store::Sink as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Bell(Arc<AtomicUsize>);

    impl Wake for Bell {
        fn wake(&self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn outcome() -> Outcome {
        Outcome::Reply(Ok(VolumeReply::Done))
    }

    fn taken(mailbox: &Mailbox) -> Vec<u64> {
        let mut messages = Vec::new();
        mailbox.take(&mut messages);
        let id = |message: &Message| match message {
            Message::Outcome(id, _) => *id,
            _ => panic!("something else was posted"),
        };
        messages.iter().map(id).collect()
    }

    #[test]
    fn a_front_end_is_woken_once_for_all_outcomes_of_another_turn() {
        let bells = [(); 3].map(|()| Bell::default());
        let mailboxes = bells.clone().map(|bell| Arc::new(Mailbox::new(Box::new(bell))));
        let rings = || bells.clone().map(|bell| bell.0.load(Ordering::Relaxed));
        let sinks = [0, 1, 2].map(|thread| FrontSink::new(thread, &mailboxes[thread]));
        let turn = OwnTurn::begin(0, Vec::new());
        for id in 0..9 {
            sinks[id as usize % 3].complete(id, outcome());
        }
        let own: Vec<u64> = turn.end().iter().map(|(id, _)| *id).collect();
        assert_eq!((own, rings()), (vec![0, 3, 6], [0; 3]));
        send_outcomes(&mailboxes);
        send_outcomes(&mailboxes);
        assert_eq!(rings(), [0, 1, 1]);
        assert_eq!((taken(&mailboxes[1]), taken(&mailboxes[2])), (vec![1, 4, 7], vec![2, 5, 8]));
        // Outcomes outside a turn are posted at once.
        sinks[1].complete(9, outcome());
        assert_eq!((rings(), taken(&mailboxes[1])), ([0, 2, 1], vec![9]));
    }
}
