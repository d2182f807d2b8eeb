//! `volume-snapshots`.

use array::{
    Looked, NewSnapshots, SnapshotFilter, SnapshotGlance, SnapshotInfo, SnapshotSource, Suffix,
};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::ids::{Ids, Kind};
use super::space::RestSpace;
use super::volume_parts::RestSource;
use super::{
    Answer, Body, DestroyedParam, Glance, Items, ItemsOf, ListParams, Listed, Listing, Named,
    Query, Refusals, Refused, Selection, SelectionParams, Worth, answer, each, volumes,
};
use crate::{Interface, Shared};

/// A snapshot of a volume.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestSnapshot {
    /// Its id, which never changes.
    pub id: String,
    /// `VOLUME.SUFFIX`, or `GROUP.SUFFIX.VOLUME` if it was taken with a protection group.
    pub name: String,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// Whether it is destroyed, by itself or with its volume.
    pub destroyed: bool,
    /// How much longer it can be recovered, in milliseconds, if it is destroyed.
    #[schema(required = true)]
    pub time_remaining: Option<u64>,
    /// The size of the volume at that time, in bytes.
    pub provisioned: u64,
    /// Its serial number: 24 upper-case hex digits, never used twice.
    pub serial: String,
    /// Its volume.
    pub source: RestSource,
    /// What distinguishes it from other snapshots of its volume: `GROUP.SUFFIX` if it was made with
    /// a protection group.
    pub suffix: String,
    /// Its stored data.
    pub space: RestSpace,
}

impl RestSnapshot {
    pub(crate) fn new(interface: &Interface, ids: Ids, snapshot: SnapshotInfo) -> Self {
        let left = |due: u64| due.saturating_sub((interface.now_ms)());
        let unique_bytes = snapshot.space.map_or(0, |stored| stored.space.unique_bytes);
        let size_bytes = snapshot.size_bytes;
        Self {
            id: ids.id(Kind::Volume, snapshot.id.0),
            name: snapshot.name,
            created: snapshot.created_ms,
            destroyed: snapshot.eradicate_ms.is_some(),
            time_remaining: snapshot.eradicate_ms.map(left),
            provisioned: size_bytes,
            serial: snapshot.serial,
            source: RestSource {
                id: Some(ids.id(Kind::Volume, snapshot.volume_id.0)),
                name: Some(snapshot.volume),
            },
            suffix: match snapshot.group {
                Some(group) => format!("{group}.{}", snapshot.suffix),
                None => snapshot.suffix,
            },
            space: RestSpace::of(size_bytes, snapshot.mapped_bytes, snapshot.space, unique_bytes),
        }
    }
}

impl Listed for RestSnapshot {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn totalled() -> &'static [&'static str] {
        &["provisioned", "space"]
    }
}

impl Glance for SnapshotGlance<'_> {
    fn key(&self) -> String {
        self.name()
    }

    fn field(&self, path: &[&str]) -> Option<Value> {
        match path {
            ["name"] => Some(self.name().into()),
            ["created"] => Some(self.created_ms().into()),
            ["provisioned"] | ["space", "total_provisioned"] => Some(self.size_bytes().into()),
            ["destroyed"] => Some(self.is_destroyed().into()),
            ["space", "unique" | "total_physical" | "snapshots"] => {
                Some(self.unique_bytes().unwrap_or(0).into())
            }
            ["space", "virtual" | "total_used"] => Some(self.mapped_bytes().into()),
            [
                "id" | "name" | "created" | "destroyed" | "time_remaining" | "provisioned"
                | "serial" | "source" | "suffix" | "space",
                ..,
            ] => None,
            // Snapshots do not have this field.
            _ => Some(Value::Null),
        }
    }

    fn add_to(&self, sum: &mut dyn FnMut(&'static [&'static str], u64)) -> bool {
        let size_bytes = self.size_bytes();
        sum(&["provisioned"], size_bytes);
        sum(&["space", "total_provisioned"], size_bytes);
        let (mapped_bytes, unique_bytes) = (self.mapped_bytes(), self.unique_bytes().unwrap_or(0));
        sum(&["space", "virtual"], mapped_bytes);
        sum(&["space", "total_used"], mapped_bytes);
        sum(&["space", "total_physical"], unique_bytes);
        sum(&["space", "unique"], unique_bytes);
        sum(&["space", "snapshots"], unique_bytes);
        true
    }
}

/// Returns the name of the snapshot with this id.
pub(crate) fn name_of(interface: &Interface, id: &str) -> Option<String> {
    let number = Ids::of(&interface.array).number(Kind::Volume, id)?;
    interface.array.snapshot_name(block::VolumeId(number))
}

/// Parameters that name the volumes of the snapshots, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct SourceParams {
    /// The names of volumes, comma-separated.
    source_names: Option<String>,
    /// The ids of volumes, comma-separated, instead.
    source_ids: Option<String>,
}

fn sources(query: &mut Query) -> Result<Selection, Refused> {
    Selection::take_named(query, "source_names", "source_ids")
}

/// Lists all snapshots of volumes, or some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volume-snapshots",
    tag = "volume-snapshots",
    params(SelectionParams, SourceParams, DestroyedParam, ListParams),
    responses((status = 200, body = ItemsOf<RestSnapshot>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let selection = Selection::take_with_destroyed(&mut query)?;
    let (sources, listing) = (sources(&mut query)?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let ids = Ids::of(&interface.array);
        let show = |snapshot| RestSnapshot::new(interface, ids, snapshot);
        if !selection.is_empty() {
            let names = selection.names(|id| name_of(interface, id))?;
            let one = |name: &str| find(interface, name, selection.destroyed).map(show);
            return listing.all(&each(&names, one)?);
        }
        let mut of = sources.names(|id| volumes::name_of(interface, id))?;
        of.sort_by_key(|name| name.to_ascii_lowercase());
        of.dedup_by(|a, b| a.eq_ignore_ascii_case(b));
        if of.is_empty() {
            let destroyed = selection.destroyed;
            let filter = SnapshotFilter { volume: None, group: None, destroyed };
            let piece = |after: Option<&str>, limit, is_worth: Worth<'_>| {
                let mut is_worth = |glance: &SnapshotGlance<'_>| is_worth(glance);
                let array = &interface.array;
                let found = array.look_at_snapshots(&filter, after, limit, &mut is_worth)?;
                let Looked { items, next } = found;
                Ok(Looked { items: items.into_iter().map(show).collect(), next })
            };
            let one = |name: &str| find(interface, name, destroyed).ok().map(show);
            return listing.glanced(piece, one);
        }
        listing.pieces(|after, limit| {
            let found = page(interface, &of, selection.destroyed, after, limit)?;
            Ok(found.into_iter().map(show).collect())
        })
    })
    .await
}

fn find(
    interface: &Interface,
    name: &str,
    destroyed: Option<bool>,
) -> Result<SnapshotInfo, Refused> {
    let snapshot = interface.array.snapshot(name)?;
    match destroyed {
        Some(destroyed) if destroyed != snapshot.eradicate_ms.is_some() => {
            Err(array::Error::NoSuchSnapshot(snapshot.name).into())
        }
        _ => Ok(snapshot),
    }
}

/// Returns the volume in the name of a snapshot: `VOLUME.SUFFIX` or `GROUP.SUFFIX.VOLUME`.
fn volume_of(name: &str) -> &str {
    let mut parts = name.split('.');
    let first = parts.next().unwrap_or_default();
    parts.nth(1).unwrap_or(first)
}

/// Returns up to `limit` snapshots of some volumes, in the order of their names.
fn page(
    interface: &Interface,
    volumes: &[String],
    destroyed: Option<bool>,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<SnapshotInfo>, Refused> {
    let begun = after.map(volume_of);
    let mut found = Vec::new();
    for volume in volumes {
        let key = |name: &str| name.to_ascii_lowercase();
        let (is_done, is_begun) = match &begun {
            None => (false, false),
            Some(begun) => (key(volume) < key(begun), key(volume) == key(begun)),
        };
        if is_done {
            continue;
        }
        let (after, room) = (after.filter(|_| is_begun), limit - found.len());
        let filter = SnapshotFilter { volume: Some(volume.clone()), group: None, destroyed };
        found.extend(interface.array.snapshots(&filter, after, room)?);
        if found.len() == limit {
            break;
        }
    }
    Ok(found)
}

/// Snapshots to create.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotPost {
    /// What distinguishes them from others; by default a number.
    pub suffix: Option<String>,
}

/// Parameters of new snapshots, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct SnapshotPostParams {
    /// What distinguishes them from others, if it is not in the body.
    suffix: Option<String>,
    /// Whether it may be refused if the array is busy: it never is for that reason.
    allow_throttle: Option<bool>,
}

/// Creates consistent snapshots of volumes.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/volume-snapshots",
    tag = "volume-snapshots",
    params(SourceParams, SnapshotPostParams),
    request_body = SnapshotPost,
    responses((status = 200, body = ItemsOf<RestSnapshot>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<SnapshotPost>,
) -> Answer {
    let (sources, suffix) = (sources(&mut query)?, query.text("suffix"));
    // It would permit a delay, but snapshots take no time.
    query.flag("allow_throttle")?;
    query.end()?;
    if sources.is_empty() {
        return Err(Refused::bad("source_names", "Name the volumes to snapshot."));
    }
    let suffix = asked.suffix.or(suffix).filter(|suffix| !suffix.is_empty());
    answer(interface, move |interface| {
        let new = NewSnapshots {
            source: SnapshotSource::Volumes(sources.names(|id| volumes::name_of(interface, id))?),
            suffix: suffix.map(|suffix| Suffix::new(&suffix)).transpose()?,
            apply_retention: false,
            created_ms: (interface.now_ms)(),
        };
        let ids = Ids::of(&interface.array);
        let made = interface.array.create_snapshots(&new)?;
        Items::of(made.into_iter().map(|snapshot| RestSnapshot::new(interface, ids, snapshot)))
    })
    .await
}

/// The changes of snapshots.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotPatch {
    /// A new suffix, for one snapshot only: with or without the name of its volume before it.
    pub name: Option<String>,
    /// `true` destroys, `false` recovers; no other field may be given.
    pub destroyed: Option<bool>,
}

/// Renames, destroys or recovers snapshots: all of the named ones, or none.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/volume-snapshots",
    tag = "volume-snapshots",
    params(SelectionParams),
    request_body = SnapshotPatch,
    responses((status = 200, body = ItemsOf<RestSnapshot>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<SnapshotPatch>,
) -> Answer {
    let selection = Selection::required(&mut query)?;
    refuse_replicas(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let array = &interface.array;
        let names = selection.names(|id| name_of(interface, id))?;
        let changed = match (asked.destroyed, asked.name, &names[..]) {
            (Some(true), None, _) => array.destroy_snapshots(&names, (interface.now_ms)())?,
            (Some(false), None, _) => array.recover_snapshots(&names)?,
            (None, Some(new), [name]) => {
                let volume = array.snapshot(name)?.volume;
                let suffix = new.strip_prefix(&format!("{volume}.")).unwrap_or(&new);
                vec![array.rename_snapshot(name, Suffix::new(suffix)?)?]
            }
            (None, Some(_), _) => {
                return Err(Refused::bad("name", "Only one at a time can be renamed."));
            }
            (None, None, _) => return Err(Refused::bad("", "Give a change.")),
            (Some(_), Some(_), _) => {
                let text = "`destroyed` allows no other change.";
                return Err(Refused::bad("destroyed", text));
            }
        };
        let ids = Ids::of(array);
        Items::of(changed.into_iter().map(|snapshot| RestSnapshot::new(interface, ids, snapshot)))
    })
    .await
}

/// Refuses `replication_snapshot=true`: snapshots can't be copied to other arrays.
fn refuse_replicas(query: &mut Query) -> Result<(), Refused> {
    match query.flag("replication_snapshot")? {
        Some(true) => Err(Refused::unsupported("replication_snapshot", "Replication")),
        _ => Ok(()),
    }
}

/// Eradicates destroyed snapshots: data that only they held is permanently gone.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/volume-snapshots",
    tag = "volume-snapshots",
    params(SelectionParams),
    responses((status = 200, body = ItemsOf<Named>), Refusals)
)]
pub(super) async fn eradicate(State(interface): Shared, mut query: Query) -> Answer {
    let selection = Selection::required(&mut query)?;
    refuse_replicas(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let names = selection.names(|id| name_of(interface, id))?;
        interface.array.eradicate_snapshots(&names)?;
        Items::of(names.into_iter().map(|name| Named { name }))
    })
    .await
}
