//! The records of hosts, with their CHAP secrets, and of connections.

use block::VolumeId;
use serde::{Deserialize, Serialize};

use super::row::{VERSION, encode, key};
use crate::error::Error;
use crate::objects::host_groups::HostGroupId;
use crate::objects::hosts::{Host, HostId};
use crate::values::chap::{Chap, ChapUser};
use crate::values::name::{HostName, InitiatorName};
use crate::values::personality::Personality;

#[derive(Serialize, Deserialize)]
pub(super) struct HostRow {
    v: u8,
    name: String,
    initiators: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chap: Option<UserRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    chap_target: Option<UserRow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    personality: Option<String>,
    /// The id of its host group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<u64>,
    created_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct UserRow {
    user: String,
    secret: String,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ConnectionRow {
    v: u8,
    pub(super) lun: u16,
}

pub(crate) fn host_key(id: HostId) -> Vec<u8> {
    key(b'h', &[id.0])
}

pub(crate) fn connection_key(host: HostId, volume: VolumeId) -> Vec<u8> {
    key(b'c', &[host.0, volume.0])
}

pub(crate) fn host(host: &Host) -> Result<Vec<u8>, Error> {
    let row = |user: &ChapUser| UserRow {
        user: user.user.clone(),
        secret: user.secret.expose().to_owned(),
    };
    let chap = host.chap.as_ref();
    encode(&HostRow {
        v: VERSION,
        name: host.name.to_string(),
        initiators: host.initiators.iter().map(ToString::to_string).collect(),
        chap: chap.map(|chap| row(&chap.initiator)),
        chap_target: chap.and_then(|chap| chap.target.as_ref()).map(row),
        personality: host.personality.as_ref().map(ToString::to_string),
        group: host.group.map(|id| id.0),
        created_ms: host.created_ms,
    })
}

pub(crate) fn connection(lun: u16) -> Result<Vec<u8>, Error> {
    encode(&ConnectionRow { v: VERSION, lun })
}

pub(super) fn decode_host(row: &HostRow) -> Result<Host, Error> {
    let user = |row: &UserRow| ChapUser::new(&row.user, &row.secret);
    let chap = match &row.chap {
        None => None,
        Some(initiator) => {
            let target = row.chap_target.as_ref().map(user).transpose()?;
            Some(Chap::new(user(initiator)?, target)?)
        }
    };
    let initiators = row.initiators.iter().map(|name| InitiatorName::new(name));
    Ok(Host {
        name: HostName::new(&row.name)?,
        initiators: initiators.collect::<Result<_, _>>()?,
        chap,
        personality: row.personality.as_deref().map(Personality::new).transpose()?,
        group: row.group.map(HostGroupId),
        created_ms: row.created_ms,
    })
}
