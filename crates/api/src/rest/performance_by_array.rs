//! `volumes/performance/by-array` and the like: the same as without `by-array`, each item with the
//! array that it was measured on. That is this one: nothing is on several arrays.

use array::ContainerKind;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::ids::{Ids, Kind};
use super::performance_groups::{containers, host_groups};
use super::performance_lists::{
    RestHostPerformance, RestVolumePerformance, Sampled, TimeParams, hosts, volumes,
};
use super::{
    Answer, DestroyedParam, ItemsOf, ListParams, Listed, NameParams, Query, Refusals,
    SelectionParams,
};
use crate::{Interface, Shared};

/// An array.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestArrayNamed {
    /// The array's id.
    pub id: String,
    /// The array's name.
    pub name: String,
}

impl RestArrayNamed {
    /// Returns this array.
    pub(super) fn of(interface: &Interface) -> Self {
        let array = &interface.array;
        Self { id: Ids::of(array).id(Kind::Array, 0), name: array.name() }
    }
}

/// Converts an item that was measured on this array.
pub(super) type Shown<R, T> = fn(&RestArrayNamed, R) -> T;

/// Activity, with the array that it was measured on.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestByArray<T> {
    /// The activity.
    #[serde(flatten)]
    pub performance: T,
    /// The array.
    pub array: RestArrayNamed,
}

impl<T> RestByArray<T> {
    fn new(array: &RestArrayNamed, performance: T) -> Self {
        Self { performance, array: array.clone() }
    }
}

impl<T: Sampled> Sampled for RestByArray<T> {
    fn name(&self) -> &str {
        self.performance.name()
    }
}

impl<T: Listed> Listed for RestByArray<T> {
    fn key(&self) -> String {
        self.performance.key()
    }

    fn totalled() -> &'static [&'static str] {
        T::totalled()
    }
}

/// Returns the activity of hosts on volumes, with the array.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volumes/performance/by-array",
    tag = "volumes",
    params(SelectionParams, DestroyedParam, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestByArray<RestVolumePerformance>>), Refusals)
)]
pub(super) async fn of_volumes(State(interface): Shared, query: Query) -> Answer {
    volumes(interface, query, RestByArray::new).await
}

/// Returns the activity of hosts, with the array.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/hosts/performance/by-array",
    tag = "hosts",
    params(NameParams, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestByArray<RestHostPerformance>>), Refusals)
)]
pub(super) async fn of_hosts(State(interface): Shared, query: Query) -> Answer {
    hosts(interface, query, RestByArray::new).await
}

/// Returns the activity of host groups, with the array.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/host-groups/performance/by-array",
    tag = "host-groups",
    params(NameParams, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestByArray<RestHostPerformance>>), Refusals)
)]
pub(super) async fn of_host_groups(State(interface): Shared, query: Query) -> Answer {
    host_groups(interface, query, RestByArray::new).await
}

/// Returns the activity on the volumes of pods, with the array.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/pods/performance/by-array",
    tag = "pods",
    params(SelectionParams, DestroyedParam, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestByArray<RestVolumePerformance>>), Refusals)
)]
pub(super) async fn of_pods(State(interface): Shared, query: Query) -> Answer {
    containers(interface, ContainerKind::Pod, query, RestByArray::new).await
}
