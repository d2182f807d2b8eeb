//! The activity of a path or port since the start, as counted.

use front::counters::{Class, ClassSnapshot, CommandLatencies, Counters, PathCounters};
use history::latency::MEASURED;
use history::{Activity, ClassSums, Latencies};

/// Activity, in the order of [`Class::ALL`], which is that of [`history::CLASSES`].
#[derive(Clone, Default)]
pub(super) struct Done {
    classes: [ClassSnapshot; Class::ALL.len()],
    /// Latencies of reads and writes. Most paths have none, and need no memory for them.
    latencies: [Option<Box<CommandLatencies>>; MEASURED],
}

impl Done {
    /// Advances to the current counters, and returns the activity since the last call; `None` if
    /// there was none.
    pub(super) fn advance_to(&mut self, counters: &PathCounters) -> Option<Activity> {
        let classes = counters.snapshot();
        if classes == self.classes {
            return None;
        }
        let latencies = std::array::from_fn(|at| counters.latencies(Class::ALL[at]).map(Box::new));
        let now = Self { classes, latencies };
        let done = now.since(self);
        *self = now;
        done
    }

    /// Returns the difference from `before`; `None` if there was no activity.
    pub(super) fn since(&self, before: &Self) -> Option<Activity> {
        if self.classes == before.classes {
            return None;
        }
        let class = |at: usize| {
            let done = self.classes[at].since(before.classes[at]);
            ClassSums {
                ok: done.ok,
                failed: done.failed,
                bytes: done.bytes,
                ok_latency_us: done.ok_latency_us,
                failed_latency_us: done.failed_latency_us,
                ..ClassSums::default()
            }
        };
        let none = CommandLatencies::default();
        let latencies = std::array::from_fn(|at| {
            let of = |done: &Self| done.latencies[at].as_deref().copied().unwrap_or(none);
            let (now, then) = (of(self), of(before));
            std::array::from_fn(|bucket| now[bucket].saturating_sub(then[bucket]))
        });
        Some(Activity(std::array::from_fn(class), Latencies(latencies)))
    }

    /// Adds counters that count no more.
    pub(super) fn add(&mut self, other: &Self) {
        for (sum, part) in self.classes.iter_mut().zip(other.classes) {
            *sum = sum.plus(part);
        }
        for (sum, part) in self.latencies.iter_mut().zip(&other.latencies) {
            let Some(part) = part else { continue };
            for (sum, more) in sum.get_or_insert_default().iter_mut().zip(part.iter()) {
                *sum += more;
            }
        }
    }
}

/// Returns the activity of each port.
pub(super) fn of_ports(counters: &Counters) -> Vec<Done> {
    let through = |(port, classes)| {
        let of = |at: usize| Box::new(counters.port_latencies(Class::ALL[at], Some(port)));
        Done { classes, latencies: std::array::from_fn(|at| Some(of(at))) }
    };
    counters.ports().into_iter().enumerate().map(through).collect()
}
