//! `/v1/devices` and `/v1/controllers`: what the array is made of.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Refusal, Shared, blocking};

/// The name of the controller; there is one.
pub(crate) const CONTROLLER: &str = "CT0";

/// The devices of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Devices {
    /// All of them: a pool has only one.
    pub devices: Vec<Device>,
}

/// A device of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Device {
    /// The path of the device or the file.
    pub name: String,
    /// Bytes of the pool that it holds.
    pub capacity_bytes: u64,
    /// Whether it accepts writes: after a write has failed, none is accepted until the next start.
    pub takes_writes: bool,
    /// How often a write or a flush that the device had refused was retried since the start.
    /// Commands that wait for it wait longer, and get no error.
    pub retries: u64,
    /// How often something was written elsewhere that the device had refused, since the start.
    pub moved_writes: u64,
    /// How many flushes have failed since the start. What they should have made durable was written
    /// again, or no writes are accepted any more.
    pub failed_flushes: u64,
    /// Bytes of memory that hold what was written and not flushed yet, in case a flush fails. Only
    /// where writes are answered before they are durable.
    pub unflushed_bytes: u64,
    /// Reads that hosts' commands wait for.
    pub reads: DeviceTransfers,
    /// Commits of the log, with their flushes.
    pub commits: DeviceTransfers,
}

/// What hosts' commands asked of a device since the start. Background work, such as checkpoints and
/// scrubbing, is not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceTransfers {
    /// Transfers that have not ended yet.
    pub under_way: u64,
    /// Those that succeeded.
    pub ok: u64,
    /// Those that the device failed.
    pub failed: u64,
    /// Bytes that the successful ones moved.
    pub bytes: u64,
    /// The sum of the latencies of the successful ones, in microseconds.
    pub ok_latency_us: u64,
    /// How many of the successful ones took how long: a histogram, from the shortest latencies to
    /// the longest.
    #[serde(default)]
    pub latencies: Vec<LatencyBucket>,
}

/// Transfers that took longer than those of the bucket before, and no longer than this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LatencyBucket {
    /// The longest latency, in microseconds; null in the last bucket, which has no end.
    pub up_to_us: Option<u64>,
    /// How many transfers.
    pub count: u64,
}

impl DeviceTransfers {
    /// How many of the successful ones took longer than `us` microseconds, as far as buckets end
    /// there.
    pub fn longer_than(&self, us: u64) -> u64 {
        let is_longer = |bucket: &&LatencyBucket| bucket.up_to_us.is_none_or(|up_to| up_to > us);
        self.latencies.iter().filter(is_longer).map(|bucket| bucket.count).sum()
    }
}

/// Lists the devices of the pool with their counters.
#[utoipa::path(get, path = "/v1/devices", responses(
    (status = 200, body = Devices),
    (status = 401, body = Refusal),
))]
pub(crate) async fn devices(State(interface): Shared) -> Result<Json<Devices>, ApiError> {
    blocking(interface, |interface| {
        let mut devices = interface.telemetry.devices();
        for device in &mut devices {
            device.capacity_bytes = interface.array.pool().capacity_bytes;
        }
        Ok(Json(Devices { devices }))
    })
    .await
}

/// The controllers of the array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Controllers {
    /// All of them: there is only one.
    pub controllers: Vec<Controller>,
}

/// A controller: a program that serves the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Controller {
    /// `CT0`.
    pub name: String,
    /// `primary`: the one that serves the hosts.
    pub mode: String,
    /// The version of its program.
    pub version: String,
    /// When it was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// The portals at which hosts reach it, as `ADDR:PORT`.
    pub portals: Vec<String>,
}

/// Lists the controllers of the array.
#[utoipa::path(get, path = "/v1/controllers", responses(
    (status = 200, body = Controllers),
    (status = 401, body = Refusal),
))]
pub(crate) async fn controllers(State(interface): Shared) -> Json<Controllers> {
    let facts = &interface.facts;
    Json(Controllers {
        controllers: vec![Controller {
            name: CONTROLLER.into(),
            mode: "primary".into(),
            version: facts.version.clone(),
            started_ms: facts.started_ms,
            portals: facts.portals.clone(),
        }],
    })
}
