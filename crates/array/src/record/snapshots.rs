//! The records of snapshots. There may be a hundred thousand of them, so they are short.

use block::{SectorCount, VolumeId};
use serde::{Deserialize, Serialize};

use super::row::{VERSION, damaged, encode, key};
use crate::error::Error;
use crate::objects::groups::GroupId;
use crate::objects::snapshots::SnapshotRecord;
use crate::values::name::{GroupName, Suffix};

#[derive(Serialize, Deserialize)]
pub(super) struct SnapshotRow {
    v: u8,
    source: u64,
    suffix: String,
    /// The name of its group, in records of versions without ids.
    #[serde(default, skip_serializing)]
    group: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    group_id: Option<u64>,
    /// Whether the retention of its group applies to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    retained: bool,
    sectors: u64,
    created_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eradicate_ms: Option<u64>,
}

pub(crate) fn snapshot_key(id: VolumeId) -> Vec<u8> {
    key(b'n', &[id.0])
}

pub(crate) fn snapshot(snapshot: &SnapshotRecord) -> Result<Vec<u8>, Error> {
    encode(&SnapshotRow {
        v: VERSION,
        source: snapshot.source.0,
        suffix: snapshot.suffix.to_string(),
        group: None,
        group_id: snapshot.group.map(|id| id.0),
        retained: snapshot.retained,
        sectors: snapshot.size.0,
        created_ms: snapshot.created_ms,
        eradicate_ms: snapshot.eradicate_ms,
    })
}

/// Decodes a snapshot, with the name of its group in old records without group ids.
pub(super) fn decode_snapshot(
    key: &[u8],
    id: VolumeId,
    row: &SnapshotRow,
) -> Result<(SnapshotRecord, Option<GroupName>), Error> {
    if row.source >= id.0 {
        return Err(damaged(key, "a snapshot that is older than its volume"));
    }
    Ok((
        SnapshotRecord {
            source: VolumeId(row.source),
            suffix: Suffix::stored(&row.suffix)?,
            group: row.group_id.map(GroupId),
            retained: row.retained,
            size: SectorCount(row.sectors),
            created_ms: row.created_ms,
            eradicate_ms: row.eradicate_ms,
        },
        row.group.as_deref().map(GroupName::new).transpose()?,
    ))
}
