//! The stored data of several volumes together: those of a host, a host group or a group.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use block::{SECTOR_BYTES, VolumeId};
use store::SpaceFigures;

use crate::array::Array;
use crate::container_kind::ContainerKind;
use crate::error::Error;
use crate::objects::groups::Members;
use crate::objects::host_groups::HostGroupId;
use crate::state::State;

use super::joint::{Part, Sum, VolumesSpace};
use super::passes::snapshots_bytes;

/// The number of volumes examined while the state is locked.
const PIECE: usize = 250;

/// An object with volumes, by its name.
#[derive(Clone, Copy, Debug)]
pub enum VolumesOf<'a> {
    /// A host: the volumes that it sees, by its own connections and by those of its group.
    Host(&'a str),
    /// A host group: the volumes that are connected to it.
    HostGroup(&'a str),
    /// A volume group or a pod: the volumes in it.
    Container(ContainerKind, &'a str),
    /// A group of volumes: those that it protects, its own, or those of its hosts or its host
    /// groups. Destroyed ones do not count.
    Group(&'a str),
}

/// Adds up the stored data of volumes, all by the figures of one pass. Each volume and each of its
/// snapshots is examined once, regardless of how many objects it belongs to.
pub struct SpaceSums<'a> {
    array: &'a Array,
    figures: Option<Arc<SpaceFigures>>,
    /// `None` for a volume that is gone or destroyed.
    parts: HashMap<VolumeId, Option<Part>>,
    /// The volumes of host groups. Each of a group's hosts sees all of them.
    groups: HashMap<HostGroupId, Sum>,
    limit: usize,
    /// The number of connections and members added up.
    steps: usize,
}

impl Array {
    /// Returns sums over at most this many connections and members, over all objects. Those of a
    /// host group count once, however many of its hosts are added up.
    pub fn space_sums(&self, limit: usize) -> SpaceSums<'_> {
        let figures = self.backing().space_figures();
        let (parts, groups) = (HashMap::new(), HashMap::new());
        SpaceSums { array: self, figures, parts, groups, limit, steps: 0 }
    }
}

impl SpaceSums<'_> {
    /// Returns the sum over the volumes of an object.
    ///
    /// # Errors
    /// `no_such_…` for the object, `too_many_connections`.
    pub fn of(&mut self, object: VolumesOf<'_>) -> Result<VolumesSpace, Error> {
        let sum = match object {
            VolumesOf::Host(name) => self.of_host(name)?,
            VolumesOf::HostGroup(name) => {
                let id = self.array.read().host_group(name)?.0;
                self.of_host_group(id)?
            }
            VolumesOf::Container(..) | VolumesOf::Group(_) => {
                let ids = self.volumes(object)?;
                self.sum(&ids)
            }
        };
        Ok(sum.space(self.figures.as_ref().map(|figures| figures.as_of_s)))
    }

    /// Returns the sum over a host's own connections and those of its group, which are of different
    /// volumes.
    fn of_host(&mut self, name: &str) -> Result<Sum, Error> {
        let (ids, group) = {
            let state = self.array.read();
            let (_, host) = state.host(name)?;
            (host.luns().values().copied().collect::<Vec<_>>(), host.host.group)
        };
        self.step(ids.len())?;
        let mut sum = self.sum(&ids);
        if let Some(group) = group {
            sum.merge(&self.of_host_group(group)?);
        }
        Ok(sum)
    }

    fn of_host_group(&mut self, id: HostGroupId) -> Result<Sum, Error> {
        if let Some(sum) = self.groups.get(&id) {
            return Ok(*sum);
        }
        let ids: Vec<VolumeId> = {
            let state = self.array.read();
            let group = state.host_groups().by_id.get(&id);
            group.map(|group| group.luns.values().copied().collect()).unwrap_or_default()
        };
        self.step(ids.len())?;
        let sum = self.sum(&ids);
        self.groups.insert(id, sum);
        Ok(sum)
    }

    /// Returns the volumes of an object that are not destroyed, and when each was created, in
    /// milliseconds since 1970.
    ///
    /// # Errors
    /// Those of [`SpaceSums::of`].
    pub fn created(&mut self, object: VolumesOf<'_>) -> Result<Vec<(VolumeId, u64)>, Error> {
        let (ids, mut found) = (self.volumes(object)?, Vec::new());
        for piece in ids.chunks(PIECE) {
            let state = self.array.read();
            let records =
                piece.iter().filter_map(|id| Some((*id, &state.volumes().get(id)?.record)));
            let living = records.filter(|(_, record)| record.eradicate_ms.is_none());
            found.extend(living.map(|(id, record)| (id, record.created_ms)));
        }
        Ok(found)
    }

    fn volumes(&mut self, object: VolumesOf<'_>) -> Result<Vec<VolumeId>, Error> {
        let ids: Vec<VolumeId> = match object {
            VolumesOf::Host(name) => {
                let state = self.array.read();
                let (_, host) = state.host(name)?;
                state.luns_of(host).map(|(_, volume)| volume).collect()
            }
            VolumesOf::HostGroup(name) => {
                self.array.read().host_group(name)?.1.luns.values().copied().collect()
            }
            VolumesOf::Container(kind, name) => {
                let state = self.array.read();
                state.containers.any(kind, name)?;
                state.volumes_within(kind, name).map(|volume| volume.id).collect()
            }
            VolumesOf::Group(name) => return self.protected(name),
        };
        self.step(ids.len())?;
        Ok(ids)
    }

    fn protected(&mut self, name: &str) -> Result<Vec<VolumeId>, Error> {
        let Members { volumes, hosts, host_groups } =
            self.array.read().any_group(name)?.1.members.clone();
        self.step(volumes.len())?;
        let mut ids: BTreeSet<VolumeId> = volumes.into_iter().collect();
        // The state is locked for one host at a time: each may see thousands of volumes.
        for host in hosts {
            self.take(&mut ids, |state| {
                let host = state.hosts().get(&host);
                host.map(|host| state.luns_of(host).map(|(_, id)| id).collect())
            })?;
        }
        for group in host_groups {
            self.take(&mut ids, |state| {
                let group = state.host_groups().by_id.get(&group);
                group.map(|group| group.luns.values().copied().collect())
            })?;
        }
        Ok(ids.into_iter().collect())
    }

    fn take(
        &mut self,
        ids: &mut BTreeSet<VolumeId>,
        found: impl FnOnce(&State) -> Option<Vec<VolumeId>>,
    ) -> Result<(), Error> {
        let found = found(&self.array.read()).unwrap_or_default();
        self.step(found.len())?;
        ids.extend(found);
        Ok(())
    }

    fn step(&mut self, count: usize) -> Result<(), Error> {
        self.steps = self.steps.saturating_add(count);
        if self.steps <= self.limit {
            return Ok(());
        }
        let text = format!(
            "There are more than {} connections to add up. Name fewer objects, or read smaller \
             pages.",
            self.limit
        );
        Err(Error::invalid("too_many_connections", text))
    }

    /// Returns the sum over different volumes.
    fn sum(&mut self, ids: &[VolumeId]) -> Sum {
        let new: Vec<VolumeId> =
            ids.iter().filter(|id| !self.parts.contains_key(id)).copied().collect();
        for piece in new.chunks(PIECE) {
            let state = self.array.read();
            for id in piece {
                let part = self.part(&state, *id);
                self.parts.insert(*id, part);
            }
        }
        let mut sum = Sum::default();
        for part in ids.iter().filter_map(|id| self.parts.get(id)?.as_ref()) {
            sum.add(part);
        }
        sum
    }

    fn part(&self, state: &State, id: VolumeId) -> Option<Part> {
        let entry = state.volumes().get(&id)?;
        if entry.record.eradicate_ms.is_some() {
            return None;
        }
        let figures = self.figures.as_deref();
        Some(Part {
            size_bytes: entry.record.size.0 * SECTOR_BYTES,
            mapped_bytes: self.array.backing().volume_status(id).map_or(0, |it| it.mapped_bytes),
            snapshots_bytes: figures.map_or(0, |figures| snapshots_bytes(entry, figures)),
            accounted: figures.and_then(|figures| figures.volume(id)).copied(),
        })
    }
}
