//! `/v1/hosts`.

use std::fmt;

use array::{Chap, ChapChange, ChapUser, HostInfo, HostName, InitiatorName, NewHost};
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Page, Refusal, Shared, blocking};

/// A host; its secrets are never shown.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Host {
    /// The host's name, which is unique.
    pub name: String,
    /// Its iSCSI names.
    pub iqns: Vec<String>,
    /// The user it logs in with, if it must.
    #[schema(required = true)]
    pub chap_user: Option<String>,
    /// The user that the target answers with, in mutual CHAP.
    #[schema(required = true)]
    pub chap_target_user: Option<String>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: u64,
    /// How many volumes are connected to it.
    pub connections: usize,
}

impl From<HostInfo> for Host {
    fn from(host: HostInfo) -> Self {
        Self {
            name: host.name,
            iqns: host.initiators,
            chap_user: host.chap_user,
            chap_target_user: host.chap_target_user,
            created_ms: host.created_ms,
            connections: host.connection_count,
        }
    }
}

/// A page of hosts, in the order of their names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Hosts {
    /// The hosts.
    pub hosts: Vec<Host>,
    /// Whether there are more after the last one; to get them, pass its name as `after`.
    pub more: bool,
}

/// A user and its secret. `Debug` does not show the secret.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// The user.
    pub user: String,
    /// The secret: 12 to 255 printable ASCII characters.
    pub secret: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

/// How a host and the target authenticate each other.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChapSetting {
    /// What the host must know.
    pub initiator: Credentials,
    /// What the target proves to know, if the host asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Credentials>,
}

/// A host to make.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostCreate {
    /// 1 to 63 of A-Z a-z 0-9 -.
    pub name: String,
    /// Its iSCSI names, at most 64.
    #[serde(default)]
    pub iqns: Vec<String>,
    /// The credentials it must log in with; if left out, its iSCSI name is enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap: Option<ChapSetting>,
}

/// What to change of a host.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostChange {
    /// Its new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// All of its iSCSI names, replacing the old ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iqns: Option<Vec<String>>,
    /// Its new CHAP.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap: Option<ChapSetting>,
    /// Removes its CHAP.
    #[serde(default)]
    pub remove_chap: bool,
}

/// Lists hosts in the order of their names.
#[utoipa::path(get, path = "/v1/hosts", params(Page), responses(
    (status = 200, body = Hosts),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
))]
pub(crate) async fn list(
    State(interface): Shared,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Json<Hosts>, ApiError> {
    let Query(page) = page?;
    blocking(interface, move |interface| {
        let (found, more) = page.of(|after, limit| interface.array.hosts(after, limit));
        Ok(Json(Hosts { hosts: found.into_iter().map(Host::from).collect(), more }))
    })
    .await
}

/// Makes a host.
#[utoipa::path(post, path = "/v1/hosts", request_body = HostCreate, responses(
    (status = 201, body = Host),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 409, body = Refusal),
    (status = 507, body = Refusal),
))]
pub(crate) async fn create(
    State(interface): Shared,
    body: Result<Json<HostCreate>, JsonRejection>,
) -> Result<(StatusCode, Json<Host>), ApiError> {
    let Json(asked) = body?;
    blocking(interface, move |interface| {
        let new = NewHost {
            name: HostName::new(&asked.name)?,
            initiators: initiators(&asked.iqns)?,
            chap: asked.chap.as_ref().map(chap).transpose()?,
            personality: None,
            created_ms: (interface.now_ms)(),
        };
        Ok((StatusCode::CREATED, Json(interface.array.create_host(new)?.into())))
    })
    .await
}

fn initiators(names: &[String]) -> Result<Vec<InitiatorName>, array::Error> {
    names.iter().map(|name| InitiatorName::new(name)).collect()
}

fn chap(asked: &ChapSetting) -> Result<Chap, array::Error> {
    let user = |given: &Credentials| ChapUser::new(&given.user, &given.secret);
    Chap::new(user(&asked.initiator)?, asked.target.as_ref().map(user).transpose()?)
}

/// Shows a host.
#[utoipa::path(get, path = "/v1/hosts/{name}", params(("name" = String, Path)), responses(
    (status = 200, body = Host),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn show(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Host>, ApiError> {
    let Path(name) = name?;
    blocking(interface, move |interface| Ok(Json(interface.array.host(&name)?.into()))).await
}

/// Changes a host; its connections stay.
#[utoipa::path(
    patch,
    path = "/v1/hosts/{name}",
    params(("name" = String, Path)),
    request_body = HostChange,
    responses(
        (status = 200, body = Host),
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
    body: Result<Json<HostChange>, JsonRejection>,
) -> Result<Json<Host>, ApiError> {
    let (Path(name), Json(asked)) = (name?, body?);
    blocking(interface, move |interface| {
        let chap = match (&asked.chap, asked.remove_chap) {
            (Some(_), true) => {
                let text = "Either set CHAP or remove it, not both.".to_owned();
                return Err(array::Error::Invalid { code: "invalid_chap", text });
            }
            (Some(asked), false) => ChapChange::anew(Some(chap(asked)?)),
            (None, true) => ChapChange::anew(None),
            (None, false) => ChapChange::default(),
        };
        let change = array::HostChange {
            name: asked.name.map(|name| HostName::new(&name)).transpose()?,
            initiators: asked.iqns.map(|names| initiators(&names)).transpose()?,
            chap,
            ..array::HostChange::default()
        };
        Ok(Json(interface.array.change_host(&name, change)?.into()))
    })
    .await
}

/// Deletes a host.
#[utoipa::path(delete, path = "/v1/hosts/{name}", params(("name" = String, Path)), responses(
    (status = 204, description = "It is gone."),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
    (status = 409, body = Refusal),
))]
pub(crate) async fn delete(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, ApiError> {
    let Path(name) = name?;
    blocking(interface, move |interface| {
        interface.array.delete_host(&name).map(|()| StatusCode::NO_CONTENT)
    })
    .await
}
