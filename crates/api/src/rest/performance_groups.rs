//! `host-groups/performance`: the activity of the hosts that are in each group now, together; and
//! what is the same in the list of hosts.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::HOST_GROUPS_MAX;
use axum::extract::State;
use history::{Activity, Object, Point, Series};

use super::performance::RestPerformance;
use super::performance_by_array::{RestArrayNamed, Shown};
use super::performance_lists::{RestHostPerformance, TimeParams, Times, of_objects, time_of};
use super::{
    Answer, ItemsOf, ListParams, Listed, Listing, NameParams, Query, Refusals, Refused, answer,
    each,
};
use crate::{Interface, Shared};

/// Hosts that are one item of a list, and when each was made, in milliseconds since 1970.
pub(super) struct Hosts {
    pub(super) name: String,
    pub(super) hosts: Vec<(Object, u64)>,
}

/// Returns the samples of an item, of those of its hosts; the last number is a step, in
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

/// The list of host groups, each item as it is to be shown.
pub(super) async fn groups<T: Listed + Clone + 'static>(
    interface: Arc<Interface>,
    query: Query,
    show: Shown<RestHostPerformance, T>,
) -> Answer {
    of_hosts_together(interface, query, show, named, together).await
}

/// The list of items that are hosts together: `find` returns the named ones, or all.
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

/// The named host groups, or all.
fn named(interface: &Interface, names: &[String]) -> Result<Vec<Hosts>, Refused> {
    let array = &interface.array;
    let found = match names.is_empty() {
        true => array.host_groups(None, HOST_GROUPS_MAX),
        false => each(names, |name| Ok(array.host_group(name)?))?,
    };
    let host = |name: &String| {
        let host = array.host(name).ok()?;
        Some((Object::Host(host.id), host.created_ms))
    };
    let group = |group: array::HostGroupInfo| {
        let hosts = group.hosts.iter().filter_map(host).collect();
        Hosts { name: group.name, hosts }
    };
    Ok(found.into_iter().map(group).collect())
}

/// The samples of the hosts of a group together. A sample is left out if it is not known of all of
/// them; a host did nothing before it was made.
fn together(group: &Hosts, found: &BTreeMap<Object, Series>, step_ms: u64) -> Series {
    let mut sums: BTreeMap<u64, (Point, usize)> = BTreeMap::new();
    let series = group.hosts.iter().filter_map(|(host, _)| found.get(host));
    let covered = series.clone().flatten().fold(BTreeMap::new(), |mut most, point| {
        let known: &mut u64 = most.entry(point.start_ms).or_default();
        *known = point.covered_ms.max(*known);
        most
    });
    for point in series.flatten() {
        if covered.get(&point.start_ms) == Some(&point.covered_ms) {
            let new = Point { start_ms: point.start_ms, ..Point::default() };
            let (sum, count) = sums.entry(point.start_ms).or_insert((new, 0));
            sum.covered_ms = point.covered_ms;
            sum.activity.merge(&point.activity);
            *count += 1;
        }
    }
    let is_whole = |(point, count): &(Point, usize)| {
        let end_ms = point.start_ms.saturating_add(step_ms);
        group.hosts.iter().filter(|(_, made_ms)| *made_ms < end_ms).count() == *count
    };
    sums.into_values().filter(is_whole).map(|(point, _)| point).collect()
}

#[cfg(test)]
mod tests {
    use history::ClassSums;

    use super::*;

    fn point(start_ms: u64, covered_ms: u64, ok: u64) -> Point {
        let mut activity = Activity::default();
        activity.0[0] = ClassSums { ok, ..ClassSums::default() };
        Point { start_ms, covered_ms, activity, ..Point::default() }
    }

    #[test]
    fn a_sample_of_a_group_is_known_if_it_is_of_each_host() {
        let (one, other) = (Object::Host(1), Object::Host(2));
        // The other was made in the second step; its fourth is not known, its fifth in part.
        let group = Hosts { name: "g".into(), hosts: vec![(one, 0), (other, 150)] };
        let of_one = (0..6).map(|n| point(n * 100, 100, 1)).collect();
        let of_other = [(1, 100), (2, 100), (4, 50), (5, 100)]
            .map(|(n, covered_ms)| point(n * 100, covered_ms, 10))
            .to_vec();
        let found = [(one, of_one), (other, of_other)].into();
        let known: Vec<_> = together(&group, &found, 100)
            .iter()
            .map(|it| (it.start_ms, it.covered_ms, it.activity.0[0].ok))
            .collect();
        assert_eq!(known, [(0, 100, 1), (100, 100, 11), (200, 100, 11), (500, 100, 11)]);
        let nobody = Hosts { name: "n".into(), hosts: vec![] };
        assert!(together(&nobody, &found, 100).is_empty());
    }
}
