//! `volume-groups/space`, `pods/space`: the space of the volumes in each, now or over time.

use std::sync::Arc;

use array::{ContainerInfo, ContainerKind, Error, VolumesOf};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::containers::{id_kind, listed, selected, sum_of};
use super::ids::Ids;
use super::joint_space::{SUMMED_MAX, time_of};
use super::performance_lists::Times;
use super::pods::RestPodSpace;
use super::space::RestJointSpace;
use super::space_history::{Members, SpaceTimeParams, over_time};
use super::{
    Answer, DestroyedParam, ItemsOf, ListParams, Listed, Listing, Query, Refusals, Selection,
    SelectionParams, answer,
};
use crate::{Interface, Shared};

/// The space of a volume group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestVolumeGroupSpace {
    /// The id of the group.
    pub id: String,
    /// The name of the group.
    pub name: String,
    /// The stored data of its volumes.
    pub space: RestJointSpace,
    /// The time of the figures, in milliseconds since 1970; `null` if there are none yet.
    #[schema(required = true)]
    pub time: Option<u64>,
}

/// The space of a pod.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestPodSpaceOf {
    /// The id of the pod.
    pub id: String,
    /// The name of the pod.
    pub name: String,
    /// The stored data of its volumes.
    pub space: RestPodSpace,
    /// The time of the figures, in milliseconds since 1970; `null` if there are none yet.
    #[schema(required = true)]
    pub time: Option<u64>,
}

// `total` has no sums: the parts may be unknown.
impl Listed for RestVolumeGroupSpace {
    fn key(&self) -> String {
        self.name.clone()
    }
}

impl Listed for RestPodSpaceOf {
    fn key(&self) -> String {
        self.name.clone()
    }
}

/// Makes an item of a container's id and name, its space, and the time of the figures.
type Show<T> = fn(String, String, RestJointSpace, Option<u64>) -> T;

/// Lists the space of all volume groups, or of some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volume-groups/space",
    tag = "volume-groups",
    params(SelectionParams, DestroyedParam, SpaceTimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestVolumeGroupSpace>), Refusals)
)]
pub(super) async fn of_volume_groups(State(interface): Shared, query: Query) -> Answer {
    list(interface, ContainerKind::VolumeGroup, query, |id, name, space, time| {
        RestVolumeGroupSpace { id, name, space, time }
    })
    .await
}

/// Lists the space of all pods, or of some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/pods/space",
    tag = "pods",
    params(SelectionParams, DestroyedParam, SpaceTimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestPodSpaceOf>), Refusals)
)]
pub(super) async fn of_pods(State(interface): Shared, query: Query) -> Answer {
    list(interface, ContainerKind::Pod, query, |id, name, space, time| {
        let space = RestPodSpace::from(space);
        RestPodSpaceOf { id, name, space, time }
    })
    .await
}

async fn list<T: Listed + Clone + 'static>(
    interface: Arc<Interface>,
    kind: ContainerKind,
    mut query: Query,
    show: Show<T>,
) -> Answer {
    if let Some(times) = Times::take(&mut query)? {
        return list_over_time(interface, kind, query, times, show).await;
    }
    let show = move |interface: &Interface, containers: Vec<ContainerInfo>| {
        let ids = Ids::of(&interface.array);
        let one = |container: ContainerInfo| {
            let space = sum_of(interface, kind, &container);
            let id = ids.id(id_kind(kind), container.id);
            show(id, container.name, space.into(), time_of(&space))
        };
        containers.into_iter().map(one).collect()
    };
    listed(interface, kind, query, show).await
}

async fn list_over_time<T: Listed + Clone + 'static>(
    interface: Arc<Interface>,
    kind: ContainerKind,
    mut query: Query,
    times: Times,
    show: Show<T>,
) -> Answer {
    let selection = Selection::take_with_destroyed(&mut query)?;
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let (ids, found) = (Ids::of(&interface.array), selected(interface, kind, &selection)?);
        let mut sums = interface.array.space_sums(SUMMED_MAX);
        let volumes_of = |one: &ContainerInfo| {
            match sums.created(VolumesOf::Container(kind, &one.name)) {
                // It was deleted after it was listed.
                Err(Error::NoSuchContainer(..)) => Ok(Members::new()),
                volumes => volumes,
            }
        };
        let volumes = found.iter().map(volumes_of).collect::<Result<Vec<_>, _>>()?;
        let rows = over_time(interface, &times, &volumes, |at, moment| {
            let (id, name) = (ids.id(id_kind(kind), found[at].id), found[at].name.clone());
            Some(show(id, name, moment.joint(), Some(moment.time)))
        })?;
        listing.all(&rows)
    })
    .await
}
