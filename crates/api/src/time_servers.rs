//! `/v1/time-servers`: the offset of the array's clock from the time servers.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Refusal, Shared, blocking};

/// A time server, and its last response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TimeServer {
    /// `HOST` or `HOST:PORT`, as in the settings.
    pub server: String,
    /// By how many seconds the clock of the machine is behind that of the server; negative if it is
    /// ahead. `null` if the server did not answer.
    #[schema(required = true)]
    pub offset_s: Option<f64>,
    /// Why there is no offset; `null` if there is one.
    #[schema(required = true)]
    pub error: Option<String>,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TimeServers {
    /// In the order of the settings.
    pub time_servers: Vec<TimeServer>,
}

/// Lists the time servers with their last responses. They are queried every minute.
#[utoipa::path(get, path = "/v1/time-servers", responses(
    (status = 200, body = TimeServers),
    (status = 401, body = Refusal),
))]
pub(crate) async fn list(State(interface): Shared) -> Result<Json<TimeServers>, ApiError> {
    blocking(interface, |interface| {
        Ok(Json(TimeServers { time_servers: interface.watch.time_servers() }))
    })
    .await
}

/// Queries all time servers now, and returns their responses.
#[utoipa::path(post, path = "/v1/time-servers/test", responses(
    (status = 200, body = TimeServers),
    (status = 401, body = Refusal),
    (status = 403, body = Refusal),
))]
pub(crate) async fn test(State(interface): Shared) -> Result<Json<TimeServers>, ApiError> {
    blocking(interface, |interface| {
        Ok(Json(TimeServers { time_servers: interface.watch.test_time_servers() }))
    })
    .await
}
