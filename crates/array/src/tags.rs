//! Tags: labels that users keep with volumes and snapshots, by namespace and key. They mean nothing
//! to the array.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use block::VolumeId;
use store::Change;

use crate::name::check_text;
use crate::several::check_all;
use crate::state::State;
use crate::{Array, Error, TAGS_MAX, record};

/// The namespace of tags without one.
pub const NAMESPACE_DEFAULT: &str = "default";
/// The most tags of a volume or a snapshot: a record of them must fit one value of the store.
pub const TAGS_PER_OBJECT_MAX: usize = 32;
/// The longest namespace or key, in characters.
pub const TAG_KEY_CHARS_MAX: usize = 64;
/// The longest value, in characters.
pub const TAG_VALUE_CHARS_MAX: usize = 256;
/// The most bytes of records in one change: they must fit a commit.
const CHANGE_BYTES_MAX: usize = 200 << 10;

/// A tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tag {
    /// The namespace in which its key is unique: see [`NAMESPACE_DEFAULT`].
    pub namespace: String,
    /// Its key.
    pub key: String,
    /// Its value; may be empty.
    pub value: String,
    /// Whether clones of the object inherit it.
    pub copyable: bool,
}

impl Tag {
    /// Checks a tag: none of its texts may contain control characters.
    ///
    /// # Errors
    /// `invalid_tag`.
    pub fn new(namespace: &str, key: &str, value: &str, copyable: bool) -> Result<Self, Error> {
        let check = |what, text, least, most| check_text("invalid_tag", what, text, least, most);
        check("namespace of a tag", namespace, 1, TAG_KEY_CHARS_MAX)?;
        check("key of a tag", key, 1, TAG_KEY_CHARS_MAX)?;
        check("value of a tag", value, 0, TAG_VALUE_CHARS_MAX)?;
        let [namespace, key, value] = [namespace, key, value].map(str::to_owned);
        Ok(Self { namespace, key, value, copyable })
    }
}

/// The tags of a volume or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tagged {
    /// The volume or snapshot.
    pub id: VolumeId,
    /// Its name.
    pub name: String,
    /// Whether it is destroyed.
    pub is_destroyed: bool,
    /// In the order of their namespaces and keys.
    pub tags: Vec<Tag>,
}

/// Which tags: those that match both.
#[derive(Clone, Debug, Default)]
pub struct TagFilter {
    /// In one of these; empty for all.
    pub namespaces: BTreeSet<String>,
    /// With one of these keys; empty for all.
    pub keys: BTreeSet<String>,
}

impl TagFilter {
    fn has(&self, namespace: &str, key: &str) -> bool {
        let is_in = |all: &BTreeSet<String>, text| all.is_empty() || all.contains(text);
        is_in(&self.namespaces, namespace) && is_in(&self.keys, key)
    }
}

/// The tags of one object: values, and whether they are copied, by namespace and key.
pub(crate) type TagMap = BTreeMap<(String, String), (String, bool)>;

/// All tags.
#[derive(Default)]
pub(crate) struct Tags {
    by_object: BTreeMap<VolumeId, TagMap>,
    count: usize,
}

impl Tags {
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

    /// The tags that a clone of an object inherits.
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
}

impl State {
    pub(crate) fn load_tags(&mut self, id: VolumeId, tags: TagMap) -> Result<(), Error> {
        if !self.volumes.contains_key(&id) && !self.snapshots.contains_key(&id) {
            return Err(Error::Damaged(format!("tags of {id}, which is not there")));
        }
        self.tags.replace(id, tags);
        Ok(())
    }

    /// A volume or a snapshot by its name, unless it is destroyed.
    fn taggable(&self, name: &str) -> Result<VolumeId, Error> {
        match name.contains('.') {
            true => self.snapshot(name).map(|(id, ..)| id),
            false => self.volume(name).map(|entry| entry.record.id),
        }
    }

    /// The name of a volume or a snapshot.
    pub(crate) fn name_of(&self, id: VolumeId) -> Option<String> {
        if let Some(entry) = self.volumes.get(&id) {
            return Some(entry.record.name.to_string());
        }
        let snapshot = self.snapshots.get(&id)?;
        Some(snapshot.name(self, self.volumes.get(&snapshot.source)?))
    }

    fn tagged(&self, id: VolumeId, filter: &TagFilter) -> Option<Tagged> {
        let all = self.tags.of(id)?.iter();
        let wanted = all.filter(|((namespace, key), _)| filter.has(namespace, key));
        let tag = |((namespace, key), (value, copyable)): (&(String, String), &(String, bool))| {
            let [namespace, key, value] = [namespace, key, value].map(String::clone);
            Tag { namespace, key, value, copyable: *copyable }
        };
        let tags: Vec<_> = wanted.map(tag).collect();
        (!tags.is_empty()).then_some(Tagged { tags, ..self.without_tags(id)? })
    }

    /// An object with tags, without the tags themselves.
    fn without_tags(&self, id: VolumeId) -> Option<Tagged> {
        let eradicate_ms = match self.volumes.get(&id) {
            Some(entry) => entry.record.eradicate_ms,
            None => self.doom_of(self.snapshots.get(&id)?),
        };
        let is_destroyed = eradicate_ms.is_some();
        Some(Tagged { id, name: self.name_of(id)?, is_destroyed, tags: Vec::new() })
    }
}

impl Array {
    /// Sets tags of volumes and snapshots, replacing those with the same namespaces and keys;
    /// others stay. All of that is in one commit.
    ///
    /// # Errors
    /// `no_such_volume`, `volume_destroyed`, `no_such_snapshot`, `snapshot_destroyed`,
    /// `named_twice`, `limit_reached`, `too_many_tags` for one commit, and those of the store.
    pub fn set_tags(&self, names: &[String], tags: &[Tag]) -> Result<(), Error> {
        check_all(names)?;
        let mut distinct = BTreeSet::new();
        if let Some(twice) = tags.iter().find(|tag| !distinct.insert((&tag.namespace, &tag.key))) {
            let text = format!("The tag {} is named twice.", crate::state::shown(&twice.key));
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
                    let key = crate::state::shown(key);
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
            let bytes = |row: &(Vec<u8>, Option<Vec<u8>>)| row.1.as_ref().map_or(0, Vec::len);
            if change.config.iter().map(bytes).sum::<usize>() > CHANGE_BYTES_MAX {
                let text = "These are too many tags for one request. Name fewer objects at once.";
                return Err(Error::invalid("too_many_tags", text));
            }
            Ok((change, planned))
        };
        self.change(plan, |state, planned| {
            planned.into_iter().for_each(|(id, map)| state.tags.replace(id, map));
        })
    }

    /// The tags of a volume or a snapshot, destroyed or not.
    ///
    /// # Errors
    /// `no_such_volume`, `no_such_snapshot`.
    pub fn tags(&self, name: &str, filter: &TagFilter) -> Result<Tagged, Error> {
        let state = self.state.read();
        let (id, gone) = match name.contains('.') {
            true => (state.any_snapshot(name)?.0, Error::NoSuchSnapshot(name.to_owned())),
            false => (state.any_volume(name)?.record.id, Error::NoSuchVolume(name.to_owned())),
        };
        state.tagged(id, filter).or_else(|| state.without_tags(id)).ok_or(gone)
    }

    /// Up to `limit` volumes, or snapshots, that have such tags, in the order of their ids, after
    /// `after`.
    pub fn tagged(
        &self,
        snapshots: bool,
        filter: &TagFilter,
        after: Option<VolumeId>,
        limit: usize,
    ) -> Vec<Tagged> {
        let state = self.state.read();
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let rows = state.tags.by_object.range((from, Bound::Unbounded));
        let wanted = rows.filter(|(id, _)| state.snapshots.contains_key(id) == snapshots);
        wanted.filter_map(|(id, _)| state.tagged(*id, filter)).take(limit).collect()
    }
}
