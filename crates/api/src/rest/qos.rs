//! `qos` of volumes: limits on the commands of hosts.

use array::LimitsChange;
use array::limits::{BANDWIDTH_LIMIT, IOPS_LIMIT};
use block::VolumeLimits;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The limits of a volume; the highest value means no limit.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct RestQos {
    /// Bytes per second: 1 MiB to 512 GiB.
    pub bandwidth_limit: u64,
    /// Reads, writes and offloads per second: 100 to 100,000,000.
    pub iops_limit: u64,
}

impl From<VolumeLimits> for RestQos {
    fn from(limits: VolumeLimits) -> Self {
        Self {
            bandwidth_limit: limits.bandwidth_bytes_per_s.unwrap_or(*BANDWIDTH_LIMIT.end()),
            iops_limit: limits.iops.unwrap_or(*IOPS_LIMIT.end()),
        }
    }
}

/// Limits to set; those left out stay as they are, or mean no limit for a new volume.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct QosPatch {
    /// Bytes per second: 1 MiB to 512 GiB, which means no limit.
    pub bandwidth_limit: Option<u64>,
    /// Reads, writes and offloads per second: 100 to 100,000,000, which means no limit.
    pub iops_limit: Option<u64>,
}

impl QosPatch {
    pub(super) fn change(self) -> LimitsChange {
        let limit = |asked: u64, most: u64| (asked != most).then_some(asked);
        LimitsChange {
            bandwidth_bytes_per_s: self
                .bandwidth_limit
                .map(|asked| limit(asked, *BANDWIDTH_LIMIT.end())),
            iops: self.iops_limit.map(|asked| limit(asked, *IOPS_LIMIT.end())),
        }
    }

    pub(super) fn limits(self) -> VolumeLimits {
        let LimitsChange { bandwidth_bytes_per_s, iops } = self.change();
        VolumeLimits {
            bandwidth_bytes_per_s: bandwidth_bytes_per_s.flatten(),
            iops: iops.flatten(),
        }
    }
}
