//! `admins`, their passwords and API tokens. A user authenticates with a password on the web page,
//! and with API tokens everywhere. A user may have several tokens, but clients of REST 2.x expect
//! one: creating a token names it [`TOKEN_NAME`], and removing it withdraws all.

use array::{NewToken, Role, TokenInfo, TokenName, UserInfo, UserName, UserUpdate};
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    Answer, Body, HIDDEN, Items, ItemsOf, ListParams, Listed, Listing, NameParams, Named, Query,
    Refusals, Refused, answer, each,
};
use crate::access::login::session_of;
use crate::access::{Origin, Token};
use crate::{Interface, Shared};

/// The name of a token that is created here.
const TOKEN_NAME: &str = "rest";
/// A user.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestAdmin {
    /// The user's name.
    pub name: String,
    /// Its newest API token.
    pub api_token: RestApiToken,
    /// Whether it is a user of the array itself: always.
    pub is_local: bool,
    /// Whether it is locked out: never. Only addresses are, for a while.
    pub locked: bool,
    /// What it may do: `array_admin`, `storage_admin` or `readonly`.
    pub role: Named,
}

/// An API token; `{}` if there is none.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RestApiToken {
    /// When it was created, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_at: Option<u64>,
    /// When it expires, in milliseconds since 1970; absent if it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// The token itself if it was made just now; otherwise `****`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
}

impl From<TokenInfo> for RestApiToken {
    fn from(token: TokenInfo) -> Self {
        Self {
            created_at: Some(token.created_ms),
            expires_at: token.expires_ms,
            token: Some(HIDDEN.into()),
        }
    }
}

impl From<UserInfo> for RestAdmin {
    fn from(mut user: UserInfo) -> Self {
        Self {
            name: user.name,
            api_token: user.tokens.pop().map(RestApiToken::from).unwrap_or_default(),
            is_local: true,
            locked: false,
            role: Named { name: user.role.name().into() },
        }
    }
}

impl Listed for RestAdmin {
    fn key(&self) -> String {
        self.name.clone()
    }
}

/// An API token and the user it belongs to.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestAdminToken {
    /// The user.
    pub name: String,
    /// Its name among the user's tokens.
    pub token_name: String,
    /// The token.
    pub api_token: RestApiToken,
}

impl From<TokenInfo> for RestAdminToken {
    fn from(token: TokenInfo) -> Self {
        let (name, token_name) = (token.user.clone(), token.name.clone());
        Self { name, token_name, api_token: token.into() }
    }
}

impl Listed for RestAdminToken {
    fn key(&self) -> String {
        format!("{}/{}", self.name, self.token_name)
    }
}

/// Lists all users, or some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/admins",
    tag = "admins",
    params(NameParams, ExposeParam, ListParams),
    responses((status = 200, body = ItemsOf<RestAdmin>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let (names, listing) = (query.list("names")?, Listing::take(&mut query)?);
    check_not_exposed(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let array = &interface.array;
        if !names.is_empty() {
            return listing.all(&each(&names, |name| Ok(RestAdmin::from(array.user(name)?)))?);
        }
        listing.pieces(|after, limit| {
            Ok(array.users(after, limit).into_iter().map(RestAdmin::from).collect())
        })
    })
    .await
}

/// The parameter that asks for tokens to be shown, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct ExposeParam {
    /// Whether to show tokens: `true` is refused, because only their hashes are kept.
    expose_api_token: Option<bool>,
}

fn check_not_exposed(query: &mut Query) -> Result<(), Refused> {
    match query.flag("expose_api_token")? {
        Some(true) => {
            let text = "An API token is shown once, when it is created: only its hash is stored.";
            Err(Refused::bad("expose_api_token", text))
        }
        _ => Ok(()),
    }
}

/// A role.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RolePost {
    /// `array_admin`, `storage_admin` or `readonly`.
    pub name: String,
}

/// A user to create. `Debug` is left out on purpose.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdminPost {
    /// What it may do.
    pub role: Option<RolePost>,
    /// Its password: 8 to 128 characters. If left out, it has none.
    pub password: Option<String>,
}

/// The changes of a user. `Debug` is left out on purpose.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AdminPatch {
    /// What it may do.
    pub role: Option<RolePost>,
    /// Its new password: 8 to 128 characters. Its other sessions end.
    pub password: Option<String>,
    /// The current password. If given, it must be right; array admins may omit it.
    pub old_password: Option<String>,
}

fn role_of(role: Option<RolePost>) -> Result<Option<Role>, Refused> {
    Ok(role.map(|role| Role::parse(&role.name)).transpose()?)
}

/// Returns the only user that a request names: each is changed in a commit of its own.
fn the_name(query: &mut Query) -> Result<String, Refused> {
    let mut names = query.required("names")?;
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(name),
        _ => Err(Refused::bad("names", "Name one user at a time.")),
    }
}

/// Creates a user.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/admins",
    tag = "admins",
    params(NameParams),
    request_body = AdminPost,
    responses((status = 200, body = ItemsOf<RestAdmin>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<AdminPost>,
) -> Answer {
    let name = the_name(&mut query)?;
    query.end()?;
    let hash = match asked.password {
        Some(password) => Some(interface.password_hash(password).await?),
        None => None,
    };
    answer(interface, move |interface| {
        let role = role_of(asked.role)?.ok_or_else(|| Refused::bad("role", "Give a role."))?;
        let (name, now_ms) = (UserName::new(&name)?, (interface.now_ms)());
        let made = interface.array.create_user_with(name, role, hash, now_ms)?;
        Items::of([RestAdmin::from(made)])
    })
    .await
}

/// Changes a user's role, its password, or both.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/admins",
    tag = "admins",
    params(NameParams),
    request_body = AdminPatch,
    responses((status = 200, body = ItemsOf<RestAdmin>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    origin: Option<Extension<Origin>>,
    headers: HeaderMap,
    mut query: Query,
    Body(asked): Body<AdminPatch>,
) -> Answer {
    let name = the_name(&mut query)?;
    query.end()?;
    let role = role_of(asked.role)?;
    let is_new_password = asked.password.is_some();
    if role.is_none() && !is_new_password {
        return Err(Refused::bad("", "Give a role or a password."));
    }
    interface.array.user(&name)?;
    if let Some(old) = asked.old_password {
        let origin = origin.map_or(Origin::NOWHERE, |Extension(origin)| origin);
        interface.check_old_password(&name, old, origin).await?;
    }
    let hash = match asked.password {
        Some(password) => Some(interface.password_hash(password).await?),
        None => None,
    };
    let kept = session_of(&headers);
    answer(interface, move |interface| {
        let update = UserUpdate { role, password: hash.clone().map(Some) };
        let changed = interface.array.update_user(&name, update)?;
        if is_new_password {
            interface.password_changed(&name, kept, hash.as_ref());
        }
        Items::of([RestAdmin::from(changed)])
    })
    .await
}

/// Removes a user with its API tokens and sessions.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/admins",
    tag = "admins",
    params(NameParams),
    responses((status = 200, description = "Removed."), Refusals)
)]
pub(super) async fn delete(State(interface): Shared, mut query: Query) -> Answer {
    let name = the_name(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        interface.array.delete_user(&name)?;
        Items::of::<RestAdmin>([])
    })
    .await
}

/// Lists the API tokens of all users, or of some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/admins/api-tokens",
    tag = "admins",
    params(NameParams, ExposeParam, ListParams),
    responses((status = 200, body = ItemsOf<RestAdminToken>), Refusals)
)]
pub(super) async fn list_tokens(State(interface): Shared, mut query: Query) -> Answer {
    let (names, listing) = (query.list("names")?, Listing::take(&mut query)?);
    check_not_exposed(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let array = &interface.array;
        let users = match names.is_empty() {
            true => array.users(None, array::users::USERS_MAX),
            false => each(&names, |name| Ok(array.user(name)?))?,
        };
        let tokens = users.into_iter().flat_map(|user| user.tokens).map(RestAdminToken::from);
        listing.all(&tokens.collect::<Vec<_>>())
    })
    .await
}

/// How long a token is valid, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct TimeoutParam {
    /// For how many milliseconds it is valid; by default until it is withdrawn.
    timeout: Option<u64>,
}

/// Creates an API token for a user. It is shown only in this response.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/admins/api-tokens",
    tag = "admins",
    params(NameParams, TimeoutParam),
    responses((status = 200, body = ItemsOf<RestAdminToken>), Refusals)
)]
pub(super) async fn create_token(State(interface): Shared, mut query: Query) -> Answer {
    let (name, timeout_ms) = (the_name(&mut query)?, query.number("timeout")?);
    query.end()?;
    let entropy = interface.random()?;
    answer(interface, move |interface: &Interface| {
        let (token, created_ms) = (Token::of_api(&entropy), (interface.now_ms)());
        let expires_ms = timeout_ms.map(|ms| created_ms.saturating_add(ms));
        let new = NewToken {
            name: TokenName::new(TOKEN_NAME)?,
            hash: token.hash(),
            created_ms,
            expires_ms,
        };
        let mut made = RestAdminToken::from(interface.array.create_token(&name, new)?);
        made.api_token.token = Some(token.expose().to_owned());
        Items::of([made])
    })
    .await
}

/// Withdraws all API tokens of a user, and ends its sessions.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/admins/api-tokens",
    tag = "admins",
    params(NameParams),
    responses((status = 200, description = "Withdrawn."), Refusals)
)]
pub(super) async fn delete_tokens(State(interface): Shared, mut query: Query) -> Answer {
    let name = the_name(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        interface.array.delete_tokens(&name)?;
        Items::of::<RestAdmin>([])
    })
    .await
}

impl Interface {
    fn random(&self) -> Result<[u8; 32], Refused> {
        self.access.random().ok_or_else(Refused::broken)
    }
}
