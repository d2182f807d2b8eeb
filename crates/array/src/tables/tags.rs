//! All tags in memory, by the volume or snapshot that has them.

use std::collections::BTreeMap;
use std::ops::Bound;

use block::VolumeId;

use crate::error::Error;
use crate::objects::tags::{TAGS_MAX, TagMap};

/// All tags.
#[derive(Default)]
pub(crate) struct Tags {
    by_object: BTreeMap<VolumeId, TagMap>,
    count: usize,
}

impl Tags {
    /// Returns the tags of an object; `None` if it has none.
    pub(crate) fn of(&self, id: VolumeId) -> Option<&TagMap> {
        self.by_object.get(&id)
    }

    /// Replaces all tags of an object.
    pub(crate) fn replace(&mut self, id: VolumeId, tags: TagMap) {
        self.count += tags.len();
        let old = match tags.is_empty() {
            true => self.by_object.remove(&id),
            false => self.by_object.insert(id, tags),
        };
        self.count -= old.map_or(0, |old| old.len());
    }

    /// Returns the tags that a clone of an object inherits.
    pub(crate) fn copied(&self, source: VolumeId) -> TagMap {
        let all = self.by_object.get(&source).into_iter().flatten();
        let copied = all.filter(|(_, (_, copyable))| *copyable);
        copied.map(|(name, tag)| (name.clone(), tag.clone())).collect()
    }

    /// Checks that there is room for some more.
    pub(crate) fn check_room(&self, more: usize) -> Result<(), Error> {
        match self.count + more <= TAGS_MAX {
            true => Ok(()),
            false => Err(Error::Limit { what: "tags", limit: TAGS_MAX }),
        }
    }

    /// Returns the objects that have tags, in the order of their ids, after `after`.
    pub(crate) fn objects(&self, after: Option<VolumeId>) -> impl Iterator<Item = VolumeId> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.by_object.range((from, Bound::Unbounded)).map(|(id, _)| *id)
    }
}
