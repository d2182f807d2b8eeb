//! What a load measured.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

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
    /// The longest.
    pub max: f64,
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
    /// Commands a second.
    pub iops: f64,
    /// Million bytes a second that the commands covered.
    pub mb_per_s: f64,
    /// Latency, in microseconds.
    pub latency_us: Latency,
    /// CPU seconds of this load generator.
    pub own_cpu_s: f64,
    /// CPU seconds of the target, where `--target-pid` names it.
    pub target_cpu_s: Option<f64>,
    /// The target's CPU seconds for a million commands.
    pub target_cpu_s_per_million: Option<f64>,
    /// Bytes sent on the sockets over the whole run.
    pub wire_sent_bytes: u64,
    /// Bytes received on them.
    pub wire_received_bytes: u64,
}

/// Gathers a [`Report`].
pub struct Meter {
    histogram: Histogram<u64>,
    commands: u64,
    bytes: u64,
    /// See [`Report::put_off`].
    pub put_off: u64,
    /// See [`Report::refused`].
    pub refused: u64,
}

impl Meter {
    /// An empty one.
    pub fn new() -> Result<Self, String> {
        // Nanoseconds, from 1 us to 10 min, three digits.
        let histogram = Histogram::new_with_bounds(1_000, 600_000_000_000, 3)
            .map_err(|error| format!("histogram: {error}"))?;
        Ok(Self { histogram, commands: 0, bytes: 0, put_off: 0, refused: 0 })
    }

    /// Notes the end of a command.
    pub fn record(&mut self, latency: Duration, bytes: u64) {
        self.histogram.saturating_record(latency.as_nanos() as u64);
        self.commands += 1;
        self.bytes += bytes;
    }

    /// Commands noted.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// The report over an interval, with CPU times taken by the caller.
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
                max: self.histogram.max() as f64 / 1e3,
            },
            own_cpu_s: own.as_secs_f64(),
            target_cpu_s: target.map(|t| t.as_secs_f64()),
            target_cpu_s_per_million: target.map(|t| t.as_secs_f64() / millions),
            wire_sent_bytes: 0,
            wire_received_bytes: 0,
        }
    }
}
