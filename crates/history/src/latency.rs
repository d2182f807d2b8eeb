//! Histograms of the latencies of reads and writes, for percentiles. Other commands are too few and
//! too different in length for percentiles: their mean and peak suffice.

/// The classes that have a histogram: the first ones of [`crate::CLASSES`], read and write.
pub const MEASURED: usize = 2;

/// The upper bounds of the buckets, in microseconds, inclusive; the last bucket has none. They
/// never change; others need a new version of the file.
pub const LATENCY_BOUNDS_US: [u64; 25] = [
    10, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1_000, 1_500, 2_000, 3_000, 5_000, 7_000,
    10_000, 20_000, 50_000, 100_000, 200_000, 500_000, 1_000_000, 10_000_000,
];

/// The number of buckets.
pub const BUCKETS: usize = LATENCY_BOUNDS_US.len() + 1;

/// The number of commands of one class in each bucket.
pub type Buckets = [u64; BUCKETS];

/// The histograms of the classes that have one. All 0 in steps of files of earlier versions, which
/// had none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Latencies(pub [Buckets; MEASURED]);

impl Latencies {
    /// Merges another step.
    pub fn merge(&mut self, other: &Self) {
        for (sum, more) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            *sum = sum.saturating_add(*more);
        }
    }

    /// Returns the latency that `percent` percent of a class did not exceed, in microseconds: the
    /// upper bound of their bucket, or the lower bound of the last one. `None` if there is no data.
    pub fn percentile_us(&self, class: usize, percent: u8) -> Option<u64> {
        let buckets = self.0.get(class)?;
        let counted: u128 = buckets.iter().map(|count| u128::from(*count)).sum();
        if counted == 0 {
            return None;
        }
        let wanted = (counted * u128::from(percent.clamp(1, 100))).div_ceil(100);
        let mut so_far = 0;
        let reaches = |count: &u64| {
            so_far += u128::from(*count);
            so_far >= wanted
        };
        let at = buckets.iter().position(reaches)?;
        LATENCY_BOUNDS_US.get(at).or(LATENCY_BOUNDS_US.last()).copied()
    }
}
