//! Scrubbing in the background: when, and how fast.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use store::ScrubStep;

use super::background::{join, step_back};
use super::shared::Shared;

/// How all is read and compared in the background.
#[derive(Clone, Copy, Debug)]
pub struct ScrubOptions {
    /// From the end of one pass to the beginning of the next; `None`: only when it is asked for.
    pub interval: Option<Duration>,
    /// Bytes in a second while hosts are idle; a quarter of it while they are not.
    pub rate_bytes: u64,
    /// The time, in milliseconds since 1970.
    pub now_ms: fn() -> u64,
}

/// What is read at once: 1 MiB. A checkpoint may have to wait for it.
const STEP_BLOCKS: u64 = 256;
/// How long a pass that was asked for waits at most before it begins.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// When a pass did end last is forgotten by a restart: the first begins so long after it.
const FIRST_PASS: Duration = Duration::from_secs(600);
/// How much slower it goes while hosts are busy.
const BUSY_DIVISOR: u32 = 4;
/// While a checkpoint is written, or nothing can be done.
const PAUSE: Duration = Duration::from_millis(50);

/// A thread that does the passes.
pub(super) struct Scrubber {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Scrubber {
    pub(super) fn start(options: ScrubOptions, shared: &Arc<Shared>) -> io::Result<Self> {
        let stop = Arc::<(Mutex<bool>, Condvar)>::default();
        let worker = Worker { options, shared: shared.clone(), stop: stop.clone(), seen_bytes: 0 };
        let thread = thread::Builder::new().name("scrub".into()).spawn(move || {
            step_back();
            worker.run();
        })?;
        Ok(Self { stop, thread: Some(thread) })
    }
}

impl Drop for Scrubber {
    fn drop(&mut self) {
        *self.stop.0.lock() = true;
        self.stop.1.notify_all();
        join(self.thread.take());
    }
}

struct Worker {
    options: ScrubOptions,
    shared: Arc<Shared>,
    stop: Arc<(Mutex<bool>, Condvar)>,
    /// Bytes that hosts had moved when that was looked at last.
    seen_bytes: u64,
}

impl Worker {
    fn run(mut self) {
        let first = self.options.interval.map(|interval| interval.min(FIRST_PASS));
        let mut due = first.map(|after| self.shared.clock.now() + after);
        let mut told = 0;
        loop {
            let begun = self.shared.clock.now();
            let step = self.shared.store.scrub_step(STEP_BLOCKS, (self.options.now_ms)() / 1000);
            let pause = match step {
                Ok(ScrubStep::Idle) => {
                    if due.is_some_and(|due| begun >= due) {
                        self.shared.store.scrub_start((self.options.now_ms)() / 1000);
                        continue;
                    }
                    LOOK_INTERVAL
                }
                Ok(ScrubStep::Busy) => PAUSE,
                Ok(ScrubStep::More { blocks }) => {
                    let took = self.shared.clock.now().saturating_sub(begun);
                    self.time_of(blocks).saturating_sub(took)
                }
                Ok(ScrubStep::Complete) => {
                    due = self.options.interval.map(|interval| begun + interval);
                    LOOK_INTERVAL
                }
                // The store has failed; its own log says why.
                Err(_) => LOOK_INTERVAL,
            };
            told = self.tell(told);
            if self.wait(pause) {
                return;
            }
        }
    }

    /// How long so many blocks shall take.
    fn time_of(&mut self, blocks: u64) -> Duration {
        let wire = self.shared.counters.wire();
        let moved = wire.received_bytes + wire.sent_bytes;
        let busy = moved != std::mem::replace(&mut self.seen_bytes, moved);
        let time = Duration::from_secs(1)
            .mul_f64((blocks * block::BLOCK_BYTES) as f64 / self.options.rate_bytes as f64);
        if busy { time * BUSY_DIVISOR } else { time }
    }

    /// Logs when damage was found, once.
    fn tell(&self, told: u64) -> u64 {
        let status = self.shared.store.scrub_status();
        if status.findings > told {
            let (new, repaired) = (status.findings - told, status.repairs);
            tracing::error!(
                "scrub found damage in {new} places ({repaired} repaired since the start): \
                 `holdfast pool damage` lists it"
            );
        }
        status.findings
    }

    /// Waits; whether it is the end.
    fn wait(&self, pause: Duration) -> bool {
        let mut stop = self.stop.0.lock();
        if !*stop && !pause.is_zero() {
            self.stop.1.wait_for(&mut stop, pause);
        }
        *stop
    }
}
