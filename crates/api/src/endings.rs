//! Destroying, recovering and eradicating groups.

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;

use crate::{ApiError, Ending, Group, Refusal, Shared, blocking};

type Name = Result<Path<String>, PathRejection>;

/// Destroys a group with its snapshots. It can be recovered until it is eradicated. Its volumes
/// stay.
#[utoipa::path(
    delete,
    path = "/v1/groups/{name}",
    params(("name" = String, Path), Ending),
    responses(
        (status = 204, description = "It is destroyed."),
        (status = 401, body = Refusal),
        (status = 404, body = Refusal),
        (status = 409, body = Refusal),
    )
)]
pub(crate) async fn destroy_group(
    State(interface): Shared,
    name: Name,
    ending: Result<Query<Ending>, QueryRejection>,
) -> Result<StatusCode, ApiError> {
    let (Path(name), Query(ending)) = (name?, ending?);
    blocking(interface, move |interface| {
        let names = [name];
        interface.array.destroy_groups(&names, (interface.now_ms)())?;
        if ending.eradicate {
            interface.array.eradicate_groups(&names)?;
        }
        Ok(StatusCode::NO_CONTENT)
    })
    .await
}

/// Brings a destroyed group back, with the snapshots that went with it.
#[utoipa::path(
    post,
    path = "/v1/groups/{name}/recover",
    params(("name" = String, Path)),
    responses(
        (status = 200, body = Group),
        (status = 401, body = Refusal),
        (status = 404, body = Refusal),
        (status = 409, body = Refusal),
    )
)]
pub(crate) async fn recover_group(
    State(interface): Shared,
    name: Name,
) -> Result<Json<Group>, ApiError> {
    let Path(name) = name?;
    blocking(interface, move |interface| {
        interface.array.recover_groups(std::slice::from_ref(&name))?;
        Ok(Json(interface.array.group(&name)?.into()))
    })
    .await
}

/// Eradicates a destroyed group with its snapshots. Data that only they held is gone for ever.
#[utoipa::path(
    post,
    path = "/v1/groups/{name}/eradicate",
    params(("name" = String, Path)),
    responses(
        (status = 204, description = "It is gone."),
        (status = 401, body = Refusal),
        (status = 404, body = Refusal),
        (status = 409, body = Refusal),
    )
)]
pub(crate) async fn eradicate_group(
    State(interface): Shared,
    name: Name,
) -> Result<StatusCode, ApiError> {
    let Path(name) = name?;
    blocking(interface, move |interface| {
        interface.array.eradicate_groups(&[name]).map(|()| StatusCode::NO_CONTENT)
    })
    .await
}
