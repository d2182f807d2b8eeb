//! The records of tags: a record holds all tags of an object.

use block::VolumeId;
use serde::{Deserialize, Serialize};

use super::row::{Row, VERSION, encode, key};
use crate::error::Error;
use crate::objects::tags::{Tag, TagMap};

/// Tags as (namespace, key, value, whether clones inherit it).
#[derive(Serialize, Deserialize)]
pub(super) struct TagsRow {
    v: u8,
    tags: Vec<(String, String, String, bool)>,
}

/// Returns the record of an object's tags, or its removal if there are no tags left.
pub(crate) fn tags_row(id: VolumeId, tags: &TagMap) -> Result<Row, Error> {
    let key = key(b'T', &[id.0]);
    if tags.is_empty() {
        return Ok((key, None));
    }
    let tag = |((namespace, key), (value, copyable)): (&(String, String), &(String, bool))| {
        (namespace.clone(), key.clone(), value.clone(), *copyable)
    };
    Ok((key, Some(encode(&TagsRow { v: VERSION, tags: tags.iter().map(tag).collect() })?)))
}

pub(super) fn decode_tags(row: TagsRow) -> Result<TagMap, Error> {
    let tag = |(namespace, key, value, copyable): (String, String, String, bool)| {
        let tag = Tag::new(&namespace, &key, &value, copyable)?;
        Ok(((tag.namespace, tag.key), (tag.value, tag.copyable)))
    };
    row.tags.into_iter().map(tag).collect()
}
