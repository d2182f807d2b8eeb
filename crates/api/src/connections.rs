//! `/v1/connections`.

use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;

use crate::{
    ApiError, Connection, ConnectionCreate, ConnectionFilter, Connections, Refusal, Shared,
    blocking,
};

/// Lists all connections, or those of a volume, a host, or both.
#[utoipa::path(get, path = "/v1/connections", params(ConnectionFilter), responses(
    (status = 200, body = Connections),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn list(
    State(interface): Shared,
    filter: Result<Query<ConnectionFilter>, QueryRejection>,
) -> Result<Json<Connections>, ApiError> {
    let Query(filter) = filter?;
    blocking(interface, move |interface| {
        let found =
            interface.array.connections(filter.volume.as_deref(), filter.host.as_deref())?;
        let connections = found.into_iter().map(Connection::from).collect();
        Ok(Json(Connections { connections }))
    })
    .await
}

/// Connects a volume to a host.
#[utoipa::path(post, path = "/v1/connections", request_body = ConnectionCreate, responses(
    (status = 201, body = Connection),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
    (status = 409, body = Refusal),
    (status = 507, body = Refusal),
))]
pub(crate) async fn connect(
    State(interface): Shared,
    body: Result<Json<ConnectionCreate>, JsonRejection>,
) -> Result<(StatusCode, Json<Connection>), ApiError> {
    let Json(asked) = body?;
    blocking(interface, move |interface| {
        let made = interface.array.connect(&asked.volume, &asked.host, asked.lun)?;
        Ok((StatusCode::CREATED, Json(made.into())))
    })
    .await
}

/// Disconnects a volume from a host.
#[utoipa::path(
    delete,
    path = "/v1/connections/{volume}/{host}",
    params(("volume" = String, Path), ("host" = String, Path)),
    responses(
        (status = 204, description = "It is gone."),
        (status = 401, body = Refusal),
        (status = 404, body = Refusal),
    )
)]
pub(crate) async fn disconnect(
    State(interface): Shared,
    names: Result<Path<(String, String)>, PathRejection>,
) -> Result<StatusCode, ApiError> {
    let Path((volume, host)) = names?;
    blocking(interface, move |interface| {
        interface.array.disconnect(&volume, &host).map(|()| StatusCode::NO_CONTENT)
    })
    .await
}
