//! `/v1/snapshots`, and volumes made from snapshots or other volumes.

use array::{NewSnapshots, SnapshotInfo, SnapshotSource, Suffix, VolumeName};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{ApiError, Page, Refusal, Shared, Space, Volume, blocking};

/// A snapshot.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Snapshot {
    /// Its id, which never changes.
    pub id: u64,
    /// `VOLUME.SUFFIX`, or `GROUP.SUFFIX.VOLUME` if it was made with a group.
    pub name: String,
    /// Its volume.
    pub volume: String,
    /// The group that it was made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The part of its name after the volume or the group.
    pub suffix: String,
    /// The size of the volume when it was made.
    pub size_bytes: u64,
    /// Its serial number: 24 upper-case hex digits, never used twice.
    pub serial: String,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// Bytes of it that hosts had written and not unmapped.
    pub mapped_bytes: u64,
    /// Its stored data; `null` until a pass of accounting has covered it.
    #[schema(required = true)]
    pub space: Option<Space>,
    /// If it is destroyed: when it is eradicated, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eradicate_ms: Option<u64>,
}

impl From<SnapshotInfo> for Snapshot {
    fn from(snapshot: SnapshotInfo) -> Self {
        Self {
            id: snapshot.id.0,
            name: snapshot.name,
            volume: snapshot.volume,
            group: snapshot.group,
            suffix: snapshot.suffix,
            size_bytes: snapshot.size_bytes,
            serial: snapshot.serial,
            created_ms: snapshot.created_ms,
            mapped_bytes: snapshot.mapped_bytes,
            space: snapshot.space.map(Space::from),
            eradicate_ms: snapshot.eradicate_ms,
        }
    }
}

/// A page of snapshots, in the order of their volumes' names, then of their suffixes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Snapshots {
    /// The snapshots.
    pub snapshots: Vec<Snapshot>,
    /// Whether there are more after the last one; to get them, pass its name as `after`.
    pub more: bool,
}

/// Consistent snapshots to make.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotCreate {
    /// The volumes, at most 512; or else a group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// The group whose volumes are snapshotted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// 1 to 63 of A-Z a-z 0-9 -, not digits only; by default a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffix: Option<String>,
}

/// What to change of a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnapshotChange {
    /// Its new suffix: the part after the volume's name.
    pub suffix: String,
}

/// Which snapshots to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct SnapshotFilter {
    /// Only snapshots after this name.
    pub after: Option<String>,
    /// The most snapshots to return: 1 to 10000 (the default).
    pub limit: Option<usize>,
    /// Only those of this volume.
    pub volume: Option<String>,
    /// Only those made with this group.
    pub group: Option<String>,
    /// Destroyed ones instead of the others.
    #[serde(default)]
    pub destroyed: bool,
}

/// A volume to make from another volume or a snapshot.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeClone {
    /// Its name: 1 to 63 of A-Z a-z 0-9 - _.
    pub name: String,
    /// The volume or snapshot to copy.
    pub source: String,
}

/// What to overwrite a volume with.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VolumeSource {
    /// A volume or a snapshot.
    pub source: String,
}

/// Lists the snapshots that are not destroyed, or those that are.
#[utoipa::path(get, path = "/v1/snapshots", params(SnapshotFilter), responses(
    (status = 200, body = Snapshots),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn list(
    State(interface): Shared,
    filter: Result<Query<SnapshotFilter>, QueryRejection>,
) -> Result<Json<Snapshots>, ApiError> {
    let Query(SnapshotFilter { after, limit, volume, group, destroyed }) = filter?;
    blocking(interface, move |interface| {
        let destroyed = Some(destroyed);
        let filter = array::SnapshotFilter { volume, group, destroyed };
        let mut refused = None;
        let (found, more) = Page { after, limit }.of(|after, limit| {
            let found = interface.array.snapshots(&filter, after, limit);
            found.unwrap_or_else(|error| {
                refused = Some(error);
                Vec::new()
            })
        });
        let snapshots = found.into_iter().map(Snapshot::from).collect();
        refused.map_or(Ok(Json(Snapshots { snapshots, more })), Err)
    })
    .await
}

/// Makes consistent snapshots of volumes, or of the volumes of a group.
#[utoipa::path(post, path = "/v1/snapshots", request_body = SnapshotCreate, responses(
    (status = 201, body = Snapshots),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
    (status = 409, body = Refusal),
    (status = 507, body = Refusal),
))]
pub(crate) async fn create(
    State(interface): Shared,
    body: Result<Json<SnapshotCreate>, JsonRejection>,
) -> Result<(StatusCode, Json<Snapshots>), ApiError> {
    let Json(SnapshotCreate { volumes, group, suffix }) = body?;
    blocking(interface, move |interface| {
        let source = match group {
            None => SnapshotSource::Volumes(volumes),
            Some(group) if volumes.is_empty() => SnapshotSource::Group(group),
            Some(_) => {
                return Err(array::Error::Invalid {
                    code: "invalid_volumes",
                    text: "Name volumes, or a group; not both.".into(),
                });
            }
        };
        let suffix = suffix.map(|suffix| Suffix::new(&suffix)).transpose()?;
        let created_ms = (interface.now_ms)();
        let new = NewSnapshots { source, suffix, apply_retention: false, created_ms };
        let made = interface.array.create_snapshots(&new)?;
        let snapshots = made.into_iter().map(Snapshot::from).collect();
        Ok((StatusCode::CREATED, Json(Snapshots { snapshots, more: false })))
    })
    .await
}

/// Shows a snapshot, destroyed or not.
#[utoipa::path(get, path = "/v1/snapshots/{name}", params(("name" = String, Path)), responses(
    (status = 200, body = Snapshot),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn show(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Snapshot>, ApiError> {
    let Path(name) = name?;
    blocking(interface, move |interface| Ok(Json(interface.array.snapshot(&name)?.into()))).await
}

/// Changes the suffix of a snapshot.
#[utoipa::path(
    patch,
    path = "/v1/snapshots/{name}",
    params(("name" = String, Path)),
    request_body = SnapshotChange,
    responses(
        (status = 200, body = Snapshot),
        (status = 400, body = Refusal),
        (status = 401, body = Refusal),
        (status = 404, body = Refusal),
        (status = 409, body = Refusal),
    )
)]
pub(crate) async fn change(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
    body: Result<Json<SnapshotChange>, JsonRejection>,
) -> Result<Json<Snapshot>, ApiError> {
    let (Path(name), Json(asked)) = (name?, body?);
    blocking(interface, move |interface| {
        let suffix = Suffix::new(&asked.suffix)?;
        Ok(Json(interface.array.rename_snapshot(&name, suffix)?.into()))
    })
    .await
}

/// Makes a volume from the current content of a volume or a snapshot.
#[utoipa::path(post, path = "/v1/clones", request_body = VolumeClone, responses(
    (status = 201, body = Volume),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
    (status = 409, body = Refusal),
    (status = 507, body = Refusal),
))]
pub(crate) async fn clone_volume(
    State(interface): Shared,
    body: Result<Json<VolumeClone>, JsonRejection>,
) -> Result<(StatusCode, Json<Volume>), ApiError> {
    let Json(VolumeClone { name, source }) = body?;
    blocking(interface, move |interface| {
        let (name, now_ms) = (VolumeName::new(&name)?, (interface.now_ms)());
        let made = interface.array.clone_volume(&source, name, now_ms)?;
        Ok((StatusCode::CREATED, Json(made.into())))
    })
    .await
}

/// Restores a volume from one of its own snapshots.
#[utoipa::path(
    post,
    path = "/v1/volumes/{name}/restore",
    params(("name" = String, Path)),
    request_body = VolumeSource,
    responses(
        (status = 200, body = Volume),
        (status = 400, body = Refusal),
        (status = 401, body = Refusal),
        (status = 404, body = Refusal),
        (status = 409, body = Refusal),
    )
)]
pub(crate) async fn restore_volume(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
    body: Result<Json<VolumeSource>, JsonRejection>,
) -> Result<Json<Volume>, ApiError> {
    let (Path(name), Json(asked)) = (name?, body?);
    blocking(interface, move |interface| {
        Ok(Json(interface.array.restore_volume(&name, &asked.source)?.into()))
    })
    .await
}

/// Overwrites a volume with another volume or a snapshot. Its old content is gone.
#[utoipa::path(
    post,
    path = "/v1/volumes/{name}/overwrite",
    params(("name" = String, Path)),
    request_body = VolumeSource,
    responses(
        (status = 200, body = Volume),
        (status = 400, body = Refusal),
        (status = 401, body = Refusal),
        (status = 404, body = Refusal),
        (status = 409, body = Refusal),
    )
)]
pub(crate) async fn overwrite_volume(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
    body: Result<Json<VolumeSource>, JsonRejection>,
) -> Result<Json<Volume>, ApiError> {
    let (Path(name), Json(asked)) = (name?, body?);
    blocking(interface, move |interface| {
        Ok(Json(interface.array.overwrite_volume(&name, &asked.source)?.into()))
    })
    .await
}
