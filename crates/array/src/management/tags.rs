//! Setting, removing and listing tags.

use std::collections::{BTreeMap, BTreeSet};

use block::VolumeId;
use store::Change;

use crate::array::Array;
use crate::array::distinct::check_all;
use crate::error::Error;
use crate::objects::tags::{TAGS_PER_OBJECT_MAX, Tag, TagFilter, TagMap, Tagged};
use crate::record::{self, Row};
use crate::state::State;
use crate::values::text::shown;

/// The maximum number of bytes of records in one change: they must fit a commit.
const CHANGE_BYTES_MAX: usize = 200 << 10;

impl Array {
    /// Sets tags of volumes and snapshots, replacing those with the same namespaces and keys; other
    /// tags stay. All changes are in one commit.
    ///
    /// # Errors
    /// `no_such_volume`, `volume_destroyed`, `no_such_snapshot`, `snapshot_destroyed`,
    /// `named_twice`, `limit_reached`, `too_many_tags` for one commit, and those of the store.
    pub fn set_tags(&self, names: &[String], tags: &[Tag]) -> Result<(), Error> {
        check_all(names)?;
        let mut distinct = BTreeSet::new();
        if let Some(twice) = tags.iter().find(|tag| !distinct.insert((&tag.namespace, &tag.key))) {
            let text = format!("The tag {} is named twice.", shown(&twice.key));
            return Err(Error::invalid("named_twice", text));
        }
        self.change_tags(names, |_, map| {
            for Tag { namespace, key, value, copyable } in tags {
                map.insert((namespace.clone(), key.clone()), (value.clone(), *copyable));
            }
            Ok(())
        })
    }

    /// Removes the tags that match the filter from volumes and snapshots.
    ///
    /// # Errors
    /// Those of [`Array::set_tags`], and `no_such_tag` if an object has no tag with a key.
    pub fn remove_tags(&self, names: &[String], filter: &TagFilter) -> Result<(), Error> {
        check_all(names)?;
        self.change_tags(names, |name, map| {
            for key in &filter.keys {
                if !map.keys().any(|(space, known)| known == key && filter.has(space, key)) {
                    let key = shown(key);
                    return Err(Error::NoSuchTag { object: name.to_owned(), key });
                }
            }
            map.retain(|(namespace, key), _| !filter.has(namespace, key));
            Ok(())
        })
    }

    fn change_tags(
        &self,
        names: &[String],
        change_one: impl Fn(&str, &mut TagMap) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let plan = |state: &State| {
            let (mut change, mut planned) = (Change::default(), BTreeMap::new());
            let (mut before, mut after) = (0, 0);
            for name in names {
                let id = state.taggable(name)?;
                let mut map = state.tags.of(id).cloned().unwrap_or_default();
                let old = map.clone();
                change_one(name, &mut map)?;
                if map.len() > TAGS_PER_OBJECT_MAX {
                    let limit = TAGS_PER_OBJECT_MAX;
                    return Err(Error::Limit { what: "tags of one object", limit });
                }
                (before, after) = (before + old.len(), after + map.len());
                if map != old {
                    change.config.push(record::tags_row(id, &map)?);
                }
                planned.insert(id, map);
            }
            state.tags.check_room(after.saturating_sub(before))?;
            let bytes = |row: &Row| row.1.as_ref().map_or(0, Vec::len);
            if change.config.iter().map(bytes).sum::<usize>() > CHANGE_BYTES_MAX {
                let text = "There are too many tags for one request. Name fewer objects at once.";
                return Err(Error::invalid("too_many_tags", text));
            }
            Ok((change, planned))
        };
        self.change(plan, |state, planned| {
            planned.into_iter().for_each(|(id, map)| state.tags.replace(id, map));
        })
    }

    /// Returns the tags of a volume or a snapshot, destroyed or not.
    ///
    /// # Errors
    /// `no_such_volume`, `no_such_snapshot`.
    pub fn tags(&self, name: &str, filter: &TagFilter) -> Result<Tagged, Error> {
        let state = self.read();
        let (id, gone) = match name.contains('.') {
            true => (state.any_snapshot(name)?.0, Error::NoSuchSnapshot(name.to_owned())),
            false => (state.any_volume(name)?.record.id, Error::NoSuchVolume(name.to_owned())),
        };
        tagged(&state, id, filter).or_else(|| without_tags(&state, id)).ok_or(gone)
    }

    /// Returns up to `limit` volumes, or snapshots, with tags that match, in the order of their
    /// ids, after `after`.
    pub fn tagged(
        &self,
        snapshots: bool,
        filter: &TagFilter,
        after: Option<VolumeId>,
        limit: usize,
    ) -> Vec<Tagged> {
        let state = self.read();
        let all = state.tags.objects(after);
        let wanted = all.filter(|id| state.snapshots().contains_key(id) == snapshots);
        wanted.filter_map(|id| tagged(&state, id, filter)).take(limit).collect()
    }
}

/// Returns an object with those of its tags that match; `None` if there are none.
fn tagged(state: &State, id: VolumeId, filter: &TagFilter) -> Option<Tagged> {
    let all = state.tags.of(id)?.iter();
    let wanted = all.filter(|((namespace, key), _)| filter.has(namespace, key));
    let tag = |((namespace, key), (value, copyable)): (&(String, String), &(String, bool))| {
        let [namespace, key, value] = [namespace, key, value].map(String::clone);
        Tag { namespace, key, value, copyable: *copyable }
    };
    let tags: Vec<_> = wanted.map(tag).collect();
    (!tags.is_empty()).then_some(Tagged { tags, ..without_tags(state, id)? })
}

/// Returns an object for a list of tags, without the tags themselves.
fn without_tags(state: &State, id: VolumeId) -> Option<Tagged> {
    let eradicate_ms = match state.volumes().get(&id) {
        Some(entry) => entry.record.eradicate_ms,
        None => state.doom_of(state.snapshots().get(&id)?),
    };
    let is_destroyed = eradicate_ms.is_some();
    Some(Tagged { id, name: state.name_of(id)?, is_destroyed, tags: Vec::new() })
}
