//! The background pass of reduction: how it gives way to hosts.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use store::OptimizeStatus;
use sys::attendant::Attendant;

use super::passes::{self, Passes, Step, Traffic};
use super::shared::Shared;

/// How many times as long as a step it rests afterwards while hosts are busy: it gets a fifth of
/// the time.
const BUSY_REST: u32 = 4;

/// Starts the thread for the passes. `interval`: from the end of one to the beginning of the next;
/// `None`: only on request.
pub(super) fn start(interval: Option<Duration>, shared: &Arc<Shared>) -> io::Result<Attendant> {
    let traffic = Traffic::new(shared.front.counters.clone());
    let optimizer = Optimizer { shared: shared.clone(), traffic };
    passes::start("optimize", interval, shared.clock, optimizer)
}

struct Optimizer {
    shared: Arc<Shared>,
    traffic: Traffic,
}

impl Passes for Optimizer {
    fn begin(&mut self) {
        self.shared.front.store.optimize();
    }

    fn step(&mut self) -> Step {
        let store = &self.shared.front.store;
        let before = store.optimize_status();
        if !before.running {
            return Step::Nothing;
        }
        let begun = self.shared.clock.now();
        match store.optimize_step() {
            Ok(true) => {
                let took = self.shared.clock.now().saturating_sub(begun);
                let busy = self.traffic.has_moved();
                return Step::More(if busy { took * BUSY_REST } else { Duration::ZERO });
            }
            Ok(false) => tell_end(&before, &store.optimize_status()),
            Err(error) => tracing::error!("the background pass of reduction has failed: {error}"),
        }
        Step::Last
    }
}

/// Logs that a pass has ended, unless it was stopped.
fn tell_end(before: &OptimizeStatus, now: &OptimizeStatus) {
    if now.passes > before.passes {
        tracing::info!(
            "the background pass of reduction has ended: since the start {} duplicate chunks \
             were found, and {} segments were rewritten",
            now.aliased_chunks,
            now.rewritten_segments
        );
    }
}
