//! `host-groups/performance`: the summed activity of the hosts that are now in each group; and the
//! parts shared with the list of hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::HOST_GROUPS_MAX;
use axum::extract::State;
use history::{Activity, Object, Series};

use super::performance::RestPerformance;
use super::performance_by_array::{RestArrayNamed, Shown};
use super::performance_lists::{RestHostPerformance, TimeParams, Times, of_objects, time_of};
use super::{
    Answer, ItemsOf, ListParams, Listed, Listing, NameParams, Query, Refusals, Refused, answer,
    each,
};
use crate::together::{Hosts, together};
use crate::{Interface, Shared};

/// Returns the samples of an item from the samples of its hosts; the last number is a step, in
/// milliseconds.
pub(super) type SeriesOf = fn(&Hosts, &BTreeMap<Object, Series>, u64) -> Series;

/// Returns the activity of the hosts of host groups.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/host-groups/performance",
    tag = "host-groups",
    params(NameParams, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestHostPerformance>), Refusals)
)]
pub(super) async fn of_host_groups(State(interface): Shared, query: Query) -> Answer {
    groups(interface, query, |_, performance| performance).await
}

/// Returns the list of host groups, each item in its output format.
pub(super) async fn groups<T: Listed + Clone + 'static>(
    interface: Arc<Interface>,
    query: Query,
    show: Shown<RestHostPerformance, T>,
) -> Answer {
    of_hosts_together(interface, query, show, named, together).await
}

/// Returns the list of items that sum up hosts: `find` returns the named ones, or all.
pub(super) async fn of_hosts_together<T: Listed + Clone + 'static>(
    interface: Arc<Interface>,
    mut query: Query,
    show: Shown<RestHostPerformance, T>,
    find: fn(&Interface, &[String]) -> Result<Vec<Hosts>, Refused>,
    series_of: SeriesOf,
) -> Answer {
    let (names, times) = (query.list("names")?, Times::take(&mut query)?);
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let (items, array) = (find(interface, &names)?, RestArrayNamed::of(interface));
        let item = |of: &Hosts, time, performance| {
            let name = of.name.clone();
            show(&array, RestHostPerformance { name, time, performance })
        };
        let Some(times) = times else {
            let tick = interface.history.latest();
            let time = time_of(interface, &tick);
            let one = |of: &Hosts| {
                let mut sum = Activity::default();
                let found = of.hosts.iter().filter_map(|(host, _)| tick.objects.get(host));
                found.for_each(|activity| sum.merge(activity));
                item(of, time, RestPerformance::of(&sum, tick.covered_ms))
            };
            return listing.all(&items.iter().map(one).collect::<Vec<_>>());
        };
        let range = times.range((interface.now_ms)())?;
        let objects = items.iter().flat_map(|of| of.hosts.iter().copied()).collect();
        let found = of_objects(interface, &times, &range, &objects)?;
        let rows = items.iter().flat_map(|of| {
            let series = series_of(of, &found, range.step_ms()).into_iter();
            series.map(|it| item(of, it.start_ms, RestPerformance::of_point(&it)))
        });
        listing.all(&rows.collect::<Vec<_>>())
    })
    .await
}

/// Returns the named host groups, or all.
fn named(interface: &Interface, names: &[String]) -> Result<Vec<Hosts>, Refused> {
    let array = &interface.array;
    let found = match names.is_empty() {
        true => array.host_groups(None, HOST_GROUPS_MAX),
        false => each(names, |name| Ok(array.host_group(name)?))?,
    };
    Ok(found.into_iter().map(|group| Hosts::of(array, group)).collect())
}
