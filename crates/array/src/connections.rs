//! Connections: which host sees which volume, and as what.

use std::collections::BTreeSet;

use block::VolumeId;
use store::Change;

use crate::state::{HostId, State};
use crate::{Array, Error, LUN_MAX, LUN_MIN, record};

/// A volume that a host may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionInfo {
    /// The name of the volume.
    pub volume: String,
    /// The name of the host.
    pub host: String,
    /// The LUN under which the host sees it.
    pub lun: u16,
}

impl Array {
    /// Connects a volume to a host, under `lun` or the lowest free one.
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
        self.change(|state| plan_connection(state, volume, host, lun, &Taken::default()), connect)
    }

    /// Takes a volume away from a host.
    ///
    /// # Errors
    /// `no_such_volume`, `no_such_host`, `no_such_connection`, and those of the store.
    pub fn disconnect(&self, volume: &str, host: &str) -> Result<(), Error> {
        self.change(|state| plan_disconnection(state, volume, host), disconnect)
    }

    /// All connections of one volume, one host, a pair of them, or the array, in the order of the
    /// hosts' names and the LUNs.
    ///
    /// # Errors
    /// `no_such_volume`, `no_such_host`, for the names that were given.
    pub fn connections(
        &self,
        volume: Option<&str>,
        host: Option<&str>,
    ) -> Result<Vec<ConnectionInfo>, Error> {
        let state = self.state.read();
        // A destroyed volume has none, and can be looked at all the same.
        let volume = volume.map(|name| state.any_volume(name)).transpose()?;
        let host = host.map(|name| state.host(name)).transpose()?;
        let mut hosts: Vec<_> = match (volume, host) {
            (_, Some((id, _))) => vec![id],
            (Some(volume), None) => volume.hosts.keys().copied().collect(),
            (None, None) => state.host_names.values().copied().collect(),
        };
        hosts.sort_by_key(|id| state.hosts.get(id).map(|entry| entry.host.name.key()));
        let mut found = Vec::new();
        for id in hosts {
            let Some(entry) = state.hosts.get(&id) else { continue };
            let info = |lun: u16, name: String| ConnectionInfo {
                volume: name,
                host: entry.host.name.to_string(),
                lun,
            };
            match volume {
                Some(volume) => {
                    let lun = volume.hosts.get(&id).copied();
                    found.extend(lun.map(|lun| info(lun, volume.record.name.to_string())));
                }
                None => found.extend(entry.luns.iter().filter_map(|(lun, volume)| {
                    Some(info(*lun, state.volumes.get(volume)?.record.name.to_string()))
                })),
            }
        }
        Ok(found)
    }
}

/// LUNs of hosts that go to volumes in the same commit.
pub(crate) type Taken = BTreeSet<(HostId, u16)>;

/// A connection to show.
pub(crate) type Planned = (HostId, VolumeId, ConnectionInfo);

pub(crate) fn plan_connection(
    state: &State,
    volume: &str,
    host: &str,
    lun: Option<u16>,
    taken: &Taken,
) -> Result<(Change, Planned), Error> {
    let volume = state.volume(volume)?;
    let (host_id, entry) = state.host(host)?;
    let info = |lun| ConnectionInfo {
        volume: volume.record.name.to_string(),
        host: entry.host.name.to_string(),
        lun,
    };
    if let Some(&lun) = volume.hosts.get(&host_id) {
        let ConnectionInfo { volume, host, lun } = info(lun);
        return Err(Error::ConnectionExists { volume, host, lun });
    }
    let lun = match lun {
        None => entry
            .free_luns()
            .find(|lun| !taken.contains(&(host_id, *lun)))
            .ok_or(Error::Limit { what: "LUNs of one host", limit: usize::from(LUN_MAX) })?,
        Some(lun) => check_lun(state, host, lun)?,
    };
    let id = volume.record.id;
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
    let lun = *volume.hosts.get(&host_id).ok_or_else(|| Error::NoSuchConnection {
        volume: volume.record.name.to_string(),
        host: entry.host.name.to_string(),
    })?;
    let config = vec![(record::connection_key(host_id, id), None)];
    Ok((Change { config, ..Change::default() }, (host_id, id, lun)))
}

pub(crate) fn disconnect(state: &mut State, (host, volume, lun): (HostId, VolumeId, u16)) {
    state.disconnect(host, volume, lun);
}

fn check_lun(state: &State, host: &str, lun: u16) -> Result<u16, Error> {
    if !(LUN_MIN..=LUN_MAX).contains(&lun) {
        let text = format!("A LUN is from {LUN_MIN} to {LUN_MAX}; {lun} was asked for.");
        return Err(Error::invalid("invalid_lun", text));
    }
    let (_, entry) = state.host(host)?;
    match entry.luns.get(&lun).and_then(|id| state.volumes.get(id)) {
        None => Ok(lun),
        Some(other) => Err(Error::LunInUse {
            lun,
            host: entry.host.name.to_string(),
            volume: other.record.name.to_string(),
        }),
    }
}
