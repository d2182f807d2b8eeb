//! The hosts' traffic over time.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::bench::{Bench, Traffic};
use crate::engine::Task;
use crate::outcome::LEAST_SECONDS;

/// Samples the traffic of all hosts, until it is ended.
#[derive(Debug)]
pub struct Sampler {
    bench: Rc<Bench>,
    started: Instant,
    interval: Duration,
    samples: Rc<RefCell<Samples>>,
    _task: Task<()>,
}

/// What was transferred until given times, in seconds since the start.
type Samples = Vec<(f64, Traffic)>;

/// Rates over time: seconds since the start (the middle of an interval), and the rate in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampled {
    /// Commands per second, of all kinds.
    pub commands: Vec<(f64, f64)>,
    /// Million bytes per second on the wire, both ways.
    pub wire_mb: Vec<(f64, f64)>,
    /// Million bytes per second that the hosts have sent.
    pub sent_mb: Vec<(f64, f64)>,
}

impl Sampler {
    pub(super) fn start(bench: &Rc<Bench>, interval: Duration) -> Self {
        let samples: Rc<RefCell<Samples>> = Rc::default();
        let started = Instant::now();
        samples.borrow_mut().push((0.0, bench.traffic()));
        let task = bench.reactor().spawn({
            let (bench, kept) = (bench.clone(), samples.clone());
            async move {
                let mut next = started + interval;
                loop {
                    bench.reactor().sleep_until(next).await;
                    let now = started.elapsed();
                    kept.borrow_mut().push((now.as_secs_f64(), bench.traffic()));
                    next = started + after(now, interval);
                }
            }
        });
        let bench = bench.clone();
        Self { bench, started, interval, samples, _task: task }
    }

    /// Returns the rates until now: the last interval ends now, regardless of its length.
    pub fn end(self) -> Sampled {
        let mut samples = self.samples.take();
        samples.push((self.started.elapsed().as_secs_f64(), self.bench.traffic()));
        rates(&samples, self.interval.as_secs_f64())
    }
}

/// Returns the next sampling time: a multiple of the interval. One that was missed, because the
/// hosts were busy, is not made up for: an empty interval would have no rate.
fn after(now: Duration, interval: Duration) -> Duration {
    let interval_ns = interval.as_nanos().max(1);
    let left = interval_ns - now.as_nanos() % interval_ns;
    let next = now + Duration::from_nanos(left as u64);
    // Too soon to see anything.
    if next - now < interval / 2 { next + interval } else { next }
}

/// Returns the rates between samples. Each is of its own interval, by its true length; an interval
/// of less than half the usual one, which only the last can be, is merged with the previous one.
fn rates(samples: &[(f64, Traffic)], interval_s: f64) -> Sampled {
    let mut marks = samples.to_vec();
    if let [.., before, last] = &marks[..]
        && last.0 - before.0 < interval_s / 2.0
        && marks.len() > 2
    {
        marks.remove(marks.len() - 2);
    }
    let mut sampled = Sampled::default();
    for pair in marks.windows(2) {
        let [(from, before), (to, now)] = pair else { continue };
        let seconds = to - from;
        if seconds < LEAST_SECONDS {
            continue;
        }
        let (middle, rate) = (from + seconds / 2.0, |more: u64| more as f64 / seconds);
        let mb = |more: u64| rate(more) / 1e6;
        sampled.commands.push((middle, rate(now.commands - before.commands)));
        sampled.wire_mb.push((middle, mb(now.wire_bytes - before.wire_bytes)));
        sampled.sent_mb.push((middle, mb(now.sent_bytes - before.sent_bytes)));
    }
    sampled.frame(&marks);
    sampled
}

impl Sampled {
    /// Extends the first and the last rate to the beginning and the end of their intervals: so a
    /// single interval is a line, too, and no line stops before the end.
    fn frame(&mut self, marks: &[(f64, Traffic)]) {
        let (Some((start, _)), Some((end, _))) = (marks.first(), marks.last()) else { return };
        for line in [&mut self.commands, &mut self.wire_mb, &mut self.sent_mb] {
            if let (Some((_, first)), Some((_, last))) =
                (line.first().copied(), line.last().copied())
            {
                line.insert(0, (*start, first));
                line.push((*end, last));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64, commands: u64) -> (f64, Traffic) {
        let traffic = Traffic {
            commands,
            wire_bytes: commands * 2_000_000,
            sent_bytes: commands * 1_000_000,
        };
        (seconds, traffic)
    }

    #[test]
    fn a_steady_rate_is_a_flat_line_at_any_interval() {
        // One sample came late, one early for that reason, and the end is in the middle of an
        // interval.
        for end in [0.27, 0.24, 0.201] {
            let steady = |seconds: f64| at(seconds, (seconds * 1e6) as u64);
            let samples = [0.0, 0.05, 0.13, 0.15, 0.2, end].map(steady);
            let Sampled { commands, wire_mb, sent_mb } = rates(&samples, 0.05);
            for (line, rate) in [(&commands, 1e6), (&wire_mb, 2e6), (&sent_mb, 1e6)] {
                assert!(line.iter().all(|(_, y)| (y / rate - 1.0).abs() < 1e-3), "{line:?}");
                assert_eq!((line[0].0, line[line.len() - 1].0), (0.0, end));
                assert!(line.is_sorted_by(|a, b| a.0 < b.0), "{line:?}");
            }
        }
    }

    #[test]
    fn a_run_shorter_than_an_interval_is_a_line_too() {
        let sampled = rates(&[at(0.0, 0), at(0.01, 30)], 0.05);
        assert_eq!(sampled.commands, [(0.0, 3000.0), (0.005, 3000.0), (0.01, 3000.0)]);
        assert_eq!(rates(&[at(0.0, 0), at(0.0, 3)], 0.05), Sampled::default());
        assert_eq!(rates(&[at(0.0, 0)], 0.05), Sampled::default());
    }

    #[test]
    fn the_area_under_the_line_is_all_traffic() {
        let samples = [at(0.0, 0), at(0.05, 10), at(0.17, 90), at(0.2, 91), at(0.21, 97)];
        let line = rates(&samples, 0.05).commands;
        // Between the points at its ends, each rate is of its interval.
        let sum = line[1].1 * 0.05 + line[2].1 * 0.12 + line[3].1 * 0.04;
        assert!((sum - 97.0).abs() < 1e-9 && line.len() == 5, "{line:?}");
    }

    #[test]
    fn a_missed_sample_is_skipped() {
        let ms = Duration::from_millis;
        assert_eq!(after(ms(50), ms(50)), ms(100));
        assert_eq!(after(ms(51), ms(50)), ms(100));
        assert_eq!(after(ms(160), ms(50)), ms(200));
        assert_eq!(after(ms(190), ms(50)), ms(250));
    }
}
