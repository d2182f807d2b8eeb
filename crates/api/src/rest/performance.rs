//! Performance in the terms of REST 2.x.
//!
//! Clients read whole numbers. Reads are READ, writes WRITE; all other commands count as others,
//! including offloads, which `GET /v1/history` shows separately. A latency is the time from the
//! last byte of a command to its response, including the delay by limits. Its parts are not
//! measured: they are `null`, except those of queues, where clients do not expect `null` and 0 is
//! neutral in sums. There are no mirrored writes.

use history::{Activity, CLASSES, ClassSums, Point};
use serde::Serialize;
use utoipa::ToSchema;

/// Activity, per second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct RestPerformance {
    /// Bytes of a mirrored write: 0, not supported.
    pub bytes_per_mirrored_write: u64,
    /// Bytes of a read or write.
    pub bytes_per_op: u64,
    /// Bytes of a read.
    pub bytes_per_read: u64,
    /// Bytes of a write.
    pub bytes_per_write: u64,
    /// Time in the array's queue: 0, as `usec_per_read_op` includes all waiting.
    pub local_queue_usec_per_op: u64,
    /// Bytes of mirrored writes: 0, not supported.
    pub mirrored_write_bytes_per_sec: u64,
    /// Mirrored writes: 0, not supported.
    pub mirrored_writes_per_sec: u64,
    /// Commands that are neither reads nor writes.
    pub others_per_sec: u64,
    /// Delay by limits: 0, mirrored writes are not supported.
    pub qos_rate_limit_usec_per_mirrored_write_op: u64,
    /// Delay by limits: 0, as `usec_per_read_op` includes all waiting of reads.
    pub qos_rate_limit_usec_per_read_op: u64,
    /// Delay by limits: 0, as `usec_per_write_op` includes all waiting of writes.
    pub qos_rate_limit_usec_per_write_op: u64,
    /// Commands in flight: not measured.
    #[schema(required = true)]
    pub queue_depth: Option<u64>,
    /// Time of mirrored writes in queues: 0, not supported.
    pub queue_usec_per_mirrored_write_op: u64,
    /// Time of reads in queues: 0, as `usec_per_read_op` includes all their waiting.
    pub queue_usec_per_read_op: u64,
    /// Time of writes in queues: 0, as `usec_per_write_op` includes all their waiting.
    pub queue_usec_per_write_op: u64,
    /// Bytes read.
    pub read_bytes_per_sec: u64,
    /// Reads.
    pub reads_per_sec: u64,
    /// Time of mirrored writes on the network: 0, not supported.
    pub san_usec_per_mirrored_write_op: u64,
    /// Time of reads on the network: 0, as it is not part of `usec_per_read_op`.
    pub san_usec_per_read_op: u64,
    /// Time of writes on the network: 0, as it is not part of `usec_per_write_op`.
    pub san_usec_per_write_op: u64,
    /// Time in the array itself: 0, mirrored writes are not supported.
    pub service_usec_per_mirrored_write_op: u64,
    /// Time in the array itself: the same as `usec_per_read_op`.
    pub service_usec_per_read_op: u64,
    /// How much of it the cache saves: not measured.
    #[schema(required = true)]
    pub service_usec_per_read_op_cache_reduction: Option<u64>,
    /// Time in the array itself: the same as `usec_per_write_op`.
    pub service_usec_per_write_op: u64,
    /// The mean latency of mirrored writes: 0, not supported.
    pub usec_per_mirrored_write_op: u64,
    /// The mean latency of commands that are neither reads nor writes; 0 if there were none.
    pub usec_per_other_op: u64,
    /// The mean latency of reads; 0 if there were none.
    pub usec_per_read_op: u64,
    /// The mean latency of writes; 0 if there were none.
    pub usec_per_write_op: u64,
    /// Bytes written.
    pub write_bytes_per_sec: u64,
    /// Writes.
    pub writes_per_sec: u64,
}

/// The fields that can be added up.
pub(super) const TOTALLED: &[&str] = &[
    "mirrored_write_bytes_per_sec",
    "mirrored_writes_per_sec",
    "others_per_sec",
    "read_bytes_per_sec",
    "reads_per_sec",
    "write_bytes_per_sec",
    "writes_per_sec",
];

impl RestPerformance {
    /// Returns the activity in a number of milliseconds.
    pub(super) fn of(activity: &Activity, covered_ms: u64) -> Self {
        let class = |name| {
            let at = CLASSES.iter().position(|it| *it == name);
            at.map(|at| activity.0[at]).unwrap_or_default()
        };
        let (read, write) = (class("read"), class("write"));
        let mut other = ClassSums::default();
        for (_, class) in
            CLASSES.iter().zip(&activity.0).filter(|(name, _)| !["read", "write"].contains(name))
        {
            other.merge(class);
        }
        let a_second = |sum: u64| divided(u128::from(sum) * 1000, covered_ms);
        let all = |class: &ClassSums| class.ok.saturating_add(class.failed);
        let each = |sum: u64, count: u64| divided(sum.into(), count);
        let latency_us = |class: &ClassSums| each(class.ok_latency_us, class.ok);
        let (read_us, write_us) = (latency_us(&read), latency_us(&write));
        let moved = read.bytes.saturating_add(write.bytes);
        Self {
            bytes_per_op: each(moved, read.ok.saturating_add(write.ok)),
            bytes_per_read: each(read.bytes, read.ok),
            bytes_per_write: each(write.bytes, write.ok),
            others_per_sec: a_second(all(&other)),
            read_bytes_per_sec: a_second(read.bytes),
            reads_per_sec: a_second(all(&read)),
            usec_per_other_op: latency_us(&other),
            service_usec_per_read_op: read_us,
            service_usec_per_write_op: write_us,
            usec_per_read_op: read_us,
            usec_per_write_op: write_us,
            write_bytes_per_sec: a_second(write.bytes),
            writes_per_sec: a_second(all(&write)),
            ..Self::default()
        }
    }

    /// Returns the activity in a sample.
    pub(super) fn of_point(point: &Point) -> Self {
        Self::of(&point.activity, point.covered_ms)
    }
}

/// Divides and rounds to the nearest; 0 if the divisor is 0.
fn divided(sum: u128, by: u64) -> u64 {
    let by = u128::from(by);
    let rounded = (sum + by / 2).checked_div(by).unwrap_or(0);
    u64::try_from(rounded).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_cover_the_known_time_and_means_cover_successful_commands() {
        let mut activity = Activity::default();
        let sums = |ok, failed, bytes, ok_latency_us| ClassSums {
            ok,
            failed,
            bytes,
            ok_latency_us,
            ..ClassSums::default()
        };
        activity.0[0] = sums(10, 0, 81_920, 1_000);
        activity.0[1] = sums(4, 1, 4_096, 402);
        activity.0[3] = sums(1, 1, 512, 30);
        activity.0[6] = sums(1, 0, 0, 10);
        let reported = RestPerformance::of(&activity, 500);
        assert_eq!(
            (reported.reads_per_sec, reported.writes_per_sec, reported.others_per_sec),
            (20, 10, 6)
        );
        assert_eq!((reported.read_bytes_per_sec, reported.write_bytes_per_sec), (163_840, 8_192));
        assert_eq!((reported.usec_per_read_op, reported.usec_per_write_op), (100, 101));
        assert_eq!((reported.usec_per_other_op, reported.bytes_per_read), (20, 8_192));
        assert_eq!((reported.bytes_per_write, reported.bytes_per_op), (1_024, 6_144));
        let nothing = RestPerformance::of(&Activity::default(), 0);
        assert_eq!(nothing, RestPerformance::default());
    }
}
