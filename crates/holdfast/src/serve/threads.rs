//! The front-end threads: their start and their end.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::listen::Listeners;
use super::runner::{LISTENERS, Runner};
use super::shared::Shared;

/// The threads that were started.
pub(super) struct Threads(Vec<JoinHandle<()>>);

impl Threads {
    /// Waits for their end.
    pub(super) fn join(self) {
        for thread in self.0 {
            // It can't have panicked: that ends the process.
            let _ = thread.join();
        }
    }
}

/// Starts all threads. The first one gets the listeners, with the indices of their ports.
pub(super) fn start(shared: &Arc<Shared>, bound: Vec<(usize, TcpListener)>) -> io::Result<Threads> {
    let mut bound = Some(bound);
    let mut threads = Vec::new();
    for index in 0..shared.front.mailboxes.len() {
        let Some(poll) = shared.polls.lock()[index].take() else { continue };
        let bound = bound.take().unwrap_or_default();
        let listeners = Listeners::new(bound, poll.registry(), LISTENERS)?;
        let shared = shared.clone();
        let builder = thread::Builder::new().name(format!("front-{index}"));
        threads.push(builder.spawn(move || {
            // Other threads would wait for this one forever: restarting from the log is better.
            let _guard = AbortOnPanic;
            Runner::new(shared, index, poll, listeners).run();
        })?);
    }
    Ok(Threads(threads))
}

struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!("a front-end thread panicked: the process ends");
            std::process::abort();
        }
    }
}
