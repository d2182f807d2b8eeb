//! All volume groups and pods in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use block::LimitedGroup;

use crate::container_kind::ContainerKind;
use crate::error::Error;
use crate::objects::containers::{Container, ContainerId};
use crate::values::name::VolumeName;
use crate::values::text::shown;

/// All volume groups and pods, by id and by name in lower case.
#[derive(Debug)]
pub(crate) struct Containers {
    by_id: BTreeMap<ContainerId, Container>,
    by_name: BTreeMap<(ContainerKind, String), ContainerId>,
    /// The destroyed ones, by when they are eradicated.
    doomed: BTreeSet<(u64, ContainerId)>,
    next_id: u64,
}

impl Default for Containers {
    fn default() -> Self {
        let (by_id, by_name, doomed) = Default::default();
        Self { by_id, by_name, doomed, next_id: 1 }
    }
}

impl Containers {
    /// Adds a container, or replaces the one with its id.
    pub(crate) fn replace(&mut self, id: ContainerId, one: Container) {
        self.remove(id);
        self.next_id = self.next_id.max(id.number + 1);
        self.by_name.insert((id.kind, one.name.key()), id);
        self.doomed.extend(one.eradicate_ms.map(|due| (due, id)));
        self.by_id.insert(id, one);
    }

    pub(crate) fn remove(&mut self, id: ContainerId) {
        if let Some(one) = self.by_id.remove(&id) {
            self.by_name.remove(&(id.kind, one.name.key()));
            if let Some(due) = one.eradicate_ms {
                self.doomed.remove(&(due, id));
            }
        }
    }

    /// Returns the id of a new container; `before`: the number of containers made before it in the
    /// same commit.
    pub(crate) fn next_id(&self, kind: ContainerKind, before: usize) -> ContainerId {
        ContainerId { kind, number: self.next_id + before as u64 }
    }

    /// Returns the number of containers of a kind.
    pub(crate) fn count(&self, kind: ContainerKind) -> usize {
        self.by_id.keys().filter(|id| id.kind == kind).count()
    }

    /// Returns a container by its name, ignoring case, destroyed or not.
    pub(crate) fn any(
        &self,
        kind: ContainerKind,
        name: &str,
    ) -> Result<(ContainerId, &Container), Error> {
        let id = self.by_name.get(&(kind, name.to_ascii_lowercase()));
        let found = id.and_then(|id| Some((*id, self.by_id.get(id)?)));
        found.ok_or_else(|| Error::NoSuchContainer(kind, shown(name)))
    }

    /// Returns a container by its name, unless it is destroyed.
    pub(crate) fn live(
        &self,
        kind: ContainerKind,
        name: &str,
    ) -> Result<(ContainerId, &Container), Error> {
        let (id, found) = self.any(kind, name)?;
        match found.eradicate_ms {
            None => Ok((id, found)),
            Some(_) => Err(Error::ContainerDestroyed(kind, found.name.to_string())),
        }
    }

    /// Returns the volume group of a volume with this name, if it has limits.
    pub(crate) fn limits_of(&self, name: &VolumeName) -> Option<LimitedGroup> {
        let (kind, container) = name.container()?;
        let (id, container) = self.any(kind, container).ok()?;
        let limits = container.limits;
        (!limits.is_none()).then_some(LimitedGroup { number: id.number, limits })
    }

    /// Returns a container by its id.
    pub(crate) fn get(&self, id: ContainerId) -> Option<&Container> {
        self.by_id.get(&id)
    }

    /// Returns all containers of a kind in the order of their names, after a name.
    pub(crate) fn after(
        &self,
        kind: ContainerKind,
        after: Option<&str>,
    ) -> impl Iterator<Item = (ContainerId, &Container)> {
        let from = after.map_or(Bound::Included((kind, String::new())), |name| {
            Bound::Excluded((kind, name.to_ascii_lowercase()))
        });
        let rows = self.by_name.range((from, Bound::Unbounded));
        let rows = rows.take_while(move |((of, _), _)| *of == kind);
        rows.filter_map(|(_, id)| Some((*id, self.by_id.get(id)?)))
    }

    /// Returns the containers that are due for eradication at that time, in the order of their
    /// times.
    pub(crate) fn due(&self, now_ms: u64) -> impl Iterator<Item = (ContainerId, &Container)> {
        let due = self.doomed.iter().take_while(move |(due, _)| *due <= now_ms);
        due.filter_map(|(_, id)| Some((*id, self.by_id.get(id)?)))
    }
}
