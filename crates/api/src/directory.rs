//! `/v1/directory`: the directory service whose users may log in.

use array::{Directory, DirectoryChange, DirectoryUri, KeptPassword, Role};
use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Refusal, Shared, blocking};

/// The directory service (LDAP) whose users may log in. Fields that are not set are empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DirectorySettings {
    /// Whether its users may log in.
    pub enabled: bool,
    /// Its servers, in the order in which they are tried: `ldaps://HOST[:PORT]`, or
    /// `ldap://HOST[:PORT]`, where TLS is begun by StartTLS.
    #[schema(example = json!(["ldaps://ds.example.com"]))]
    pub uris: Vec<String>,
    /// The DN below which users and groups are.
    #[schema(example = "dc=example,dc=com")]
    pub base_dn: String,
    /// The user as which the array binds.
    pub bind_user: String,
    /// Whether the array has a password to bind with. It is never shown.
    pub has_bind_password: bool,
    /// Certificates (PEM) of servers, or of authorities that signed them; without any, those of the
    /// authorities that the machine trusts.
    pub ca_certificate: String,
    /// The attribute that has the name of a user; empty: `uid` or `sAMAccountName`.
    pub user_login: String,
    /// The object class of users; empty: any.
    pub user_class: String,
    /// The roles of groups, the most powerful first.
    pub roles: Vec<DirectoryRole>,
}

/// A group whose members have a role.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectoryRole {
    /// `array_admin`, `storage_admin` or `readonly`.
    pub role: String,
    /// The common name of the group, or its DN; empty if nobody has the role.
    pub group: String,
    /// The DN below which the group is; it need not repeat the base DN.
    #[serde(default)]
    pub group_base: String,
}

impl From<&Directory> for DirectorySettings {
    fn from(directory: &Directory) -> Self {
        let roles = directory.roles().map(|(role, group)| DirectoryRole {
            role: role.name().into(),
            group: group.group.clone(),
            group_base: group.base.clone(),
        });
        Self {
            enabled: directory.is_enabled,
            uris: directory.uris.iter().map(ToString::to_string).collect(),
            base_dn: directory.base_dn.clone(),
            bind_user: directory.bind_user.clone(),
            has_bind_password: !directory.bind_password.is_empty(),
            ca_certificate: directory.ca_certificate.clone(),
            user_login: directory.user_login.clone(),
            user_class: directory.user_class.clone(),
            roles: roles.collect(),
        }
    }
}

/// The changes of the directory service. Omitted fields do not change; empty ones are cleared.
/// `Debug` is left out on purpose.
#[derive(Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectorySettingsChange {
    /// See [`DirectorySettings::enabled`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// See [`DirectorySettings::uris`]: up to 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uris: Option<Vec<String>>,
    /// See [`DirectorySettings::base_dn`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_dn: Option<String>,
    /// See [`DirectorySettings::bind_user`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_user: Option<String>,
    /// The password of the user to bind as. It has to be given again with another user or server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind_password: Option<String>,
    /// See [`DirectorySettings::ca_certificate`]: up to 16 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_certificate: Option<String>,
    /// See [`DirectorySettings::user_login`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_login: Option<String>,
    /// See [`DirectorySettings::user_class`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_class: Option<String>,
    /// Roles to be changed; others stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<DirectoryRole>,
}

/// Parses URIs; clients clear them with an empty one.
pub(crate) fn uris(texts: &[String]) -> Result<Vec<DirectoryUri>, array::Error> {
    let given = texts.iter().filter(|text| !text.is_empty());
    given.map(|text| DirectoryUri::new(text)).collect()
}

impl DirectorySettingsChange {
    fn change(self) -> Result<DirectoryChange, array::Error> {
        let role = |role: DirectoryRole| {
            Ok((Role::parse(&role.role)?, Some(role.group), Some(role.group_base)))
        };
        Ok(DirectoryChange {
            is_enabled: self.enabled,
            uris: self.uris.as_deref().map(uris).transpose()?,
            base_dn: self.base_dn,
            bind_user: self.bind_user,
            bind_password: self.bind_password.as_deref().map(KeptPassword::new),
            ca_certificate: self.ca_certificate,
            check_peer: None,
            user_login: self.user_login,
            user_class: self.user_class,
            groups: self.roles.into_iter().map(role).collect::<Result<_, array::Error>>()?,
        })
    }
}

/// Shows the directory service.
#[utoipa::path(get, path = "/v1/directory", responses(
    (status = 200, body = DirectorySettings),
    (status = 401, body = Refusal),
))]
pub(crate) async fn show(State(interface): Shared) -> Result<Json<DirectorySettings>, ApiError> {
    blocking(interface, |interface| Ok(Json((&*interface.array.directory()).into()))).await
}

/// Changes the directory service. This takes effect at once: the sessions of its users end.
#[utoipa::path(patch, path = "/v1/directory", request_body = DirectorySettingsChange, responses(
    (status = 200, body = DirectorySettings),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 403, body = Refusal),
))]
pub(crate) async fn change(
    State(interface): Shared,
    body: Result<Json<DirectorySettingsChange>, JsonRejection>,
) -> Result<Json<DirectorySettings>, ApiError> {
    let Json(asked) = body?;
    blocking(interface, move |interface| {
        let changed = interface.array.change_directory(asked.change()?)?;
        Ok(Json((&*changed).into()))
    })
    .await
}

/// A server of the directory service, and the result of its test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DirectoryServer {
    /// The server, as in the settings.
    pub uri: String,
    /// Which groups it has; `null` if it can't be used.
    pub found: Option<String>,
    /// Why it can't be used; `null` if it can.
    pub error: Option<String>,
}

/// All of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DirectoryServers {
    /// In the order of the settings.
    pub servers: Vec<DirectoryServer>,
}

/// Tests all servers now: whether the array may bind and search, and whether the groups exist.
#[utoipa::path(post, path = "/v1/directory/test", responses(
    (status = 200, body = DirectoryServers),
    (status = 401, body = Refusal),
    (status = 403, body = Refusal),
))]
pub(crate) async fn test(State(interface): Shared) -> Result<Json<DirectoryServers>, ApiError> {
    blocking(interface, |interface| {
        Ok(Json(DirectoryServers { servers: interface.watch.test_directory() }))
    })
    .await
}
