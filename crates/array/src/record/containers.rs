//! The records of volume groups and pods. The names of volumes contain that of their container.

use block::VolumeLimits;
use serde::{Deserialize, Serialize};

use super::row::{VERSION, encode, key};
use crate::container_kind::ContainerKind;
use crate::error::Error;
use crate::objects::containers::{Container, ContainerId};
use crate::values::container::ContainerName;
use crate::values::limits;

#[derive(Serialize, Deserialize)]
pub(super) struct ContainerRow {
    v: u8,
    name: String,
    created_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eradicate_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bandwidth_limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iops_limit: Option<u64>,
}

pub(crate) fn container_key(id: ContainerId) -> Vec<u8> {
    let letter = match id.kind {
        ContainerKind::VolumeGroup => b'V',
        ContainerKind::Pod => b'P',
    };
    key(letter, &[id.number])
}

pub(crate) fn container(of: &Container) -> Result<Vec<u8>, Error> {
    encode(&ContainerRow {
        v: VERSION,
        name: of.name.to_string(),
        created_ms: of.created_ms,
        eradicate_ms: of.eradicate_ms,
        bandwidth_limit: of.limits.bandwidth_bytes_per_s,
        iops_limit: of.limits.iops,
    })
}

/// Returns the id in a key with this letter.
pub(super) fn container_id(letter: u8, number: u64) -> ContainerId {
    let kind = match letter {
        b'V' => ContainerKind::VolumeGroup,
        _ => ContainerKind::Pod,
    };
    ContainerId { kind, number }
}

pub(super) fn decode_container(
    kind: ContainerKind,
    row: &ContainerRow,
) -> Result<Container, Error> {
    let limits = VolumeLimits { bandwidth_bytes_per_s: row.bandwidth_limit, iops: row.iops_limit };
    limits::check(limits)?;
    Ok(Container {
        limits,
        name: ContainerName::new(kind, &row.name)?,
        created_ms: row.created_ms,
        eradicate_ms: row.eradicate_ms,
    })
}
