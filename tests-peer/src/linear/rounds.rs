//! Threads that do something in rounds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};

use anyhow::{Result, anyhow};

/// What threads do in a round: all begin together, and the next begins when all have ended.
pub struct Rounds<T> {
    barrier: Barrier,
    is_over: AtomicBool,
    seen: Mutex<Vec<Result<T>>>,
}

impl<T> Rounds<T> {
    /// Of so many threads.
    pub fn new(threads: usize) -> Self {
        let (is_over, seen) = Default::default();
        Self { barrier: Barrier::new(threads + 1), is_over, seen }
    }

    /// One thread, until it is over.
    pub fn work(&self, mut worker: Result<impl FnMut() -> Result<T>>) {
        loop {
            self.barrier.wait();
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let seen = match &mut worker {
                Ok(round) => round(),
                Err(error) => Err(anyhow!("a host could not begin: {error:#}")),
            };
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
            self.barrier.wait();
        }
    }

    /// Begins a round.
    pub fn begin(&self) {
        self.barrier.wait();
    }

    /// Waits until all threads have ended it: what they saw.
    ///
    /// # Errors
    /// The first that one of them had.
    pub fn end(&self) -> Result<Vec<T>> {
        self.barrier.wait();
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    /// There is no round any more.
    pub fn be_over(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.barrier.wait();
    }
}
