//! What is sent and answered. The command line speaks in the same types.

use array::{ConnectionInfo, VolumeInfo};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{OffloadChange, OffloadSettings, Optimize, Space, Written, ratio};

/// Which program answers. The only answer that needs no token.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Version {
    /// `holdfast`.
    pub product: String,
    /// The version of the program.
    pub version: String,
    /// The versions of the interface that it speaks.
    pub api: Vec<String>,
}

/// How the array stands.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Status {
    /// What the array is called.
    pub name: String,
    /// The version of the program.
    pub version: String,
    /// The iSCSI name of the target.
    pub target_name: String,
    /// Where the target listens.
    pub portals: Vec<String>,
    /// When an answer is given: `commit` (it is on the medium) or `flush`.
    pub durability: String,
    /// When the program was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// How many volumes there are.
    pub volumes: usize,
    /// How many snapshots.
    pub snapshots: usize,
    /// How many of both are destroyed, besides, and not eradicated yet.
    pub destroyed: usize,
    /// How many hosts there are.
    pub hosts: usize,
    /// How many connections there are.
    pub connections: usize,
    /// The pool.
    pub pool: Pool,
    /// The background pass of reduction.
    pub optimize: Optimize,
}

/// How the pool stands.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Pool {
    /// The pool's name for ever: 32 hex digits.
    pub id: String,
    /// How often it was opened.
    pub epoch: u64,
    /// Bytes that it can hold.
    pub capacity_bytes: u64,
    /// Bytes that can't be written: data, metadata, log, and what is dead in them.
    pub allocated_bytes: u64,
    /// Bytes that are in use: what is live, and what is kept back for reclaim. Thresholds are of
    /// this; what is dead and not reclaimed yet does not count.
    pub used_bytes: u64,
    /// Bytes of volume data that are stored, after reduction.
    pub data_bytes: u64,
    /// Bytes that volumes are provisioned for.
    pub provisioned_bytes: u64,
    /// Bytes that hosts have written and not unmapped since.
    pub mapped_bytes: u64,
    /// Of `mapped_bytes`, those that are data: neither zeros nor a pattern of 32 bits, which cost
    /// no block.
    #[serde(default)]
    pub mapped_data_bytes: u64,
    /// How many times `mapped_bytes`, zeros and patterns included, is `data_bytes`: what vendors
    /// call data reduction; none where no data is stored.
    pub data_reduction: Option<f64>,
    /// How many times `mapped_data_bytes` is `data_bytes`: without zeros and patterns.
    #[serde(default)]
    pub reduction_without_zeros: Option<f64>,
    /// How many times `mapped_data_bytes` is `allocated_bytes`: what the medium holds for it now,
    /// with metadata, log, and what is dead and not reclaimed yet.
    #[serde(default)]
    pub reduction_to_allocated: Option<f64>,
    /// How many times `provisioned_bytes` is that: with thin provisioning.
    pub total_reduction: Option<f64>,
    /// Bytes of log that a recovery would replay.
    pub log_bytes: u64,
    /// Commits since the start.
    pub commit_count: u64,
    /// Checkpoints since the start.
    pub checkpoint_count: u64,
    /// Bytes written since the start.
    #[serde(default)]
    pub written: Written,
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
        }
    }
}

/// What to change of the pool.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PoolChange {
    /// What it shall hold: more than it does. A file is made longer; a device must be that long.
    pub capacity_bytes: u64,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Volume {
    /// Its id, for ever.
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
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// Bytes that hosts have written and not unmapped since.
    pub mapped_bytes: u64,
    /// Bytes of them that are stored data, not zeros or a pattern, before sharing.
    pub data_bytes: u64,
    /// What is stored for it; none before the first pass of accounting has seen it.
    pub space: Option<Space>,
    /// The offloads that are on in its own setting.
    pub offloads: OffloadSettings,
    /// Those that it takes: on in its own setting and in the array's.
    pub offloads_in_effect: OffloadSettings,
    /// Whether blocks that are stored already are named, not stored again, when they are written.
    pub deduplication: bool,
    /// Whether what is written is compressed.
    pub compression: bool,
    /// To how many hosts it is connected.
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

/// Some volumes, in the order of their names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Volumes {
    /// The volumes.
    pub volumes: Vec<Volume>,
    /// Whether there are more behind the last one: ask again with its name as `after`.
    pub more: bool,
}

/// A volume to make.
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
}

/// What to change of a volume.
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
    /// See [`Volume::deduplication`]: of what is written from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deduplication: Option<bool>,
    /// See [`Volume::compression`]: of what is written from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compression: Option<bool>,
}

/// A volume that a host may reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Connection {
    /// The volume.
    pub volume: String,
    /// The host.
    pub host: String,
    /// The host group by which it is connected, if the host does not have it privately.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_group: Option<String>,
    /// The LUN under which the host sees it.
    pub lun: u16,
}

impl From<ConnectionInfo> for Connection {
    fn from(connection: ConnectionInfo) -> Self {
        let ConnectionInfo { volume, host, host_group, lun } = connection;
        Self { volume, host, host_group, lun }
    }
}

/// Some connections, in the order of the hosts' names and the LUNs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Connections {
    /// The connections.
    pub connections: Vec<Connection>,
}

/// A connection to make.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionCreate {
    /// The volume.
    pub volume: String,
    /// The host.
    pub host: String,
    /// 1 to 16383; without it, the lowest that is free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lun: Option<u16>,
}

/// The settings of the array that are kept in its pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArraySettings {
    /// What the array is called.
    pub name: String,
    /// The iSCSI name of its target. Hosts see a change after the next start.
    pub target_name: String,
    /// The company identifier in the NAA designators of volumes that are made from now on.
    #[schema(example = "02-48-46")]
    pub company_id: String,
    /// The offloads that volumes may take.
    pub offloads: OffloadSettings,
    /// At how many percent of the pool in use hosts are told: up to 4.
    #[schema(example = json!([80]))]
    pub space_thresholds: Vec<u8>,
    /// For how many seconds what is destroyed can be recovered.
    #[schema(example = 86400)]
    pub eradication_delay_s: u64,
    /// Whether hosts without CHAP are refused at login.
    #[serde(default)]
    pub chap_required: bool,
}

impl From<array::Settings> for ArraySettings {
    fn from(settings: array::Settings) -> Self {
        Self {
            name: settings.name.to_string(),
            target_name: settings.target_name.to_string(),
            company_id: settings.company_id.to_string(),
            offloads: settings.offloads.into(),
            space_thresholds: settings.space_thresholds.percents().to_vec(),
            eradication_delay_s: settings.eradication_delay_s,
            chap_required: settings.chap_required,
        }
    }
}

/// What to change of the settings.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArraySettingsChange {
    /// See [`ArraySettings::name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// See [`ArraySettings::target_name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_name: Option<String>,
    /// See [`ArraySettings::company_id`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub company_id: Option<String>,
    /// Offloads to switch on or off, for all volumes.
    #[serde(default)]
    pub offloads: OffloadChange,
    /// All thresholds from now on: up to 4 of 1 to 99 percent; none to tell hosts nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space_thresholds: Option<Vec<u8>>,
    /// From 1 second to 30 days. What is destroyed already keeps the time that it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eradication_delay_s: Option<u64>,
    /// See [`ArraySettings::chap_required`]. Sessions that there are go on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap_required: Option<bool>,
}
