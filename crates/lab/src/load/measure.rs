//! The measurements of a load.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Serialize;

use super::silence::Silence;

/// Latency from submission to completion, in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Latency {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 95 of 100 are below.
    pub p95: f64,
    /// 99 of 100 are below.
    pub p99: f64,
    /// 999 of 1000 are below.
    pub p999: f64,
    /// 9999 of 10,000 are below.
    pub p9999: f64,
    /// The longest.
    pub max: f64,
}

/// A part of the measured interval.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// Its length. The last part is as long as what is left.
    pub seconds: f64,
    /// Commands that ended in it.
    pub commands: u64,
    /// Commands per second.
    pub iops: f64,
    /// The longest latency of those that ended in it, in microseconds.
    pub max_us: f64,
}

/// A load's result, over the measured interval.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Length of the interval.
    pub seconds: f64,
    /// Commands that ended in it.
    pub commands: u64,
    /// Commands that the target put off with BUSY, TASK SET FULL or UNIT ATTENTION.
    pub put_off: u64,
    /// Commands that the target refused because it was full.
    pub refused: u64,
    /// Commands per second.
    pub iops: f64,
    /// Million bytes per second that the commands covered.
    pub mb_per_s: f64,
    /// Latency, in microseconds.
    pub latency_us: Latency,
    /// The longest time in which no command ended, in microseconds. With `--rate` that includes
    /// times in which nothing was due.
    pub silence_us: f64,
    /// The interval in parts of `--part` seconds, if there are any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// CPU seconds of this load generator.
    pub own_cpu_s: f64,
    /// CPU seconds of the target, if `--target-pid` is given.
    pub target_cpu_s: Option<f64>,
    /// The target's CPU seconds per million commands.
    pub target_cpu_s_per_million: Option<f64>,
    /// Bytes sent on the sockets over the whole run.
    pub wire_sent_bytes: u64,
    /// Bytes received on the sockets over the whole run.
    pub wire_received_bytes: u64,
}

/// What ended in a part of the interval.
#[derive(Clone, Copy, Default)]
struct Ended {
    commands: u64,
    longest: Duration,
}

/// Collects a [`Report`].
pub struct Meter {
    histogram: Histogram<u64>,
    commands: u64,
    bytes: u64,
    /// When the interval began.
    began: Instant,
    silence: Silence,
    /// The length of a part, and what ended in each.
    part: Option<Duration>,
    parts: Vec<Ended>,
    /// See [`Report::put_off`].
    pub put_off: u64,
    /// See [`Report::refused`].
    pub refused: u64,
}

impl Meter {
    /// Creates an empty one, which divides the interval into parts of that length.
    pub fn new(part: Option<Duration>) -> Result<Self, String> {
        // Nanoseconds, from 1 us to 10 min, three digits.
        let histogram = Histogram::new_with_bounds(1_000, 600_000_000_000, 3)
            .map_err(|error| format!("histogram: {error}"))?;
        let now = Instant::now();
        Ok(Self {
            histogram,
            commands: 0,
            bytes: 0,
            began: now,
            silence: Silence::since(now),
            part: part.filter(|part| !part.is_zero()),
            parts: Vec::new(),
            put_off: 0,
            refused: 0,
        })
    }

    /// Begins the interval.
    pub fn begin(&mut self, now: Instant) {
        (self.began, self.silence) = (now, Silence::since(now));
    }

    /// Records the end of a command, `now`.
    pub fn record(&mut self, now: Instant, latency: Duration, bytes: u64) {
        self.histogram.saturating_record(latency.as_nanos() as u64);
        self.commands += 1;
        self.bytes += bytes;
        self.silence.ended_one(now);
        if let Some(part) = self.part {
            let at = now.saturating_duration_since(self.began).as_nanos() / part.as_nanos();
            let at = at as usize;
            if self.parts.len() <= at {
                self.parts.resize(at + 1, Ended::default());
            }
            self.parts[at].commands += 1;
            self.parts[at].longest = self.parts[at].longest.max(latency);
        }
    }

    /// Returns the number of recorded commands.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// Returns the report over an interval, with CPU times taken by the caller.
    pub fn report(&self, elapsed: Duration, own: Duration, target: Option<Duration>) -> Report {
        let seconds = elapsed.as_secs_f64().max(1e-9);
        let at = |quantile| self.histogram.value_at_quantile(quantile) as f64 / 1e3;
        let millions = self.commands.max(1) as f64 / 1e6;
        Report {
            seconds,
            commands: self.commands,
            put_off: self.put_off,
            refused: self.refused,
            iops: self.commands as f64 / seconds,
            mb_per_s: self.bytes as f64 / 1e6 / seconds,
            latency_us: Latency {
                mean: self.histogram.mean() / 1e3,
                p50: at(0.5),
                p95: at(0.95),
                p99: at(0.99),
                p999: at(0.999),
                p9999: at(0.9999),
                max: self.histogram.max() as f64 / 1e3,
            },
            silence_us: self.silence.until(self.began + elapsed).as_secs_f64() * 1e6,
            parts: self.parts(elapsed),
            own_cpu_s: own.as_secs_f64(),
            target_cpu_s: target.map(|t| t.as_secs_f64()),
            target_cpu_s_per_million: target.map(|t| t.as_secs_f64() / millions),
            wire_sent_bytes: 0,
            wire_received_bytes: 0,
        }
    }

    /// Returns the parts, including those in which nothing ended.
    fn parts(&self, elapsed: Duration) -> Vec<Part> {
        let Some(part) = self.part else { return Vec::new() };
        let count = elapsed.as_nanos().div_ceil(part.as_nanos()) as usize;
        let of = |at: usize| {
            let ended = self.parts.get(at).copied().unwrap_or_default();
            let before = part.saturating_mul(at as u32);
            let seconds = elapsed.saturating_sub(before).min(part).as_secs_f64().max(1e-9);
            let iops = ended.commands as f64 / seconds;
            let max_us = ended.longest.as_secs_f64() * 1e6;
            Part { seconds, commands: ended.commands, iops, max_us }
        };
        (0..count).map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the report after 250 ms of a meter for which commands ended at these milliseconds,
    /// in parts of 100 ms.
    fn reported(ends_ms: &[u64]) -> Report {
        let began = Instant::now();
        let mut meter = Meter::new(Some(Duration::from_millis(100))).unwrap();
        meter.begin(began);
        for ms in ends_ms {
            meter.record(began + Duration::from_millis(*ms), Duration::from_millis(ms / 10), 4096);
        }
        meter.report(Duration::from_millis(250), Duration::ZERO, None)
    }

    #[test]
    fn parts_count_what_ended_in_them_and_the_last_is_shorter() {
        let report = reported(&[10, 20, 210]);
        let commands: Vec<u64> = report.parts.iter().map(|part| part.commands).collect();
        assert_eq!(commands, [2, 0, 1]);
        assert_eq!(report.parts[0].max_us, 2000.0);
        assert!((report.parts[2].seconds - 0.05).abs() < 1e-9);
        assert!((report.parts[2].iops - 20.0).abs() < 1e-6);
    }

    #[test]
    fn silence_counts_at_the_start_between_responses_and_at_the_end() {
        assert!((reported(&[90, 150, 240]).silence_us - 90e3).abs() < 1.0);
        assert!((reported(&[60, 180, 240]).silence_us - 120e3).abs() < 1.0);
        assert!((reported(&[40, 50]).silence_us - 200e3).abs() < 1.0);
        assert!((reported(&[]).silence_us - 250e3).abs() < 1.0);
    }
}
