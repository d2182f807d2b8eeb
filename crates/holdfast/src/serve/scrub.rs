//! Background scrubbing: its rate.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use store::ScrubStep;
use sys::attendant::{Attendant, LOOK_INTERVAL};

use super::passes::{self, Passes, Step, Traffic};
use super::shared::Shared;

/// The options of background scrubbing.
#[derive(Clone, Copy, Debug)]
pub struct ScrubOptions {
    /// From the end of one pass to the beginning of the next; `None`: only on request, and if the
    /// store wants one.
    pub interval: Option<Duration>,
    /// Bytes per second while hosts are idle; a quarter of it while they are not.
    pub rate_bytes: u64,
    /// Returns the time in milliseconds since 1970.
    pub now_ms: fn() -> u64,
}

/// The size of one read: 1 MiB. A checkpoint may have to wait for it.
const STEP_BLOCKS: u64 = 256;
/// How many times slower it is while hosts are busy.
const BUSY_DIVISOR: u32 = 4;
/// The pause while a checkpoint is written.
const PAUSE: Duration = Duration::from_millis(50);

/// Starts the thread for the passes.
pub(super) fn start(options: ScrubOptions, shared: &Arc<Shared>) -> io::Result<Attendant> {
    let traffic = Traffic::new(shared.front.counters.clone());
    let scrub = Scrub { options, shared: shared.clone(), traffic, reported: 0 };
    passes::start("scrub", options.interval, shared.clock, scrub)
}

struct Scrub {
    options: ScrubOptions,
    shared: Arc<Shared>,
    traffic: Traffic,
    /// Findings that were logged.
    reported: u64,
}

impl Passes for Scrub {
    fn begin(&mut self) {
        self.shared.front.store.scrub_start(self.now_s());
    }

    fn is_wanted(&self) -> bool {
        self.shared.front.store.is_scrub_wanted()
    }

    fn step(&mut self) -> Step {
        let begun = self.shared.clock.now();
        let step = match self.shared.front.store.scrub_step(STEP_BLOCKS, self.now_s()) {
            Ok(ScrubStep::Idle) => Step::Nothing,
            Ok(ScrubStep::Busy) => Step::Later(PAUSE),
            Ok(ScrubStep::More { blocks }) => {
                let took = self.shared.clock.now().saturating_sub(begun);
                Step::More(self.time_of(blocks).saturating_sub(took))
            }
            Ok(ScrubStep::Complete) => Step::Last,
            // The store has failed; its own log says why.
            Err(_) => Step::Later(LOOK_INTERVAL),
        };
        self.tell();
        step
    }
}

impl Scrub {
    fn now_s(&self) -> u64 {
        (self.options.now_ms)() / 1000
    }

    /// Returns how long this many blocks should take.
    fn time_of(&mut self, blocks: u64) -> Duration {
        let time = Duration::from_secs(1)
            .mul_f64((blocks * block::BLOCK_BYTES) as f64 / self.options.rate_bytes as f64);
        if self.traffic.has_moved() { time * BUSY_DIVISOR } else { time }
    }

    /// Logs found damage, once.
    fn tell(&mut self) {
        let status = self.shared.front.store.scrub_status();
        if status.findings > self.reported {
            let (new, repaired) = (status.findings - self.reported, status.repairs);
            tracing::error!(
                "scrub found damage in {new} places ({repaired} repaired since the start): \
                 `holdfast pool damage` lists it"
            );
        }
        self.reported = status.findings;
    }
}
