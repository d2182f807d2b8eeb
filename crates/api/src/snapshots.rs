//! `/v1/snapshots/{name}/space`: what REST 2.x can't express. All other requests for snapshots are
//! in REST 2.x.

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Refusal, Shared, Space, blocking};

/// The stored data of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SnapshotSpace {
    /// `null` until a pass of accounting has covered it.
    #[schema(required = true)]
    pub space: Option<Space>,
}

/// Shows the stored data of a snapshot, destroyed or not.
#[utoipa::path(get, path = "/v1/snapshots/{name}/space", params(("name" = String, Path)),
    responses(
        (status = 200, body = SnapshotSpace),
        (status = 401, body = Refusal),
        (status = 404, body = Refusal),
    )
)]
pub(crate) async fn space(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<SnapshotSpace>, ApiError> {
    let Path(name) = name?;
    blocking(interface, move |interface| {
        let space = interface.array.snapshot(&name)?.space.map(Space::from);
        Ok(Json(SnapshotSpace { space }))
    })
    .await
}
