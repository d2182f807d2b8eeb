//! The array itself: version, status, pool, settings, counters.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    ApiError, ArraySettings, ArraySettingsChange, Counters, Pool, PoolChange, Refusal, Shared,
    Status, Version, blocking,
};

/// Returns the version of the program, and the text to show before a login.
#[utoipa::path(get, path = "/v1/version", security(()), responses((status = 200, body = Version)))]
pub(crate) async fn version(State(interface): Shared) -> Json<Version> {
    Json(Version {
        product: "holdfast".into(),
        version: interface.facts.version.clone(),
        api: vec!["v1".into()],
        banner: interface.array.banner(),
    })
}

/// Shows the state of the array.
#[utoipa::path(get, path = "/v1/status", responses(
    (status = 200, body = Status),
    (status = 401, body = Refusal),
))]
pub(crate) async fn status(State(interface): Shared) -> Result<Json<Status>, ApiError> {
    blocking(interface, |interface| {
        let settings = interface.array.settings();
        let counts = interface.array.counts();
        let facts = interface.facts.clone();
        Ok(Json(Status {
            name: settings.name.to_string(),
            version: facts.version,
            target_name: settings.target_name.to_string(),
            portals: facts.portals,
            durability: facts.durability,
            started_ms: facts.started_ms,
            volumes: counts.volumes,
            snapshots: counts.snapshots,
            destroyed: counts.destroyed,
            hosts: counts.hosts,
            connections: counts.connections,
            pool: interface.array.pool().into(),
            optimize: interface.array.optimize().into(),
        }))
    })
    .await
}

/// Shows the state of the pool.
#[utoipa::path(get, path = "/v1/pool", responses(
    (status = 200, body = Pool),
    (status = 401, body = Refusal),
))]
pub(crate) async fn pool(State(interface): Shared) -> Result<Json<Pool>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.array.pool().into()))).await
}

/// Grows the pool while it is in use.
#[utoipa::path(patch, path = "/v1/pool", request_body = PoolChange, responses(
    (status = 200, body = Pool),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 500, body = Refusal),
    (status = 507, body = Refusal),
))]
pub(crate) async fn grow_pool(
    State(interface): Shared,
    body: Result<Json<PoolChange>, JsonRejection>,
) -> Result<Json<Pool>, ApiError> {
    let Json(asked) = body?;
    blocking(interface, move |interface| {
        Ok(Json(interface.array.grow_pool(asked.capacity_bytes)?.into()))
    })
    .await
}

/// Which counters to return.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct CountersQuery {
    /// Whether to return the counters of each initiator and volume, too: `true` by default. On an
    /// array with many volumes that is most of the response.
    paths: Option<bool>,
}

/// Returns the counters of the front end.
#[utoipa::path(get, path = "/v1/counters", params(CountersQuery), responses(
    (status = 200, body = Counters),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
))]
pub(crate) async fn counters(
    State(interface): Shared,
    query: Result<Query<CountersQuery>, QueryRejection>,
) -> Result<Json<Counters>, ApiError> {
    let Query(CountersQuery { paths }) = query?;
    blocking(interface, move |interface| {
        let mut counters = match paths.unwrap_or(true) {
            true => interface.telemetry.counters(),
            false => interface.telemetry.totals(),
        };
        for path in &mut counters.paths {
            let id = path.volume_id.map(block::VolumeId);
            path.volume = id.and_then(|id| interface.array.volume_name(id));
        }
        counters.space = interface.array.pool_space().into();
        counters.integrity = interface.array.scrub().into();
        counters.optimize = interface.array.optimize().into();
        Ok(Json(counters))
    })
    .await
}

/// Shows the settings that are kept in the pool.
#[utoipa::path(get, path = "/v1/settings", responses(
    (status = 200, body = ArraySettings),
    (status = 401, body = Refusal),
))]
pub(crate) async fn settings(State(interface): Shared) -> Result<Json<ArraySettings>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.array.settings().into()))).await
}

/// Changes settings.
#[utoipa::path(patch, path = "/v1/settings", request_body = ArraySettingsChange, responses(
    (status = 200, body = ArraySettings),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
))]
pub(crate) async fn change_settings(
    State(interface): Shared,
    body: Result<Json<ArraySettingsChange>, JsonRejection>,
) -> Result<Json<ArraySettings>, ApiError> {
    let Json(asked) = body?;
    blocking(interface, move |interface| {
        Ok(Json(interface.array.change_settings(asked.change()?)?.into()))
    })
    .await
}
