//! What front-end threads tell each other, and what the store tells them.

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

/// What a thread may be told.
pub(super) enum Message {
    /// A queued request has ended.
    Outcome(u64, Outcome),
    /// The reservations that a task waits for were saved, or could not be.
    Saved(u64),
    /// A task that waited for the limits of its volume may begin.
    Admitted(u64),
    /// A connection of this thread may have something to do.
    Wake(ConnectionId),
    /// End tasks, because of a request or not; the watch is dropped when they have ended.
    Abort(AbortWhat, Option<AbortedBy>, Arc<Watch>),
    /// Let such tasks hold the watch; it is dropped when they have ended.
    WatchTasks(AnswerAfter, Arc<Watch>),
    /// All that a watch waited for has ended.
    Watched(u64),
    /// A session that had to wait for the end of another may go on.
    Resume(ConnectionId),
    /// Finish what is under way, and end.
    Stop,
}

/// A request that ends tasks: of its session, those that came before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AbortedBy {
    pub(super) session: SessionId,
    pub(super) handle: ManagementHandle,
}

/// The tasks to abort: those on a volume, whatever LUN it has for their hosts, or those of a
/// session or a connection.
#[derive(Clone, Debug)]
pub(super) enum AbortWhat {
    /// Those of any session on some volumes.
    Volumes(Arc<BTreeSet<VolumeId>>),
    /// Those of one session on a volume.
    OfSession(SessionId, VolumeId),
    /// All of a session, whatever they are about.
    Session(SessionId),
    /// All of a connection of a session. What was aborted in that session before is waited for as
    /// well: it may be of one whose place this one has taken, and waits for.
    Connection(SessionId, ConnectionId),
}

impl AbortWhat {
    /// Whether a task is meant that is on this volume, if it is on any, and of this session.
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

    /// Whether a task of this session that was aborted before is to be waited for, whatever its
    /// connection.
    pub(super) fn has_left(&self, session: SessionId) -> bool {
        matches!(self, Self::Connection(of, _) if *of == session)
    }
}

/// Messages to a thread, which is woken for the first of them only.
pub struct Mailbox {
    messages: Mutex<Vec<Message>>,
    /// Whether the thread was woken and has not looked yet.
    woken: AtomicBool,
    waker: Box<dyn Wake>,
}

impl Mailbox {
    /// Of a thread that is woken like this.
    pub fn new(waker: Box<dyn Wake>) -> Self {
        Self { messages: Mutex::default(), woken: AtomicBool::new(false), waker }
    }

    /// Puts a message in.
    pub(super) fn post(&self, message: Message) {
        self.messages.lock().push(message);
        self.wake();
    }

    /// Puts several in, and wakes once.
    fn post_all(&self, messages: &mut Vec<Message>) {
        self.messages.lock().append(messages);
        self.wake();
    }

    /// Has the thread finish what is under way, and end.
    pub fn stop(&self) {
        self.post(Message::Stop);
    }

    /// Makes the thread look around.
    pub fn wake(&self) {
        if !self.woken.swap(true, Ordering::AcqRel) {
            self.waker.wake();
        }
    }

    /// Takes all messages. Must be called after each waking.
    pub(super) fn take(&self, into: &mut Vec<Message>) {
        // First the flag: what is posted behind this line wakes again.
        self.woken.swap(false, Ordering::AcqRel);
        into.append(&mut self.messages.lock());
    }
}

/// Tells a thread when all that hold a share of it have let go.
pub(super) struct Watch {
    mailbox: Arc<Mailbox>,
    id: u64,
}

impl Watch {
    /// Tells the thread of this mailbox, by this name.
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
    /// Which front end takes its turn on this thread.
    static FRONT_END: Cell<Option<usize>> = const { Cell::new(None) };
    /// Outcomes for it that its own calls of the store have ended.
    static OUTCOMES: RefCell<Vec<(u64, Outcome)>> = const { RefCell::new(Vec::new()) };
    /// Outcomes for the others, by their indices. One commit ends requests of all front ends: each
    /// of them is woken once, and finds all that is for it.
    static FOR_OTHERS: RefCell<Vec<Vec<Message>>> = const { RefCell::new(Vec::new()) };
}

/// A turn of a front end on this thread: what its own calls of the store end comes without a
/// message. One thread may run several, one turn after the other.
pub(super) struct OwnTurn(());

impl OwnTurn {
    /// `left`: what the last turn has left of its own outcomes.
    pub(super) fn begin(index: usize, left: Vec<(u64, Outcome)>) -> Self {
        FRONT_END.set(Some(index));
        OUTCOMES.with_borrow_mut(|outcomes| *outcomes = left);
        Self(())
    }

    /// What is left of them for the next turn.
    pub(super) fn end(self) -> Vec<(u64, Outcome)> {
        FRONT_END.set(None);
        OUTCOMES.with_borrow_mut(std::mem::take)
    }
}

/// Takes what the calls of the store in this turn have ended.
pub(super) fn take_own_outcomes(into: &mut Vec<(u64, Outcome)>) {
    OUTCOMES.with_borrow_mut(|outcomes| into.append(outcomes));
}

/// Gives the others what the calls of the store in this turn have ended of theirs.
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

/// Where the store puts the outcomes for a front-end thread: without a lock or a wake-up where that
/// thread itself finished the commit, and with one for all where another one did.
pub(super) struct FrontSink {
    thread: usize,
    /// Weak, because the store lives longer than the front end.
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
        // A thread asks the store for a commit at the end of each turn anyway.
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
    fn a_front_end_is_woken_once_for_all_that_a_turn_of_another_has_ended() {
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
        // What ends outside a turn is posted at once.
        sinks[1].complete(9, outcome());
        assert_eq!((rings(), taken(&mailboxes[1])), ([0, 2, 1], vec![9]));
    }
}
