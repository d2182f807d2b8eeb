//! `host-groups/performance`, `volume-groups/performance`, `pods/performance`: the summed activity
//! of the hosts or volumes that are now in each; and the parts shared with the list of hosts.

use std::sync::Arc;

use array::{ContainerInfo, ContainerKind, HOST_GROUPS_MAX};
use axum::extract::State;
use history::Activity;

use super::containers::{id_kind, selected};
use super::ids::Ids;
use super::performance::RestPerformance;
use super::performance_by_array::{RestArrayNamed, Shown};
use super::performance_lists::{
    RestHostPerformance, RestVolumePerformance, TimeParams, Times, of_objects, time_of,
};
use super::{
    Answer, DestroyedParam, ItemsOf, ListParams, Listed, Listing, NameParams, Query, Refusals,
    Refused, Selection, SelectionParams, answer, each,
};
use crate::together::{Members, together};
use crate::{Interface, Shared};

/// Returns the activity of the hosts of host groups.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/host-groups/performance",
    tag = "host-groups",
    params(NameParams, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestHostPerformance>), Refusals)
)]
pub(super) async fn of_host_groups(State(interface): Shared, query: Query) -> Answer {
    host_groups(interface, query, |_, performance| performance).await
}

/// Returns the activity on the volumes of volume groups.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volume-groups/performance",
    tag = "volume-groups",
    params(SelectionParams, DestroyedParam, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestVolumePerformance>), Refusals)
)]
pub(super) async fn of_volume_groups(State(interface): Shared, query: Query) -> Answer {
    containers(interface, ContainerKind::VolumeGroup, query, |_, performance| performance).await
}

/// Returns the activity on the volumes of pods.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/pods/performance",
    tag = "pods",
    params(SelectionParams, DestroyedParam, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestVolumePerformance>), Refusals)
)]
pub(super) async fn of_pods(State(interface): Shared, query: Query) -> Answer {
    containers(interface, ContainerKind::Pod, query, |_, performance| performance).await
}

/// Returns the list of host groups, each item in its output format.
pub(super) async fn host_groups<T: Listed + Clone + 'static>(
    interface: Arc<Interface>,
    mut query: Query,
    show: Shown<RestHostPerformance, T>,
) -> Answer {
    let names = query.list("names")?;
    let find = move |interface: &Interface| {
        let array = &interface.array;
        let found = match names.is_empty() {
            true => array.host_groups(None, HOST_GROUPS_MAX),
            false => each(&names, |name| Ok(array.host_group(name)?))?,
        };
        let of = |group| ((), Members::of_host_group(array, group));
        Ok(found.into_iter().map(of).collect())
    };
    let item = move |array: &RestArrayNamed, (): &(), name, time, performance| {
        show(array, RestHostPerformance { name, time, performance })
    };
    summed(interface, query, find, item).await
}

/// Returns the list of volume groups or pods, each item in its output format.
pub(super) async fn containers<T: Listed + Clone + 'static>(
    interface: Arc<Interface>,
    kind: ContainerKind,
    mut query: Query,
    show: Shown<RestVolumePerformance, T>,
) -> Answer {
    let selection = Selection::take_with_destroyed(&mut query)?;
    let find = move |interface: &Interface| {
        let array = &interface.array;
        let found = selected(interface, kind, &selection)?;
        let ids = Ids::of(array);
        let of = |container: ContainerInfo| {
            (ids.id(id_kind(kind), container.id), Members::of_container(array, container))
        };
        Ok(found.into_iter().map(of).collect())
    };
    let item = move |array: &RestArrayNamed, id: &String, name, time, performance| {
        show(array, RestVolumePerformance { id: id.clone(), name, time, performance })
    };
    summed(interface, query, find, item).await
}

/// Returns the list of items that sum up members: `find` returns the members of each item, with
/// what else `item` needs to show a sample of it, besides its name and the time of the sample.
pub(super) async fn summed<Id: 'static, T: Listed + Clone + 'static>(
    interface: Arc<Interface>,
    mut query: Query,
    find: impl FnOnce(&Interface) -> Result<Vec<(Id, Members)>, Refused> + Send + 'static,
    item: impl Fn(&RestArrayNamed, &Id, String, u64, RestPerformance) -> T + Send + 'static,
) -> Answer {
    let times = Times::take(&mut query)?;
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let (items, array) = (find(interface)?, RestArrayNamed::of(interface));
        let item = |(id, of): &(Id, Members), time, performance| {
            item(&array, id, of.name.clone(), time, performance)
        };
        let Some(times) = times else {
            let tick = interface.history.latest();
            let time = time_of(interface, &tick);
            let one = |of: &(Id, Members)| {
                let mut sum = Activity::default();
                let found = of.1.objects.iter().filter_map(|(object, _)| tick.objects.get(object));
                found.for_each(|activity| sum.merge(activity));
                item(of, time, RestPerformance::of(&sum, tick.covered_ms))
            };
            return listing.all(&items.iter().map(one).collect::<Vec<_>>());
        };
        let range = times.range((interface.now_ms)())?;
        let objects = items.iter().flat_map(|(_, of)| of.objects.iter().copied()).collect();
        let found = of_objects(interface, &times, &range, &objects)?;
        let rows = items.iter().flat_map(|of| {
            let series = together(&of.1, &found, range.step_ms()).into_iter();
            series.map(|it| item(of, it.start_ms, RestPerformance::of_point(&it)))
        });
        listing.all(&rows.collect::<Vec<_>>())
    })
    .await
}
