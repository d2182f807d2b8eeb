//! The records of released LUNs.
//!
//! Their keys begin like those of a lab's report, which earlier versions drop with their first
//! change, whatever the rest is. No report has a name with a zero byte.

use block::VolumeId;
use serde::{Deserialize, Serialize};

use super::row::{Row, VERSION, damaged, encode, parse};
use crate::error::Error;
use crate::objects::host_groups::HostGroupId;
use crate::objects::hosts::HostId;
use crate::objects::releases::{LunOwner, Release, ReleaseKey, ReleaseUpdate};

#[derive(Serialize, Deserialize)]
struct ReleaseRow {
    v: u8,
    at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    volume: Option<u64>,
}

/// Of the record of a host.
#[derive(Deserialize)]
struct MembershipRow {
    #[serde(default)]
    group: Option<u64>,
}

fn release_key(key: ReleaseKey) -> Vec<u8> {
    let (kind, id, rest) = match key {
        ReleaseKey::Lun(LunOwner::Host(id), lun) => (b'h', id.0, lun.to_be_bytes().to_vec()),
        ReleaseKey::Lun(LunOwner::Group(id), lun) => (b'g', id.0, lun.to_be_bytes().to_vec()),
        ReleaseKey::Membership(host, group) => (b'm', host.0, group.0.to_be_bytes().to_vec()),
    };
    [&[b'L', 0, kind][..], &id.to_be_bytes(), &rest].concat()
}

/// Returns the record of a release, or its removal.
pub(crate) fn release_row((key, release): ReleaseUpdate) -> Result<Row, Error> {
    let row = |release: Release| {
        let volume = release.volume.map(|id| id.0);
        encode(&ReleaseRow { v: VERSION, at_ms: release.at_ms, volume })
    };
    Ok((release_key(key), release.map(row).transpose()?))
}

/// Decodes a record whose key begins with `L` and a zero byte.
pub(super) fn decode_release(key: &[u8], value: &[u8]) -> Result<(ReleaseKey, Release), Error> {
    let bad_key = || damaged(key, "the key is damaged");
    let (kind, rest) = key.get(2..).and_then(<[u8]>::split_first).ok_or_else(bad_key)?;
    let (id, rest) = rest.split_first_chunk().ok_or_else(bad_key)?;
    let id = u64::from_be_bytes(*id);
    let lun = || rest.try_into().map(u16::from_be_bytes).map_err(|_| bad_key());
    let of = match kind {
        b'h' => ReleaseKey::Lun(LunOwner::Host(HostId(id)), lun()?),
        b'g' => ReleaseKey::Lun(LunOwner::Group(HostGroupId(id)), lun()?),
        b'm' => {
            let group = rest.try_into().map(u64::from_be_bytes).map_err(|_| bad_key())?;
            ReleaseKey::Membership(HostId(id), HostGroupId(group))
        }
        _ => return Err(bad_key()),
    };
    let ReleaseRow { at_ms, volume, .. } = parse(key, value)?;
    Ok((of, Release { at_ms, volume: volume.map(VolumeId) }))
}

/// Returns the owner and the volume of a connection, from the key of its record.
pub(crate) fn connection_of(key: &[u8]) -> Option<(LunOwner, VolumeId)> {
    let (kind, ids) = key.split_first()?;
    let (owner, volume) = ids.split_first_chunk()?;
    let owner = u64::from_be_bytes(*owner);
    let volume = VolumeId(u64::from_be_bytes(volume.try_into().ok()?));
    match kind {
        b'c' => Some((LunOwner::Host(HostId(owner)), volume)),
        b'C' => Some((LunOwner::Group(HostGroupId(owner)), volume)),
        _ => None,
    }
}

/// Returns the group of a host, from the host's record.
pub(crate) fn membership_of(key: &[u8], value: &[u8]) -> Option<(HostId, Option<HostGroupId>)> {
    let id = key.strip_prefix(b"h")?.try_into().ok().map(u64::from_be_bytes)?;
    let MembershipRow { group } = serde_json::from_slice(value).ok()?;
    Some((HostId(id), group.map(HostGroupId)))
}
