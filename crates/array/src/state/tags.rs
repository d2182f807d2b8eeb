//! The objects that may have tags.

use block::VolumeId;

use super::State;
use crate::error::Error;
use crate::objects::tags::TagMap;

impl State {
    pub(crate) fn load_tags(&mut self, id: VolumeId, tags: TagMap) -> Result<(), Error> {
        if !self.volumes.contains_key(&id) && !self.snapshots.contains_key(&id) {
            return Err(Error::Damaged(format!("tags of {id}, which does not exist")));
        }
        self.tags.replace(id, tags);
        Ok(())
    }

    /// Returns a volume or a snapshot by its name, unless it is destroyed.
    pub(crate) fn taggable(&self, name: &str) -> Result<VolumeId, Error> {
        match name.contains('.') {
            true => self.snapshot(name).map(|(id, ..)| id),
            false => self.volume(name).map(|entry| entry.record.id),
        }
    }
}
