//! `arrays/performance`, `volumes/performance`, `hosts/performance`: now, or between two times.
//!
//! Without times these are of the last second. With `start_time`, `end_time` or `resolution` they
//! are samples of the history, one item for each object and each sample; `start_time` alone takes
//! the finest resolution in which all of it is kept, without `start_time` it is the last sample.

use std::collections::BTreeMap;
use std::sync::Arc;

use array::{HostInfo, VolumeInfo};
use axum::extract::State;
use history::{Object, Range, RangeError, Series, Tick};
use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use super::ids::{Ids, Kind};
use super::performance::{RestPerformance, TOTALLED};
use super::performance_by_array::{RestArrayNamed, Shown};
use super::performance_groups::summed;
use super::volumes::{find, listed, name_of};
use super::{
    Answer, DestroyedParam, ItemsOf, ListParams, Listed, Listing, NameParams, Query, Refusals,
    Refused, Selection, SelectionParams, answer, each,
};
use crate::history::Unknown;
use crate::together::Members;
use crate::{Interface, Shared};

/// The maximum number of samples of all objects of a request.
pub(super) const ROWS_MAX: u64 = 20_000;
/// The resolution if only an end is given.
const RESOLUTION_MS: u64 = 30_000;
/// The number of volumes or hosts that are read at once.
const PIECE: usize = 250;

/// Parameters that select a time range, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(super) struct TimeParams {
    /// The start, in milliseconds since 1970.
    start_time: Option<u64>,
    /// The end; by default now.
    end_time: Option<u64>,
    /// The length of the samples, in milliseconds: 30000, 300000, 1800000, 7200000, 28800000,
    /// 86400000; for the array 1000, too.
    resolution: Option<u64>,
}

/// A time range.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    start_ms: Option<u64>,
    end_ms: Option<u64>,
    resolution_ms: Option<u64>,
}

impl Times {
    pub(super) fn take(query: &mut Query) -> Result<Option<Self>, Refused> {
        let (start_ms, end_ms) = (query.number("start_time")?, query.number("end_time")?);
        let resolution_ms = query.number("resolution")?;
        let times = Self { start_ms, end_ms, resolution_ms };
        let asked = [start_ms, end_ms, resolution_ms].iter().any(Option::is_some);
        Ok(asked.then_some(times))
    }

    /// Returns the range. Without a start, the newest complete sample is one of the last two: the
    /// last may be incomplete.
    pub(super) fn range(&self, now_ms: u64) -> Result<Range, Refused> {
        self.range_of(now_ms, RESOLUTION_MS, Range::new)
    }

    /// Returns the same of another kind of samples, with its default resolution.
    pub(super) fn range_of(
        &self,
        now_ms: u64,
        resolution_ms: u64,
        new: fn(u64, u64, Option<u64>, u64) -> Result<Range, RangeError>,
    ) -> Result<Range, Refused> {
        let end_ms = self.end_ms.unwrap_or_else(|| now_ms.saturating_add(1));
        let default_ms = self.resolution_ms.unwrap_or(resolution_ms);
        let (start_ms, resolution_ms) = match self.start_ms {
            Some(start_ms) => (start_ms, self.resolution_ms),
            None => (end_ms.saturating_sub(default_ms.saturating_mul(2)), Some(default_ms)),
        };
        new(start_ms, end_ms, resolution_ms, now_ms).map_err(refused)
    }

    /// Returns the samples; without a start the last one.
    pub(super) fn cut<T>(&self, mut series: Vec<T>) -> Vec<T> {
        if self.start_ms.is_none() {
            series.drain(..series.len().saturating_sub(1));
        }
        series
    }
}

pub(super) fn refused(error: impl Into<Unknown>) -> Refused {
    match error.into() {
        Unknown::Range(error) => Refused::bad("resolution", error.to_string()),
        Unknown::Unreadable => Refused::broken(),
    }
}

/// The activity of the array.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestArrayPerformance {
    /// The array's id.
    pub id: String,
    /// The array's name.
    pub name: String,
    /// When the sample begins, in milliseconds since 1970; for the last second, when it ends.
    pub time: u64,
    /// Its activity.
    #[serde(flatten)]
    pub performance: RestPerformance,
}

/// The activity of hosts on a volume, or on the volumes of a volume group or pod.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestVolumePerformance {
    /// The id of the volume, volume group or pod.
    pub id: String,
    /// The name of the volume, volume group or pod.
    pub name: String,
    /// When the sample begins, in milliseconds since 1970; for the last second, when it ends.
    pub time: u64,
    /// The activity of hosts on it.
    #[serde(flatten)]
    pub performance: RestPerformance,
}

/// The activity of a host, or of the hosts of a host group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestHostPerformance {
    /// The name of the host or host group.
    pub name: String,
    /// When the sample begins, in milliseconds since 1970; for the last second, when it ends.
    pub time: u64,
    /// Its activity.
    #[serde(flatten)]
    pub performance: RestPerformance,
}

/// A sample of an object that has a name.
pub(super) trait Sampled {
    /// Returns the name of the object.
    fn name(&self) -> &str;
}

/// Samples of an object are identified by their time; without times the key is the name, by which
/// the list is read in pieces.
macro_rules! listed_by_name_and_time {
    ($($item:ident),*) => {
        $(impl Sampled for $item {
            fn name(&self) -> &str {
                &self.name
            }
        }

        impl Listed for $item {
            fn key(&self) -> String {
                format!("{}\n{:020}", self.name, self.time)
            }

            fn totalled() -> &'static [&'static str] {
                TOTALLED
            }
        })*
    };
}

listed_by_name_and_time!(RestArrayPerformance, RestVolumePerformance, RestHostPerformance);

/// Returns the activity of an object in the last second.
pub(super) fn latest(tick: &Tick, object: Object) -> RestPerformance {
    let activity = tick.objects.get(&object).copied().unwrap_or_default();
    RestPerformance::of(&activity, tick.covered_ms)
}

/// Returns the end of the last second; the current time, if there is none yet.
pub(super) fn time_of(interface: &Interface, tick: &Tick) -> u64 {
    if tick.covered_ms > 0 { tick.now_ms } else { (interface.now_ms)() }
}

/// Returns the activity of the array.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/arrays/performance",
    tag = "arrays",
    params(NameParams, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestArrayPerformance>), Refusals)
)]
pub(super) async fn of_arrays(State(interface): Shared, mut query: Query) -> Answer {
    let (names, times) = (query.list("names")?, Times::take(&mut query)?);
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let array = &interface.array;
        let name = array.name();
        if let Some(missing) = names.iter().find(|one| !one.eq_ignore_ascii_case(&name)) {
            return Err(Refused::missing(missing));
        }
        let id = Ids::of(array).id(Kind::Array, 0);
        let item = |time, performance| {
            let (id, name) = (id.clone(), name.clone());
            RestArrayPerformance { id, name, time, performance }
        };
        let Some(times) = times else {
            let tick = interface.history.latest();
            let performance = RestPerformance::of(&tick.array, tick.covered_ms);
            return listing.all(&[item(time_of(interface, &tick), performance)]);
        };
        let series = times.cut(samples_of_array(interface, &times)?);
        let rows = series.iter().map(|it| item(it.start_ms, RestPerformance::of_point(it)));
        listing.all(&rows.collect::<Vec<_>>())
    })
    .await
}

pub(super) fn samples_of_array(interface: &Interface, times: &Times) -> Result<Series, Refused> {
    let now_ms = (interface.now_ms)();
    if times.resolution_ms == Some(1000) {
        let end_ms = times.end_ms.unwrap_or_else(|| now_ms.saturating_add(1));
        return Ok(interface.history.seconds(times.start_ms.unwrap_or(0), end_ms));
    }
    interface.history.of_array(&times.range(now_ms)?).map_err(refused)
}

/// Returns the samples of some objects, each since its creation: earlier, another object may have
/// had its id.
pub(super) fn of_objects(
    interface: &Interface,
    times: &Times,
    range: &Range,
    objects: &BTreeMap<Object, u64>,
) -> Result<BTreeMap<Object, Series>, Refused> {
    if range.points().saturating_mul(objects.len() as u64) > ROWS_MAX {
        let text = format!(
            "That is more than {ROWS_MAX} samples: ask for fewer objects, or a coarser resolution."
        );
        return Err(Refused::bad("resolution", text));
    }
    let named: Vec<Object> = objects.keys().copied().collect();
    let found = interface.history.of_objects(range, &named).map_err(refused)?;
    let own = |(object, mut series): (Object, Series)| {
        let made_ms = objects.get(&object).copied().unwrap_or(0);
        series.retain(|point| point.start_ms.saturating_add(range.step_ms()) > made_ms);
        (object, times.cut(series))
    };
    Ok(found.into_iter().map(own).collect())
}

/// Returns the selected volumes, or all, read in pieces.
pub(super) fn selected(
    interface: &Interface,
    selection: &Selection,
) -> Result<Vec<VolumeInfo>, Refused> {
    let destroyed = selection.destroyed;
    if !selection.is_empty() {
        let names = selection.names(|id| name_of(interface, id))?;
        return each(&names, |name| Ok(find(interface, name, destroyed)?));
    }
    let mut all: Vec<VolumeInfo> = Vec::new();
    loop {
        let after = all.last().map(|volume| volume.name.as_str());
        let found = interface.array.volumes(after, destroyed, PIECE);
        let is_last = found.len() < PIECE;
        all.extend(found);
        if is_last {
            return Ok(all);
        }
    }
}

/// Returns the activity of hosts on volumes.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volumes/performance",
    tag = "volumes",
    params(SelectionParams, DestroyedParam, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestVolumePerformance>), Refusals)
)]
pub(super) async fn of_volumes(State(interface): Shared, query: Query) -> Answer {
    volumes(interface, query, |_, performance| performance).await
}

/// Returns the list of volumes, each item in its output format.
pub(super) async fn volumes<T: Sampled + Listed + Clone + 'static>(
    interface: Arc<Interface>,
    mut query: Query,
    show: Shown<RestVolumePerformance, T>,
) -> Answer {
    let selection = Selection::take_with_destroyed(&mut query)?;
    let times = Times::take(&mut query)?;
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let (ids, array) = (Ids::of(&interface.array), RestArrayNamed::of(interface));
        let item = |volume: &VolumeInfo, time, performance| {
            let (id, name) = (ids.id(Kind::Volume, volume.id.0), volume.name.clone());
            show(&array, RestVolumePerformance { id, name, time, performance })
        };
        let Some(times) = times else {
            let tick = interface.history.latest();
            let time = time_of(interface, &tick);
            return listed(interface, &selection, &listing, |volume| {
                let performance = latest(&tick, Object::Volume(volume.id.0));
                Now(item(&volume, time, performance))
            });
        };
        let volumes = selected(interface, &selection)?;
        let objects = volumes.iter().map(|it| (Object::Volume(it.id.0), it.created_ms)).collect();
        let range = times.range((interface.now_ms)())?;
        let found = of_objects(interface, &times, &range, &objects)?;
        let rows = volumes.iter().flat_map(|volume| {
            let series = found.get(&Object::Volume(volume.id.0)).into_iter().flatten();
            series.map(|it| item(volume, it.start_ms, RestPerformance::of_point(it)))
        });
        listing.all(&rows.collect::<Vec<_>>())
    })
    .await
}

/// Returns the activity of hosts.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/hosts/performance",
    tag = "hosts",
    params(NameParams, TimeParams, ListParams),
    responses((status = 200, body = ItemsOf<RestHostPerformance>), Refusals)
)]
pub(super) async fn of_hosts(State(interface): Shared, query: Query) -> Answer {
    hosts(interface, query, |_, performance| performance).await
}

/// Returns the list of hosts, each item in its output format.
pub(super) async fn hosts<T: Listed + Clone + 'static>(
    interface: Arc<Interface>,
    mut query: Query,
    show: Shown<RestHostPerformance, T>,
) -> Answer {
    let names = query.list("names")?;
    let item = move |array: &RestArrayNamed, (): &(), name, time, performance| {
        show(array, RestHostPerformance { name, time, performance })
    };
    summed(interface, query, move |interface| hosts_named(interface, &names), item).await
}

/// Returns hosts by name: the named ones, or all.
fn hosts_named(interface: &Interface, names: &[String]) -> Result<Vec<((), Members)>, Refused> {
    let array = &interface.array;
    let one = |host: HostInfo| {
        let objects = vec![(Object::Host(host.id), host.created_ms)];
        ((), Members { name: host.name, objects })
    };
    if !names.is_empty() {
        return each(names, |name| Ok(one(array.host(name)?)));
    }
    let mut all: Vec<((), Members)> = Vec::new();
    loop {
        let found = array.hosts(all.last().map(|(_, host)| host.name.as_str()), PIECE);
        let is_last = found.len() < PIECE;
        all.extend(found.into_iter().map(one));
        if is_last {
            return Ok(all);
        }
    }
}

/// An item of the last second; the list is read in pieces by name.
#[derive(Clone, Serialize)]
#[serde(transparent)]
struct Now<T>(T);

impl<T: Sampled + Serialize> Listed for Now<T> {
    fn key(&self) -> String {
        self.0.name().to_owned()
    }

    fn totalled() -> &'static [&'static str] {
        TOTALLED
    }
}
