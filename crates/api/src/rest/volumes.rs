//! `volumes`.

use array::{ContainerKind, NewCopy, NewVolume, Reduction, VolumeInfo, VolumeName, VolumeUpdate};
use axum::extract::State;
use block::{LogicalBlockSize, VolumeLimits};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ids::{Ids, Kind};
use super::qos::{QosPatch, RestQos};
use super::space::RestSpace;
use super::volume_parts::{Reference, RestPriority, RestSource};
use super::volume_places::{new_name, placed};
use super::{
    Answer, Body, DestroyedParam, Items, ItemsOf, ListParams, Listed, Listing, MaybeNamed, Named,
    Query, Refusals, Refused, Selection, SelectionParams, answer, each,
};
use crate::{Interface, Shared};

/// A volume.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestVolume {
    /// Its id, which never changes.
    pub id: String,
    /// Its name.
    pub name: String,
    /// How many hosts are connected to it.
    pub connection_count: usize,
    /// When it was created, in milliseconds since 1970.
    pub created: u64,
    /// Whether it is destroyed. It can be recovered until it is eradicated.
    pub destroyed: bool,
    /// How much longer it can be recovered, in milliseconds, if it is destroyed.
    #[schema(required = true)]
    pub time_remaining: Option<u64>,
    /// Its size in bytes.
    pub provisioned: u64,
    /// Its serial number: 24 upper-case hex digits, never used twice.
    pub serial: String,
    /// Its stored data.
    pub space: RestSpace,
    /// `regular`, the only type.
    pub subtype: String,
    /// `promoted`: hosts can write it.
    pub promotion_status: String,
    /// `promoted`.
    pub requested_promotion_state: String,
    /// 0: all volumes have the same priority.
    pub priority: i32,
    /// The adjustment of the priority.
    pub priority_adjustment: RestPriority,
    /// Limits on the I/O of hosts.
    pub qos: RestQos,
    /// The object that it was created from, or last overwritten with.
    pub source: RestSource,
    /// `none`: host encryption keys are not supported.
    pub host_encryption_key_status: String,
    /// Protocol endpoint; always `{}` (not supported).
    pub protocol_endpoint: MaybeNamed,
    /// Its pod; `{}` if it is in none.
    pub pod: MaybeNamed,
    /// Its volume group; `{}` if it is in none.
    pub volume_group: MaybeNamed,
}

impl RestVolume {
    pub(crate) fn new(interface: &Interface, ids: Ids, volume: VolumeInfo) -> Self {
        let left = |due: u64| due.saturating_sub((interface.now_ms)());
        let container = |wanted| {
            let found = ContainerKind::split(&volume.name).filter(|(kind, ..)| *kind == wanted);
            MaybeNamed { name: found.map(|(_, name, _)| name.to_owned()) }
        };
        let (pod, volume_group) =
            (container(ContainerKind::Pod), container(ContainerKind::VolumeGroup));
        Self {
            id: ids.id(Kind::Volume, volume.id.0),
            name: volume.name,
            connection_count: volume.connection_count,
            created: volume.created_ms,
            destroyed: volume.eradicate_ms.is_some(),
            time_remaining: volume.eradicate_ms.map(left),
            provisioned: volume.size_bytes,
            serial: volume.serial,
            space: RestSpace::of(
                volume.size_bytes,
                volume.mapped_bytes,
                volume.space,
                volume.snapshots_bytes,
            ),
            subtype: "regular".into(),
            promotion_status: "promoted".into(),
            requested_promotion_state: "promoted".into(),
            priority: 0,
            priority_adjustment: RestPriority {
                priority_adjustment_operator: "+".into(),
                priority_adjustment_value: 0,
            },
            qos: volume.limits.into(),
            source: volume.source.map_or_else(RestSource::default, |source| RestSource {
                id: Some(ids.id(Kind::Volume, source.id.0)),
                name: Some(source.name),
            }),
            host_encryption_key_status: "none".into(),
            protocol_endpoint: MaybeNamed::default(),
            pod,
            volume_group,
        }
    }
}

impl Listed for RestVolume {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn totalled() -> &'static [&'static str] {
        &["connection_count", "provisioned", "space"]
    }
}

/// Returns the name of the volume with this id.
pub(crate) fn name_of(interface: &Interface, id: &str) -> Option<String> {
    let number = Ids::of(&interface.array).number(Kind::Volume, id)?;
    interface.array.volume_name(block::VolumeId(number))
}

/// Finds a volume that is destroyed or not, as requested. Refuses one that does not match as
/// nonexistent: clients take an empty list for success.
pub(super) fn find(
    interface: &Interface,
    name: &str,
    destroyed: Option<bool>,
) -> Result<VolumeInfo, array::Error> {
    let volume = interface.array.volume(name)?;
    match destroyed {
        Some(destroyed) if destroyed != volume.eradicate_ms.is_some() => {
            Err(array::Error::NoSuchVolume(volume.name))
        }
        _ => Ok(volume),
    }
}

/// Returns a list of volumes; `show` converts each.
pub(super) fn listed<T: Listed + Clone>(
    interface: &Interface,
    selection: &Selection,
    listing: &Listing,
    show: impl Fn(VolumeInfo) -> T,
) -> Result<Items, Refused> {
    let destroyed = selection.destroyed;
    if !selection.is_empty() {
        let names = selection.names(|id| name_of(interface, id))?;
        return listing.all(&each(&names, |name| Ok(show(find(interface, name, destroyed)?)))?);
    }
    if let Some(names) = listing.names() {
        let found = names.into_iter().filter_map(|name| find(interface, name, destroyed).ok());
        return listing.among(&found.map(show).collect::<Vec<_>>());
    }
    listing.pieces(|after, limit| {
        Ok(interface.array.volumes(after, destroyed, limit).into_iter().map(&show).collect())
    })
}

/// Lists all volumes, or some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volumes",
    tag = "volumes",
    params(SelectionParams, DestroyedParam, ListParams),
    responses((status = 200, body = ItemsOf<RestVolume>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let selection = Selection::take_with_destroyed(&mut query)?;
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let ids = Ids::of(&interface.array);
        listed(interface, &selection, &listing, |volume| RestVolume::new(interface, ids, volume))
    })
    .await
}

/// A volume to create.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumePost {
    /// Its size in bytes: a multiple of 4096, up to 64 TiB; not allowed with a source.
    pub provisioned: Option<u64>,
    /// The volume or snapshot to copy.
    pub source: Option<Reference>,
    /// `regular`.
    pub subtype: Option<String>,
    /// Limits on the I/O of hosts.
    pub qos: Option<QosPatch>,
}

/// Parameters of new volumes, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct VolumePostParams {
    /// The names of the volumes, comma-separated.
    names: String,
    /// Whether existing volumes are overwritten with the source.
    overwrite: Option<bool>,
    /// Whether to add them to the default protection groups: there are none.
    with_default_protection: Option<bool>,
}

/// Creates volumes: empty ones, or copies of a volume or a snapshot.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/volumes",
    tag = "volumes",
    params(VolumePostParams),
    request_body = VolumePost,
    responses((status = 200, body = ItemsOf<RestVolume>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<VolumePost>,
) -> Answer {
    let names = query.required("names")?;
    let overwrite = query.flag("overwrite")?.unwrap_or(false);
    // There are no default protection groups, so both values mean the same.
    query.flag("with_default_protection")?;
    query.end()?;
    if asked.subtype.as_deref().is_some_and(|subtype| subtype != "regular") {
        return Err(Refused::unsupported("subtype", "Another subtype than `regular`"));
    }
    answer(interface, move |interface| {
        let array = &interface.array;
        let limits = asked.qos.unwrap_or_default().limits();
        let made = match asked.source {
            Some(source) => array.copy_volumes(NewCopy {
                source: source_name(interface, source, asked.provisioned)?,
                names: each(&names, |name| Ok(VolumeName::new(name)?))?,
                overwrite,
                limits,
                created_ms: (interface.now_ms)(),
            })?,
            None if overwrite => {
                let text = "Overwriting volumes needs a source.";
                return Err(Refused::bad("overwrite", text));
            }
            None => {
                let new = new_volumes(interface, &names, asked.provisioned, limits)?;
                array.create_volumes(new)?
            }
        };
        let ids = Ids::of(array);
        Items::of(made.into_iter().map(|volume| RestVolume::new(interface, ids, volume)))
    })
    .await
}

fn new_volumes(
    interface: &Interface,
    names: &[String],
    size_bytes: Option<u64>,
    limits: VolumeLimits,
) -> Result<Vec<NewVolume>, Refused> {
    let Some(size_bytes) = size_bytes else {
        return Err(Refused::bad("provisioned", "A volume needs a size or a source."));
    };
    let created_ms = (interface.now_ms)();
    each(names, |name| {
        let name = VolumeName::new(name).map_err(|error| Refused::about(name, &error))?;
        let (logical_block, reduction) = (LogicalBlockSize::B512, Reduction::default());
        Ok(NewVolume { name, size_bytes, logical_block, reduction, limits, created_ms })
    })
}

/// Returns the name of a source, which also determines the size.
fn source_name(
    interface: &Interface,
    source: Reference,
    provisioned: Option<u64>,
) -> Result<String, Refused> {
    if provisioned.is_some() {
        let text = "A volume has the size of its source: omit `provisioned`.";
        return Err(Refused::bad("provisioned", text));
    }
    match (source.name, source.id) {
        (Some(name), None) => Ok(name),
        (None, Some(id)) => {
            let name = name_of(interface, &id);
            let name = name.or_else(|| super::volume_snapshots::name_of(interface, &id));
            name.ok_or_else(|| Refused::bad(&id, "No such volume or snapshot."))
        }
        _ => Err(Refused::bad("source", "A source has either a `name` or an `id`.")),
    }
}

/// The changes of volumes.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumePatch {
    /// A new name, for one volume only. `GROUP/NAME` puts it into a volume group, `POD::NAME` into
    /// a pod; a name without either leaves it where it is.
    pub name: Option<String>,
    /// The volume group to put them into; with an empty name, none. They keep their own names.
    pub volume_group: Option<Reference>,
    /// The pod to put them into; with an empty name, none. They keep their own names.
    pub pod: Option<Reference>,
    /// A new size in bytes; a smaller one needs the parameter `truncate`.
    pub provisioned: Option<u64>,
    /// `true` destroys, `false` recovers; no other field may be given.
    pub destroyed: Option<bool>,
    /// Limits on the I/O of hosts.
    pub qos: Option<QosPatch>,
}

/// The parameter that allows data to be cut off, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct VolumePatchParams {
    /// Whether a smaller size may cut data off.
    truncate: Option<bool>,
}

/// Changes, destroys or recovers volumes: all of the named ones, or none.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/volumes",
    tag = "volumes",
    params(SelectionParams, VolumePatchParams),
    request_body = VolumePatch,
    responses((status = 200, body = ItemsOf<RestVolume>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<VolumePatch>,
) -> Answer {
    let selection = Selection::required(&mut query)?;
    let truncate = query.flag("truncate")?.unwrap_or(false);
    query.end()?;
    let VolumePatch { name, volume_group, pod, provisioned, destroyed, qos } = asked;
    let is_moved = volume_group.is_some() || pod.is_some();
    let is_placed = name.is_some() || is_moved;
    let is_more = is_placed || provisioned.is_some() || qos.is_some();
    if name.is_some() && is_moved {
        return Err(Refused::bad(
            "name",
            "Give either `name`, or the new place (`volume_group`, `pod`).",
        ));
    }
    if destroyed.is_some() && is_more {
        return Err(Refused::bad("destroyed", "`destroyed` allows no other change."));
    }
    answer(interface, move |interface| {
        let array = &interface.array;
        let names = selection.names(|id| name_of(interface, id))?;
        let changed = match destroyed {
            Some(true) => {
                let destroyed = array.destroy_volumes(&names, (interface.now_ms)());
                destroyed.map_err(Refused::to_destroy)?
            }
            Some(false) => array.recover_volumes(&names)?,
            None => {
                let update = VolumeUpdate {
                    name: name.map(|name| new_name(interface, &names, &name)).transpose()?,
                    placed: placed(interface, volume_group, pod)?,
                    size_bytes: provisioned,
                    truncate,
                    limits: qos.unwrap_or_default().change(),
                    ..VolumeUpdate::default()
                };
                array.update_volumes(&names, &update)?
            }
        };
        let ids = Ids::of(array);
        Items::of(changed.into_iter().map(|volume| RestVolume::new(interface, ids, volume)))
    })
    .await
}

/// Eradicates destroyed volumes: their data is permanently gone.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/volumes",
    tag = "volumes",
    params(SelectionParams),
    responses((status = 200, body = ItemsOf<Named>), Refusals)
)]
pub(super) async fn eradicate(State(interface): Shared, mut query: Query) -> Answer {
    let selection = Selection::required(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let names = selection.names(|id| name_of(interface, id))?;
        interface.array.eradicate_volumes(&names)?;
        Items::of(names.into_iter().map(|name| Named { name }))
    })
    .await
}
