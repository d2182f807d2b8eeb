//! Threads next to those that hosts wait for: they work whenever their bell rings, and at intervals
//! of their choice.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// The maximum delay before what does not ring is noticed: administrative changes, dropped parts of
/// maps, a requested pass.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Wakes a thread next to the front ends.
#[derive(Default)]
pub struct Bell {
    state: Mutex<BellState>,
    rung: Condvar,
}

#[derive(Default)]
struct BellState {
    due: bool,
    stop: bool,
}

impl Bell {
    /// Signals that there is something to do.
    pub fn ring(&self) {
        let mut state = self.state.lock();
        if !state.due {
            state.due = true;
            self.rung.notify_one();
        }
    }

    fn stop(&self) {
        self.state.lock().stop = true;
        self.rung.notify_one();
    }

    /// Waits until it rings, or for `pause`; returns false at the end.
    pub fn wait(&self, pause: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.due && !state.stop && !pause.is_zero() {
            self.rung.wait_for(&mut state, pause);
        }
        state.due = false;
        !state.stop
    }

    /// Returns whether the thread is to end.
    pub fn stopped(&self) -> bool {
        self.state.lock().stop
    }
}

/// A thread that works whenever its bell rings, and at intervals of its choice. It ends when this
/// is dropped.
pub struct Attendant {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Attendant {
    /// Starts a thread of low priority. `work` returns how long to pause after it, unless the bell
    /// rings.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        name: &str,
        bell: Arc<Bell>,
        mut work: impl FnMut(&Bell) -> Duration + Send + 'static,
    ) -> io::Result<Self> {
        Self::spawn(name, bell, move |bell| {
            step_back();
            let mut pause = LOOK_INTERVAL;
            while bell.wait(pause) {
                pause = work(bell);
            }
        })
    }

    /// Starts a thread with the priority of the caller, which ends soon after its bell was stopped.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn spawn(
        name: &str,
        bell: Arc<Bell>,
        body: impl FnOnce(&Bell) + Send + 'static,
    ) -> io::Result<Self> {
        let its_bell = bell.clone();
        let thread = thread::Builder::new().name(name.into()).spawn(move || body(&its_bell))?;
        Ok(Self { bell, thread: Some(thread) })
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        self.bell.stop();
        join(self.thread.take());
    }
}

/// Lowers the priority below that of the threads that hosts wait for. On Linux this affects only
/// the calling thread. If it is refused, the priority stays as it is.
fn step_back() {
    let _ = rustix::process::nice(10);
}

fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread {
        // A panic of that thread was printed when it happened.
        let _ = thread.join();
    }
}
