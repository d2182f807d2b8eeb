//! `protection-group-snapshots`: consistent snapshots of all volumes of a group, as one object.

use array::{GroupSnapshotInfo, NewSnapshots, SnapshotSource, Suffix};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::space::RestSnapshotsSpace;
use super::{
    Answer, Body, DestroyedParam, Items, ItemsOf, ListParams, Listed, Listing, NameParams, Named,
    Query, Refusals, Refused, Selection, answer, each, protection_groups,
};
use crate::{Interface, Shared};

/// A snapshot of a protection group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestGroupSnapshot {
    /// `GROUP.SUFFIX`.
    pub name: String,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// Whether it is destroyed, with all of its snapshots.
    pub destroyed: bool,
    /// How much longer it can be recovered, in milliseconds, if it is destroyed.
    #[schema(required = true)]
    pub time_remaining: Option<u64>,
    /// Its group.
    pub source: Named,
    /// Its stored data.
    pub space: RestSnapshotsSpace,
    /// What distinguishes it from other snapshots of its group.
    pub suffix: String,
}

impl Listed for RestGroupSnapshot {
    fn key(&self) -> String {
        self.name.clone()
    }
}

fn shown(interface: &Interface, moment: GroupSnapshotInfo) -> RestGroupSnapshot {
    let left = |due: u64| due.saturating_sub((interface.now_ms)());
    RestGroupSnapshot {
        name: moment.name,
        created: moment.created_ms,
        destroyed: moment.eradicate_ms.is_some(),
        time_remaining: moment.eradicate_ms.map(left),
        space: RestSnapshotsSpace::of(
            interface.array.unique_bytes_of(moment.snapshots.iter().copied()),
        ),
        source: Named { name: moment.group },
        suffix: moment.suffix,
    }
}

/// Finds a snapshot that is destroyed or not, as requested. Refuses one that does not match as
/// nonexistent.
fn find(
    interface: &Interface,
    name: &str,
    destroyed: Option<bool>,
) -> Result<RestGroupSnapshot, Refused> {
    let found = shown(interface, interface.array.group_snapshot(name)?);
    match destroyed {
        Some(destroyed) if destroyed != found.destroyed => {
            Err(array::Error::NoSuchGroupSnapshot(found.name).into())
        }
        _ => Ok(found),
    }
}

/// Parameters that name the groups of the snapshots, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct SourceParams {
    /// The names of groups, comma-separated.
    source_names: Option<String>,
    /// The ids of groups, comma-separated, instead.
    source_ids: Option<String>,
}

/// Lists all snapshots of protection groups, or some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/protection-group-snapshots",
    tag = "protection-group-snapshots",
    params(NameParams, SourceParams, DestroyedParam, ListParams),
    responses((status = 200, body = ItemsOf<RestGroupSnapshot>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let names = query.list("names")?;
    let destroyed = query.flag("destroyed")?;
    let sources = Selection::take_named(&mut query, "source_names", "source_ids")?;
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        if !names.is_empty() {
            return listing.all(&each(&names, |name| find(interface, name, destroyed))?);
        }
        let mut groups = sources.names(|id| protection_groups::name_of(interface, id))?;
        each(&groups, |name| Ok(interface.array.group(name)?))?;
        groups.sort_by_key(|name| name.to_ascii_lowercase());
        groups.dedup_by(|a, b| a.eq_ignore_ascii_case(b));
        listing.pieces(|after, limit| {
            let found = page(interface, &groups, destroyed, after, limit)?;
            Ok(found.into_iter().map(|moment| shown(interface, moment)).collect())
        })
    })
    .await
}

/// Returns up to `limit` snapshots of some groups, or of all, in the order of their names.
fn page(
    interface: &Interface,
    groups: &[String],
    destroyed: Option<bool>,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<GroupSnapshotInfo>, Refused> {
    let array = &interface.array;
    if groups.is_empty() {
        return Ok(array.group_snapshots(None, destroyed, after, limit)?);
    }
    let begun = after.and_then(|name| name.split_once('.')).map(|(group, _)| group);
    let is_left = |group: &&String| {
        begun.is_none_or(|begun| group.to_ascii_lowercase() >= begun.to_ascii_lowercase())
    };
    let mut found = Vec::new();
    for group in groups.iter().filter(is_left) {
        let room = limit - found.len();
        found.extend(array.group_snapshots(Some(group), destroyed, after, room)?);
        if found.len() == limit {
            break;
        }
    }
    Ok(found)
}

/// A snapshot to create.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSnapshotPost {
    /// What distinguishes it from others; by default a number.
    pub suffix: Option<String>,
}

/// Parameters of a new snapshot, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct GroupSnapshotPostParams {
    /// Whether the retention of the group applies to it, as to those of its schedule.
    apply_retention: Option<bool>,
    /// Whether it may be refused if the array is busy: it never is for that reason.
    allow_throttle: Option<bool>,
}

/// Creates a consistent snapshot of all volumes of a protection group.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/protection-group-snapshots",
    tag = "protection-group-snapshots",
    params(SourceParams, GroupSnapshotPostParams),
    request_body = GroupSnapshotPost,
    responses((status = 200, body = ItemsOf<RestGroupSnapshot>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<GroupSnapshotPost>,
) -> Answer {
    let sources = Selection::take_named(&mut query, "source_names", "source_ids")?;
    for parameter in ["replicate", "replicate_now", "for_replication"] {
        if query.flag(parameter)? == Some(true) {
            return Err(Refused::unsupported(parameter, "Replication"));
        }
    }
    let apply_retention = query.flag("apply_retention")?.unwrap_or(false);
    query.flag("allow_throttle")?;
    query.end()?;
    answer(interface, move |interface| {
        let groups = sources.names(|id| protection_groups::name_of(interface, id))?;
        let [group] = &groups[..] else {
            return Err(Refused::bad("source_names", "Name the one group to snapshot."));
        };
        let suffix = asked.suffix.filter(|suffix| !suffix.is_empty());
        let made = interface.array.create_snapshots(&NewSnapshots {
            source: SnapshotSource::Group(group.clone()),
            suffix: suffix.map(|suffix| Suffix::new(&suffix)).transpose()?,
            apply_retention,
            created_ms: (interface.now_ms)(),
        })?;
        let names = made.first().map(|first| format!("{group}.{}", first.suffix));
        let names: Vec<String> = names.into_iter().collect();
        Items::of(each(&names, |name| find(interface, name, None))?)
    })
    .await
}

/// The changes of snapshots.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSnapshotPatch {
    /// `true` destroys, `false` recovers.
    pub destroyed: bool,
}

/// Destroys or recovers snapshots of protection groups: all of the named ones, or none.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/protection-group-snapshots",
    tag = "protection-group-snapshots",
    params(NameParams),
    request_body = GroupSnapshotPatch,
    responses((status = 200, body = ItemsOf<RestGroupSnapshot>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<GroupSnapshotPatch>,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    answer(interface, move |interface| {
        let changed = match asked.destroyed {
            true => interface.array.destroy_group_snapshots(&names, (interface.now_ms)())?,
            false => interface.array.recover_group_snapshots(&names)?,
        };
        Items::of(changed.into_iter().map(|moment| shown(interface, moment)))
    })
    .await
}

/// Eradicates destroyed snapshots of protection groups.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/protection-group-snapshots",
    tag = "protection-group-snapshots",
    params(NameParams),
    responses((status = 200, body = ItemsOf<Named>), Refusals)
)]
pub(super) async fn eradicate(State(interface): Shared, mut query: Query) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    answer(interface, move |interface| {
        interface.array.eradicate_group_snapshots(&names)?;
        Items::of(names.into_iter().map(|name| Named { name }))
    })
    .await
}
