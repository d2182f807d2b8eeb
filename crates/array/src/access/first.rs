//! The first connections of a new volume, created with it in one commit.

use block::VolumeId;
use store::Change;

use super::free_luns::HostLuns;
use super::shared::SharedLuns;
use crate::array::distinct::{CHANGES_MAX, check_all};
use crate::error::Error;
use crate::objects::host_groups::HostGroupId;
use crate::objects::hosts::HostId;
use crate::record;
use crate::state::State;

/// The hosts and host groups to which a new volume is connected, each under a free LUN that does
/// not rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectTo {
    /// Hosts, by their names.
    pub hosts: Vec<String>,
    /// Host groups, by their names; none of their hosts may be in `hosts`.
    pub host_groups: Vec<String>,
}

/// The LUNs of a new volume.
pub(crate) struct FirstLuns {
    hosts: Vec<(HostId, u16)>,
    host_groups: Vec<(HostGroupId, u16)>,
}

impl FirstLuns {
    pub(crate) fn plan(state: &State, to: &ConnectTo) -> Result<Self, Error> {
        check_all(&to.hosts)?;
        check_all(&to.host_groups)?;
        if to.hosts.len() + to.host_groups.len() > CHANGES_MAX {
            return Err(Error::TooManyAtOnce {
                what: "connections are created",
                limit: CHANGES_MAX,
            });
        }
        let (mut luns, mut host_luns) = (SharedLuns::default(), HostLuns::default());
        let mut host_groups = Vec::new();
        for name in &to.host_groups {
            let (id, group) = state.host_group(name)?;
            host_groups.push((id, luns.assign(state, id, group, None)?));
        }
        let mut hosts = Vec::new();
        for name in &to.hosts {
            let (id, entry) = state.host(name)?;
            let is_named = |(of, _): &(HostGroupId, u16)| entry.host.group == Some(*of);
            if host_groups.iter().any(is_named) {
                let host = &entry.host.name;
                let text = format!("Host {host} is in a host group that is also named.");
                return Err(Error::invalid("named_twice", text));
            }
            hosts.push((id, host_luns.assign(state, id, entry, None)?));
        }
        Ok(Self { hosts, host_groups })
    }

    /// Adds them to the change that creates the volume.
    pub(crate) fn add(&self, volume: VolumeId, change: &mut Change) -> Result<(), Error> {
        for (host, lun) in &self.hosts {
            let row = record::connection(*lun)?;
            change.config.push((record::connection_key(*host, volume), Some(row)));
        }
        for (group, lun) in &self.host_groups {
            let row = record::connection(*lun)?;
            change.config.push((record::shared_connection_key(*group, volume), Some(row)));
        }
        Ok(())
    }

    pub(crate) fn show(self, volume: VolumeId, state: &mut State) {
        for (host, lun) in self.hosts {
            state.connect(host, volume, lun);
        }
        for (group, lun) in self.host_groups {
            state.connect_group(group, volume, lun);
        }
    }
}
