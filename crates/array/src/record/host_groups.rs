//! The records of host groups.

use block::VolumeId;
use serde::{Deserialize, Serialize};

use super::row::{VERSION, encode, key};
use crate::error::Error;
use crate::objects::host_groups::{HostGroup, HostGroupId};
use crate::values::name::HostGroupName;

#[derive(Serialize, Deserialize)]
pub(super) struct HostGroupRow {
    v: u8,
    name: String,
    created_ms: u64,
}

pub(crate) fn host_group_key(id: HostGroupId) -> Vec<u8> {
    key(b'H', &[id.0])
}

pub(crate) fn shared_connection_key(group: HostGroupId, volume: VolumeId) -> Vec<u8> {
    key(b'C', &[group.0, volume.0])
}

pub(crate) fn host_group(group: &HostGroup) -> Result<Vec<u8>, Error> {
    let (name, created_ms) = (group.name.to_string(), group.created_ms);
    encode(&HostGroupRow { v: VERSION, name, created_ms })
}

pub(super) fn decode_host_group(row: &HostGroupRow) -> Result<HostGroup, Error> {
    let name = HostGroupName::new(&row.name)?;
    Ok(HostGroup { name, created_ms: row.created_ms })
}
