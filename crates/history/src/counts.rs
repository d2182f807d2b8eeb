//! The counts of one object for one step. Merging steps adds sums and takes maxima, so neither the
//! order nor the intermediate steps matter.

use crate::latency::Latencies;

/// The classes of commands, in the order in which they are stored. It never changes; additions need
/// a new version of the file.
pub const CLASSES: [&str; 7] =
    ["read", "write", "copy", "compare_and_write", "zero", "delete", "other"];

/// The gauges of the pool, in bytes, in the order in which they are stored.
pub const GAUGES: [&str; 9] = [
    "capacity",
    "used",
    "data",
    "provisioned",
    "mapped",
    "unique",
    "shared",
    "snapshots",
    "system",
];

/// The counts of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSums {
    /// Commands that succeeded.
    pub ok: u64,
    /// Commands that failed.
    pub failed: u64,
    /// Bytes that the successful ones read, wrote, copied, zeroed or unmapped.
    pub bytes: u64,
    /// The sum of the latencies of the successful ones.
    pub ok_latency_us: u64,
    /// The same for the failed ones.
    pub failed_latency_us: u64,
    /// The maximum commands per second, in any tick.
    pub per_s_max: u64,
    /// The maximum bytes per second, in any tick.
    pub bytes_per_s_max: u64,
    /// The maximum of the mean latencies of the successful ones, in any tick.
    pub latency_us_max: u64,
}

impl ClassSums {
    /// Sets the peaks from a tick of this length.
    pub fn with_peaks(self, covered_ms: u64) -> Self {
        let a_second = |sum: u64| {
            let rate = u128::from(sum) * 1000 / u128::from(covered_ms.max(1));
            u64::try_from(rate).unwrap_or(u64::MAX)
        };
        Self {
            per_s_max: a_second(self.ok.saturating_add(self.failed)),
            bytes_per_s_max: a_second(self.bytes),
            latency_us_max: self.ok_latency_us.checked_div(self.ok).unwrap_or(0),
            ..self
        }
    }

    /// Merges another step.
    pub fn merge(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.ok, other.ok),
            (&mut self.failed, other.failed),
            (&mut self.bytes, other.bytes),
            (&mut self.ok_latency_us, other.ok_latency_us),
            (&mut self.failed_latency_us, other.failed_latency_us),
        ] {
            *sum = sum.saturating_add(more);
        }
        self.per_s_max = self.per_s_max.max(other.per_s_max);
        self.bytes_per_s_max = self.bytes_per_s_max.max(other.bytes_per_s_max);
        self.latency_us_max = self.latency_us_max.max(other.latency_us_max);
    }

    /// Returns the mean latency of the successful ones; `None` if there were none.
    pub fn latency_us(&self) -> Option<f64> {
        (self.ok > 0).then(|| self.ok_latency_us as f64 / self.ok as f64)
    }
}

/// The counts of all classes, in the order of [`CLASSES`], and the latencies of reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity(pub [ClassSums; CLASSES.len()], pub Latencies);

impl Activity {
    /// Merges another step.
    pub fn merge(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            sum.merge(more);
        }
        self.1.merge(&other.1);
    }

    /// Sets the peaks from a tick of this length.
    pub fn with_peaks(self, covered_ms: u64) -> Self {
        Self(self.0.map(|class| class.with_peaks(covered_ms)), self.1)
    }

    /// Returns the number of commands of all classes.
    pub fn commands(&self) -> u64 {
        let all = self.0.iter().map(|class| class.ok.saturating_add(class.failed));
        all.fold(0, u64::saturating_add)
    }
}

/// A value that was sampled several times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauge {
    /// The sum of the samples.
    pub sum: u128,
    /// The number of samples.
    pub count: u64,
    /// The maximum of the samples.
    pub max: u64,
}

impl Gauge {
    /// A single sample.
    pub fn once(value: u64) -> Self {
        Self { sum: value.into(), count: 1, max: value }
    }

    fn merge(&mut self, other: &Self) {
        self.sum = self.sum.saturating_add(other.sum);
        self.count = self.count.saturating_add(other.count);
        self.max = self.max.max(other.max);
    }

    /// Returns the mean of the samples, rounded down; `None` if there are none.
    pub fn mean(&self) -> Option<u64> {
        let mean = self.sum.checked_div(self.count.into())?;
        Some(u64::try_from(mean).unwrap_or(u64::MAX))
    }
}

/// The state of the pool, in the order of [`GAUGES`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capacity(pub [Gauge; GAUGES.len()]);

impl Capacity {
    /// Returns a gauge by its name in [`GAUGES`].
    pub fn gauge(&self, name: &str) -> Option<&Gauge> {
        self.0.get(GAUGES.iter().position(|it| *it == name)?)
    }

    /// Merges another step.
    pub fn merge(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().zip(&other.0) {
            sum.merge(more);
        }
    }
}
