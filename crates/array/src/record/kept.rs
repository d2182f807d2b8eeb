//! The records of snapshots and groups. There may be a hundred thousand of the former: they are
//! short.

use block::{SectorCount, VolumeId};
use serde::{Deserialize, Serialize};

use super::{Stored, VERSION, damaged, encode, key};
use crate::Error;
use crate::groups::{Group, GroupId};
use crate::name::{GroupName, Suffix};
use crate::snapshots::SnapshotRecord;

#[derive(Serialize, Deserialize)]
pub(super) struct SnapshotRow {
    v: u8,
    source: u64,
    suffix: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    sectors: u64,
    created_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eradicate_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct GroupRow {
    v: u8,
    name: String,
    members: Vec<u64>,
    next_suffix: u64,
    created_ms: u64,
}

pub(crate) fn snapshot_key(id: VolumeId) -> Vec<u8> {
    key(b'n', &[id.0])
}

pub(crate) fn group_key(id: GroupId) -> Vec<u8> {
    key(b'g', &[id.0])
}

pub(crate) fn snapshot(snapshot: &SnapshotRecord) -> Result<Vec<u8>, Error> {
    encode(&SnapshotRow {
        v: VERSION,
        source: snapshot.source.0,
        suffix: snapshot.suffix.to_string(),
        group: snapshot.group.as_ref().map(ToString::to_string),
        sectors: snapshot.size.0,
        created_ms: snapshot.created_ms,
        eradicate_ms: snapshot.eradicate_ms,
    })
}

pub(crate) fn group(group: &Group) -> Result<Vec<u8>, Error> {
    encode(&GroupRow {
        v: VERSION,
        name: group.name.to_string(),
        members: group.members.iter().map(|id| id.0).collect(),
        next_suffix: group.next_suffix,
        created_ms: group.created_ms,
    })
}

pub(super) fn decode_snapshot(
    key: &[u8],
    id: VolumeId,
    row: &SnapshotRow,
) -> Result<Stored, Error> {
    if row.source >= id.0 {
        return Err(damaged(key, "a snapshot that is older than its volume"));
    }
    Ok(Stored::Snapshot(
        id,
        SnapshotRecord {
            source: VolumeId(row.source),
            suffix: Suffix::stored(&row.suffix)?,
            group: row.group.as_deref().map(GroupName::new).transpose()?,
            size: SectorCount(row.sectors),
            created_ms: row.created_ms,
            eradicate_ms: row.eradicate_ms,
        },
    ))
}

pub(super) fn decode_group(id: GroupId, row: GroupRow) -> Result<Stored, Error> {
    let group = Group {
        name: GroupName::new(&row.name)?,
        members: row.members.into_iter().map(VolumeId).collect(),
        next_suffix: row.next_suffix,
        created_ms: row.created_ms,
    };
    Ok(Stored::Group(id, group))
}
