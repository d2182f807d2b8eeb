//! A host's counters of a device: what esxtop shows (002, tables 2 and 3), and what it is computed
//! from.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Kinds of commands that are counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// READ.
    Read,
    /// WRITE.
    Write,
    /// EXTENDED COPY (esxtop: CLONE).
    Clone,
    /// COMPARE AND WRITE (ATS).
    Ats,
    /// WRITE SAME (ZERO).
    Zero,
    /// UNMAP (DELETE).
    Delete,
    /// RESERVE and RELEASE.
    Reserve,
    /// All others.
    Other,
}

impl Class {
    /// All of them, in the order of their counters.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Clone,
        Self::Ats,
        Self::Zero,
        Self::Delete,
        Self::Reserve,
        Self::Other,
    ];
}

/// Number, bytes and latency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Commands.
    pub count: u64,
    /// Bytes that they covered, transferred over the wire or not.
    pub bytes: u64,
    /// The sum of their latencies, in microseconds.
    pub latency_us: u64,
}

impl Tally {
    fn add(&mut self, bytes: u64, latency: Duration) {
        self.count += 1;
        self.bytes += bytes;
        self.latency_us += latency.as_micros() as u64;
    }

    /// Returns the mean latency, in milliseconds; 0 if there was none.
    pub fn mean_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.latency_us as f64 / self.count as f64 / 1000.0 }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            bytes: self.bytes + other.bytes,
            latency_us: self.latency_us + other.latency_us,
        }
    }

    /// Returns what was added since.
    pub fn since(&self, before: &Self) -> Self {
        Self {
            count: self.count - before.count,
            bytes: self.bytes - before.bytes,
            latency_us: self.latency_us - before.latency_us,
        }
    }
}

/// A host's counters of one device.
#[derive(Clone, Debug, Serialize)]
pub struct DeviceCounters {
    good: [Tally; Class::ALL.len()],
    failed: [Tally; Class::ALL.len()],
    /// Copies with this device as the source, and as the destination. Each is counted in
    /// [`Class::Clone`] of the device to which the command was sent, which is the destination.
    pub clone_read: Tally,
    /// As the destination.
    pub clone_written: Tally,
    /// RESERVATION CONFLICT, for any command.
    pub conflicts: u64,
    /// COMPARE AND WRITE commands that found something else.
    pub miscompares: u64,
    /// Commands that were repeated: a path was lost, or the array had requested it.
    pub retries: u64,
    #[serde(skip)]
    io_latency_us: Histogram<u64>,
}

/// Longer reads and writes are counted as this long.
const LATENCY_US_MAX: u64 = 300_000_000;

impl Default for DeviceCounters {
    fn default() -> Self {
        Self {
            good: Default::default(),
            failed: Default::default(),
            clone_read: Tally::default(),
            clone_written: Tally::default(),
            conflicts: 0,
            miscompares: 0,
            retries: 0,
            io_latency_us: Histogram::new_with_bounds(1, LATENCY_US_MAX, 3)
                .expect("the bounds are right"),
        }
    }
}

impl DeviceCounters {
    /// Returns commands that succeeded.
    pub fn good(&self, class: Class) -> Tally {
        self.good[class as usize]
    }

    /// Returns commands that failed, including miscompares, as esxtop counts them (ATSF).
    pub fn failed(&self, class: Class) -> Tally {
        self.failed[class as usize]
    }

    /// Returns the latency that `quantile` (0 to 1) of all reads and writes did not exceed, in
    /// microseconds.
    pub fn io_latency_us(&self, quantile: f64) -> u64 {
        self.io_latency_us.value_at_quantile(quantile)
    }

    /// Resets the latencies of reads and writes, so that they are of one interval.
    pub fn restart_io_latency(&mut self) {
        self.io_latency_us.reset();
    }

    pub(super) fn add(&mut self, class: Class, is_good: bool, bytes: u64, latency: Duration) {
        let tally = if is_good { &mut self.good } else { &mut self.failed };
        tally[class as usize].add(bytes, latency);
        if is_good && matches!(class, Class::Read | Class::Write) {
            self.io_latency_us.saturating_record(latency.as_micros() as u64);
        }
    }

    pub(super) fn add_clone_read(&mut self, bytes: u64, latency: Duration) {
        self.clone_read.add(bytes, latency);
    }

    pub(super) fn add_clone_written(&mut self, bytes: u64, latency: Duration) {
        self.clone_written.add(bytes, latency);
    }
}

/// The commands of one class, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    /// Successful ones.
    pub good: Tally,
    /// Others, including miscompares.
    pub failed: Tally,
}

/// The sums of [`DeviceCounters`], which can be added up, kept and published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// The counts of each class that occurred.
    pub classes: BTreeMap<Class, Ended>,
    /// Copies with the device as the source.
    pub clone_read: Tally,
    /// Copies with the device as the destination.
    pub clone_written: Tally,
    /// RESERVATION CONFLICT, for any command.
    pub conflicts: u64,
    /// COMPARE AND WRITE commands that found something else.
    pub miscompares: u64,
    /// Commands that were repeated.
    pub retries: u64,
}

impl Totals {
    /// Returns the counts of one class.
    pub fn of(&self, class: Class) -> Ended {
        self.classes.get(&class).copied().unwrap_or_default()
    }

    /// Adds counts of the same device from elsewhere.
    pub fn add(&mut self, other: &Self) {
        for (class, ended) in &other.classes {
            let own = self.classes.entry(*class).or_default();
            own.good = own.good.plus(ended.good);
            own.failed = own.failed.plus(ended.failed);
        }
        self.clone_read = self.clone_read.plus(other.clone_read);
        self.clone_written = self.clone_written.plus(other.clone_written);
        self.conflicts += other.conflicts;
        self.miscompares += other.miscompares;
        self.retries += other.retries;
    }
}

impl From<&DeviceCounters> for Totals {
    fn from(counters: &DeviceCounters) -> Self {
        let ended = |class: &Class| {
            let ended = Ended { good: counters.good(*class), failed: counters.failed(*class) };
            (ended != Ended::default()).then_some((*class, ended))
        };
        Self {
            classes: Class::ALL.iter().filter_map(ended).collect(),
            clone_read: counters.clone_read,
            clone_written: counters.clone_written,
            conflicts: counters.conflicts,
            miscompares: counters.miscompares,
            retries: counters.retries,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_sums_of_the_counters() {
        let mut counters = DeviceCounters::default();
        counters.add(Class::Ats, true, 512, Duration::from_micros(30));
        counters.add(Class::Ats, false, 512, Duration::from_micros(7));
        counters.add_clone_read(4096, Duration::from_micros(5));
        counters.retries = 2;
        let mut sum = Totals::from(&counters);
        assert_eq!(sum.classes.len(), 1);
        sum.add(&Totals::from(&counters));
        let ats = sum.of(Class::Ats);
        assert_eq!(ats.good, Tally { count: 2, bytes: 1024, latency_us: 60 });
        assert_eq!(ats.failed, Tally { count: 2, bytes: 1024, latency_us: 14 });
        assert_eq!(sum.clone_read, Tally { count: 2, bytes: 8192, latency_us: 10 });
        assert_eq!((sum.retries, sum.of(Class::Zero)), (4, Ended::default()));
    }
}
