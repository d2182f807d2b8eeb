//! Limits on the I/O of hosts to a volume per second. The front end enforces them.

use std::ops::RangeInclusive;

use block::VolumeLimits;

use crate::error::Error;

/// The range of bandwidth limits, in bytes per second: 1 MiB to 512 GiB.
pub const BANDWIDTH_LIMIT: RangeInclusive<u64> = 1 << 20..=512 << 30;
/// The range of limits on reads, writes and offloads per second.
pub const IOPS_LIMIT: RangeInclusive<u64> = 100..=100_000_000;

/// A change to the limits of a volume; `None` leaves a limit as it is, `Some(None)` removes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitsChange {
    /// The bandwidth in bytes per second, within [`BANDWIDTH_LIMIT`].
    pub bandwidth_bytes_per_s: Option<Option<u64>>,
    /// The commands per second, within [`IOPS_LIMIT`].
    pub iops: Option<Option<u64>>,
}

impl LimitsChange {
    pub(crate) fn of(&self, old: VolumeLimits) -> VolumeLimits {
        VolumeLimits {
            bandwidth_bytes_per_s: self.bandwidth_bytes_per_s.unwrap_or(old.bandwidth_bytes_per_s),
            iops: self.iops.unwrap_or(old.iops),
        }
    }
}

/// Refuses limits outside their ranges.
pub(crate) fn check(limits: VolumeLimits) -> Result<(), Error> {
    let refuse = |text: String| Err(Error::invalid("invalid_limit", text));
    if let Some(bytes) = limits.bandwidth_bytes_per_s.filter(|n| !BANDWIDTH_LIMIT.contains(n)) {
        return refuse(format!(
            "Bandwidth is limited to 1 MiB to 512 GiB a second; not {bytes} bytes."
        ));
    }
    if let Some(iops) = limits.iops.filter(|n| !IOPS_LIMIT.contains(n)) {
        return refuse(format!("IOPS are limited to 100 to 100,000,000 a second; not {iops}."));
    }
    Ok(())
}
