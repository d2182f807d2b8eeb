//! The hosts' traffic over time.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::bench::{Bench, Traffic};
use crate::engine::Task;

/// Looks at the traffic of all hosts, until it is dropped.
#[derive(Debug)]
pub struct Sampler {
    samples: Rc<RefCell<Vec<(f64, Traffic)>>>,
    _task: Task<()>,
}

impl Sampler {
    pub(super) fn start(bench: &Rc<Bench>, interval: Duration) -> Self {
        let samples: Rc<RefCell<Vec<_>>> = Rc::default();
        let (bench, kept, started) = (bench.clone(), samples.clone(), Instant::now());
        let task = bench.reactor().spawn({
            let bench = bench.clone();
            async move {
                let mut next = started;
                loop {
                    let now = started.elapsed().as_secs_f64();
                    kept.borrow_mut().push((now, bench.traffic()));
                    next += interval;
                    bench.reactor().sleep_until(next).await;
                }
            }
        });
        Self { samples, _task: task }
    }

    /// Commands a second, over the seconds since the start.
    pub fn commands_per_second(&self) -> Vec<(f64, f64)> {
        self.rates(|traffic| traffic.commands as f64)
    }

    /// Million bytes a second on the wire.
    pub fn mb_per_second(&self) -> Vec<(f64, f64)> {
        self.rates(|traffic| traffic.wire_bytes as f64 / 1e6)
    }

    fn rates(&self, value: impl Fn(&Traffic) -> f64) -> Vec<(f64, f64)> {
        let samples = self.samples.borrow();
        let rate = |pair: &[(f64, Traffic)]| {
            let seconds = pair[1].0 - pair[0].0;
            let more = value(&pair[1].1) - value(&pair[0].1);
            (pair[1].0, if seconds > 0.0 { more / seconds } else { 0.0 })
        };
        samples.windows(2).map(rate).collect()
    }
}
