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
    /// Of a pool on several devices: what hosts' commands asked of all of them together, under the
    /// name `pool`. Null if there is one, which says so itself.
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

/// What a device does in its pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// It has all that it should have of the pool.
    #[default]
    In,
    /// It gets all that is written, and what it does not have yet is copied to it.
    CatchingUp,
    /// It has failed, or was taken out: nothing is asked of it.
    Out,
    /// It was not there when the pool was opened.
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

/// How far a device that is catching up has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CatchingUp {
    /// Bytes that it has of those.
    pub done_bytes: u64,
    /// Bytes that it needs.
    pub all_bytes: u64,
    /// How many seconds it takes yet, by the rate of the last minute; null while that is not known.
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
    /// How many there are.
    pub all: u32,
    /// How many are in use.
    pub used: u32,
    /// Whether what it has is moved to others, and it leaves the pool then.
    pub is_emptied: bool,
    /// Of one that is emptied, out or missing: how many seconds it takes yet until others have all
    /// that is in use of it, by the rate of the last minute; null while that is not known.
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
    /// The path of the file, or the name of the device in `/dev/disk/by-id`, its path if it has no
    /// such; empty if it is missing.
    pub name: String,
    /// Its number in the pool, from 0 on.
    #[serde(default)]
    #[schema(required = true)]
    pub number: u16,
    /// Its id, which never changes and is never given again: 32 hex digits.
    #[serde(default)]
    #[schema(required = true)]
    pub id: String,
    /// What it does in the pool.
    #[serde(default)]
    #[schema(required = true)]
    pub state: DeviceState,
    /// Why it is out, in one sentence; null if it is not.
    #[serde(default)]
    #[schema(required = true)]
    pub why_out: Option<String>,
    /// How far it has come, if it is catching up and that is known.
    #[serde(default)]
    #[schema(required = true)]
    pub catching_up: Option<CatchingUp>,
    /// How many parts of it the pool has, in stripes; null otherwise.
    #[serde(default)]
    #[schema(required = true)]
    pub parts: Option<DeviceParts>,
    /// How long it is, in bytes; 0 if it is missing.
    #[serde(default)]
    #[schema(required = true)]
    pub len_bytes: u64,
    /// Reads of it that failed since the start; what was to be read was read from another one. Of a
    /// pool on several devices only.
    #[serde(default)]
    #[schema(required = true)]
    pub read_errors: u64,
    /// Writes to it and flushes of it that failed since the start. Of a pool on several devices
    /// only.
    #[serde(default)]
    #[schema(required = true)]
    pub write_errors: u64,
    /// Places on it that had something else than what was written, and were written anew from
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
    /// How often something was written elsewhere that the device had refused, since the start.
    pub moved_writes: u64,
    /// How many flushes have failed since the start. What they should have made durable was written
    /// again, or no writes are accepted any more.
    pub failed_flushes: u64,
    /// Bytes of memory that hold what was written and not flushed yet, in case a flush fails. Only
    /// where writes are answered before they are durable.
    pub unflushed_bytes: u64,
    /// Reads that hosts' commands wait for. Those of several devices are counted together.
    pub reads: DeviceTransfers,
    /// Commits of the log, with their flushes. They are counted in the same way.
    pub commits: DeviceTransfers,
    /// What this device was asked by whomever since the start; of all together it is nothing.
    #[serde(default)]
    #[schema(required = true)]
    pub calls: DeviceCalls,
    /// What a block device says of its own health; null of a file, and before it was asked.
    #[serde(default)]
    #[schema(required = true)]
    pub health: Option<DeviceHealth>,
}

/// What a block device says of its own health (SMART), once an hour. Null is what it does not tell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceHealth {
    /// Whether it takes itself for sound; false: it says that it fails, or soon will.
    #[schema(required = true)]
    pub passed: Option<bool>,
    /// How many percent of what it should endure are used; may be more than 100.
    #[schema(required = true)]
    pub wear_percent: Option<u64>,
    /// How warm it is, in degrees Celsius.
    #[schema(required = true)]
    pub temperature_c: Option<i64>,
    /// Errors of the medium that it could not correct.
    #[schema(required = true)]
    pub media_errors: Option<u64>,
    /// Hours that it was on.
    #[schema(required = true)]
    pub power_on_hours: Option<u64>,
    /// When it said so, in milliseconds since 1970; null if it never did.
    #[schema(required = true)]
    pub told_ms: Option<u64>,
    /// Why it did not say anything the last time, in one sentence.
    #[schema(required = true)]
    pub trouble: Option<String>,
}

/// What one device was asked since the start, background work and what was tried again included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeviceCalls {
    /// Reads.
    pub reads: DeviceTransfers,
    /// Writes, those that carry their flush among them.
    pub writes: DeviceTransfers,
    /// Flushes by themselves.
    pub flushes: DeviceTransfers,
    /// Reads of what it should have that were answered with what other devices have: it was late,
    /// had failed them, or was not in.
    pub reads_elsewhere: u64,
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
    /// The longest of these latencies, in microseconds.
    #[serde(default)]
    #[schema(required = true)]
    pub ok_latency_us_max: u64,
    /// How many of the successful ones took how long: a histogram, from the shortest latencies to
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
