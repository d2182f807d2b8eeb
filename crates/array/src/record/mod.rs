//! The encoding of objects in the key-value space of the store.
//!
//! ```text
//! key                                     value (JSON)
//! 's'                                     settings
//! 't'                                     the array's own volume
//! 'v' volume id (8, big endian)           volume
//! 'h' host id (8)                         host, with its CHAP secrets
//! 'c' host id (8) volume id (8)           connection
//! 'r' volume id (8) number (8)            reservations, of earlier versions: a part, from 0
//! 'S' …                                   host states that the target stores: not JSON
//! 'n' volume id (8)                       snapshot
//! 'g' group id (8)                        group of volumes
//! 'T' volume id (8)                       tags of a volume or a snapshot
//! 'H' host group id (8)                   host group; its hosts name it
//! 'C' host group id (8) volume id (8)     shared connection
//! 'u' user's name in lower case           user, with the hashes of its tokens and password
//! 'a' number modulo 4096 (8)              entry of the audit log
//! 'A' number (8)                          alert
//! 'L' 0 'h' host id (8) LUN (2)           release of a LUN of a host
//! 'L' 0 'g' host group id (8) LUN (2)     release of a LUN of a host group
//! 'L' 0 'm' host id (8) group id (8)      end of a host's membership in a host group
//! 'L' 0 'c' name in lower case            certificate, with its key
//! 'L' …                                   report of the lab, of earlier versions: dropped
//! 'V' volume group id (8)                 volume group; its volumes' names begin with its own
//! 'P' pod id (8)                          pod; so do those of its volumes
//! 'D'                                     directory service, with the array's password there
//! 'N'                                     receivers of alerts, with the relay's password
//! 'p' relative target port id (2)         port, with its address
//! 'k'                                     array time, and the time of the day then
//! ```
//!
//! Every other value has a field `"v"`, the version of its form, currently 1. A value of a newer
//! form is refused.

mod alerts;
mod audit;
mod certificates;
mod containers;
mod directory;
mod groups;
mod host_groups;
mod hosts;
mod notifications;
mod ports;
mod releases;
mod reservations;
mod row;
mod settings;
mod snapshots;
mod snmp;
mod tags;
mod time;
mod token_volume;
mod users;
mod volumes;

use block::VolumeId;
use format::StateKey;
use format::target_state::TARGET_STATE_KEY;

pub(crate) use alerts::{alert, alert_key};
pub(crate) use audit::{audit, audit_key};
pub(crate) use certificates::{certificate_row, no_certificate_row};
pub(crate) use containers::{container, container_key};
pub(crate) use directory::{directory, directory_key};
pub(crate) use groups::{group, group_key};
pub(crate) use host_groups::{host_group, host_group_key, shared_connection_key};
pub(crate) use hosts::{connection, connection_key, host, host_key};
pub(crate) use notifications::{notifications, notifications_key};
pub(crate) use ports::{port, port_key};
pub(crate) use releases::{connection_of, membership_of, release_row};
pub(crate) use reservations::{ReservationPart, reservation_key};
pub(crate) use row::Row;
pub(crate) use settings::{settings, settings_key};
pub(crate) use snapshots::{snapshot, snapshot_key};
pub(crate) use tags::tags_row;
pub(crate) use time::time_row;
pub(crate) use token_volume::{token_volume, token_volume_key};
pub(crate) use users::{user, user_key};
pub(crate) use volumes::{volume, volume_key};

use crate::error::Error;
use crate::objects::alerts::Alert;
use crate::objects::audit::AuditEntry;
use crate::objects::certificates::StoredCertificate;
use crate::objects::containers::{Container, ContainerId};
use crate::objects::directory::Directory;
use crate::objects::groups::{Group, GroupId};
use crate::objects::host_groups::{HostGroup, HostGroupId};
use crate::objects::hosts::{Host, HostId};
use crate::objects::notifications::Notifications;
use crate::objects::ports::PortPlace;
use crate::objects::releases::{Release, ReleaseKey};
use crate::objects::settings::Settings;
use crate::objects::snapshots::SnapshotRecord;
use crate::objects::tags::TagMap;
use crate::objects::time::TimeRecord;
use crate::objects::users::User;
use crate::objects::volumes::VolumeRecord;
use crate::values::name::GroupName;
use hosts::ConnectionRow;
use row::{damaged, parse};

/// A record, by its key.
pub(crate) enum Stored {
    Settings(Settings),
    Volume(VolumeRecord),
    Container(ContainerId, Container),
    Host(HostId, Host),
    Connection(HostId, VolumeId, u16),
    HostGroup(HostGroupId, HostGroup),
    Tags(VolumeId, TagMap),
    SharedConnection(HostGroupId, VolumeId, u16),
    TokenVolume(VolumeId),
    Reservations(VolumeId, u64, ReservationPart),
    TargetState(StateKey, Vec<u8>),
    /// A snapshot, with the name of its group in old records without group ids.
    Snapshot(VolumeId, SnapshotRecord, Option<GroupName>),
    Group(GroupId, Group),
    User(User),
    Audit(AuditEntry),
    Alert(Alert),
    Certificate(StoredCertificate),
    Release(ReleaseKey, Release),
    /// A record that this version no longer keeps, whatever its content: the next change removes
    /// it.
    Retired,
    Notifications(Notifications),
    Directory(Directory),
    Port(PortPlace, u16),
    Time(TimeRecord),
}

/// Decodes a record. The pool's id is part of the names of volumes.
pub(crate) fn decode(key: &[u8], value: &[u8], pool_id: &[u8; 16]) -> Result<Stored, Error> {
    let id = |bytes: &[u8]| {
        let bytes: [u8; 8] = bytes.try_into().map_err(|_| damaged(key, "the key is damaged"))?;
        Ok::<u64, Error>(u64::from_be_bytes(bytes))
    };
    let pair = |bytes: &[u8]| {
        let (first, second) = bytes.split_at(8);
        Ok::<(u64, u64), Error>((id(first)?, id(second)?))
    };
    match key {
        [b't'] => Ok(Stored::TokenVolume(token_volume::decode_token_volume(&parse(key, value)?))),
        [b'k'] => Ok(Stored::Time(time::decode_time(&parse(key, value)?))),
        [b's'] => settings::decode_settings(key, &parse(key, value)?).map(Stored::Settings),
        [b'v', rest @ ..] => {
            let volume = VolumeId(id(rest)?);
            volumes::decode_volume(key, volume, &parse(key, value)?, pool_id).map(Stored::Volume)
        }
        [b'h', rest @ ..] => {
            let host = hosts::decode_host(&parse(key, value)?)?;
            Ok(Stored::Host(HostId(id(rest)?), host))
        }
        [b'c', rest @ ..] if rest.len() == 16 => {
            let (host, volume) = pair(rest)?;
            let ConnectionRow { lun, .. } = parse(key, value)?;
            Ok(Stored::Connection(HostId(host), VolumeId(volume), lun))
        }
        [b'T', rest @ ..] => {
            let id = VolumeId(id(rest)?);
            Ok(Stored::Tags(id, tags::decode_tags(parse(key, value)?)?))
        }
        [b'H', rest @ ..] => {
            let id = HostGroupId(id(rest)?);
            Ok(Stored::HostGroup(id, host_groups::decode_host_group(&parse(key, value)?)?))
        }
        [b'C', rest @ ..] if rest.len() == 16 => {
            let (group, volume) = pair(rest)?;
            let ConnectionRow { lun, .. } = parse(key, value)?;
            Ok(Stored::SharedConnection(HostGroupId(group), VolumeId(volume), lun))
        }
        [b'r', rest @ ..] if rest.len() == 16 => {
            let (volume, number) = pair(rest)?;
            let part = reservations::decode_reservation(key, parse(key, value)?)?;
            Ok(Stored::Reservations(VolumeId(volume), number, part))
        }
        [TARGET_STATE_KEY, ..] => {
            let found = StateKey::decode(key).map_err(|_| damaged(key, "unknown key"))?;
            Ok(Stored::TargetState(found, value.to_vec()))
        }
        [b'n', rest @ ..] => {
            let id = VolumeId(id(rest)?);
            let (snapshot, group) = snapshots::decode_snapshot(key, id, &parse(key, value)?)?;
            Ok(Stored::Snapshot(id, snapshot, group))
        }
        [b'g', rest @ ..] => {
            let id = GroupId(id(rest)?);
            Ok(Stored::Group(id, groups::decode_group(parse(key, value)?)?))
        }
        [letter @ (b'V' | b'P'), rest @ ..] => {
            let id = containers::container_id(*letter, id(rest)?);
            let container = containers::decode_container(id.kind, &parse(key, value)?)?;
            Ok(Stored::Container(id, container))
        }
        [b'p', rest @ ..] => {
            let (place, id) = ports::decode_port(key, rest, &parse(key, value)?)?;
            Ok(Stored::Port(place, id))
        }
        _ => decode_managed(key, value),
    }
}

/// Decodes a record of what administrators manage in addition to storage.
fn decode_managed(key: &[u8], value: &[u8]) -> Result<Stored, Error> {
    match key {
        [b'u', ..] => users::decode_user(key, parse(key, value)?).map(Stored::User),
        [b'a', ..] => audit::decode_audit(key, parse(key, value)?).map(Stored::Audit),
        [b'A', ..] => alerts::decode_alert(key, parse(key, value)?).map(Stored::Alert),
        [b'D'] => directory::decode_directory(key, parse(key, value)?).map(Stored::Directory),
        [b'L', 0, b'c', ..] => {
            certificates::decode_certificate(key, value).map(Stored::Certificate)
        }
        [b'L', 0, ..] => {
            let (key, release) = releases::decode_release(key, value)?;
            Ok(Stored::Release(key, release))
        }
        [b'L', ..] => Ok(Stored::Retired),
        [b'N'] => {
            notifications::decode_notifications(key, parse(key, value)?).map(Stored::Notifications)
        }
        _ => Err(damaged(key, "unknown key")),
    }
}
