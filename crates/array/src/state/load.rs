//! Loading the stored objects into memory.

use std::collections::BTreeMap;

use block::VolumeId;
use format::StateKey;

use super::State;
use crate::backing::Backing;
use crate::error::Error;
use crate::objects::certificates::StoredCertificate;
use crate::objects::hosts::{Host, HostId};
use crate::objects::releases::{LunOwner, Release, ReleaseKey};
use crate::objects::volumes::VolumeRecord;
use crate::record::{self, ReservationPart, Stored};
use crate::tables::host_states::StoredState;
use crate::tables::time::RECORD_MS;

/// The stored parts of something of each volume, in their order.
type Parts<T> = BTreeMap<VolumeId, Vec<T>>;

impl State {
    /// Loads everything that is stored. Each object is checked against the others, as if it were
    /// new. The keys of volume groups and pods come before those of volumes, and those of host
    /// groups before those of hosts.
    pub(crate) fn load(backing: &dyn Backing, write_cache: bool) -> Result<Self, Error> {
        let pool_id = backing.pool_status().pool_id;
        let mut state = Self::empty(pool_id, write_cache)?;
        let (mut connections, mut snapshots, mut groups) = (Vec::new(), Vec::new(), Vec::new());
        let (mut shared, mut tags) = (Vec::new(), Vec::new());
        let mut reservations: Parts<ReservationPart> = BTreeMap::new();
        let mut host_states: Parts<Vec<u8>> = BTreeMap::new();
        for (key, value) in backing.config() {
            match record::decode(&key, &value, &pool_id)? {
                Stored::Settings(settings) => state.settings = settings,
                Stored::Container(id, container) => state.load_container(id, container)?,
                Stored::Volume(volume) => state.load_volume(backing, volume)?,
                Stored::Host(id, host) => state.load_host(id, host)?,
                Stored::HostGroup(id, group) => state.load_host_group(id, group)?,
                Stored::Connection(host, volume, lun) => connections.push((host, volume, lun)),
                Stored::SharedConnection(group, volume, lun) => shared.push((group, volume, lun)),
                Stored::Tags(id, of) => tags.push((id, of)),
                Stored::Snapshot(id, snapshot, group) => snapshots.push((id, snapshot, group)),
                Stored::Group(id, group) => groups.push((id, group)),
                Stored::User(user) => state.users.load(user)?,
                Stored::Audit(entry) => state.audit.add(entry),
                Stored::Alert(alert) => state.alerts.load(alert),
                Stored::Directory(one) => state.directory = one.into(),
                Stored::Certificate(one) => state.load_certificate(one),
                Stored::Release(key, release) => state.load_release(key, release),
                Stored::Retired => state.retired.push(key),
                Stored::Notifications(all) => state.notifications = all.into(),
                Stored::Port(place, id) => drop(state.ports.insert(place, id)),
                Stored::Time(time) => state.time.load(time),
                Stored::TokenVolume(id) => state.load_token_volume(backing, id)?,
                Stored::Reservations(volume, number, part) => {
                    add_part(&mut reservations, volume, number, part)?;
                }
                Stored::TargetState(StateKey::Incarnation, value) => {
                    state.host_states.load_incarnation(&value)?;
                }
                Stored::TargetState(StateKey::TokenMaker, value) => {
                    state.token_rows.load_maker(&value)?;
                }
                Stored::TargetState(StateKey::Token(id), value) => {
                    state.token_rows.load(id, &value)?;
                }
                Stored::TargetState(StateKey::Volume { volume, part }, value) => {
                    add_part(&mut host_states, volume, part.into(), value)?;
                }
            }
        }
        for (id, group) in groups {
            state.load_group(id, group)?;
        }
        for (id, mut snapshot, group) in snapshots {
            if let Some(name) = group {
                state.adopt(&mut snapshot, name);
                state.adopted.push(id);
            }
            state.load_snapshot(backing, id, snapshot)?;
        }
        connections.into_iter().try_for_each(|(h, v, lun)| state.load_connection(h, v, lun))?;
        for (group, volume, lun) in shared {
            state.load_shared_connection(group, volume, lun)?;
        }
        for (id, of) in tags {
            state.load_tags(id, of)?;
        }
        state.releases.limit(state.time.known_ms().saturating_add(RECORD_MS));
        state.load_host_states(reservations, host_states)?;
        state.host_states.set_incarnation(backing.incarnation().number);
        Ok(state)
    }

    fn load_volume(&mut self, backing: &dyn Backing, volume: VolumeRecord) -> Result<(), Error> {
        let name = volume.name.to_string();
        let stored = backing.volume_status(volume.id);
        // A volume that the store has lost to damage stays known: its I/O returns MEDIUM ERROR.
        let lost = stored.is_none() && backing.is_lost(volume.id);
        let fits =
            stored.map(|status| (status.size, status.snapshot)) == Some((volume.size, false));
        if !fits && !lost {
            let what = format!("the store has no volume {name} of this size");
            return Err(Error::Damaged(what));
        }
        if self.volume_names.contains_key(&volume.name.key()) {
            return Err(Error::Damaged(format!("two volumes are named {name}")));
        }
        let container = volume.name.container();
        if let Some((kind, container)) = container
            && self.containers.any(kind, container).is_err()
        {
            let what = format!("the {} of volume {name} does not exist", kind.one());
            return Err(Error::Damaged(what));
        }
        self.insert_volume(volume);
        Ok(())
    }

    fn load_host_states(
        &mut self,
        reservations: Parts<ReservationPart>,
        host_states: Parts<Vec<u8>>,
    ) -> Result<(), Error> {
        let old = reservations.into_iter();
        let old = old.map(|(id, parts)| (id, StoredState::from_reservations(id, parts)));
        let new = host_states.into_iter();
        let new = new.map(|(id, parts)| (id, StoredState::from_parts(id, &parts)));
        for (volume, kept) in old.chain(new) {
            match kept.filter(|_| self.volumes.contains_key(&volume)) {
                Some(kept) => self.host_states.load(volume, kept),
                None => return Err(no_host_state(volume)),
            }
        }
        Ok(())
    }

    fn load_token_volume(&mut self, backing: &dyn Backing, id: VolumeId) -> Result<(), Error> {
        if backing.volume_status(id).is_none() && backing.is_lost(id) {
            return Ok(()); // another is made: nothing in it outlives a start
        }
        if backing.volume_status(id).is_none() {
            return Err(Error::Damaged("the array's own volume is not in the store".into()));
        }
        self.token_volume = Some(id);
        Ok(())
    }

    fn load_host(&mut self, id: HostId, host: Host) -> Result<(), Error> {
        let taken = host.initiators.iter().find(|name| self.initiators.contains_key(name));
        if let Some(taken) = taken {
            return Err(Error::Damaged(format!("two hosts have the initiator {taken}")));
        }
        if self.host_names.contains_key(&host.name.key()) {
            return Err(Error::Damaged(format!("two hosts are named {}", host.name)));
        }
        if host.group.is_some_and(|id| !self.host_groups.by_id.contains_key(&id)) {
            return Err(Error::Damaged(format!("the group of host {} does not exist", host.name)));
        }
        self.insert_host(id, host);
        Ok(())
    }

    fn load_certificate(&mut self, one: StoredCertificate) {
        self.certificates.insert(one.name.key(), one.into());
    }

    /// Loads a release. It may be of a host or group that is deleted, whose id is not used again.
    fn load_release(&mut self, key: ReleaseKey, release: Release) {
        let (host, group) = match key {
            ReleaseKey::Lun(LunOwner::Host(host), _) => (Some(host), None),
            ReleaseKey::Lun(LunOwner::Group(group), _) => (None, Some(group)),
            ReleaseKey::Membership(host, group) => (Some(host), Some(group)),
        };
        if let Some(HostId(id)) = host {
            self.next_host_id = self.next_host_id.max(id.saturating_add(1));
        }
        if let Some(group) = group {
            self.host_groups.note_id(group);
        }
        self.releases.set((key, Some(release)));
    }

    fn load_connection(&mut self, host: HostId, volume: VolumeId, lun: u16) -> Result<(), Error> {
        let volumes = &self.volumes;
        let known = volumes.get(&volume).is_some_and(|v| v.record.eradicate_ms.is_none());
        match self.hosts.get(&host) {
            Some(entry) if known && !entry.luns().contains_key(&lun) => {
                self.connect(host, volume, lun);
                Ok(())
            }
            _ => {
                let what =
                    format!("host {}, LUN {lun} and volume {volume} are inconsistent", host.0);
                Err(Error::Damaged(what))
            }
        }
    }
}

fn add_part<T>(all: &mut Parts<T>, volume: VolumeId, number: u64, part: T) -> Result<(), Error> {
    let parts = all.entry(volume).or_default();
    if number != parts.len() as u64 {
        return Err(no_host_state(volume)); // keys come in their order
    }
    parts.push(part);
    Ok(())
}

fn no_host_state(volume: VolumeId) -> Error {
    Error::Damaged(format!("the host states of volume {volume} are inconsistent"))
}
