//! Histograms of latencies.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The count of latencies above the previous bucket's bound and up to this one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LatencyBucket {
    /// The upper bound, in microseconds; null in the last bucket, which has none.
    #[schema(required = true)]
    pub up_to_us: Option<u64>,
    /// The count.
    pub count: u64,
}

/// Returns the latency that `percent` percent did not exceed, in microseconds: the upper bound of
/// their bucket, or `longest_us` if that is less. `None` if there were none.
pub fn percentile_us(buckets: &[LatencyBucket], percent: u8, longest_us: u64) -> Option<u64> {
    let counted: u64 = buckets.iter().map(|bucket| bucket.count).sum();
    let wanted = (u128::from(counted) * u128::from(percent)).div_ceil(100) as u64;
    let mut so_far = 0;
    let found = buckets.iter().find(|bucket| {
        so_far += bucket.count;
        bucket.count > 0 && so_far >= wanted
    })?;
    Some(found.up_to_us.unwrap_or(u64::MAX).min(longest_us))
}

/// Adds buckets to a sum, which stays in order.
pub(crate) fn add(sum: &mut Vec<LatencyBucket>, more: &[LatencyBucket]) {
    for bucket in more {
        let end = |bucket: &LatencyBucket| bucket.up_to_us.unwrap_or(u64::MAX);
        match sum.binary_search_by_key(&end(bucket), end) {
            Ok(at) => sum[at].count += bucket.count,
            Err(at) => sum.insert(at, *bucket),
        }
    }
}

/// Returns the difference from `before`; `None` if a count has decreased.
pub(crate) fn since(
    before: &[LatencyBucket],
    after: &[LatencyBucket],
) -> Option<Vec<LatencyBucket>> {
    let of = |buckets: &[LatencyBucket], up_to_us| {
        let found = buckets.iter().find(|bucket| bucket.up_to_us == up_to_us);
        found.map_or(0, |bucket| bucket.count)
    };
    if before.iter().any(|bucket| of(after, bucket.up_to_us) < bucket.count) {
        return None;
    }
    let more = after.iter().map(|bucket| LatencyBucket {
        count: bucket.count - of(before, bucket.up_to_us),
        ..*bucket
    });
    Some(more.filter(|bucket| bucket.count > 0).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buckets(of: &[(u64, u64)]) -> Vec<LatencyBucket> {
        let bucket = |&(us, count): &(u64, u64)| LatencyBucket {
            up_to_us: Some(us).filter(|us| *us != u64::MAX),
            count,
        };
        of.iter().map(bucket).collect()
    }

    #[test]
    fn buckets_are_added_and_subtracted_by_their_bounds() {
        let mut sum = buckets(&[(100, 1), (300, 2)]);
        add(&mut sum, &buckets(&[(50, 4), (300, 8), (u64::MAX, 16)]));
        assert_eq!(sum, buckets(&[(50, 4), (100, 1), (300, 10), (u64::MAX, 16)]));
        let before = buckets(&[(100, 1), (300, 2)]);
        let recent = since(&before, &sum).unwrap();
        assert_eq!(recent, buckets(&[(50, 4), (300, 8), (u64::MAX, 16)]));
        assert_eq!(since(&sum, &before), None);
        assert_eq!(since(&buckets(&[(300, 3)]), &before), None);
        assert_eq!(since(&sum, &sum), Some(Vec::new()));
    }

    #[test]
    fn percentiles_are_upper_bounds_of_buckets() {
        let of = buckets(&[(50, 98), (100, 1), (u64::MAX, 1)]);
        let at = |percent| percentile_us(&of, percent, 7_000_000);
        assert_eq!([50, 98, 99, 100].map(at), [50, 50, 100, 7_000_000].map(Some));
        assert_eq!(percentile_us(&of, 50, 20), Some(20));
        assert_eq!(percentile_us(&[], 50, 20), None);
        assert_eq!(percentile_us(&buckets(&[(50, 0)]), 50, 20), None);
    }
}
