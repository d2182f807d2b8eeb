//! The background pass of reduction.

use array::OptimizeStatus;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Refusal, Shared, blocking};

/// The state of the background pass of reduction, which finds duplicate blocks, and
/// recompresses data that was compressed quickly.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Optimize {
    /// Whether a pass is in progress.
    pub running: bool,
    /// Passes completed since the start.
    pub passes: u64,
    /// Passes that have failed since the start.
    pub failed_passes: u64,
    /// Why the last pass failed; `null` if it did not, or is still running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Rows of chunks that the pass has read; in a big pool each is read several times.
    pub rows_done: u64,
    /// The number of rows to read, as far as is known.
    pub rows_total: u64,
    /// Segments that it has read after the rows, and rewritten if that saves space.
    pub segments_done: u64,
    /// The number of segments to read; 0 until it has finished the rows.
    pub segments_total: u64,
    /// Duplicate chunks found in all passes since the start.
    pub aliased_chunks: u64,
    /// Segments rewritten in all passes since the start.
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

/// Shows the state of the background pass of reduction.
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

/// Stops the running pass, if any; its results are kept.
#[utoipa::path(delete, path = "/v1/pool/optimize", responses(
    (status = 200, body = Optimize),
    (status = 401, body = Refusal),
))]
pub(crate) async fn stop_optimize(State(interface): Shared) -> Result<Json<Optimize>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.array.stop_optimize().into()))).await
}
