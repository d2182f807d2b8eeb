//! Threads that work in rounds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, Mutex, PoisonError};

use anyhow::{Result, anyhow};

/// Synchronizes threads in rounds: all begin together, and the next round begins when all have
/// ended.
pub struct Rounds<T> {
    barrier: Barrier,
    is_over: AtomicBool,
    seen: Mutex<Vec<Result<T>>>,
}

impl<T> Rounds<T> {
    /// Creates it for this many threads.
    pub fn new(threads: usize) -> Self {
        let (is_over, seen) = Default::default();
        Self { barrier: Barrier::new(threads + 1), is_over, seen }
    }

    /// Runs one thread until there are no more rounds.
    pub fn work(&self, mut worker: Result<impl FnMut() -> Result<T>>) {
        loop {
            self.barrier.wait();
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            let seen = match &mut worker {
                Ok(round) => round(),
                Err(error) => Err(anyhow!("a host could not start: {error:#}")),
            };
            self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
            self.barrier.wait();
        }
    }

    /// Begins a round.
    pub fn begin(&self) {
        self.barrier.wait();
    }

    /// Waits until all threads have ended it. Returns their results.
    ///
    /// # Errors
    /// The first error of a thread.
    pub fn end(&self) -> Result<Vec<T>> {
        self.barrier.wait();
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect()
    }

    /// Ends the rounds.
    pub fn be_over(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.barrier.wait();
    }
}
