//! The background pass of reduction.

use array::OptimizeStatus;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Refusal, Shared, blocking};

/// How the background pass of reduction stands: it finds what is stored twice, and packs better
/// what was compressed quickly.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Optimize {
    /// Whether a pass is under way.
    pub running: bool,
    /// Passes that have come to their end since the start.
    pub passes: u64,
    /// Passes that have failed since the start.
    pub failed_passes: u64,
    /// Why the last pass failed; none if it did not, or goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Rows of chunks that the last pass has looked at; in a big pool each several times.
    pub rows_done: u64,
    /// How many it looks at, as far as is known.
    pub rows_total: u64,
    /// Segments that it has looked at behind that, and rewritten where it gains.
    pub segments_done: u64,
    /// How many it looks at; 0 before it is done with rows.
    pub segments_total: u64,
    /// Chunks that were found to be stored twice, in all passes since the start.
    pub aliased_chunks: u64,
    /// Segments that were rewritten, in all passes since the start.
    pub rewritten_segments: u64,
}

impl From<OptimizeStatus> for Optimize {
    fn from(status: OptimizeStatus) -> Self {
        Self {
            running: status.running,
            passes: status.passes,
            failed_passes: status.failed_passes,
            failure: status.failure,
            rows_done: status.rows_done,
            rows_total: status.rows_total,
            segments_done: status.segments_done,
            segments_total: status.segments_total,
            aliased_chunks: status.aliased_chunks,
            rewritten_segments: status.rewritten_segments,
        }
    }
}

/// How the background pass of reduction stands.
#[utoipa::path(get, path = "/v1/pool/optimize", responses(
    (status = 200, body = Optimize),
    (status = 401, body = Refusal),
))]
pub(crate) async fn optimize(State(interface): Shared) -> Result<Json<Optimize>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.array.optimize().into()))).await
}

/// Begins a background pass of reduction.
#[utoipa::path(post, path = "/v1/pool/optimize", responses(
    (status = 200, body = Optimize),
    (status = 401, body = Refusal),
    (status = 409, body = Refusal),
))]
pub(crate) async fn start_optimize(State(interface): Shared) -> Result<Json<Optimize>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.array.start_optimize()?.into()))).await
}

/// Ends the pass that is under way, if one is; what it has done stays done.
#[utoipa::path(delete, path = "/v1/pool/optimize", responses(
    (status = 200, body = Optimize),
    (status = 401, body = Refusal),
))]
pub(crate) async fn stop_optimize(State(interface): Shared) -> Result<Json<Optimize>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.array.stop_optimize().into()))).await
}
