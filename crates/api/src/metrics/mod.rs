//! `GET /metrics`: the array's counters in Prometheus' text format 0.0.4.
//!
//! Names follow Prometheus' conventions: prefix `holdfast_`, base units (seconds, bytes) as suffix,
//! `_total` for counters. A latency is a sum and a count. Everything is read on request; nothing is
//! counted for it. A caller needs a token, of any role.
//!
//! # How to add a metric
//!
//! Write a function that takes the [`Interface`] and adds families to the [`Exposition`], and add
//! it to [`SOURCES`]. Families with one series per object must have a bound.
//!
//! ```text
//! pub(super) fn alerts(interface: &Interface, page: &mut Exposition) {
//!     let mut open = page.gauge("holdfast_alerts_open", "Alerts that are not closed.");
//!     for (severity, count) in Severity::ALL.into_iter().zip(interface.array.open_alerts()) {
//!         open.count(&[("severity", severity.name())], count as u64);
//!     }
//! }
//! ```

mod alerts;
mod commands;
mod controllers;
mod devices;
mod exposition;
mod pool;
mod time;

use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::latency::LatencyBucket;
use crate::{ApiError, Interface, Refusal, Shared, blocking};

pub(crate) use exposition::{Exposition, Family};

/// Adds a histogram of latencies.
fn add_latencies(
    family: &mut Family<'_>,
    labels: &[(&str, &str)],
    latencies: &[LatencyBucket],
    sum_us: u64,
) {
    let seconds = |us: u64| us as f64 / 1e6;
    let bound = |up_to_us: Option<u64>| up_to_us.map_or(f64::INFINITY, seconds);
    let buckets = latencies.iter().map(|bucket| (bound(bucket.up_to_us), bucket.count));
    family.buckets(labels, buckets, seconds(sum_us));
}

/// The functions that add metrics, in the order of the output.
const SOURCES: &[fn(&Interface, &mut Exposition)] = &[
    pool::array,
    pool::space,
    pool::work,
    devices::devices,
    controllers::controllers,
    alerts::alerts,
    time::time,
];

/// The default number of volumes, and of hosts, with series of their own.
const OBJECTS_DEFAULT: usize = 1000;

/// Which series to return.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct MetricsQuery {
    /// The maximum number of volumes with series of their own: the first by name. 1000 by default;
    /// 0 for none.
    volumes: Option<usize>,
    /// The same for hosts.
    hosts: Option<usize>,
}

/// Returns the array's metrics, for Prometheus.
#[utoipa::path(get, path = "/metrics", params(MetricsQuery), responses(
    (status = 200, body = String, content_type = "text/plain; version=0.0.4"),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
))]
pub(crate) async fn metrics(
    State(interface): Shared,
    query: Result<Query<MetricsQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(MetricsQuery { volumes, hosts }) = query?;
    let volumes = volumes.unwrap_or(OBJECTS_DEFAULT).min(array::VOLUMES_MAX);
    let hosts = hosts.unwrap_or(OBJECTS_DEFAULT).min(array::HOSTS_MAX);
    let text = blocking(interface, move |interface| {
        let mut page = Exposition::default();
        for source in SOURCES {
            source(interface, &mut page);
        }
        commands::add(interface, &mut page, volumes, hosts);
        Ok(page.text())
    })
    .await?;
    let text = text.map_err(|error| {
        tracing::error!("metrics can't be encoded: {error}");
        ApiError::broken()
    })?;
    Ok(([(CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response())
}
