//! The hosts' runtime: one thread, any number of futures, sessions and timers.
//!
//! A host does a thousand things at once, each of them a plain sequence of commands. So each is a
//! future; futures that wait for a command or for a time are woken by the loop in [`Engine::run`],
//! which polls the sockets of all sessions at once. Nothing here is shared between threads, so that
//! the hosts use little processor time compared with the array.

mod all;
mod link;
mod timer;

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use futures::executor::{LocalPool, LocalSpawner};
use futures::future::RemoteHandle;
use futures::task::LocalSpawnExt;
use libiscsi::{Completion, Login, Poller, Session};

pub use all::{all, some_at_a_time};
pub use link::Link;
use timer::Timers;

/// The maximum time to wait for sockets if nothing else is due.
const POLL_MS_MAX: u64 = 1000;

/// A background task. Dropping this ends it where it waits.
pub type Task<T> = RemoteHandle<T>;

/// A boxed future, for recursion and mixed types.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Runs futures to completion.
#[derive(Debug)]
pub struct Engine {
    pool: LocalPool,
    reactor: Reactor,
}

/// The interface of futures to sessions, the time, and other tasks. Cheap to clone.
#[derive(Clone)]
pub struct Reactor {
    core: Rc<Core>,
    spawner: LocalSpawner,
}

impl std::fmt::Debug for Reactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reactor").finish_non_exhaustive()
    }
}

#[derive(Default)]
struct Core {
    inner: RefCell<Inner>,
    timers: RefCell<Timers>,
}

#[derive(Default)]
struct Inner {
    sessions: Vec<Option<Session>>,
    /// The waiting future of each command: by token, with its session.
    waiting: HashMap<u64, (usize, oneshot::Sender<Completion>)>,
    /// The futures that wait for the login of a session.
    logins: HashMap<usize, oneshot::Sender<()>>,
    next_token: u64,
    poller: Poller,
}

impl Engine {
    /// Creates an engine with nothing to do.
    pub fn new() -> Self {
        let pool = LocalPool::new();
        let reactor = Reactor { core: Rc::default(), spawner: pool.spawner() };
        Self { pool, reactor }
    }

    /// Returns the interface for its futures.
    pub fn reactor(&self) -> Reactor {
        self.reactor.clone()
    }

    /// Runs a future to completion, and meanwhile everything that was spawned.
    ///
    /// # Errors
    ///
    /// If the future has not ended, but nothing is left that it could wait for.
    pub fn run<T: 'static>(
        &mut self,
        future: impl Future<Output = T> + 'static,
    ) -> Result<T, String> {
        let mut task = self.reactor.spawn(future);
        loop {
            // First everything proceeds as far as it can: finished futures must not wait for the
            // sockets.
            self.pool.run_until_stalled();
            let ended = self.pool.run_until(async { futures::poll!(&mut task) });
            if let std::task::Poll::Ready(value) = ended {
                return Ok(value);
            }
            if !self.reactor.core.turn() {
                return Err(String::from("the lab is stuck: nothing is in flight or scheduled"));
            }
        }
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::new()
    }
}

impl Reactor {
    /// Runs a future in the background.
    pub fn spawn<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> Task<T> {
        // It fails only if the engine is gone, and then nothing waits.
        self.spawner.spawn_local_with_handle(future).expect("the engine outlives its tasks")
    }

    /// Waits until a time.
    pub async fn sleep_until(&self, when: Instant) {
        let due = self.core.timers.borrow_mut().add(when);
        // The sender stays in the heap until it is due.
        let _ = due.await;
    }

    /// Waits for a time.
    pub async fn sleep(&self, time: Duration) {
        self.sleep_until(Instant::now() + time).await;
    }

    /// Lets all others run first.
    pub async fn step_back(&self) {
        self.sleep_until(Instant::now()).await;
    }
}

impl Core {
    /// Sends queued commands, waits for responses or timers, and wakes the futures that waited.
    /// Returns false if no future waits for anything: nothing would ever happen.
    fn turn(&self) -> bool {
        let now = Instant::now();
        let due = self.timers.borrow().next_due();
        if due.is_none() && self.inner.borrow().waiting.is_empty() {
            return false;
        }
        let pause = due.map_or(Duration::MAX, |due| due.saturating_duration_since(now));
        let pause_ms = match pause.as_micros() {
            0 => 0,
            micros => micros.div_ceil(1000).min(u128::from(POLL_MS_MAX)) as u64,
        };
        self.inner.borrow_mut().poll(pause_ms);
        self.timers.borrow_mut().take_due(Instant::now());
        true
    }
}

impl Inner {
    fn poll(&mut self, pause_ms: u64) {
        let mut all: Vec<&mut Session> = self.sessions.iter_mut().flatten().collect();
        self.poller.poll(&mut all, pause_ms as i32);
        for (index, session) in self.sessions.iter_mut().enumerate() {
            let Some(session) = session else { continue };
            while let Some(completion) = session.next_completion() {
                if let Some((_, waiter)) = self.waiting.remove(&completion.token) {
                    // A future that no longer waits does not need it.
                    let _ = waiter.send(completion);
                }
            }
            if session.login() != Login::Pending
                && let Some(waiter) = self.logins.remove(&index)
            {
                let _ = waiter.send(());
            }
            if session.is_lost() {
                // The rest never completes.
                self.waiting.retain(|_, (of, _)| *of != index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn a_future_that_can_never_continue_is_an_error() {
        let mut engine = Engine::new();
        assert!(engine.run(futures::future::pending::<()>()).is_err());
        let reactor = engine.reactor();
        let slow = async move { reactor.sleep(Duration::from_millis(5)).await };
        assert_eq!(engine.run(slow), Ok(()));
    }

    #[test]
    fn timers_wake_in_their_order_and_dropped_tasks_are_gone() {
        let mut engine = Engine::new();
        let reactor = engine.reactor();
        let (seen, now) = (Rc::new(RefCell::new(Vec::new())), Instant::now());
        let mut tasks: Vec<Task<()>> = Vec::new();
        for (number, after_ms) in [(1, 9), (2, 3), (3, 3), (4, 6)] {
            let (reactor, seen) = (reactor.clone(), seen.clone());
            let when = now + Duration::from_millis(after_ms);
            tasks.push(engine.reactor().spawn(async move {
                reactor.sleep_until(when).await;
                seen.borrow_mut().push(number);
            }));
        }
        drop(tasks.pop());
        engine.run(async { drop(futures::future::join_all(tasks).await) }).unwrap();
        assert_eq!(*seen.borrow(), [2, 3, 1]);
    }
}
