//! The codes of errors, for programs.

use super::{Error, Kind};
use crate::container_kind::ContainerKind;

impl Error {
    /// Returns the code, for programs. Stable.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid { code, .. } => code,
            Self::VolumeExists(_) => "volume_exists",
            Self::NoSuchVolume(_) => "no_such_volume",
            Self::VolumeDestroyed(_) => "volume_destroyed",
            Self::ContainerExists(kind, _) => match kind {
                ContainerKind::VolumeGroup => "volume_group_exists",
                ContainerKind::Pod => "pod_exists",
            },
            Self::NoSuchContainer(kind, _) => match kind {
                ContainerKind::VolumeGroup => "no_such_volume_group",
                ContainerKind::Pod => "no_such_pod",
            },
            Self::ContainerDestroyed(kind, _) => match kind {
                ContainerKind::VolumeGroup => "volume_group_destroyed",
                ContainerKind::Pod => "pod_destroyed",
            },
            Self::ContainerNotEmpty(..) => "not_empty",
            Self::SnapshotExists(_) => "snapshot_exists",
            Self::NoSuchSnapshot(_) => "no_such_snapshot",
            Self::NoSuchGroupSnapshot(_) => "no_such_group_snapshot",
            Self::SnapshotDestroyed(_) => "snapshot_destroyed",
            Self::NotDestroyed(_) => "not_destroyed",
            Self::Eradicated(_) => "eradicated",
            Self::GroupExists(_) => "group_exists",
            Self::NoSuchGroup(_) => "no_such_group",
            Self::GroupDestroyed(_) => "group_destroyed",
            Self::InGroup { .. } => "in_group",
            Self::NoSuchTag { .. } => "no_such_tag",
            Self::HostExists(_) => "host_exists",
            Self::NoSuchHost(_) => "no_such_host",
            Self::HostGroupExists(_) => "host_group_exists",
            Self::NoSuchHostGroup(_) => "no_such_host_group",
            Self::InHostGroup { .. } => "in_host_group",
            Self::NotInHostGroup { .. } => "not_in_host_group",
            Self::HostGroupNotEmpty(_) => "host_group_not_empty",
            Self::UserExists(_) => "user_exists",
            Self::NoSuchUser(_) => "no_such_user",
            Self::BuiltInUser(_) => "built_in_user",
            Self::TokenExists { .. } => "token_exists",
            Self::NoSuchToken { .. } => "no_such_token",
            Self::NoSuchAlert(_) => "no_such_alert",
            Self::ReceiverExists { .. } => "receiver_exists",
            Self::NoSuchReceiver { .. } => "no_such_receiver",
            Self::InitiatorInUse { .. } => "initiator_in_use",
            Self::ConnectionExists { .. } => "connection_exists",
            Self::NoSuchConnection { .. } => "no_such_connection",
            Self::SharedConnection { .. } => "shared_connection",
            Self::LunInUse { .. } => "lun_in_use",
            Self::ExistingConnections { .. } => "existing_connections",
            Self::WouldTruncate { .. } => "would_truncate",
            Self::ScrubRunning => "scrub_running",
            Self::OptimizeRunning => "optimize_running",
            Self::Limit { .. } | Self::TooManyAtOnce { .. } => "limit_reached",
            Self::Damaged(_) => "damaged",
            Self::PoolFull => "pool_full",
            Self::DeviceFull(_) => "device_full",
            Self::DeviceRefuses => "device_refuses",
            Self::Store(_) => "store_failed",
        }
    }

    /// Returns the kind of the refusal.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Invalid { .. } | Self::WouldTruncate { .. } => Kind::Invalid,
            Self::NoSuchVolume(_)
            | Self::NoSuchContainer(..)
            | Self::NoSuchSnapshot(_)
            | Self::NoSuchGroupSnapshot(_)
            | Self::NoSuchGroup(_)
            | Self::NoSuchHost(_)
            | Self::NoSuchTag { .. }
            | Self::NoSuchHostGroup(_)
            | Self::NotInHostGroup { .. }
            | Self::NoSuchUser(_)
            | Self::NoSuchToken { .. }
            | Self::NoSuchAlert(_)
            | Self::NoSuchReceiver { .. }
            | Self::NoSuchConnection { .. } => Kind::NotFound,
            Self::VolumeExists(_)
            | Self::VolumeDestroyed(_)
            | Self::ContainerExists(..)
            | Self::ContainerDestroyed(..)
            | Self::ContainerNotEmpty(..)
            | Self::SnapshotExists(_)
            | Self::SnapshotDestroyed(_)
            | Self::NotDestroyed(_)
            | Self::Eradicated(_)
            | Self::GroupExists(_)
            | Self::GroupDestroyed(_)
            | Self::InGroup { .. }
            | Self::HostExists(_)
            | Self::HostGroupExists(_)
            | Self::InHostGroup { .. }
            | Self::HostGroupNotEmpty(_)
            | Self::UserExists(_)
            | Self::BuiltInUser(_)
            | Self::TokenExists { .. }
            | Self::ReceiverExists { .. }
            | Self::InitiatorInUse { .. }
            | Self::ConnectionExists { .. }
            | Self::SharedConnection { .. }
            | Self::LunInUse { .. }
            | Self::ExistingConnections { .. }
            | Self::ScrubRunning
            | Self::OptimizeRunning => Kind::Conflict,
            Self::Limit { .. }
            | Self::TooManyAtOnce { .. }
            | Self::PoolFull
            | Self::DeviceFull(_) => Kind::Full,
            Self::DeviceRefuses => Kind::Unavailable,
            Self::Damaged(_) | Self::Store(_) => Kind::Fault,
        }
    }
}
