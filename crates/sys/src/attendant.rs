//! Threads that work beside those that hosts wait for: whenever a bell rings, and as often as their
//! work says.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// How long what does not ring waits at most before it is seen: changes of management, dropped
/// parts of maps, a pass that was asked for.
pub const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// What makes a thread run that works beside the front ends.
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
    /// There is something to do.
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

    /// Whether the thread is to end.
    pub fn stopped(&self) -> bool {
        self.state.lock().stop
    }
}

/// A thread that works whenever its bell rings, and as often as the work says. It ends when this
/// is dropped.
pub struct Attendant {
    bell: Arc<Bell>,
    thread: Option<JoinHandle<()>>,
}

impl Attendant {
    /// A thread of low priority. `work` returns how long it rests after that, unless the bell
    /// rings.
    ///
    /// # Errors
    /// If there is no thread to be had.
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

    /// A thread that ends soon after its bell has been stopped, at the priority of the caller.
    ///
    /// # Errors
    /// If there is no thread to be had.
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

/// Lets the threads that hosts wait for go first. On Linux this is of the calling thread alone. If
/// it is refused, the priority stays as it is.
fn step_back() {
    let _ = rustix::process::nice(10);
}

fn join(thread: Option<JoinHandle<()>>) {
    if let Some(thread) = thread {
        // A panic of that thread was printed when it happened.
        let _ = thread.join();
    }
}
