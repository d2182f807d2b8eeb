//! `protection-group-snapshots`: the snapshots of all volumes of a group, of one moment, as one.

use std::collections::BTreeMap;

use array::{NewSnapshots, SnapshotFilter, SnapshotInfo, SnapshotSource, Suffix};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

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
    /// When it was made, in milliseconds since 1970.
    pub created: u64,
    /// Whether it is destroyed: all that it is made of is.
    pub destroyed: bool,
    /// How long it can be recovered still, in milliseconds, if it is destroyed.
    pub time_remaining: Option<u64>,
    /// Its group.
    pub source: Named,
    /// What tells it from other snapshots of its group.
    pub suffix: String,
}

impl Listed for RestGroupSnapshot {
    fn key(&self) -> String {
        self.name.clone()
    }
}

/// The snapshots that were made with a group, in the order of their suffixes: of each moment those
/// of its volumes.
fn moments(
    interface: &Interface,
    group: &str,
) -> Result<BTreeMap<String, Vec<SnapshotInfo>>, Refused> {
    let filter = SnapshotFilter { group: Some(group.to_owned()), ..SnapshotFilter::default() };
    let mut moments: BTreeMap<String, Vec<SnapshotInfo>> = BTreeMap::new();
    let mut after = None;
    loop {
        let found = interface.array.snapshots(&filter, after.as_deref(), 1000)?;
        let Some(last) = found.last() else { return Ok(moments) };
        after = Some(last.name.clone());
        for snapshot in found {
            moments.entry(snapshot.suffix.to_ascii_lowercase()).or_default().push(snapshot);
        }
    }
}

fn shown(interface: &Interface, moment: &[SnapshotInfo]) -> Option<RestGroupSnapshot> {
    let first = moment.first()?;
    let group = first.group.clone()?;
    let destroyed = moment.iter().all(|snapshot| snapshot.eradicate_ms.is_some());
    let due = moment.iter().filter_map(|snapshot| snapshot.eradicate_ms).min();
    let due = due.filter(|_| destroyed);
    Some(RestGroupSnapshot {
        name: format!("{group}.{}", first.suffix),
        created: first.created_ms,
        destroyed,
        time_remaining: due.map(|due| due.saturating_sub((interface.now_ms)())),
        source: Named { name: group },
        suffix: first.suffix.clone(),
    })
}

/// The snapshots that one of a group is made of.
fn of_name(interface: &Interface, name: &str) -> Result<Vec<SnapshotInfo>, Refused> {
    let missing = || {
        let text = format!("Protection group snapshot does not exist: {name}.");
        Refused::bad(name, text)
    };
    let (group, suffix) = name.split_once('.').ok_or_else(missing)?;
    let found = moments(interface, group)?.remove(&suffix.to_ascii_lowercase());
    found.ok_or_else(missing)
}

/// The groups whose snapshots are meant, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct SourceParams {
    /// The names of groups, comma-separated.
    source_names: Option<String>,
    /// The ids of groups, comma-separated, instead.
    source_ids: Option<String>,
}

/// All snapshots of protection groups, or some.
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
        let fits = |one: &RestGroupSnapshot| destroyed.is_none_or(|wanted| wanted == one.destroyed);
        if !names.is_empty() {
            let found = each(&names, |name| {
                let found = shown(interface, &of_name(interface, name)?).filter(fits);
                found.ok_or_else(|| {
                    let text = format!("Protection group snapshot does not exist: {name}.");
                    Refused::bad(name, text)
                })
            })?;
            return listing.all(&found);
        }
        let mut groups = sources.names(|id| protection_groups::name_of(interface, id))?;
        each(&groups, |name| Ok(interface.array.group(name)?))?;
        if groups.is_empty() {
            let all = interface.array.groups(None, array::GROUPS_MAX);
            groups = all.into_iter().map(|group| group.name).collect();
        }
        let mut found = Vec::new();
        for group in &groups {
            let moments = moments(interface, group)?;
            found.extend(moments.values().filter_map(|one| shown(interface, one)).filter(fits));
        }
        listing.all(&found)
    })
    .await
}

/// A snapshot to make.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSnapshotPost {
    /// What tells it from others; without it, a number.
    pub suffix: Option<String>,
}

/// How it is made, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct GroupSnapshotPostParams {
    /// Whether the group's retention ends it: it has none.
    apply_retention: Option<bool>,
    /// Whether it may be refused when the array is busy: it never is for that.
    allow_throttle: Option<bool>,
}

/// Makes a snapshot of all volumes of a protection group, of one moment.
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
    query.flag("apply_retention")?;
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
            created_ms: (interface.now_ms)(),
        })?;
        Items::of(shown(interface, &made))
    })
    .await
}

/// What to change of snapshots.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupSnapshotPatch {
    /// `true` destroys, `false` recovers.
    pub destroyed: bool,
}

/// The names of all snapshots that those of groups are made of, without what is as it shall be.
fn parts(interface: &Interface, names: &[String], destroyed: bool) -> Result<Vec<String>, Refused> {
    let moments = each(names, |name| of_name(interface, name))?;
    let mut all = Vec::new();
    for (name, moment) in names.iter().zip(moments) {
        let others: Vec<String> = moment
            .into_iter()
            .filter(|snapshot| snapshot.eradicate_ms.is_some() == destroyed)
            .map(|snapshot| snapshot.name)
            .collect();
        if others.is_empty() {
            return Err(Refused::bad(
                name,
                match destroyed {
                    true => format!("{name} is not destroyed. Destroy it first."),
                    false => format!("{name} has been destroyed."),
                },
            ));
        }
        all.extend(others);
    }
    Ok(all)
}

/// Destroys or recovers snapshots of protection groups: all of those that are named, or none.
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
        let parts = parts(interface, &names, !asked.destroyed)?;
        match asked.destroyed {
            true => interface.array.destroy_snapshots(&parts, (interface.now_ms)())?,
            false => interface.array.recover_snapshots(&parts)?,
        };
        let changed = each(&names, |name| Ok(shown(interface, &of_name(interface, name)?)))?;
        Items::of(changed.into_iter().flatten())
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
        interface.array.eradicate_snapshots(&parts(interface, &names, true)?)?;
        Items::of(names.into_iter().map(|name| Named { name }))
    })
    .await
}
