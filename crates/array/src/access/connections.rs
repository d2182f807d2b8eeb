//! Connections: which hosts see which volumes, and at which LUN.

use std::collections::BTreeMap;
use std::ops::Bound;

use block::VolumeId;
use store::Change;

use super::free_luns::HostLuns;
use crate::array::Array;
use crate::error::Error;
use crate::objects::connections::{CONNECTIONS_SHOWN_MAX, check_lun_range};
use crate::objects::hosts::HostId;
use crate::record;
use crate::state::State;
use crate::tables::hosts::HostEntry;
use crate::tables::volumes::VolumeEntry;

/// A volume that a host may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The name of the volume.
    pub volume: String,
    /// The name of the host.
    pub host: String,
    /// The host group through which it is connected, if it is not the host's own connection.
    pub host_group: Option<String>,
    /// The LUN under which the host sees it.
    pub lun: u16,
}

/// Refuses more connections than fit one list.
pub(crate) fn check_shown(count: usize) -> Result<(), Error> {
    if count <= CONNECTIONS_SHOWN_MAX {
        return Ok(());
    }
    let text = format!(
        "There are more than {CONNECTIONS_SHOWN_MAX} connections. Name fewer hosts or volumes, or \
         read them page by page."
    );
    Err(Error::invalid("too_many_connections", text))
}

impl Array {
    /// Connects a volume to a host, under `lun` or the lowest free one that was not released within
    /// the last hours: see [`crate::LUN_REST_MS`].
    ///
    /// # Errors
    /// `no_such_volume`, `no_such_host`, `connection_exists`, `lun_in_use`, `invalid_lun`,
    /// `limit_reached`, and those of the store.
    pub fn connect(
        &self,
        volume: &str,
        host: &str,
        lun: Option<u16>,
    ) -> Result<ConnectionInfo, Error> {
        let plan =
            |state: &State| plan_connection(state, volume, host, lun, &mut HostLuns::default());
        self.change(plan, connect)
    }

    /// Disconnects a volume from a host.
    ///
    /// # Errors
    /// `no_such_volume`, `no_such_host`, `no_such_connection`, `shared_connection` for a connection
    /// of the host's group, and those of the store.
    pub fn disconnect(&self, volume: &str, host: &str) -> Result<(), Error> {
        self.change(|state| plan_disconnection(state, volume, host), disconnect)
    }

    /// Returns all connections of hosts, their own and their groups': of one volume, one host,
    /// both, or the array, in the order of the hosts' names and the LUNs.
    ///
    /// # Errors
    /// `no_such_volume`, `no_such_host`, for the names that were given; `too_many_connections`.
    pub fn connections(
        &self,
        volume: Option<&str>,
        host: Option<&str>,
    ) -> Result<Vec<ConnectionInfo>, Error> {
        let state = self.read();
        // A destroyed volume has no connections, but can still be named.
        let volume = volume.map(|name| state.any_volume(name)).transpose()?;
        let host = host.map(|name| state.host(name)).transpose()?;
        let mut hosts: Vec<_> = match (volume, host) {
            (_, Some((id, _))) => vec![id],
            (Some(volume), None) => state.hosts_of(volume),
            (None, None) => state.host_names().values().copied().collect(),
        };
        hosts.sort_by_key(|id| state.hosts().get(id).map(|entry| entry.host.name.key()));
        let mut found = Vec::new();
        for id in hosts {
            check_shown(found.len())?;
            let Some(entry) = state.hosts().get(&id) else { continue };
            let info = |lun, volume: &VolumeEntry| {
                let is_private = volume.hosts.contains_key(&id);
                let group = state.group_of(entry).filter(|_| !is_private);
                ConnectionInfo {
                    volume: volume.record.name.to_string(),
                    host: entry.host.name.to_string(),
                    host_group: group.map(|group| group.record.name.to_string()),
                    lun,
                }
            };
            match volume {
                Some(volume) => found.extend(state.lun_of(volume, id).map(|lun| info(lun, volume))),
                None => {
                    let luns: BTreeMap<_, _> = state.luns_of(entry).collect();
                    found.extend(luns.into_iter().filter_map(|(lun, volume)| {
                        Some(info(lun, state.volumes().get(&volume)?))
                    }));
                }
            }
        }
        check_shown(found.len())?;
        Ok(found)
    }

    /// Returns up to `limit` connections of hosts, their own and their groups', in the order of the
    /// hosts' names and the LUNs, after a given host and LUN.
    pub fn connections_after(
        &self,
        after: Option<(&str, u16)>,
        limit: usize,
    ) -> Vec<ConnectionInfo> {
        let state = self.read();
        let begun = after.map(|(host, lun)| (host.to_ascii_lowercase(), lun));
        let from = begun.as_ref().map_or(Bound::Unbounded, |(host, _)| Bound::Included(host));
        let mut found = Vec::new();
        for (key, id) in state.host_names().range::<String, _>((from, Bound::Unbounded)) {
            if found.len() == limit {
                break;
            }
            let Some(entry) = state.hosts().get(id) else { continue };
            let behind = begun.as_ref().filter(|(host, _)| host == key).map(|(_, lun)| *lun);
            of_host(&state, *id, entry, behind, limit - found.len(), &mut found);
        }
        found
    }

    /// Returns the connection of a host under a LUN.
    pub fn connection_at(&self, host: &str, lun: u16) -> Option<ConnectionInfo> {
        let state = self.read();
        let (id, entry) = state.host(host).ok()?;
        let mut found = Vec::new();
        of_host(&state, id, entry, lun.checked_sub(1), 1, &mut found);
        found.pop().filter(|connection| connection.lun == lun)
    }
}

/// Adds up to `limit` connections of a host, its own and its group's, in the order of their LUNs,
/// after a given one.
fn of_host(
    state: &State,
    id: HostId,
    entry: &HostEntry,
    after: Option<u16>,
    limit: usize,
    found: &mut Vec<ConnectionInfo>,
) {
    let from = (after.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
    let group = state.group_of(entry);
    let shared = group.into_iter().flat_map(|group| group.luns.range(from).take(limit));
    let own = entry.luns().range(from).take(limit);
    let luns: BTreeMap<u16, VolumeId> = own.chain(shared).map(|(l, v)| (*l, *v)).collect();
    let info = |(lun, volume): (u16, VolumeId)| {
        let volume = state.volumes().get(&volume)?;
        let group = group.filter(|_| !volume.hosts.contains_key(&id));
        Some(ConnectionInfo {
            volume: volume.record.name.to_string(),
            host: entry.host.name.to_string(),
            host_group: group.map(|group| group.record.name.to_string()),
            lun,
        })
    };
    found.extend(luns.into_iter().take(limit).filter_map(info));
}

/// A connection to add to the state.
pub(crate) type Planned = (HostId, VolumeId, ConnectionInfo);

pub(crate) fn plan_connection(
    state: &State,
    volume: &str,
    host: &str,
    lun: Option<u16>,
    luns: &mut HostLuns,
) -> Result<(Change, Planned), Error> {
    let volume = state.volume(volume)?;
    let (host_id, entry) = state.host(host)?;
    let info = |lun| ConnectionInfo {
        volume: volume.record.name.to_string(),
        host: entry.host.name.to_string(),
        host_group: None,
        lun,
    };
    if let Some(lun) = state.lun_of(volume, host_id) {
        let ConnectionInfo { volume, host, lun, .. } = info(lun);
        return Err(Error::ConnectionExists { volume, to: format!("host {host}"), lun });
    }
    let id = volume.record.id;
    let lun = match lun {
        None => luns.assign(state, host_id, entry, Some(id))?,
        Some(lun) => {
            check_lun(state, host, lun)?;
            if !luns.take(state, host_id, entry, lun) {
                let ConnectionInfo { volume, host, lun, .. } = info(lun);
                return Err(Error::LunInUse { lun, of: format!("host {host}"), volume });
            }
            lun
        }
    };
    let row = (record::connection_key(host_id, id), Some(record::connection(lun)?));
    let change = Change { config: vec![row], ..Change::default() };
    Ok((change, (host_id, id, info(lun))))
}

pub(crate) fn connect(state: &mut State, (host, volume, info): Planned) -> ConnectionInfo {
    state.connect(host, volume, info.lun);
    info
}

pub(crate) fn plan_disconnection(
    state: &State,
    volume: &str,
    host: &str,
) -> Result<(Change, (HostId, VolumeId, u16)), Error> {
    let volume = state.volume(volume)?;
    let (host_id, entry) = state.host(host)?;
    let id = volume.record.id;
    let lun = volume.hosts.get(&host_id).copied().ok_or_else(|| {
        let (volume_name, host) = (volume.record.name.to_string(), &entry.host.name);
        match state.group_of(entry).filter(|_| state.lun_of(volume, host_id).is_some()) {
            Some(group) => Error::SharedConnection {
                volume: volume_name,
                host: host.to_string(),
                group: group.record.name.to_string(),
            },
            None => Error::NoSuchConnection { volume: volume_name, to: format!("host {host}") },
        }
    })?;
    let config = vec![(record::connection_key(host_id, id), None)];
    Ok((Change { config, ..Change::default() }, (host_id, id, lun)))
}

pub(crate) fn disconnect(state: &mut State, (host, volume, lun): (HostId, VolumeId, u16)) {
    state.disconnect(host, volume, lun);
}

fn check_lun(state: &State, host: &str, lun: u16) -> Result<(), Error> {
    check_lun_range(lun)?;
    let (_, entry) = state.host(host)?;
    let shared = state.group_of(entry).and_then(|group| group.luns.get(&lun));
    match entry.luns().get(&lun).or(shared).and_then(|id| state.volumes().get(id)) {
        None => Ok(()),
        Some(other) => Err(Error::LunInUse {
            lun,
            of: format!("host {}", entry.host.name),
            volume: other.record.name.to_string(),
        }),
    }
}
