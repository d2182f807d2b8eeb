//! Volume groups and pods with their volumes, which are adjacent in the order of names.

use super::State;
use crate::container_kind::ContainerKind;
use crate::error::Error;
use crate::objects::containers::{CONTAINER_VOLUMES_MAX, Container, ContainerId};
use crate::objects::volumes::VolumeRecord;
use crate::values::name::VolumeName;

impl State {
    /// Returns the volumes of a container, destroyed or not, in the order of their names.
    pub(crate) fn volumes_within(
        &self,
        kind: ContainerKind,
        name: &str,
    ) -> impl Iterator<Item = &VolumeRecord> {
        let first = format!("{}{}", name.to_ascii_lowercase(), kind.separator());
        let ids = self.volume_names.range(first.clone()..);
        let ids = ids.take_while(move |(name, _)| name.starts_with(&first)).map(|(_, id)| id);
        ids.filter_map(|id| Some(&self.volumes.get(id)?.record))
    }

    /// Returns the new name of a volume, with the name of its container as stored. `before`: the
    /// number of volumes that the same commit puts into containers before it, possibly all into the
    /// same one; `None` if the volume is already in its container.
    pub(crate) fn placed(
        &self,
        name: &VolumeName,
        before: Option<usize>,
    ) -> Result<VolumeName, Error> {
        let Some((kind, container)) = name.container() else { return Ok(name.clone()) };
        let (_, container) = self.containers.live(kind, container)?;
        let count = || self.volumes_within(kind, container.name.as_str()).count();
        if before.is_some_and(|before| count() + before >= CONTAINER_VOLUMES_MAX) {
            let what = match kind {
                ContainerKind::VolumeGroup => "volumes of a volume group",
                ContainerKind::Pod => "volumes of a pod",
            };
            return Err(Error::Limit { what, limit: CONTAINER_VOLUMES_MAX });
        }
        Ok(name.within(Some(&container.name)))
    }

    pub(crate) fn load_container(
        &mut self,
        id: ContainerId,
        container: Container,
    ) -> Result<(), Error> {
        if self.containers.any(id.kind, container.name.as_str()).is_ok() {
            let what = format!("two {} are named {}", id.kind.plural(), container.name);
            return Err(Error::Damaged(what));
        }
        self.containers.replace(id, container);
        Ok(())
    }
}
