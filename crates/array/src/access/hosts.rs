//! Hosts: which initiators may log in, under which names and with which secrets.

use std::collections::BTreeSet;
use std::ops::Bound;

use store::Change;

use crate::array::Array;
use crate::error::Error;
use crate::objects::hosts::{HOSTS_MAX, Host, HostId, INITIATORS_PER_HOST_MAX};
use crate::record;
use crate::state::State;
use crate::tables::hosts::HostEntry;
use crate::values::chap::{Chap, ChapChange};
use crate::values::name::{HostName, InitiatorName};
use crate::values::personality::Personality;

/// A host to create.
#[derive(Clone, Debug)]
pub struct NewHost {
    /// Its name, which no other host has.
    pub name: HostName,
    /// Its iSCSI names, at most 64.
    pub initiators: Vec<InitiatorName>,
    /// The credentials with which it must log in; `None` if its iSCSI name suffices.
    pub chap: Option<Chap>,
    /// Its operating system.
    pub personality: Option<Personality>,
    /// The time, in milliseconds since 1970.
    pub created_ms: u64,
}

/// A change to a host; `None` leaves it as it is.
#[derive(Clone, Debug, Default)]
pub struct HostChange {
    /// A new name.
    pub name: Option<HostName>,
    /// All of its iSCSI names, replacing the old ones.
    pub initiators: Option<Vec<InitiatorName>>,
    /// iSCSI names to add.
    pub add_initiators: Vec<InitiatorName>,
    /// iSCSI names to remove.
    pub remove_initiators: Vec<InitiatorName>,
    /// How it authenticates from now on.
    pub chap: ChapChange,
    /// Its operating system; `Some(None)` removes it.
    pub personality: Option<Option<Personality>>,
}

/// A host, as it is shown: without secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostInfo {
    /// Its id while it exists; after it is deleted and the array restarted, another host may get
    /// the same.
    pub id: u64,
    /// Its current name.
    pub name: String,
    /// Its iSCSI names, in the order they were given.
    pub initiators: Vec<String>,
    /// The user with which it logs in, if it must authenticate.
    pub chap_user: Option<String>,
    /// The user with which the target responds, in mutual CHAP.
    pub chap_target_user: Option<String>,
    /// Its operating system, if it was set.
    pub personality: Option<Personality>,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// The host group that it is in.
    pub host_group: Option<String>,
    /// The number of volumes connected to it or to its group.
    pub connection_count: usize,
}

impl Array {
    /// Creates a host; durable when it returns.
    ///
    /// # Errors
    /// `host_exists`, `initiator_in_use`, `invalid_initiator`, `limit_reached`, and those of the
    /// store.
    pub fn create_host(&self, new: NewHost) -> Result<HostInfo, Error> {
        self.change(|state| plan_host(state, 0, new), show_new_host)
    }

    /// Changes a host; its connections do not change.
    ///
    /// # Errors
    /// Those of [`Array::create_host`], and `no_such_host`.
    pub fn change_host(&self, name: &str, change: HostChange) -> Result<HostInfo, Error> {
        self.change(|state| plan_host_change(state, name, change), show_host)
    }

    /// Deletes a host.
    ///
    /// # Errors
    /// `no_such_host`, `existing_connections`, `in_group` for one that is in a group of volumes,
    /// and those of the store.
    pub fn delete_host(&self, name: &str) -> Result<(), Error> {
        self.change(|state| plan_host_end(state, name), State::remove_host)
    }

    /// Returns a host.
    ///
    /// # Errors
    /// `no_such_host`.
    pub fn host(&self, name: &str) -> Result<HostInfo, Error> {
        let state = self.read();
        state.host(name).map(|(_, entry)| info(&state, entry))
    }

    /// Returns up to `limit` hosts in the order of their names (ignoring case), after `after`.
    pub fn hosts(&self, after: Option<&str>, limit: usize) -> Vec<HostInfo> {
        let state = self.read();
        let from = after.map_or(Bound::Unbounded, |n| Bound::Excluded(n.to_ascii_lowercase()));
        let rows = state.host_names().range((from, Bound::Unbounded));
        rows.filter_map(|(_, id)| state.hosts().get(id))
            .take(limit)
            .map(|entry| info(&state, entry))
            .collect()
    }
}

/// A host with its id.
pub(crate) type PlannedHost = (HostId, Host);

fn check_initiators(
    state: &State,
    own: Option<HostId>,
    initiators: &[InitiatorName],
) -> Result<(), Error> {
    if initiators.len() > INITIATORS_PER_HOST_MAX {
        let limit = INITIATORS_PER_HOST_MAX;
        return Err(Error::Limit { what: "initiators of one host", limit });
    }
    let mut given = BTreeSet::new();
    for initiator in initiators {
        if !given.insert(initiator) {
            let text = format!("The iSCSI name {initiator} is given twice.");
            return Err(Error::invalid("invalid_initiator", text));
        }
        let holder = state.initiators().get(initiator).filter(|id| own != Some(**id));
        if let Some(entry) = holder.and_then(|id| state.hosts().get(id)) {
            let (initiator, host) = (initiator.to_string(), entry.host.name.to_string());
            return Err(Error::InitiatorInUse { initiator, host });
        }
    }
    Ok(())
}

/// Plans a host. `before`: the number of hosts that the same commit creates before this one.
pub(crate) fn plan_host(
    state: &State,
    before: usize,
    new: NewHost,
) -> Result<(Change, PlannedHost), Error> {
    if state.host(new.name.as_str()).is_ok() {
        return Err(Error::HostExists(new.name.to_string()));
    }
    if state.hosts().len() + before >= HOSTS_MAX {
        return Err(Error::Limit { what: "hosts", limit: HOSTS_MAX });
    }
    check_initiators(state, None, &new.initiators)?;
    let id = HostId(state.next_host_id() + before as u64);
    let NewHost { name, initiators, chap, personality, created_ms } = new;
    let host = Host { name, initiators, chap, personality, group: None, created_ms };
    let row = (record::host_key(id), Some(record::host(&host)?));
    Ok((Change { config: vec![row], ..Change::default() }, (id, host)))
}

pub(crate) fn show_new_host(state: &mut State, (id, host): PlannedHost) -> HostInfo {
    state.insert_host(id, host);
    info(state, &state.hosts()[&id])
}

pub(crate) fn plan_host_change(
    state: &State,
    name: &str,
    change: HostChange,
) -> Result<(Change, PlannedHost), Error> {
    let (id, entry) = state.host(name)?;
    let mut host = entry.host.clone();
    if let Some(new_name) = change.name {
        if state.host(new_name.as_str()).is_ok_and(|(other, _)| other != id) {
            return Err(Error::HostExists(new_name.to_string()));
        }
        host.name = new_name;
    }
    host.initiators = change.initiators.unwrap_or(host.initiators);
    for initiator in &change.remove_initiators {
        if !host.initiators.contains(initiator) {
            let text = format!("The initiator {initiator} does not exist in {}.", host.name);
            return Err(Error::invalid("no_such_initiator", text));
        }
    }
    host.initiators.retain(|initiator| !change.remove_initiators.contains(initiator));
    host.initiators.extend(change.add_initiators);
    check_initiators(state, Some(id), &host.initiators)?;
    host.chap = change.chap.apply(host.chap)?;
    host.personality = change.personality.unwrap_or(host.personality);
    let row = (record::host_key(id), Some(record::host(&host)?));
    Ok((Change { config: vec![row], ..Change::default() }, (id, host)))
}

pub(crate) fn show_host(state: &mut State, (id, host): PlannedHost) -> HostInfo {
    state.replace_host(id, host);
    info(state, &state.hosts()[&id])
}

pub(crate) fn plan_host_end(state: &State, name: &str) -> Result<(Change, HostId), Error> {
    let (id, entry) = state.host(name)?;
    let count = state.luns_of(entry).count();
    if count > 0 {
        let object = format!("Host {}", entry.host.name);
        return Err(Error::ExistingConnections { object, count });
    }
    if let Some(group) = state.group_with(|group| group.members.hosts.contains(&id)) {
        let object = format!("Host {}", entry.host.name);
        return Err(Error::InGroup { object, group });
    }
    let config = vec![(record::host_key(id), None)];
    Ok((Change { config, ..Change::default() }, id))
}

fn info(state: &State, entry: &HostEntry) -> HostInfo {
    let (host, chap) = (&entry.host, entry.host.chap.as_ref());
    HostInfo {
        id: state.host_names().get(&host.name.as_str().to_ascii_lowercase()).map_or(0, |id| id.0),
        name: host.name.to_string(),
        initiators: host.initiators.iter().map(ToString::to_string).collect(),
        chap_user: chap.map(|chap| chap.initiator.user.clone()),
        chap_target_user: chap.and_then(|chap| chap.target.as_ref()).map(|t| t.user.clone()),
        personality: host.personality,
        created_ms: host.created_ms,
        host_group: state.group_of(entry).map(|group| group.record.name.to_string()),
        connection_count: state.luns_of(entry).count(),
    }
}
