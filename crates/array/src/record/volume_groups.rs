//! The records of volume groups. Their volumes' names say who is in them.

use serde::{Deserialize, Serialize};

use super::row::{VERSION, encode, key};
use crate::error::Error;
use crate::objects::volume_groups::{VolumeGroup, VolumeGroupId};
use crate::values::name::VolumeGroupName;

#[derive(Serialize, Deserialize)]
pub(super) struct VolumeGroupRow {
    v: u8,
    name: String,
    created_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eradicate_ms: Option<u64>,
}

pub(crate) fn volume_group_key(id: VolumeGroupId) -> Vec<u8> {
    key(b'V', &[id.0])
}

pub(crate) fn volume_group(group: &VolumeGroup) -> Result<Vec<u8>, Error> {
    encode(&VolumeGroupRow {
        v: VERSION,
        name: group.name.to_string(),
        created_ms: group.created_ms,
        eradicate_ms: group.eradicate_ms,
    })
}

pub(super) fn decode_volume_group(row: &VolumeGroupRow) -> Result<VolumeGroup, Error> {
    Ok(VolumeGroup {
        name: VolumeGroupName::new(&row.name)?,
        created_ms: row.created_ms,
        eradicate_ms: row.eradicate_ms,
    })
}
