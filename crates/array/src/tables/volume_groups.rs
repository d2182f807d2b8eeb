//! All volume groups in memory.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Error;
use crate::objects::volume_groups::{VolumeGroup, VolumeGroupId};
use crate::values::text::shown;

/// All volume groups, by id and by name in lower case.
#[derive(Debug)]
pub(crate) struct VolumeGroups {
    by_id: BTreeMap<VolumeGroupId, VolumeGroup>,
    by_name: BTreeMap<String, VolumeGroupId>,
    /// Those that are destroyed, by when they are eradicated.
    doomed: BTreeSet<(u64, VolumeGroupId)>,
    next_id: u64,
}

impl Default for VolumeGroups {
    fn default() -> Self {
        let (by_id, by_name, doomed) = Default::default();
        Self { by_id, by_name, doomed, next_id: 1 }
    }
}

impl VolumeGroups {
    /// Adds a group, or replaces the one with its id.
    pub(crate) fn replace(&mut self, id: VolumeGroupId, group: VolumeGroup) {
        self.remove(id);
        self.next_id = self.next_id.max(id.0 + 1);
        self.by_name.insert(group.name.key(), id);
        self.doomed.extend(group.eradicate_ms.map(|due| (due, id)));
        self.by_id.insert(id, group);
    }

    pub(crate) fn remove(&mut self, id: VolumeGroupId) {
        if let Some(group) = self.by_id.remove(&id) {
            self.by_name.remove(&group.name.key());
            if let Some(due) = group.eradicate_ms {
                self.doomed.remove(&(due, id));
            }
        }
    }

    /// The id of the next new group, if so many are made before it.
    pub(crate) fn next_id(&self, before: usize) -> VolumeGroupId {
        VolumeGroupId(self.next_id + before as u64)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.by_id.len()
    }

    /// A group by its name, ignoring case, destroyed or not.
    pub(crate) fn any(&self, name: &str) -> Result<(VolumeGroupId, &VolumeGroup), Error> {
        let id = self.by_name.get(&name.to_ascii_lowercase());
        let found = id.and_then(|id| Some((*id, self.by_id.get(id)?)));
        found.ok_or_else(|| Error::NoSuchVolumeGroup(shown(name)))
    }

    /// A group by its name, unless it is destroyed.
    pub(crate) fn live(&self, name: &str) -> Result<(VolumeGroupId, &VolumeGroup), Error> {
        let (id, group) = self.any(name)?;
        match group.eradicate_ms {
            None => Ok((id, group)),
            Some(_) => Err(Error::VolumeGroupDestroyed(group.name.to_string())),
        }
    }

    /// A group by its id.
    pub(crate) fn get(&self, id: VolumeGroupId) -> Option<&VolumeGroup> {
        self.by_id.get(&id)
    }

    /// All of them in the order of their names, after a name.
    pub(crate) fn after(
        &self,
        after: Option<&str>,
    ) -> impl Iterator<Item = (VolumeGroupId, &VolumeGroup)> {
        let from = after.map_or(std::ops::Bound::Unbounded, |name| {
            std::ops::Bound::Excluded(name.to_ascii_lowercase())
        });
        let rows = self.by_name.range((from, std::ops::Bound::Unbounded));
        rows.filter_map(|(_, id)| Some((*id, self.by_id.get(id)?)))
    }

    /// Those that are to be eradicated by then, the first ones first.
    pub(crate) fn due(&self, now_ms: u64) -> impl Iterator<Item = (VolumeGroupId, &VolumeGroup)> {
        let due = self.doomed.iter().take_while(move |(due, _)| *due <= now_ms);
        due.filter_map(|(_, id)| Some((*id, self.by_id.get(id)?)))
    }
}
