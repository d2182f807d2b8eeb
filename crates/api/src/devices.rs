//! `/v1/devices`: the devices of a pool. For changes of devices, see [`crate::device_changes`].

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::latency::{self, LatencyBucket};
use crate::{ApiError, Interface, Refusal, Shared, blocking};

/// The devices of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Devices {
    /// All of them, by number.
    pub devices: Vec<Device>,
    /// For a pool on several devices: the transfers of hosts' commands to all of them together,
    /// under the name `pool`. Null for a single device, which has its own counters.
    #[serde(default)]
    #[schema(required = true)]
    pub together: Option<Device>,
}

impl Devices {
    /// Returns the device that counts hosts' transfers: the only one, or the sum of several.
    pub fn counting(&self) -> Option<&Device> {
        self.together.as_ref().or(self.devices.first())
    }
}

/// The state of a device in its pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// It has all its data of the pool.
    #[default]
    In,
    /// It receives all writes, and the data that it lacks is copied to it.
    CatchingUp,
    /// It has failed, or was taken out, and is not used.
    Out,
    /// It was missing when the pool was opened.
    Missing,
}

impl DeviceState {
    /// All states.
    pub const ALL: [Self; 4] = [Self::In, Self::CatchingUp, Self::Out, Self::Missing];

    /// Returns the name in interfaces.
    pub fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::CatchingUp => "catching_up",
            Self::Out => "out",
            Self::Missing => "missing",
        }
    }
}

/// The progress of a device that is catching up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatchingUp {
    /// Bytes of these that it has.
    pub done_bytes: u64,
    /// Bytes that it needs.
    pub all_bytes: u64,
    /// The remaining time in seconds, by the rate of the last minute; null if unknown.
    #[serde(default)]
    #[schema(required = true)]
    pub left_s: Option<u64>,
}

impl CatchingUp {
    /// Returns the remaining time in words, if it is known: `2 h 5 min left`.
    pub fn left(&self) -> Option<String> {
        self.left_s.map(left)
    }

    /// Returns the completed share of the work in percent, rounded down.
    pub fn percent(&self) -> u64 {
        let percent = u128::from(self.done_bytes) * 100;
        percent.checked_div(self.all_bytes.into()).map_or(100, |percent| percent as u64)
    }
}

fn left(left_s: u64) -> String {
    let (hours, minutes, seconds) = (left_s / 3600, left_s / 60 % 60, left_s % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s left"),
        (0, _) => format!("{minutes} min {seconds} s left"),
        _ => format!("{hours} h {minutes} min left"),
    }
}

/// The parts of a device of a pool in stripes: a column of a segment takes one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceParts {
    /// The number of parts.
    pub all: u32,
    /// The number of parts in use.
    pub used: u32,
    /// Whether its content is being moved to others, after which it leaves the pool.
    pub is_emptied: bool,
    /// For a device that is being emptied, out or missing: the remaining time in seconds until
    /// others have all its content, by the rate of the last minute; null if unknown.
    #[serde(default)]
    #[schema(required = true)]
    pub left_s: Option<u64>,
}

impl DeviceParts {
    /// Returns the remaining time in words, if it is known: `2 h 5 min left`.
    pub fn left(&self) -> Option<String> {
        self.left_s.map(left)
    }
}

/// A device of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Device {
    /// The path of the file, or the name of the device in `/dev/disk/by-id`, or its path if it has
    /// no such name; empty if it is missing.
    pub name: String,
    /// Its number in the pool, from 0.
    #[serde(default)]
    #[schema(required = true)]
    pub number: u16,
    /// Its id, which never changes and is never reused: 32 hex digits.
    #[serde(default)]
    #[schema(required = true)]
    pub id: String,
    /// Its state in the pool.
    #[serde(default)]
    #[schema(required = true)]
    pub state: DeviceState,
    /// Why it is out, in one sentence; null if it is not.
    #[serde(default)]
    #[schema(required = true)]
    pub why_out: Option<String>,
    /// Its progress, if it is catching up and the progress is known.
    #[serde(default)]
    #[schema(required = true)]
    pub catching_up: Option<CatchingUp>,
    /// Its parts, in a striped pool; null otherwise.
    #[serde(default)]
    #[schema(required = true)]
    pub parts: Option<DeviceParts>,
    /// Its size in bytes; 0 if it is missing.
    #[serde(default)]
    #[schema(required = true)]
    pub len_bytes: u64,
    /// Failed reads since the start; the data was read from another device. Only for a
    /// pool on several devices only.
    #[serde(default)]
    #[schema(required = true)]
    pub read_errors: u64,
    /// Failed writes and flushes since the start. Only for a pool on several
    /// only.
    #[serde(default)]
    #[schema(required = true)]
    pub write_errors: u64,
    /// Places on it that had wrong content, and were rewritten from
    /// another device, since the start.
    #[serde(default)]
    #[schema(required = true)]
    pub mended: u64,
    /// Bytes of the pool that it holds.
    pub capacity_bytes: u64,
    /// Whether it accepts writes: after a write has failed, none is accepted until the next start.
    pub takes_writes: bool,
    /// How often a write or a flush that the device had refused was retried since the start.
    /// Commands that wait for it wait longer, and get no error.
    pub retries: u64,
    /// How often refused data was written elsewhere, since the start.
    pub moved_writes: u64,
    /// Failed flushes since the start. The data that they should have made durable was written
    /// again, or no more writes are accepted.
    pub failed_flushes: u64,
    /// Bytes of memory with written data that is not flushed yet, kept in case a flush fails. Only
    /// if writes are acknowledged before they are durable.
    pub unflushed_bytes: u64,
    /// Reads that hosts' commands wait for. For several devices they are counted together.
    pub reads: DeviceTransfers,
    /// Commits of the log, with their flushes. They are counted in the same way.
    pub commits: DeviceTransfers,
    /// All calls to this device since the start; empty in the total of several devices.
    #[serde(default)]
    #[schema(required = true)]
    pub calls: DeviceCalls,
    /// The health that a block device reports; null for a file, and before the first query.
    #[serde(default)]
    #[schema(required = true)]
    pub health: Option<DeviceHealth>,
}

/// The health that a block device reports (SMART), queried once an hour. Unreported values are
/// null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceHealth {
    /// Whether it reports itself as healthy; false: it is failing, or soon will.
    #[schema(required = true)]
    pub passed: Option<bool>,
    /// The used endurance, in percent; may be more than 100.
    #[schema(required = true)]
    pub wear_percent: Option<u64>,
    /// Its temperature, in degrees Celsius.
    #[schema(required = true)]
    pub temperature_c: Option<i64>,
    /// Uncorrected errors of its medium.
    #[schema(required = true)]
    pub media_errors: Option<u64>,
    /// Its power-on time, in hours.
    #[schema(required = true)]
    pub power_on_hours: Option<u64>,
    /// The time of this report, in milliseconds since 1970; null if there was none.
    #[schema(required = true)]
    pub told_ms: Option<u64>,
    /// Why the last query failed, in one sentence.
    #[schema(required = true)]
    pub trouble: Option<String>,
}

/// The calls to a device since the start, including background work and retries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceCalls {
    /// Reads.
    pub reads: DeviceTransfers,
    /// Writes, including those with a flush.
    pub writes: DeviceTransfers,
    /// Separate flushes.
    pub flushes: DeviceTransfers,
    /// Reads of its data that were served by other devices, because it was late,
    /// failed them, or was not in.
    pub reads_elsewhere: u64,
}

/// The transfers of hosts' commands with a device since the start. Background work, such as
/// checkpoints and scrubbing, is not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceTransfers {
    /// Transfers that have not ended yet.
    pub under_way: u64,
    /// Successful transfers.
    pub ok: u64,
    /// Failed transfers.
    pub failed: u64,
    /// Bytes of the successful transfers.
    pub bytes: u64,
    /// The sum of the latencies of the successful ones, in microseconds.
    pub ok_latency_us: u64,
    /// The longest of these latencies, in microseconds.
    #[serde(default)]
    #[schema(required = true)]
    pub ok_latency_us_max: u64,
    /// The distribution of these latencies: a histogram, from the shortest to
    /// the longest.
    #[serde(default)]
    #[schema(required = true)]
    pub latencies: Vec<LatencyBucket>,
}

impl DeviceTransfers {
    /// Returns how many successful calls took longer than `us` microseconds, as precisely as the
    /// bounds of the buckets allow.
    pub fn longer_than(&self, us: u64) -> u64 {
        let is_longer = |bucket: &&LatencyBucket| bucket.up_to_us.is_none_or(|up_to| up_to > us);
        self.latencies.iter().filter(is_longer).map(|bucket| bucket.count).sum()
    }

    /// Returns the latency that `percent` percent of the successful calls did not exceed, in
    /// microseconds: the upper bound of their bucket, or the longest latency. `None` if there were
    /// none.
    pub fn percentile_us(&self, percent: u8) -> Option<u64> {
        latency::percentile_us(&self.latencies, percent, self.ok_latency_us_max)
    }
}

/// Lists the devices of the pool with their counters.
#[utoipa::path(get, path = "/v1/devices", responses(
    (status = 200, body = Devices),
    (status = 401, body = Refusal),
))]
pub(crate) async fn devices(State(interface): Shared) -> Result<Json<Devices>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.devices()))).await
}

impl Interface {
    /// Returns the devices, with how much of the pool each of them holds.
    pub(crate) fn devices(&self) -> Devices {
        let mut devices = self.telemetry.devices();
        let capacity_bytes = self.array.pool().capacity_bytes;
        for device in devices.devices.iter_mut().chain(&mut devices.together) {
            device.capacity_bytes = capacity_bytes;
        }
        devices
    }
}
