//! `/v1/users` and `/v1/tokens`: features that `admins` of REST 2.x, which creates and changes
//! users, can't express.

use array::{NewToken, TokenInfo, TokenName, UserInfo};
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::login::session_of;
use super::{Caller, Token};
use crate::{ApiError, Page, Refusal, Shared, blocking};

/// A user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct User {
    /// The user's name, which is unique.
    pub name: String,
    /// What it may do: `array_admin`, `storage_admin` or `readonly`.
    #[schema(value_type = crate::words::Role)]
    pub role: String,
    /// Whether it is the built-in user, which always exists.
    pub built_in: bool,
    /// When it was created, in milliseconds since 1970; `null` for the built-in one.
    #[schema(required = true)]
    pub created_ms: Option<u64>,
    /// How many API tokens it has.
    pub tokens: usize,
    /// Whether it has a password.
    pub password: bool,
}

impl From<UserInfo> for User {
    fn from(user: UserInfo) -> Self {
        Self {
            name: user.name,
            role: user.role.name().into(),
            built_in: user.is_built_in,
            created_ms: user.created_ms,
            tokens: user.tokens.len(),
            password: user.has_password,
        }
    }
}

/// A page of users, in the order of their names.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Users {
    /// The users.
    pub users: Vec<User>,
    /// Whether there are more after the last one; to get them, pass its name as `after`.
    pub more: bool,
}

/// An API token, without the token itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ApiToken {
    /// The user that it belongs to.
    pub user: String,
    /// Its name, unique among the user's tokens.
    pub name: String,
    /// When it was created, in milliseconds since 1970.
    pub created_ms: u64,
    /// When it expires, in milliseconds since 1970; `null` if it does not.
    #[schema(required = true)]
    pub expires_ms: Option<u64>,
    /// When it was used last since the array was started, in milliseconds since 1970.
    #[schema(required = true)]
    pub last_used_ms: Option<u64>,
}

impl From<TokenInfo> for ApiToken {
    fn from(token: TokenInfo) -> Self {
        let TokenInfo { user, name, created_ms, expires_ms, last_used_ms } = token;
        Self { user, name, created_ms, expires_ms, last_used_ms }
    }
}

/// API tokens, by user name, then in the order of their creation.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApiTokens {
    /// The tokens.
    pub tokens: Vec<ApiToken>,
}

/// An API token to create.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiTokenCreate {
    /// 1 to 63 of A-Z a-z 0-9 - _: its purpose, such as the program that uses it.
    pub name: String,
    /// Its user; by default the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// For how many seconds it is valid; by default until it is withdrawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_s: Option<u64>,
}

/// A newly created API token.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApiTokenMade {
    /// Its stored data.
    #[serde(flatten)]
    pub kept: ApiToken,
    /// The token itself. It is shown only once, and can't be recovered.
    pub token: String,
}

/// Which tokens to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct TokenFilter {
    /// Only those of this user.
    user: Option<String>,
}

/// Lists users in the order of their names.
#[utoipa::path(get, path = "/v1/users", params(Page), responses(
    (status = 200, body = Users),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
))]
pub(crate) async fn list(
    State(interface): Shared,
    page: Result<Query<Page>, QueryRejection>,
) -> Result<Json<Users>, ApiError> {
    let Query(page) = page?;
    blocking(interface, move |interface| {
        let (found, more) = page.of(|after, limit| interface.array.users(after, limit));
        Ok(Json(Users { users: found.into_iter().map(User::from).collect(), more }))
    })
    .await
}

/// Shows a user.
#[utoipa::path(get, path = "/v1/users/{name}", params(("name" = String, Path)), responses(
    (status = 200, body = User),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn show(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<User>, ApiError> {
    let Path(name) = name?;
    blocking(interface, move |interface| Ok(Json(interface.array.user(&name)?.into()))).await
}

/// Removes a user's password, and ends its other sessions.
#[utoipa::path(delete, path = "/v1/users/{name}/password", params(("name" = String, Path)),
    responses(
    (status = 200, body = User),
    (status = 401, body = Refusal),
    (status = 403, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn remove_password(
    State(interface): Shared,
    headers: HeaderMap,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<User>, ApiError> {
    let Path(name) = name?;
    let kept = session_of(&headers);
    blocking(interface, move |interface| {
        Ok(Json(interface.set_password(&name, None, kept)?.into()))
    })
    .await
}

/// Lists all API tokens, or those of a user, without the secrets.
#[utoipa::path(get, path = "/v1/tokens", params(TokenFilter), responses(
    (status = 200, body = ApiTokens),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn list_tokens(
    State(interface): Shared,
    filter: Result<Query<TokenFilter>, QueryRejection>,
) -> Result<Json<ApiTokens>, ApiError> {
    let Query(filter) = filter?;
    blocking(interface, move |interface| {
        let users = match &filter.user {
            Some(name) => vec![interface.array.user(name)?],
            None => interface.array.users(None, array::users::USERS_MAX),
        };
        let tokens = users.into_iter().flat_map(|user| user.tokens).map(ApiToken::from);
        Ok(Json(ApiTokens { tokens: tokens.collect() }))
    })
    .await
}

/// Creates an API token. It is shown only in this response.
#[utoipa::path(post, path = "/v1/tokens", request_body = ApiTokenCreate, responses(
    (status = 201, body = ApiTokenMade),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 403, body = Refusal),
    (status = 404, body = Refusal),
    (status = 409, body = Refusal),
    (status = 507, body = Refusal),
))]
pub(crate) async fn create_token(
    State(interface): Shared,
    Extension(caller): Extension<Caller>,
    body: Result<Json<ApiTokenCreate>, JsonRejection>,
) -> Result<(StatusCode, Json<ApiTokenMade>), ApiError> {
    let Json(ApiTokenCreate { name, user, lifetime_s }) = body?;
    let entropy = interface.access.random().ok_or_else(ApiError::broken)?;
    blocking(interface, move |interface| {
        let (token, created_ms) = (Token::of_api(&entropy), (interface.now_ms)());
        let lifetime_ms = lifetime_s.map(|seconds| seconds.saturating_mul(1000));
        let expires_ms = lifetime_ms.map(|ms| created_ms.saturating_add(ms));
        let new =
            NewToken { name: TokenName::new(&name)?, hash: token.hash(), created_ms, expires_ms };
        let made = interface.array.create_token(user.as_deref().unwrap_or(&caller.user), new)?;
        let made = ApiTokenMade { kept: made.into(), token: token.expose().to_owned() };
        Ok((StatusCode::CREATED, Json(made)))
    })
    .await
}

/// Withdraws an API token, and ends its sessions.
#[utoipa::path(
    delete,
    path = "/v1/tokens/{user}/{name}",
    params(("user" = String, Path), ("name" = String, Path)),
    responses(
        (status = 204, description = "The token was withdrawn."),
        (status = 401, body = Refusal),
        (status = 403, body = Refusal),
        (status = 404, body = Refusal),
    )
)]
pub(crate) async fn delete_token(
    State(interface): Shared,
    names: Result<Path<(String, String)>, PathRejection>,
) -> Result<StatusCode, ApiError> {
    let Path((user, name)) = names?;
    blocking(interface, move |interface| {
        interface.array.delete_token(&user, &name).map(|_| StatusCode::NO_CONTENT)
    })
    .await
}
