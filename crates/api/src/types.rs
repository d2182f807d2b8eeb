//! The types that are sent and returned. The command line uses the same types.

use array::VolumeInfo;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{OffloadChange, OffloadSettings, Optimize, Space, Written, ratio};

/// The program and its version, and the text to show before a login. This needs no token.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// `holdfast`.
    pub product: String,
    /// The version of the program.
    pub version: String,
    /// The versions of the interface that it supports.
    pub api: Vec<String>,
    /// The text to show before a login, in one line or several; empty for none.
    #[serde(default)]
    #[schema(required = true)]
    pub banner: String,
}

/// The state of the array.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// The name of the array.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// The iSCSI name of the target.
    pub target_name: String,
    /// The addresses at which the target listens.
    pub portals: Vec<String>,
    /// When a write is acknowledged: `commit` (it is on the medium) or `flush`.
    pub durability: String,
    /// When the program was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// The number of volumes.
    pub volumes: usize,
    /// The number of snapshots.
    pub snapshots: usize,
    /// The number of both that are destroyed and not yet eradicated; not counted above.
    pub destroyed: usize,
    /// The number of hosts.
    pub hosts: usize,
    /// The number of connections.
    pub connections: usize,
    /// The pool.
    pub pool: Pool,
    /// The background pass of reduction.
    pub optimize: Optimize,
}

/// The state of the pool.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// The pool's id, which never changes: 32 hex digits.
    pub id: String,
    /// How often it was opened.
    pub epoch: u64,
    /// The capacity of the pool, in bytes.
    pub capacity_bytes: u64,
    /// Bytes that can't be written now: data, metadata, log, and dead blocks among them.
    pub allocated_bytes: u64,
    /// Bytes in use: live bytes, and the reserve for reclaim. Thresholds refer to this; dead blocks
    /// that are not reclaimed yet do not count.
    pub used_bytes: u64,
    /// Bytes of stored volume data, after reduction.
    pub data_bytes: u64,
    /// The provisioned size of volumes, in bytes.
    pub provisioned_bytes: u64,
    /// Bytes that hosts have written and not unmapped since.
    pub mapped_bytes: u64,
    /// The part of `mapped_bytes` that is data: neither zeros nor a pattern of 32 bits, which take
    /// no block.
    #[serde(default)]
    #[schema(required = true)]
    pub mapped_data_bytes: u64,
    /// `mapped_bytes`, including zeros and patterns, divided by `data_bytes`: what vendors call
    /// data reduction; `null` if no data is stored.
    #[schema(required = true)]
    pub data_reduction: Option<f64>,
    /// `mapped_data_bytes` divided by `data_bytes`: without zeros and patterns.
    #[serde(default)]
    #[schema(required = true)]
    pub reduction_without_zeros: Option<f64>,
    /// `mapped_data_bytes` divided by `allocated_bytes`: what the medium holds for it now,
    /// including metadata, log, and dead blocks that are not reclaimed yet.
    #[serde(default)]
    #[schema(required = true)]
    pub reduction_to_allocated: Option<f64>,
    /// `provisioned_bytes` divided by `data_bytes`: with thin provisioning.
    #[schema(required = true)]
    pub total_reduction: Option<f64>,
    /// Bytes of log that a recovery would replay.
    pub log_bytes: u64,
    /// Commits since the start.
    pub commit_count: u64,
    /// Checkpoints since the start.
    pub checkpoint_count: u64,
    /// Bytes written since the start.
    #[serde(default)]
    #[schema(required = true)]
    pub written: Written,
    /// The version of the format on the device.
    #[serde(default)]
    #[schema(required = true)]
    pub format_version: u32,
    /// The latest version that this array knows.
    #[serde(default)]
    #[schema(required = true)]
    pub latest_format_version: u32,
    /// Whether the pool has all features of this version; otherwise it can be upgraded.
    #[serde(default)]
    #[schema(required = true)]
    pub format_is_latest: bool,
    /// Bytes of metadata that are still in the format before the last upgrade. They are rewritten
    /// in the background.
    #[serde(default)]
    #[schema(required = true)]
    pub upgrade_left_bytes: u64,
}

impl From<array::PoolStatus> for Pool {
    fn from(status: array::PoolStatus) -> Self {
        Self {
            id: status.pool_id.iter().map(|byte| format!("{byte:02x}")).collect(),
            epoch: status.epoch,
            capacity_bytes: status.capacity_bytes,
            allocated_bytes: status.allocated_bytes,
            used_bytes: status.used_bytes,
            data_bytes: status.data_bytes,
            provisioned_bytes: status.provisioned_bytes,
            mapped_bytes: status.mapped_bytes,
            mapped_data_bytes: status.mapped_data_bytes,
            data_reduction: ratio(status.mapped_bytes, status.data_bytes),
            reduction_without_zeros: ratio(status.mapped_data_bytes, status.data_bytes),
            reduction_to_allocated: ratio(status.mapped_data_bytes, status.allocated_bytes),
            total_reduction: ratio(status.provisioned_bytes, status.data_bytes),
            log_bytes: status.log_bytes,
            commit_count: status.commit_count,
            checkpoint_count: status.checkpoint_count,
            written: status.written.into(),
            format_version: status.upgrade.version,
            latest_format_version: status.upgrade.latest_version,
            format_is_latest: status.upgrade.is_latest,
            upgrade_left_bytes: status.upgrade.left_bytes,
        }
    }
}

/// The changes of the pool.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolChange {
    /// Its new capacity: more than now. A file is extended; a device must be that large already.
    pub capacity_bytes: u64,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Volume {
    /// Its id, which never changes.
    pub id: u64,
    /// Its name.
    pub name: String,
    /// Its size.
    pub size_bytes: u64,
    /// Its logical block: 512 or 4096.
    pub block_bytes: u64,
    /// Its serial number: 24 upper-case hex digits, never used twice.
    pub serial: String,
    /// Its NAA designator as hosts show it.
    pub naa: String,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// Bytes that hosts have written and not unmapped since.
    pub mapped_bytes: u64,
    /// The part of them that is stored data, not zeros or a pattern, before sharing.
    pub data_bytes: u64,
    /// Its stored data; `null` until a pass of accounting has covered it.
    #[schema(required = true)]
    pub space: Option<Space>,
    /// The offloads that are on in the volume's own setting.
    pub offloads: OffloadSettings,
    /// The offloads in effect: on in both the volume's and the array's settings.
    pub offloads_in_effect: OffloadSettings,
    /// Whether written blocks that are already stored are shared instead of stored again.
    pub deduplication: bool,
    /// Whether written data is compressed.
    pub compression: bool,
    /// How many hosts are connected to it.
    pub connections: usize,
    /// How many snapshots it has.
    pub snapshots: usize,
    /// If it is destroyed: when it is eradicated, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eradicate_ms: Option<u64>,
}

impl From<VolumeInfo> for Volume {
    fn from(volume: VolumeInfo) -> Self {
        Self {
            id: volume.id.0,
            name: volume.name,
            size_bytes: volume.size_bytes,
            block_bytes: volume.logical_block.bytes(),
            serial: volume.serial,
            naa: volume.naa,
            created_ms: volume.created_ms,
            mapped_bytes: volume.mapped_bytes,
            data_bytes: volume.data_bytes,
            space: volume.space.map(Space::from),
            offloads: volume.offloads.into(),
            offloads_in_effect: volume.offloads_in_effect.into(),
            deduplication: volume.reduction.deduplication,
            compression: volume.reduction.compression,
            connections: volume.connection_count,
            snapshots: volume.snapshot_count,
            eradicate_ms: volume.eradicate_ms,
        }
    }
}

/// A page of volumes, in the order of their names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Volumes {
    /// The volumes.
    pub volumes: Vec<Volume>,
    /// Whether there are more after the last one; to get them, pass its name as `after`.
    pub more: bool,
}

/// A volume to create.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeCreate {
    /// 1 to 63 of A-Z a-z 0-9 - _.
    pub name: String,
    /// A multiple of 4096, up to 64 TiB.
    pub size_bytes: u64,
    /// 512 (the default) or 4096.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_bytes: Option<u64>,
    /// See [`Volume::deduplication`]; on by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deduplication: Option<bool>,
    /// See [`Volume::compression`]; on by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<bool>,
    /// The connections of the new volume: if one of these is refused, the volume is not created.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect: Option<VolumeConnect>,
}

/// The connections of a new volume, each with a free LUN that was not released within the last
/// four hours; at most 500 in total.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeConnect {
    /// The names of hosts.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// The names of host groups; none of their hosts may be named as well.
    #[serde(default)]
    pub host_groups: Vec<String>,
}

/// The changes of a volume.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeChange {
    /// A new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// A new size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// Whether a smaller size may cut data off.
    #[serde(default)]
    pub truncate: bool,
    /// Offloads to switch on or off.
    #[serde(default)]
    pub offloads: OffloadChange,
    /// See [`Volume::deduplication`]; for data written from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deduplication: Option<bool>,
    /// See [`Volume::compression`]; for data written from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<bool>,
}
