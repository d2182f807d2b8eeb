//! What a load has done: in total, and over time.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

/// Longer requests are counted as this long.
const LATENCY_US_MAX: u64 = 300_000_000;
/// The length of an interval of the series.
const INTERVAL: Duration = Duration::from_millis(250);

/// What was done in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Interval {
    /// Requests that ended.
    pub requests: u64,
    /// The bytes that they transferred.
    pub bytes: u64,
    /// The sum of their latencies.
    pub latency_us: u64,
}

/// A value over time: seconds since the start, and the value.
pub type Series = Vec<(f64, f64)>;

/// Counts and times requests.
#[derive(Clone, Debug)]
pub struct Meter {
    started: Instant,
    /// How long it had measured when it was read, once it was.
    read_after: Option<Duration>,
    latency_us: Histogram<u64>,
    total: Interval,
    intervals: Vec<Interval>,
}

impl Default for Meter {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            read_after: None,
            latency_us: Histogram::new_with_bounds(1, LATENCY_US_MAX, 3)
                .expect("the bounds are right"),
            total: Interval::default(),
            intervals: Vec::new(),
        }
    }
}

impl Interval {
    fn add(&mut self, bytes: u64, latency_us: u64) {
        self.requests += 1;
        self.bytes += bytes;
        self.latency_us += latency_us;
    }
}

impl Meter {
    /// Forgets everything: measuring begins now.
    pub fn restart(&mut self) {
        *self = Self::default();
    }

    /// Records the end of a request.
    pub fn add(&mut self, bytes: u64, latency: Duration) {
        let latency_us = latency.as_micros() as u64;
        self.latency_us.saturating_record(latency_us);
        self.total.add(bytes, latency_us);
        let index = (self.started.elapsed().as_nanos() / INTERVAL.as_nanos()) as usize;
        if self.intervals.len() <= index {
            self.intervals.resize(index + 1, Interval::default());
        }
        self.intervals[index].add(bytes, latency_us);
    }

    /// Returns what it has measured until now.
    pub fn read(&self) -> Self {
        Self { read_after: Some(self.elapsed()), ..self.clone() }
    }

    /// Returns how long it has measured: until now, or until it was read.
    pub fn elapsed(&self) -> Duration {
        self.read_after.unwrap_or_else(|| self.started.elapsed())
    }

    /// Returns the totals.
    pub fn total(&self) -> Interval {
        self.total
    }

    /// Returns requests per second, until now.
    pub fn per_second(&self) -> f64 {
        self.total.requests as f64 / self.elapsed().as_secs_f64()
    }

    /// Returns million bytes per second, until now.
    pub fn mb_per_second(&self) -> f64 {
        self.total.bytes as f64 / 1e6 / self.elapsed().as_secs_f64()
    }

    /// Returns the mean latency in milliseconds; 0 if there was none.
    pub fn mean_ms(&self) -> f64 {
        let Interval { requests, latency_us, .. } = self.total;
        if requests == 0 { 0.0 } else { latency_us as f64 / requests as f64 / 1e3 }
    }

    /// Returns the latency in milliseconds that `quantile` (0 to 1) of the requests did not exceed.
    pub fn quantile_ms(&self, quantile: f64) -> f64 {
        self.latency_us.value_at_quantile(quantile) as f64 / 1e3
    }

    /// Returns requests per second over time, without gaps: an interval in which nothing ended has
    /// a rate of zero. The last interval, which has not ended, is left out, unless it is the only
    /// one.
    pub fn requests_series(&self) -> Series {
        self.series(|interval| interval.requests as f64)
    }

    /// Returns million bytes per second over time.
    pub fn mb_series(&self) -> Series {
        self.series(|interval| interval.bytes as f64 / 1e6)
    }

    fn series(&self, value: impl Fn(&Interval) -> f64) -> Series {
        series(&self.intervals, self.elapsed(), value)
    }
}

fn series(done: &[Interval], elapsed: Duration, value: impl Fn(&Interval) -> f64) -> Series {
    let whole = INTERVAL.as_secs_f64();
    let ended = (elapsed.as_nanos() / INTERVAL.as_nanos()) as usize;
    let of = |index: usize| done.get(index).copied().unwrap_or_default();
    if ended == 0 {
        let seconds = elapsed.as_secs_f64();
        let rate = value(&of(0)) / seconds;
        return if rate.is_finite() { vec![(seconds / 2.0, rate)] } else { Vec::new() };
    }
    (0..ended).map(|index| ((index as f64 + 0.5) * whole, value(&of(index)) / whole)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(requests: &[u64]) -> Vec<Interval> {
        requests
            .iter()
            .map(|requests| Interval { requests: *requests, ..Interval::default() })
            .collect()
    }

    fn requests(done: &[u64], elapsed_ms: u64) -> Series {
        let elapsed = Duration::from_millis(elapsed_ms);
        series(&intervals(done), elapsed, |interval| interval.requests as f64)
    }

    #[test]
    fn a_stall_has_a_rate_of_zero_and_an_unfinished_interval_is_left_out() {
        // Nothing ended in the last half of a second but one.
        let line = requests(&[25, 0, 50], 1_300);
        assert_eq!(
            line,
            [(0.125, 100.0), (0.375, 0.0), (0.625, 200.0), (0.875, 0.0), (1.125, 0.0)]
        );
        assert_eq!(requests(&[25, 25, 1], 505), [(0.125, 100.0), (0.375, 100.0)]);
        assert_eq!(requests(&[25, 25], 500), [(0.125, 100.0), (0.375, 100.0)]);
    }

    #[test]
    fn a_meter_shorter_than_an_interval_has_its_own_rate() {
        assert_eq!(requests(&[5], 100), [(0.05, 50.0)]);
        assert_eq!(requests(&[], 100), [(0.05, 0.0)]);
        assert_eq!(requests(&[], 0), []);
    }

    #[test]
    fn a_meter_stops_when_it_is_read() {
        let mut meter = Meter::default();
        meter.add(4096, Duration::from_millis(2));
        let read = meter.read();
        let rate = read.per_second();
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(read.per_second(), rate);
        assert!(meter.per_second() < rate);
        assert_eq!((read.total().bytes, read.mean_ms()), (4096, 2.0));
    }
}
