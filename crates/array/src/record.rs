//! How the array's objects stand in the key-value space of the store.
//!
//! ```text
//! key                                     value (JSON)
//! 's'                                     settings
//! 'v' volume id (8, big endian)           volume
//! 'h' host id (8)                         host, with its CHAP secrets
//! 'c' host id (8) volume id (8)           connection
//! 'r' volume id (8) number (8)            reservations, of earlier versions: a part, from 0
//! 'S' …                                   what the target keeps of hosts: not JSON
//! 'n' volume id (8)                       snapshot
//! 'g' group id (8)                        group of volumes
//! 'T' volume id (8)                       tags of a volume or a snapshot
//! 'H' host group id (8)                   host group; its hosts name it
//! 'C' host group id (8) volume id (8)     shared connection
//! 'u' user's name in lower case           user, with the hashes of its tokens
//! 'a' number modulo 4096 (8)              entry of the audit log
//! 'A' number (8)                          alert
//! 'L' report's name in lower case         report of the lab
//! 'p' relative target port id (2)         port, with its address
//! 'k'                                     array time, and the time of the day then
//! ```
//!
//! Every other value has a field `"v"`, the version of its form; 1 today. A value of a newer form
//! is refused, never guessed at.

mod access;
mod alerts;
mod groups;
mod lab_reports;
mod ports;
mod shared;
mod snapshots;
mod tags;
mod time;
mod volumes;

use block::VolumeId;
use format::StateKey;
use format::target_state::{Registration, TARGET_STATE_KEY};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::alerts::Alert;
use crate::audit::AuditEntry;
use crate::eradication;
use crate::groups::{Group, GroupId};
use crate::host_state;
use crate::lab_reports::LabReport;
use crate::name::{GroupName, HostName, InitiatorName};
use crate::ports::PortPlace;
use crate::snapshots::SnapshotRecord;
use crate::state::{Host, HostGroup, HostGroupId, HostId, VolumeRecord};
use crate::tags::TagMap;
use crate::time::TimeRecord;
use crate::users::User;
use crate::{Chap, ChapUser, CompanyId, Error, Personality, Settings, SpaceThresholds};

const VERSION: u8 = 1;

/// A record, by its key.
pub(crate) enum Stored {
    Settings(Settings),
    Volume(VolumeRecord),
    Host(HostId, Host),
    Connection(HostId, VolumeId, u16),
    HostGroup(HostGroupId, HostGroup),
    Tags(VolumeId, TagMap),
    SharedConnection(HostGroupId, VolumeId, u16),
    TokenVolume(VolumeId),
    Reservations(VolumeId, u64, ReservationPart),
    TargetState(StateKey, Vec<u8>),
    /// With the name of its group, in old records without group ids.
    Snapshot(VolumeId, SnapshotRecord, Option<GroupName>),
    Group(GroupId, Group),
    User(User),
    Audit(AuditEntry),
    Alert(Alert),
    LabReport(LabReport),
    Port(PortPlace, u16),
    Time(TimeRecord),
}

pub(crate) use access::{audit, audit_key, user, user_key};
pub(crate) use alerts::{alert, alert_key};
pub(crate) use groups::{group, group_key};
pub(crate) use lab_reports::{lab_report, lab_report_key};
pub(crate) use ports::{port, port_key};
pub(crate) use shared::{host_group, host_group_key, shared_connection_key};
pub(crate) use snapshots::{snapshot, snapshot_key};
pub(crate) use tags::tags_row;
pub(crate) use time::time_row;
use volumes::{decode_off, off};
pub(crate) use volumes::{volume, volume_key};

/// One of the records into which earlier versions have split the reservations of a volume.
pub(crate) struct ReservationPart {
    /// How many parts there are.
    pub parts: usize,
    pub type_code: Option<u8>,
    pub holder: Option<usize>,
    /// The registrations of this part.
    pub registrations: Vec<Registration>,
}

#[derive(Serialize, Deserialize)]
struct SettingsRow {
    v: u8,
    name: String,
    target_name: String,
    company_id: u32,
    /// The offloads that are off, by name. Absent in records from before there were switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    offloads_off: Vec<String>,
    /// In percent. Absent in records from before there were thresholds, which get the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    space_thresholds: Option<Vec<u8>>,
    /// Absent in records from before there was a delay, which get the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eradication_delay_s: Option<u64>,
    /// Absent in records from before this could be set: then it is off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    chap_required: bool,
}

#[derive(Serialize, Deserialize)]
struct HostRow {
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
struct ConnectionRow {
    v: u8,
    lun: u16,
}

#[derive(Serialize, Deserialize)]
struct TokenVolumeRow {
    v: u8,
    id: u64,
}

/// Registrations as (initiator, ISID as a number, target port, key).
#[derive(Deserialize)]
struct ReservationRow {
    parts: u64,
    #[serde(default, rename = "type")]
    type_code: Option<u8>,
    #[serde(default)]
    holder: Option<u64>,
    registrations: Vec<(String, u64, u16, u64)>,
}

#[derive(Deserialize)]
struct VersionOnly {
    v: u8,
}

pub(crate) fn settings_key() -> Vec<u8> {
    b"s".to_vec()
}

pub(crate) fn host_key(id: HostId) -> Vec<u8> {
    key(b'h', &[id.0])
}

pub(crate) fn connection_key(host: HostId, volume: VolumeId) -> Vec<u8> {
    key(b'c', &[host.0, volume.0])
}

pub(crate) fn token_volume_key() -> Vec<u8> {
    b"t".to_vec()
}

pub(crate) fn reservation_key(volume: VolumeId, number: usize) -> Vec<u8> {
    key(b'r', &[volume.0, number as u64])
}

fn key(kind: u8, ids: &[u64]) -> Vec<u8> {
    let mut key = vec![kind];
    ids.iter().for_each(|id| key.extend_from_slice(&id.to_be_bytes()));
    key
}

pub(crate) fn settings(settings: &Settings) -> Result<Vec<u8>, Error> {
    encode(&SettingsRow {
        v: VERSION,
        name: settings.name.to_string(),
        target_name: settings.target_name.to_string(),
        company_id: settings.company_id.get(),
        offloads_off: off(settings.offloads),
        space_thresholds: Some(settings.space_thresholds.percents().to_vec()),
        eradication_delay_s: Some(settings.eradication_delay_s),
        chap_required: settings.chap_required,
    })
}

pub(crate) fn token_volume(id: VolumeId) -> Result<Vec<u8>, Error> {
    encode(&TokenVolumeRow { v: VERSION, id: id.0 })
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

fn encode<T: Serialize>(row: &T) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(row).map_err(|error| Error::Damaged(format!("can't be encoded: {error}")))
}

/// Decodes a record. The pool's id is part of the names of volumes.
pub(crate) fn decode(key: &[u8], value: &[u8], pool_id: &[u8; 16]) -> Result<Stored, Error> {
    let id = |bytes: &[u8]| {
        let bytes: [u8; 8] = bytes.try_into().map_err(|_| damaged(key, "the key is damaged"))?;
        Ok::<u64, Error>(u64::from_be_bytes(bytes))
    };
    match key {
        [b't'] => {
            let row: TokenVolumeRow = parse(key, value)?;
            Ok(Stored::TokenVolume(VolumeId(row.id)))
        }
        [b'k'] => Ok(time::decode_time(&parse(key, value)?)),
        [b's'] => parse::<SettingsRow>(key, value).and_then(|row| decode_settings(key, &row)),
        [b'v', rest @ ..] => {
            let volume = VolumeId(id(rest)?);
            volumes::decode_volume(key, volume, &parse(key, value)?, pool_id)
        }
        [b'h', rest @ ..] => {
            let host = decode_host(&parse(key, value)?)?;
            Ok(Stored::Host(HostId(id(rest)?), host))
        }
        [b'c', rest @ ..] if rest.len() == 16 => {
            let row: ConnectionRow = parse(key, value)?;
            let (host, volume) = rest.split_at(8);
            Ok(Stored::Connection(HostId(id(host)?), VolumeId(id(volume)?), row.lun))
        }
        [b'T', rest @ ..] => tags::decode_tags(VolumeId(id(rest)?), parse(key, value)?),
        [b'H', rest @ ..] => shared::decode_host_group(HostGroupId(id(rest)?), &parse(key, value)?),
        [b'C', rest @ ..] if rest.len() == 16 => {
            let row: ConnectionRow = parse(key, value)?;
            let (group, volume) = rest.split_at(8);
            let (group, volume) = (HostGroupId(id(group)?), VolumeId(id(volume)?));
            Ok(Stored::SharedConnection(group, volume, row.lun))
        }
        [b'r', rest @ ..] if rest.len() == 16 => {
            let (volume, number) = rest.split_at(8);
            let part = decode_reservation(key, parse(key, value)?)?;
            Ok(Stored::Reservations(VolumeId(id(volume)?), id(number)?, part))
        }
        [TARGET_STATE_KEY, ..] => {
            let found = StateKey::decode(key).map_err(|_| damaged(key, "nobody knows this key"))?;
            Ok(Stored::TargetState(found, value.to_vec()))
        }
        [b'n', rest @ ..] => {
            snapshots::decode_snapshot(key, VolumeId(id(rest)?), &parse(key, value)?)
        }
        [b'g', rest @ ..] => groups::decode_group(GroupId(id(rest)?), parse(key, value)?),
        [b'u', ..] => access::decode_user(key, parse(key, value)?),
        [b'a', ..] => access::decode_audit(key, parse(key, value)?),
        [b'A', ..] => alerts::decode_alert(key, parse(key, value)?),
        [b'L', ..] => lab_reports::decode_lab_report(key, parse(key, value)?),
        [b'p', rest @ ..] => ports::decode_port(key, rest, &parse(key, value)?),
        _ => Err(damaged(key, "nobody knows this key")),
    }
}

fn damaged(key: &[u8], why: &str) -> Error {
    Error::Damaged(format!("record {}: {why}", key.escape_ascii()))
}

fn parse<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, Error> {
    // The text of serde's error could quote the value, and so a secret: only its position is shown.
    let explain = |error: serde_json::Error| damaged(key, &format!("column {}", error.column()));
    let VersionOnly { v } = serde_json::from_slice(value).map_err(explain)?;
    if v != VERSION {
        return Err(damaged(key, &format!("has version {v}; this program knows {VERSION}")));
    }
    serde_json::from_slice(value).map_err(explain)
}

fn decode_settings(key: &[u8], row: &SettingsRow) -> Result<Stored, Error> {
    Ok(Stored::Settings(Settings {
        name: HostName::of_array(&row.name)?,
        target_name: InitiatorName::new(&row.target_name)?,
        company_id: CompanyId::new(row.company_id)?,
        offloads: decode_off(key, &row.offloads_off)?,
        space_thresholds: match &row.space_thresholds {
            Some(percents) => SpaceThresholds::new(percents.clone())?,
            None => SpaceThresholds::default(),
        },
        eradication_delay_s: row.eradication_delay_s.unwrap_or(eradication::DELAY_DEFAULT_S),
        chap_required: row.chap_required,
    }))
}

fn decode_host(row: &HostRow) -> Result<Host, Error> {
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

fn decode_reservation(key: &[u8], row: ReservationRow) -> Result<ReservationPart, Error> {
    let number = |n: u64| usize::try_from(n).map_err(|_| damaged(key, "a number is too big"));
    let registration = |(initiator, isid, target_port, key_of): (String, u64, u16, u64)| {
        let [0, 0, isid @ ..] = isid.to_be_bytes() else {
            return Err(damaged(key, "an ISID is too big"));
        };
        Ok(host_state::registration(initiator, isid, target_port, key_of))
    };
    Ok(ReservationPart {
        parts: number(row.parts)?,
        type_code: row.type_code,
        holder: row.holder.map(number).transpose()?,
        registrations: row.registrations.into_iter().map(registration).collect::<Result<_, _>>()?,
    })
}
