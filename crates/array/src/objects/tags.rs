//! Tags: labels of volumes and snapshots, by namespace and key. The array only stores them.

use std::collections::{BTreeMap, BTreeSet};

use block::VolumeId;

use crate::error::Error;
use crate::values::text::check_text;

/// The maximum number of tags of all volumes and snapshots; each costs up to 2 KiB of memory.
pub const TAGS_MAX: usize = 100_000;
/// The default namespace of tags.
pub const NAMESPACE_DEFAULT: &str = "default";
/// The maximum number of tags of a volume or a snapshot: a record of them must fit one value of the
/// store.
pub const TAGS_PER_OBJECT_MAX: usize = 32;
/// The maximum length of a namespace or key, in characters.
pub const TAG_KEY_CHARS_MAX: usize = 64;
/// The maximum length of a value, in characters.
pub const TAG_VALUE_CHARS_MAX: usize = 256;

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
    /// Its current name.
    pub name: String,
    /// Whether it is destroyed.
    pub is_destroyed: bool,
    /// The tags, in the order of their namespaces and keys.
    pub tags: Vec<Tag>,
}

/// A filter for tags that match both fields.
#[derive(Clone, Debug, Default)]
pub struct TagFilter {
    /// The namespaces of the tags; empty for all.
    pub namespaces: BTreeSet<String>,
    /// The keys of the tags; empty for all.
    pub keys: BTreeSet<String>,
}

impl TagFilter {
    /// Returns whether a tag with this namespace and key matches.
    pub(crate) fn has(&self, namespace: &str, key: &str) -> bool {
        let is_in = |all: &BTreeSet<String>, text| all.is_empty() || all.contains(text);
        is_in(&self.namespaces, namespace) && is_in(&self.keys, key)
    }
}

/// The tags of one object: values, and whether they are copied, by namespace and key.
pub(crate) type TagMap = BTreeMap<(String, String), (String, bool)>;
