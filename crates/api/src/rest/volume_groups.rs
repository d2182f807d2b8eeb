//! `volume-groups`: name spaces of volumes, which are renamed and deleted together. The name of a
//! volume contains its group (`GROUP/VOLUME`).
//!
//! Limits apply to all volumes of a group together, in addition to the limits of each. Priorities
//! of a whole group are not supported.

use array::{ContainerInfo, ContainerKind};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::containers::{changed, eradicated, list_members, listed, name_of, new_names, sum_of};
use super::ids::{Ids, Kind};
use super::members::{MemberParams, RestMember};
use super::qos::{QosPatch, RestQos};
use super::space::RestJointSpace;
use super::volume_parts::RestPriority;
use super::{
    Answer, Body, DestroyedParam, Items, ItemsOf, ListParams, Listed, MaybeNamed, Named, Query,
    Refusals, Refused, Selection, SelectionParams, answer,
};
use crate::{Interface, Shared};

const KIND: ContainerKind = ContainerKind::VolumeGroup;

/// A volume group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestVolumeGroup {
    /// The id of the group, which never changes.
    pub id: String,
    /// The name of the group.
    pub name: String,
    /// Whether it is destroyed. It can be recovered until it is eradicated.
    pub destroyed: bool,
    /// How much longer it can be recovered, in milliseconds, if it is destroyed.
    #[schema(required = true)]
    pub time_remaining: Option<u64>,
    /// Its pod; always `{}` (not supported).
    pub pod: MaybeNamed,
    /// The adjustment of the priority: none.
    pub priority_adjustment: RestPriority,
    /// The limits of all of its volumes together.
    pub qos: RestQos,
    /// The stored data of its volumes.
    pub space: RestJointSpace,
    /// The number of volumes in it that are not destroyed.
    pub volume_count: usize,
}

impl RestVolumeGroup {
    fn new(interface: &Interface, ids: Ids, group: ContainerInfo) -> Self {
        let left = |due: u64| due.saturating_sub((interface.now_ms)());
        Self {
            id: ids.id(Kind::VolumeGroup, group.id),
            destroyed: group.eradicate_ms.is_some(),
            time_remaining: group.eradicate_ms.map(left),
            pod: MaybeNamed::default(),
            priority_adjustment: RestPriority {
                priority_adjustment_operator: "+".into(),
                priority_adjustment_value: 0,
            },
            qos: group.limits.into(),
            space: sum_of(interface, KIND, &group).into(),
            volume_count: group.volumes.len(),
            name: group.name,
        }
    }

    fn all(interface: &Interface, groups: Vec<ContainerInfo>) -> Vec<Self> {
        let ids = Ids::of(&interface.array);
        groups.into_iter().map(|group| Self::new(interface, ids, group)).collect()
    }
}

impl Listed for RestVolumeGroup {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn totalled() -> &'static [&'static str] {
        &["volume_count"]
    }
}

/// Lists all volume groups, or some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volume-groups",
    tag = "volume-groups",
    params(SelectionParams, DestroyedParam, ListParams),
    responses((status = 200, body = ItemsOf<RestVolumeGroup>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    listed(interface, KIND, query, RestVolumeGroup::all).await
}

/// An adjustment of a priority.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PriorityPatch {
    /// `+` or `-`.
    pub priority_adjustment_operator: Option<String>,
    /// 0.
    pub priority_adjustment_value: Option<i64>,
}

/// A volume group to create.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeGroupPost {
    /// The limits of all of its volumes together.
    pub qos: Option<QosPatch>,
    /// The adjustment of the priority: only by 0.
    pub priority_adjustment: Option<PriorityPatch>,
}

/// The changes of volume groups.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeGroupPatch {
    /// A new name, for one group only. Its volumes are renamed with it.
    pub name: Option<String>,
    /// `true` destroys with all volumes, `false` recovers; no other field may be given.
    pub destroyed: Option<bool>,
    /// As for a new group.
    pub qos: Option<QosPatch>,
    /// As for a new group.
    pub priority_adjustment: Option<PriorityPatch>,
}

/// Refuses settings that groups do not support.
fn check(priority: Option<PriorityPatch>) -> Result<(), Refused> {
    let Some(priority) = priority else { return Ok(()) };
    let operator = priority.priority_adjustment_operator.unwrap_or_else(|| "+".into());
    if !matches!(&*operator, "+" | "-") {
        return Err(Refused::bad("priority_adjustment_operator", "An operator is `+` or `-`."));
    }
    match priority.priority_adjustment_value.unwrap_or(0) {
        0 => Ok(()),
        _ => Err(Refused::unsupported("priority_adjustment", "A priority of a volume group")),
    }
}

/// Creates volume groups without volumes.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/volume-groups",
    tag = "volume-groups",
    params(("names" = String, Query, description = "The names of the groups, comma-separated.")),
    request_body = VolumeGroupPost,
    responses((status = 200, body = ItemsOf<RestVolumeGroup>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<VolumeGroupPost>,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    check(asked.priority_adjustment)?;
    let limits = asked.qos.unwrap_or_default().limits();
    answer(interface, move |interface| {
        let names = new_names(KIND, &names)?;
        let made = interface.array.create_containers(names, limits, (interface.now_ms)())?;
        Items::of(RestVolumeGroup::all(interface, made))
    })
    .await
}

/// Renames a volume group with its volumes; destroys or recovers some with theirs.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/volume-groups",
    tag = "volume-groups",
    params(SelectionParams),
    request_body = VolumeGroupPatch,
    responses((status = 200, body = ItemsOf<RestVolumeGroup>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<VolumeGroupPatch>,
) -> Answer {
    let selection = Selection::required(&mut query)?;
    query.end()?;
    let VolumeGroupPatch { name, destroyed, qos, priority_adjustment } = asked;
    let is_more = name.is_some() || qos.is_some() || priority_adjustment.is_some();
    if destroyed.is_some() && is_more {
        return Err(Refused::bad("destroyed", "`destroyed` allows no other change."));
    }
    check(priority_adjustment)?;
    if name.is_some() && qos.is_some() {
        return Err(Refused::bad("qos", "Give a new name or new limits, not both."));
    }
    answer(interface, move |interface| {
        let names = selection.names(|id| name_of(interface, KIND, id))?;
        let changed = match qos {
            Some(qos) => interface.array.limit_volume_groups(&names, qos.change())?,
            None => changed(interface, KIND, &names, (destroyed, true), name)?,
        };
        Items::of(RestVolumeGroup::all(interface, changed))
    })
    .await
}

/// Eradicates destroyed volume groups with their volumes, whose data is permanently gone.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/volume-groups",
    tag = "volume-groups",
    params(SelectionParams),
    responses((status = 200, body = ItemsOf<Named>), Refusals)
)]
pub(super) async fn eradicate(State(interface): Shared, mut query: Query) -> Answer {
    let selection = Selection::required(&mut query)?;
    query.end()?;
    eradicated(interface, KIND, selection, true).await
}

/// Lists the volumes of volume groups.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volume-groups/volumes",
    tag = "volume-groups",
    params(MemberParams, ListParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn list_volumes(State(interface): Shared, query: Query) -> Answer {
    list_members(interface, KIND, query).await
}

/// Lists the volume groups of volumes.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volumes/volume-groups",
    tag = "volume-groups",
    params(MemberParams, ListParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn list_of_volumes(State(interface): Shared, query: Query) -> Answer {
    list_members(interface, KIND, query).await
}
