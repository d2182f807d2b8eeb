//! `/v1/volumes`.

use array::{ConnectTo, NewVolume, Reduction, ReductionChange, VolumeName, VolumeUpdate};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use block::{LogicalBlockSize, VolumeLimits};

use crate::{
    ApiError, Refusal, Shared, Volume, VolumeChange, VolumeCreate, VolumeFilter, Volumes, blocking,
};

/// Lists the volumes that are not destroyed, or those that are, in the order of their names.
#[utoipa::path(get, path = "/v1/volumes", params(VolumeFilter), responses(
    (status = 200, body = Volumes),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
))]
pub(crate) async fn list(
    State(interface): Shared,
    filter: Result<Query<VolumeFilter>, QueryRejection>,
) -> Result<Json<Volumes>, ApiError> {
    let Query(filter) = filter?;
    blocking(interface, move |interface| {
        let find =
            |after: Option<&str>, limit| interface.array.volumes(after, filter.destroyed, limit);
        let (found, more) = filter.page().of(find);
        Ok(Json(Volumes { volumes: found.into_iter().map(Volume::from).collect(), more }))
    })
    .await
}

/// Creates a volume, with the requested connections: all of it, or nothing.
#[utoipa::path(post, path = "/v1/volumes", request_body = VolumeCreate, responses(
    (status = 201, body = Volume),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
    (status = 409, body = Refusal),
    (status = 507, body = Refusal),
))]
pub(crate) async fn create(
    State(interface): Shared,
    body: Result<Json<VolumeCreate>, JsonRejection>,
) -> Result<(StatusCode, Json<Volume>), ApiError> {
    let Json(asked) = body?;
    blocking(interface, move |interface| {
        let new = NewVolume {
            name: VolumeName::new(&asked.name)?,
            size_bytes: asked.size_bytes,
            logical_block: logical_block(asked.block_bytes)?,
            reduction: reduction(asked.deduplication, asked.compression).of(Reduction::default()),
            limits: VolumeLimits::NONE,
            created_ms: (interface.now_ms)(),
        };
        let to = asked.connect.unwrap_or_default();
        let to = ConnectTo { hosts: to.hosts, host_groups: to.host_groups };
        Ok((StatusCode::CREATED, Json(interface.array.create_connected_volume(new, &to)?.into())))
    })
    .await
}

fn reduction(deduplication: Option<bool>, compression: Option<bool>) -> ReductionChange {
    ReductionChange { deduplication, compression }
}

fn logical_block(bytes: Option<u64>) -> Result<LogicalBlockSize, array::Error> {
    match bytes {
        None | Some(512) => Ok(LogicalBlockSize::B512),
        Some(4096) => Ok(LogicalBlockSize::B4096),
        Some(other) => Err(array::Error::Invalid {
            code: "invalid_block_size",
            text: format!("A logical block has 512 or 4096 bytes; {other} were requested."),
        }),
    }
}

/// Shows a volume, destroyed or not.
#[utoipa::path(get, path = "/v1/volumes/{name}", params(("name" = String, Path)), responses(
    (status = 200, body = Volume),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn show(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Volume>, ApiError> {
    let Path(name) = name?;
    blocking(interface, move |interface| Ok(Json(interface.array.volume(&name)?.into()))).await
}

/// Changes a volume's name, size, offloads, reduction, or several of them at once.
#[utoipa::path(
    patch,
    path = "/v1/volumes/{name}",
    params(("name" = String, Path)),
    request_body = VolumeChange,
    responses(
        (status = 200, body = Volume),
        (status = 400, body = Refusal),
        (status = 401, body = Refusal),
        (status = 404, body = Refusal),
        (status = 409, body = Refusal),
        (status = 507, body = Refusal),
    )
)]
pub(crate) async fn change(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
    body: Result<Json<VolumeChange>, JsonRejection>,
) -> Result<Json<Volume>, ApiError> {
    let (Path(name), Json(asked)) = (name?, body?);
    blocking(interface, move |interface| {
        let update = VolumeUpdate {
            name: asked.name.map(|name| VolumeName::new(&name)).transpose()?,
            size_bytes: asked.size_bytes,
            truncate: asked.truncate,
            offloads: asked.offloads.switches(),
            reduction: reduction(asked.deduplication, asked.compression),
            ..VolumeUpdate::default()
        };
        Ok(Json(interface.array.update_volume(&name, update)?.into()))
    })
    .await
}
