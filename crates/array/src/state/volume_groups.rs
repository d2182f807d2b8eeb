//! Volume groups with their volumes, which stand beside each other in the order of names.

use super::State;
use crate::error::Error;
use crate::objects::volume_groups::{VOLUME_GROUP_VOLUMES_MAX, VolumeGroup, VolumeGroupId};
use crate::objects::volumes::VolumeRecord;
use crate::values::name::VolumeName;

impl State {
    /// The volumes of a group, destroyed or not, in the order of their names.
    pub(crate) fn volumes_of_group(&self, name: &str) -> impl Iterator<Item = &VolumeRecord> {
        let first = format!("{}/", name.to_ascii_lowercase());
        // The character behind the slash ends the names that begin so.
        let end = format!("{}0", name.to_ascii_lowercase());
        let ids = self.volume_names.range(first..end).map(|(_, id)| id);
        ids.filter_map(|id| Some(&self.volumes.get(id)?.record))
    }

    /// The name that a volume gets, with that of its group as it is kept; `before`: how many
    /// volumes the same commit puts into groups before it, which may all be in the same. It is
    /// `None` if the volume is in the group already.
    pub(crate) fn placed(
        &self,
        name: &VolumeName,
        before: Option<usize>,
    ) -> Result<VolumeName, Error> {
        let Some(group) = name.group() else { return Ok(name.clone()) };
        let (_, group) = self.volume_groups.live(group)?;
        let count = || self.volumes_of_group(group.name.as_str()).count();
        if before.is_some_and(|before| count() + before >= VOLUME_GROUP_VOLUMES_MAX) {
            let (what, limit) = ("volumes of a volume group", VOLUME_GROUP_VOLUMES_MAX);
            return Err(Error::Limit { what, limit });
        }
        Ok(name.within(Some(&group.name)))
    }

    pub(crate) fn load_volume_group(
        &mut self,
        id: VolumeGroupId,
        group: VolumeGroup,
    ) -> Result<(), Error> {
        if self.volume_groups.any(group.name.as_str()).is_ok() {
            return Err(Error::Damaged(format!("two volume groups are called {}", group.name)));
        }
        self.volume_groups.replace(id, group);
        Ok(())
    }
}
