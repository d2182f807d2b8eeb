//! `volumes/tags` and `volume-snapshots/tags`: labels on volumes and snapshots.

use array::tags::{NAMESPACE_DEFAULT, TAGS_PER_OBJECT_MAX};
use array::{Tag, TagFilter, Tagged};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ids::{Ids, Kind};
use super::{
    Answer, Body, Items, ItemsOf, ListParams, Listed, Listing, Query, Refusals, Refused, Selection,
    answer, each, volume_snapshots, volumes,
};
use crate::{Interface, Shared};

/// The number of objects with tags that are read at once.
const PIECE: usize = 250;

/// A tag of a volume or a snapshot.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestTag {
    /// The namespace in which its key is unique.
    pub namespace: String,
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
    /// Whether clones inherit it.
    pub copyable: bool,
    /// The object that has it.
    pub resource: RestTagged,
}

/// An object with a tag.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestTagged {
    /// Its id.
    pub id: String,
    /// The tagged object's name.
    pub name: String,
}

impl Listed for RestTag {
    fn key(&self) -> String {
        // None of the parts contains control characters.
        format!("{}\0{}\0{}", self.resource.name, self.namespace, self.key)
    }
}

fn shown(ids: Ids, tagged: Tagged) -> Vec<RestTag> {
    let Tagged { id, name, tags, .. } = tagged;
    let show = |tag: Tag| RestTag {
        namespace: tag.namespace,
        key: tag.key,
        value: tag.value,
        copyable: tag.copyable,
        resource: RestTagged { id: ids.id(Kind::Volume, id.0), name: name.clone() },
    };
    tags.into_iter().map(show).collect()
}

/// Parameters that select tags and their objects, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct TagParams {
    /// The names of volumes or snapshots, comma-separated.
    resource_names: Option<String>,
    /// Their ids, comma-separated, instead.
    resource_ids: Option<String>,
    /// Only tags in these namespaces, comma-separated.
    namespaces: Option<String>,
    /// Only tags with these keys, comma-separated.
    keys: Option<String>,
}

/// The parameter that selects tags of destroyed objects, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct DestroyedResourceParam {
    /// Only tags of destroyed objects, or only those of the others.
    resource_destroyed: Option<bool>,
}

/// Parameters that name the objects to tag, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct ResourceParams {
    /// The names of volumes or snapshots, comma-separated.
    resource_names: Option<String>,
    /// Their ids, comma-separated, instead.
    resource_ids: Option<String>,
}

/// The kind of object that is tagged.
#[derive(Clone, Copy)]
enum Of {
    Volumes,
    Snapshots,
}

impl Of {
    fn names(self, interface: &Interface, selection: &Selection) -> Result<Vec<String>, Refused> {
        let names = selection.names(|id| match self {
            Self::Volumes => volumes::name_of(interface, id),
            Self::Snapshots => volume_snapshots::name_of(interface, id),
        })?;
        // Only names of snapshots contain a dot.
        each(&names, |name| match (self, name.contains('.')) {
            (Self::Volumes, true) => Err(array::Error::NoSuchVolume(name.to_owned()).into()),
            (Self::Snapshots, false) => Err(array::Error::NoSuchSnapshot(name.to_owned()).into()),
            _ => Ok(name.to_owned()),
        })
    }
}

fn resources(query: &mut Query) -> Result<Selection, Refused> {
    Selection::take_named(query, "resource_names", "resource_ids")
}

fn required(query: &mut Query) -> Result<Selection, Refused> {
    let selection = resources(query)?;
    match selection.is_empty() {
        true => Err(Refused::bad("resource_names", "Name the resources by `resource_names`.")),
        false => Ok(selection),
    }
}

fn tag_filter(query: &mut Query) -> Result<TagFilter, Refused> {
    let namespaces = query.list("namespaces")?;
    // In other lists this means all.
    let namespaces = if namespaces == ["*"] { Vec::new() } else { namespaces };
    let keys = query.list("keys")?.into_iter().collect();
    Ok(TagFilter { namespaces: namespaces.into_iter().collect(), keys })
}

async fn list_of(interface: std::sync::Arc<Interface>, mut query: Query, of: Of) -> Answer {
    let (selection, filter) = (resources(&mut query)?, tag_filter(&mut query)?);
    let listing = Listing::take(&mut query)?;
    let destroyed = query.flag("resource_destroyed")?;
    query.end()?;
    answer(interface, move |interface| {
        let (array, ids) = (&interface.array, Ids::of(&interface.array));
        let names = of.names(interface, &selection)?;
        let wanted = |tagged: &Tagged| destroyed.is_none_or(|it| tagged.is_destroyed == it);
        if !names.is_empty() {
            let mut found = each(&names, |name| Ok(array.tags(name, &filter)?))?;
            found.retain(wanted);
            let rows = found.into_iter().flat_map(|tagged| shown(ids, tagged));
            return listing.all(&rows.collect::<Vec<_>>());
        }
        let names = tagged_names(interface, of);
        listing.pieces(|after, limit| {
            // The first part of a key is the object's name.
            let begun = after.and_then(|key| key.split('\0').next()).map(str::to_lowercase);
            let is_before =
                |name: &String| begun.as_ref().is_some_and(|begun| name.to_lowercase() < *begun);
            let mut rows: Vec<RestTag> = Vec::new();
            for name in &names[names.partition_point(is_before)..] {
                if rows.len() >= limit {
                    break;
                }
                // An object deleted meanwhile has no tags.
                let found = array.tags(name, &filter).ok().filter(wanted);
                let found = found.into_iter().flat_map(|tagged| shown(ids, tagged));
                let is_begun = begun.as_ref().is_some_and(|begun| name.to_lowercase() == *begun);
                rows.extend(found.filter(|row| !is_begun || Some(&*row.key()) > after));
            }
            rows.truncate(limit);
            Ok(rows)
        })
    })
    .await
}

/// Returns the names of all volumes, or snapshots, that have tags, sorted.
fn tagged_names(interface: &Interface, of: Of) -> Vec<String> {
    let is_snapshots = matches!(of, Of::Snapshots);
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let piece = interface.array.tagged(is_snapshots, &TagFilter::default(), after, PIECE);
        after = piece.last().map(|tagged| tagged.id);
        names.extend(piece.into_iter().map(|tagged| tagged.name));
        if after.is_none() {
            break;
        }
    }
    names.sort_by_cached_key(|name| name.to_lowercase());
    names
}

async fn remove_of(interface: std::sync::Arc<Interface>, mut query: Query, of: Of) -> Answer {
    let (selection, mut filter) = (required(&mut query)?, tag_filter(&mut query)?);
    query.end()?;
    if filter.keys.is_empty() {
        return Err(Refused::bad("keys", "Name the tags by `keys`."));
    }
    if filter.namespaces.is_empty() {
        filter.namespaces.insert(NAMESPACE_DEFAULT.into());
    }
    answer(interface, move |interface| {
        interface.array.remove_tags(&of.names(interface, &selection)?, &filter)?;
        Items::of::<RestTag>([])
    })
    .await
}

/// A tag to set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TagPut {
    /// 1 to 64 characters.
    pub key: String,
    /// Up to 256 characters.
    pub value: String,
    /// 1 to 64 characters; `default` if left out.
    pub namespace: Option<String>,
    /// Whether clones inherit it: they do unless this is false.
    pub copyable: Option<bool>,
}

async fn set_of(
    interface: std::sync::Arc<Interface>,
    mut query: Query,
    asked: Vec<TagPut>,
    of: Of,
) -> Answer {
    let selection = required(&mut query)?;
    query.end()?;
    if asked.len() > TAGS_PER_OBJECT_MAX {
        let text = format!("An object has {TAGS_PER_OBJECT_MAX} tags at most: set fewer.");
        return Err(Refused::bad("", text));
    }
    let tags = asked.iter().map(|tag| {
        let namespace = tag.namespace.as_deref().unwrap_or(NAMESPACE_DEFAULT);
        Tag::new(namespace, &tag.key, &tag.value, tag.copyable.unwrap_or(true))
    });
    let tags = tags.collect::<Result<Vec<_>, _>>()?;
    answer(interface, move |interface| {
        let (array, ids) = (&interface.array, Ids::of(&interface.array));
        let names = of.names(interface, &selection)?;
        array.set_tags(&names, &tags)?;
        let is_new = |tag: &RestTag| {
            tags.iter().any(|new| (&new.namespace, &new.key) == (&tag.namespace, &tag.key))
        };
        let all = each(&names, |name| Ok(shown(ids, array.tags(name, &TagFilter::default())?)))?;
        Items::of(all.into_iter().flatten().filter(is_new))
    })
    .await
}

/// Lists the tags of all volumes, or of some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volumes/tags",
    tag = "tags",
    params(TagParams, DestroyedResourceParam, ListParams),
    responses((status = 200, body = ItemsOf<RestTag>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    list_of(interface, query, Of::Volumes).await
}

/// Removes tags from volumes: from all of the named ones, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/volumes/tags",
    tag = "tags",
    params(TagParams),
    responses((status = 200, body = ItemsOf<RestTag>), Refusals)
)]
pub(super) async fn remove(State(interface): Shared, query: Query) -> Answer {
    remove_of(interface, query, Of::Volumes).await
}

/// Sets tags of volumes, replacing those with the same namespaces and keys: all of them, or none.
#[utoipa::path(
    put,
    path = "/api/2.{minor}/volumes/tags/batch",
    tag = "tags",
    params(ResourceParams),
    request_body = Vec<TagPut>,
    responses((status = 200, body = ItemsOf<RestTag>), Refusals)
)]
pub(super) async fn set(
    State(interface): Shared,
    query: Query,
    Body(asked): Body<Vec<TagPut>>,
) -> Answer {
    set_of(interface, query, asked, Of::Volumes).await
}

/// Lists the tags of all snapshots, or of some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volume-snapshots/tags",
    tag = "tags",
    params(TagParams, DestroyedResourceParam, ListParams),
    responses((status = 200, body = ItemsOf<RestTag>), Refusals)
)]
pub(super) async fn list_of_snapshots(State(interface): Shared, query: Query) -> Answer {
    list_of(interface, query, Of::Snapshots).await
}

/// Removes tags from snapshots: from all of the named ones, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/volume-snapshots/tags",
    tag = "tags",
    params(TagParams),
    responses((status = 200, body = ItemsOf<RestTag>), Refusals)
)]
pub(super) async fn remove_of_snapshots(State(interface): Shared, query: Query) -> Answer {
    remove_of(interface, query, Of::Snapshots).await
}

/// Sets tags of snapshots, as `volumes/tags/batch` does for volumes.
#[utoipa::path(
    put,
    path = "/api/2.{minor}/volume-snapshots/tags/batch",
    tag = "tags",
    params(ResourceParams),
    request_body = Vec<TagPut>,
    responses((status = 200, body = ItemsOf<RestTag>), Refusals)
)]
pub(super) async fn set_of_snapshots(
    State(interface): Shared,
    query: Query,
    Body(asked): Body<Vec<TagPut>>,
) -> Answer {
    set_of(interface, query, asked, Of::Snapshots).await
}
