//! The records of groups.

use block::VolumeId;
use serde::{Deserialize, Serialize};

use super::row::{VERSION, encode, key};
use crate::error::Error;
use crate::objects::groups::{Group, GroupId, Members};
use crate::objects::host_groups::HostGroupId;
use crate::objects::hosts::HostId;
use crate::values::name::GroupName;
use crate::values::retention::Retention;
use crate::values::schedule::SnapshotSchedule;

/// Optional fields are absent in records of versions without schedules.
#[derive(Serialize, Deserialize)]
pub(super) struct GroupRow {
    v: u8,
    name: String,
    members: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    hosts: Vec<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    host_groups: Vec<u64>,
    next_suffix: u64,
    created_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schedule: Option<ScheduleRow>,
    /// Retention: all for this many seconds, then this many per day for this many days.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retention: Option<(u64, u32, u32)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eradicate_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct ScheduleRow {
    enabled: bool,
    frequency_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at_ms: Option<u64>,
    /// When the next snapshots are due.
    next_ms: u64,
}

pub(crate) fn group_key(id: GroupId) -> Vec<u8> {
    key(b'g', &[id.0])
}

pub(crate) fn group(group: &Group) -> Result<Vec<u8>, Error> {
    let SnapshotSchedule { enabled, frequency_ms, at_ms } = group.schedule;
    let Retention { all_for_s, per_day, days } = group.retention;
    encode(&GroupRow {
        v: VERSION,
        name: group.name.to_string(),
        members: group.members.volumes.iter().map(|id| id.0).collect(),
        hosts: group.members.hosts.iter().map(|id| id.0).collect(),
        host_groups: group.members.host_groups.iter().map(|id| id.0).collect(),
        next_suffix: group.next_suffix,
        created_ms: group.created_ms,
        schedule: Some(ScheduleRow { enabled, frequency_ms, at_ms, next_ms: group.next_ms }),
        retention: Some((all_for_s, per_day, days)),
        eradicate_ms: group.eradicate_ms,
    })
}

pub(super) fn decode_group(row: GroupRow) -> Result<Group, Error> {
    let schedule = row.schedule.as_ref().map(|row| SnapshotSchedule {
        enabled: row.enabled,
        frequency_ms: row.frequency_ms,
        at_ms: row.at_ms,
    });
    let schedule = schedule.unwrap_or_default();
    let retention = row.retention.map_or_else(Retention::default, |(all_for_s, per_day, days)| {
        Retention { all_for_s, per_day, days }
    });
    schedule.check()?;
    retention.check()?;
    Ok(Group {
        name: GroupName::new(&row.name)?,
        members: Members {
            volumes: row.members.into_iter().map(VolumeId).collect(),
            hosts: row.hosts.into_iter().map(HostId).collect(),
            host_groups: row.host_groups.into_iter().map(HostGroupId).collect(),
        },
        next_suffix: row.next_suffix,
        created_ms: row.created_ms,
        schedule,
        next_ms: row.schedule.map_or(0, |row| row.next_ms),
        retention,
        eradicate_ms: row.eradicate_ms,
    })
}
