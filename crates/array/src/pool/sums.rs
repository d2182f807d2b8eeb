//! The stored data of several volumes together: those of a host, a host group or a group.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use block::{SECTOR_BYTES, VolumeId};
use store::{SpaceFigures, VolumeSpace};

use crate::array::Array;
use crate::container_kind::ContainerKind;
use crate::error::Error;
use crate::objects::groups::Members;
use crate::state::State;

use super::passes::{AccountedVolume, snapshots_bytes};

/// The number of volumes examined while the state is locked.
const PIECE: usize = 250;

/// The stored data of several volumes together. Figures are current unless they are those of the
/// last pass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumesSpace {
    /// Their sizes.
    pub size_bytes: u64,
    /// Bytes that hosts have written and not unmapped since.
    pub mapped_bytes: u64,
    /// Stored bytes that only one of their snapshots refers to, as far as the last pass covers
    /// them.
    pub snapshots_bytes: u64,
    /// Stored bytes that eradicating all of them, and nothing else, would free. `None` if that is
    /// unknown: the pass does not cover one of them, or they share data, possibly with each other.
    pub unique_bytes: Option<u64>,
    /// Their figures of the last pass, as far as it covers them; `None` before the first pass.
    pub accounted: Option<AccountedSpace>,
}

/// The figures of a pass for several volumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AccountedSpace {
    /// The time of the figures, in seconds since 1970.
    pub as_of_s: u64,
    /// Their sizes at that time.
    pub size_bytes: u64,
    /// Bytes that hosts had written and not unmapped at that time.
    pub mapped_bytes: u64,
    /// Their parts of what is stored: see [`store::VolumeSpace::share_bytes`].
    pub share_bytes: u64,
}

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

/// A volume's part of a sum.
#[derive(Clone, Copy)]
struct Part {
    size_bytes: u64,
    mapped_bytes: u64,
    snapshots_bytes: u64,
    accounted: Option<VolumeSpace>,
}

/// Adds up the stored data of volumes, all by the figures of one pass. Each volume and each of its
/// snapshots is examined once, regardless of how many objects it belongs to.
pub struct SpaceSums<'a> {
    array: &'a Array,
    figures: Option<Arc<SpaceFigures>>,
    /// `None` for a volume that is gone or destroyed.
    parts: HashMap<VolumeId, Option<Part>>,
    limit: usize,
    /// The number of connections and members added up.
    steps: usize,
}

impl Array {
    /// Returns sums over at most this many connections and members, over all objects.
    pub fn space_sums(&self, limit: usize) -> SpaceSums<'_> {
        let figures = self.backing().space_figures();
        SpaceSums { array: self, figures, parts: HashMap::new(), limit, steps: 0 }
    }
}

impl VolumesSpace {
    /// Returns the sum over volumes as of an earlier pass.
    pub fn of_pass(volumes: &[AccountedVolume], as_of_s: u64) -> Self {
        let part = |volume: &AccountedVolume| Part {
            size_bytes: volume.space.size_bytes,
            mapped_bytes: volume.space.mapped_bytes,
            snapshots_bytes: volume.snapshots_bytes,
            accounted: Some(volume.space),
        };
        sum_of(&volumes.iter().map(part).collect::<Vec<_>>(), Some(as_of_s))
    }
}

impl SpaceSums<'_> {
    /// Returns the sum over the volumes of an object.
    ///
    /// # Errors
    /// `no_such_…` for the object, `too_many_connections`.
    pub fn of(&mut self, object: VolumesOf<'_>) -> Result<VolumesSpace, Error> {
        let ids = self.volumes(object)?;
        Ok(self.sum(&ids))
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
    fn sum(&mut self, ids: &[VolumeId]) -> VolumesSpace {
        let new: Vec<VolumeId> =
            ids.iter().filter(|id| !self.parts.contains_key(id)).copied().collect();
        for piece in new.chunks(PIECE) {
            let state = self.array.read();
            for id in piece {
                let part = self.part(&state, *id);
                self.parts.insert(*id, part);
            }
        }
        let parts: Vec<Part> =
            ids.iter().filter_map(|id| self.parts.get(id).copied().flatten()).collect();
        let as_of_s = self.figures.as_ref().map(|figures| figures.as_of_s);
        sum_of(&parts, as_of_s)
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

fn sum_of(parts: &[Part], as_of_s: Option<u64>) -> VolumesSpace {
    let sum = |of: fn(&Part) -> u64| parts.iter().map(of).fold(0, u64::saturating_add);
    let accounted: Vec<VolumeSpace> = parts.iter().filter_map(|part| part.accounted).collect();
    let accounted_sum =
        |of: fn(&VolumeSpace) -> u64| accounted.iter().map(of).fold(0, u64::saturating_add);
    // Shared data is part of a volume's share, but not unique to it. If no volume shares data, the
    // unique bytes of all are the sum. If one does, it may be more, by an unknown amount. (Shares
    // are rounded to bytes: 64 bytes that more than 128 volumes share can go unnoticed.)
    let is_known = accounted.len() == parts.len()
        && (parts.len() < 2 || accounted.iter().all(|it| it.share_bytes == it.unique_bytes));
    VolumesSpace {
        size_bytes: sum(|part| part.size_bytes),
        mapped_bytes: sum(|part| part.mapped_bytes),
        snapshots_bytes: sum(|part| part.snapshots_bytes),
        unique_bytes: is_known.then(|| accounted_sum(|space| space.unique_bytes)),
        accounted: as_of_s.map(|as_of_s| AccountedSpace {
            as_of_s,
            size_bytes: accounted_sum(|space| space.size_bytes),
            mapped_bytes: accounted_sum(|space| space.mapped_bytes),
            share_bytes: accounted_sum(|space| space.share_bytes),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(accounted: Option<(u64, u64)>) -> Part {
        let accounted = accounted.map(|(unique_bytes, share_bytes)| VolumeSpace {
            size_bytes: 100,
            mapped_bytes: 50,
            unique_bytes,
            share_bytes,
            ..VolumeSpace::default()
        });
        Part { size_bytes: 200, mapped_bytes: 60, snapshots_bytes: 1, accounted }
    }

    #[test]
    fn the_unique_bytes_of_several_volumes_are_known_only_if_they_share_nothing() {
        let (alone, sharing) = (part(Some((10, 10))), part(Some((10, 15))));
        for (parts, unique_bytes) in [
            (vec![], Some(0)),
            (vec![sharing], Some(10)),
            (vec![alone, alone], Some(20)),
            (vec![alone, sharing], None),
            (vec![alone, part(None)], None),
            (vec![part(None)], None),
        ] {
            assert_eq!(sum_of(&parts, Some(7)).unique_bytes, unique_bytes, "{}", parts.len());
        }
        let sum = sum_of(&[alone, sharing, part(None)], Some(7));
        assert_eq!((sum.size_bytes, sum.mapped_bytes, sum.snapshots_bytes), (600, 180, 3));
        let accounted =
            AccountedSpace { as_of_s: 7, size_bytes: 200, mapped_bytes: 100, share_bytes: 25 };
        assert_eq!(sum.accounted, Some(accounted));
        assert_eq!(sum_of(&[alone], None).accounted, None);
    }
}
