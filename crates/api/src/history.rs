//! `GET /v1/history`: performance of the array, a volume, a host, a host group or a port over up to
//! a year, with offloads, percentiles and peaks, and the use of space of the pool.

use std::collections::BTreeMap;

use array::Array;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use history::{CLASSES, Capacity, ClassSums, Object, Point, Range, RangeError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::page::whole;
use crate::together::{Members, together};
use crate::{ApiError, Interface, Refusal, Shared, blocking, ratio};

/// The default time range: an hour.
const DEFAULT_MS: u64 = 3_600_000;
/// The maximum samples of a response: each has up to 2 KiB of text.
const SAMPLES_MAX: u64 = 3000;

/// Which history to return.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct HistoryQuery {
    /// The name of a volume.
    volume: Option<String>,
    /// The name of a host.
    host: Option<String>,
    /// The name of a host group: the hosts that are in it now, together, where all of them are
    /// known. Peaks are those of the samples.
    host_group: Option<String>,
    /// The number of a port, as in sessions of hosts, from 1. If none of these is given, the
    /// history is that of the array.
    #[serde(default, deserialize_with = "whole")]
    port: Option<u64>,
    /// The start, in milliseconds since 1970; by default an hour before the end.
    #[serde(default, deserialize_with = "whole")]
    start_ms: Option<u64>,
    /// The end, in milliseconds since 1970; by default now.
    #[serde(default, deserialize_with = "whole")]
    end_ms: Option<u64>,
    /// The length of the samples: a multiple of 30000 (kept for a day), 300000 (31 days) or 3600000
    /// (366 days); for the array 1000, too (the last 3000 since the start). By default, the finest
    /// resolution that covers the whole range.
    #[serde(default, deserialize_with = "whole")]
    resolution_ms: Option<u64>,
}

/// A series of samples.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HistorySamples {
    /// The length of each sample, in milliseconds.
    pub resolution_ms: u64,
    /// In chronological order. Samples without any data are left out.
    pub samples: Vec<HistorySample>,
}

/// The activity between two times.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct HistorySample {
    /// When it begins, in milliseconds since 1970.
    pub time_ms: u64,
    /// For how many milliseconds of it data exists; rates are over these.
    pub covered_ms: u64,
    /// By class of command; only classes that occurred.
    pub commands: BTreeMap<String, CommandRates>,
    /// The state of the pool; only for the array.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<CapacitySample>,
}

/// The activity of one class. Peaks are over a second.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct CommandRates {
    /// Successful commands per second.
    pub per_s: f64,
    /// Failed commands per second.
    pub failed_per_s: f64,
    /// Bytes per second that the successful ones read, wrote, copied, zeroed or unmapped.
    pub bytes_per_s: f64,
    /// The mean latency of the successful ones; `null` if there were none.
    #[schema(required = true)]
    pub latency_us: Option<f64>,
    /// The latency that half of the successful ones did not exceed, in steps of a histogram;
    /// 10000000 means 10 s or more. For reads and writes; `null` for others, and for times before
    /// it was kept.
    #[serde(default)]
    #[schema(required = true)]
    pub latency_us_p50: Option<u64>,
    /// The same for 99 percent.
    #[serde(default)]
    #[schema(required = true)]
    pub latency_us_p99: Option<u64>,
    /// The peak of commands in a second.
    pub per_s_max: u64,
    /// The peak of bytes in a second.
    pub bytes_per_s_max: u64,
    /// The greatest mean latency over a second.
    pub latency_us_max: u64,
}

/// The state of the pool: means, in bytes. Unknown figures are `null`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct CapacitySample {
    /// The capacity of the pool.
    #[schema(required = true)]
    pub capacity_bytes: Option<u64>,
    /// Bytes in use.
    #[schema(required = true)]
    pub used_bytes: Option<u64>,
    /// The peak of the bytes in use.
    #[schema(required = true)]
    pub used_bytes_max: Option<u64>,
    /// Stored data of volumes and snapshots, after reduction.
    #[schema(required = true)]
    pub data_bytes: Option<u64>,
    /// The provisioned size of volumes.
    #[schema(required = true)]
    pub provisioned_bytes: Option<u64>,
    /// Bytes that hosts have written and not unmapped.
    #[schema(required = true)]
    pub mapped_bytes: Option<u64>,
    /// Stored bytes that are unique to volumes, as the last pass of accounting found.
    #[schema(required = true)]
    pub unique_bytes: Option<u64>,
    /// Stored bytes that a volume shares with another volume or a snapshot.
    #[schema(required = true)]
    pub shared_bytes: Option<u64>,
    /// Stored bytes that only snapshots refer to.
    #[schema(required = true)]
    pub snapshots_bytes: Option<u64>,
    /// Stored bytes of the array itself.
    #[schema(required = true)]
    pub system_bytes: Option<u64>,
    /// `mapped_bytes` divided by `data_bytes`.
    #[schema(required = true)]
    pub data_reduction: Option<f64>,
    /// `provisioned_bytes` divided by `data_bytes`.
    #[schema(required = true)]
    pub total_reduction: Option<f64>,
}

impl CapacitySample {
    fn of(capacity: &Capacity) -> Self {
        let mean = |name| capacity.gauge(name)?.mean();
        let most = |name| capacity.gauge(name).filter(|it| it.count > 0).map(|it| it.max);
        let over_data = |bytes: Option<u64>| ratio(bytes?, mean("data")?);
        Self {
            capacity_bytes: mean("capacity"),
            used_bytes: mean("used"),
            used_bytes_max: most("used"),
            data_bytes: mean("data"),
            provisioned_bytes: mean("provisioned"),
            mapped_bytes: mean("mapped"),
            unique_bytes: mean("unique"),
            shared_bytes: mean("shared"),
            snapshots_bytes: mean("snapshots"),
            system_bytes: mean("system"),
            data_reduction: over_data(mean("mapped")),
            total_reduction: over_data(mean("provisioned")),
        }
    }
}

impl CommandRates {
    /// Returns the sample of a class, by its index.
    fn of(point: &Point, at: usize) -> Self {
        let (class, covered_ms) = (&point.activity.0[at], point.covered_ms);
        let a_second = |sum: u64| sum as f64 * 1000.0 / covered_ms as f64;
        let percentile = |percent| point.activity.1.percentile_us(at, percent);
        Self {
            per_s: a_second(class.ok),
            failed_per_s: a_second(class.failed),
            bytes_per_s: a_second(class.bytes),
            latency_us: class.latency_us(),
            latency_us_p50: percentile(50),
            latency_us_p99: percentile(99),
            per_s_max: class.per_s_max,
            bytes_per_s_max: class.bytes_per_s_max,
            latency_us_max: class.latency_us_max,
        }
    }
}

impl HistorySample {
    fn of(point: &Point) -> Self {
        let happened = |class: &ClassSums| class.ok > 0 || class.failed > 0;
        let classes = CLASSES.iter().enumerate();
        let classes = classes.filter(|(at, _)| happened(&point.activity.0[*at]));
        let capacity = CapacitySample::of(&point.capacity);
        Self {
            time_ms: point.start_ms,
            covered_ms: point.covered_ms,
            commands: classes
                .map(|(at, name)| ((*name).to_owned(), CommandRates::of(point, at)))
                .collect(),
            capacity: (capacity != CapacitySample::default()).then_some(capacity),
        }
    }
}

/// Why there is no history, apart from the errors of the array.
#[derive(Debug)]
pub(crate) enum Unknown {
    /// The requested range is not kept.
    Range(RangeError),
    /// The stored history can't be read.
    Unreadable,
}

impl From<RangeError> for Unknown {
    fn from(error: RangeError) -> Self {
        Self::Range(error)
    }
}

impl From<std::io::Error> for Unknown {
    fn from(error: std::io::Error) -> Self {
        tracing::error!("the history can't be read: {error}");
        Self::Unreadable
    }
}

impl From<Unknown> for ApiError {
    fn from(unknown: Unknown) -> Self {
        match unknown {
            Unknown::Range(error) => {
                Self::new(StatusCode::BAD_REQUEST, "invalid_range", error.to_string())
            }
            Unknown::Unreadable => Self::broken(),
        }
    }
}

/// Returns performance over up to a year.
#[utoipa::path(get, path = "/v1/history", params(HistoryQuery), responses(
    (status = 200, body = HistorySamples),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
    (status = 500, body = Refusal),
))]
pub(crate) async fn history(
    State(interface): Shared,
    query: Result<Query<HistoryQuery>, QueryRejection>,
) -> Result<Json<HistorySamples>, ApiError> {
    let Query(query) = query?;
    let HistoryQuery { volume, host, host_group, port, .. } = &query;
    let named = [volume, host, host_group].into_iter().flatten().count();
    if named + usize::from(port.is_some()) > 1 {
        let text = "Name one of a volume, a host, a host group and a port.";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "bad_request", text));
    }
    if let Some(port) = port.filter(|port| !has_port(&interface, *port)) {
        let text = format!("Port does not exist: {port}. Sessions of hosts show their numbers.");
        return Err(ApiError::new(StatusCode::NOT_FOUND, "no_such_port", text));
    }
    let found = blocking(interface, move |interface| {
        let of = of(&interface.array, &query)?;
        Ok(samples(interface, &query, &of))
    })
    .await?;
    Ok(Json(found?))
}

fn has_port(interface: &Interface, port: u64) -> bool {
    interface.facts.port_ids.iter().any(|id| u64::from(*id) == port)
}

/// The subject of a history.
enum Of {
    Array,
    /// An object, and its time of creation.
    One(Object, u64),
    Group(Members),
}

/// Returns the subject that a query names.
fn of(array: &Array, query: &HistoryQuery) -> Result<Of, array::Error> {
    if let Some(name) = &query.volume {
        let volume = array.volume(name)?;
        return Ok(Of::One(Object::Volume(volume.id.0), volume.created_ms));
    }
    if let Some(name) = &query.host {
        let host = array.host(name)?;
        return Ok(Of::One(Object::Host(host.id), host.created_ms));
    }
    if let Some(name) = &query.host_group {
        return Ok(Of::Group(Members::of_host_group(array, array.host_group(name)?)));
    }
    Ok(query.port.map_or(Of::Array, |port| Of::One(Object::Port(port), 0)))
}

fn samples(
    interface: &Interface,
    query: &HistoryQuery,
    of: &Of,
) -> Result<HistorySamples, Unknown> {
    let now_ms = (interface.now_ms)();
    let end_ms = query.end_ms.unwrap_or_else(|| now_ms.saturating_add(1));
    let start_ms = query.start_ms.unwrap_or_else(|| end_ms.saturating_sub(DEFAULT_MS));
    let (resolution_ms, points) = match (query.resolution_ms, of) {
        (Some(1000), Of::Array) => (1000, interface.history.seconds(start_ms, end_ms)),
        (resolution_ms, of) => {
            let range = Range::new(start_ms, end_ms, resolution_ms, now_ms)?;
            if range.points() > SAMPLES_MAX {
                return Err(RangeError::TooMany(SAMPLES_MAX).into());
            }
            (range.step_ms(), points_of(interface, &range, of)?)
        }
    };
    let samples = points.iter().map(HistorySample::of).collect();
    Ok(HistorySamples { resolution_ms, samples })
}

/// Returns the points of an object, without those of an earlier object with the same id.
fn points_of(interface: &Interface, range: &Range, of: &Of) -> Result<Vec<Point>, Unknown> {
    let history = &interface.history;
    match of {
        Of::Array => Ok(history.of_array(range)?),
        Of::One(object, created_ms) => {
            let mut points = history.of_objects(range, &[*object])?;
            let mut points = points.remove(object).unwrap_or_default();
            points.retain(|point| point.start_ms.saturating_add(range.step_ms()) > *created_ms);
            Ok(points)
        }
        Of::Group(group) => {
            let hosts: Vec<Object> = group.objects.iter().map(|(host, _)| *host).collect();
            let mut points = together(group, &history.of_objects(range, &hosts)?, range.step_ms());
            // The peaks of hosts are at different times: they don't add up to a peak of the group.
            for point in &mut points {
                point.activity = point.activity.with_peaks(point.covered_ms);
            }
            Ok(points)
        }
    }
}
