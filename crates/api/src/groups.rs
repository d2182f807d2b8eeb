//! `/v1/groups`: volumes that are snapshotted together.

use array::{GroupInfo, GroupName};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Page, Refusal, Shared, blocking};

/// A group of volumes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// The group's name, which is unique.
    pub name: String,
    /// Its volumes, without destroyed ones.
    pub volumes: Vec<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// If it is destroyed: when it is eradicated, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eradicate_ms: Option<u64>,
}

impl From<GroupInfo> for Group {
    fn from(group: GroupInfo) -> Self {
        let GroupInfo { name, volumes, created_ms, eradicate_ms, .. } = group;
        Self { name, volumes, created_ms, eradicate_ms }
    }
}

/// A page of groups, in the order of their names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Groups {
    /// The groups.
    pub groups: Vec<Group>,
    /// Whether there are more after the last one; to get them, pass its name as `after`.
    pub more: bool,
}

/// A group to make.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupCreate {
    /// 1 to 63 of A-Z a-z 0-9 -.
    pub name: String,
    /// Its volumes, at most 512.
    #[serde(default)]
    pub volumes: Vec<String>,
}

/// What to change of a group.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct GroupChange {
    /// Volumes to add.
    #[serde(default)]
    pub add: Vec<String>,
    /// Volumes to remove.
    #[serde(default)]
    pub remove: Vec<String>,
}

/// Lists the groups that are not destroyed, in the order of their names.
#[utoipa::path(get, path = "/v1/groups", params(Page), responses(
    (status = 200, body = Groups),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
))]
pub(crate) async fn list(
    State(interface): Shared,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Json<Groups>, ApiError> {
    let Query(page) = page?;
    blocking(interface, move |interface| {
        let (found, more) = page.of(|after, limit| interface.array.groups(after, false, limit));
        Ok(Json(Groups { groups: found.into_iter().map(Group::from).collect(), more }))
    })
    .await
}

/// Makes a group.
#[utoipa::path(post, path = "/v1/groups", request_body = GroupCreate, responses(
    (status = 201, body = Group),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
    (status = 409, body = Refusal),
    (status = 507, body = Refusal),
))]
pub(crate) async fn create(
    State(interface): Shared,
    body: Result<Json<GroupCreate>, JsonRejection>,
) -> Result<(StatusCode, Json<Group>), ApiError> {
    let Json(GroupCreate { name, volumes }) = body?;
    blocking(interface, move |interface| {
        let (name, now_ms) = (GroupName::new(&name)?, (interface.now_ms)());
        let made = interface.array.create_group(name, &volumes, now_ms)?;
        Ok((StatusCode::CREATED, Json(made.into())))
    })
    .await
}

/// Shows a group.
#[utoipa::path(get, path = "/v1/groups/{name}", params(("name" = String, Path)), responses(
    (status = 200, body = Group),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn show(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Group>, ApiError> {
    let Path(name) = name?;
    blocking(interface, move |interface| Ok(Json(interface.array.group(&name)?.into()))).await
}

/// Adds volumes to a group, and removes others.
#[utoipa::path(
    patch,
    path = "/v1/groups/{name}",
    params(("name" = String, Path)),
    request_body = GroupChange,
    responses(
        (status = 200, body = Group),
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
    body: Result<Json<GroupChange>, JsonRejection>,
) -> Result<Json<Group>, ApiError> {
    let (Path(name), Json(GroupChange { add, remove })) = (name?, body?);
    blocking(interface, move |interface| {
        let change = array::GroupChange { add, remove, ..array::GroupChange::default() };
        Ok(Json(interface.array.change_group(&name, &change)?.into()))
    })
    .await
}
