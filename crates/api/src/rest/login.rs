//! Who may ask, as long as there is one token and no users: the session is the API token itself.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::versions::minor;
use super::{Items, ItemsOf, Refusals, Refused};
use crate::{Interface, Shared};

/// Where a login finds the API token.
const API_TOKEN: HeaderName = HeaderName::from_static("api-token");
/// Where a request carries its session.
const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");

/// Who has logged in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LoggedIn {
    /// The user.
    pub username: String,
}

/// Refuses requests without a session, but for those that need none.
pub(super) async fn check(
    State(interface): State<Arc<Interface>>,
    request: Request,
    next: Next,
) -> Response {
    let path = request.uri().path();
    let is_login = minor(path).is_some() && path.ends_with("/login");
    let is_open = path == "/api/api_version" || is_login;
    if is_open || is_known(&interface, request.headers()) {
        return next.run(request).await;
    }
    Refused::unauthorized().into_response()
}

fn is_known(interface: &Interface, headers: &HeaderMap) -> bool {
    let session = headers.get(AUTH_TOKEN).map(HeaderValue::as_bytes);
    let bearer = headers.get(AUTHORIZATION).and_then(|value| crate::auth::bearer(value.as_bytes()));
    session.or(bearer).is_some_and(|given| interface.token.is(given))
}

/// Turns an API token into a session.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/login",
    tag = "sessions",
    security(()),
    params(("api-token" = String, Header, description = "The API token.")),
    responses(
        (status = 200, body = ItemsOf<LoggedIn>, headers(
            ("x-auth-token" = String, description = "The session, to be sent with each request.")
        )),
        Refusals
    )
)]
pub(super) async fn login(
    State(interface): Shared,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let given = headers.get(API_TOKEN).filter(|given| interface.token.is(given.as_bytes()));
    let Some(given) = given else { return Err(Refused::unauthorized()) };
    let items = Items::of([LoggedIn { username: "admin".into() }])?;
    let mut response = Json(items).into_response();
    response.headers_mut().insert(AUTH_TOKEN, given.clone());
    Ok(response)
}

/// Ends a session.
#[utoipa::path(post, path = "/api/2.{minor}/logout", tag = "sessions", responses(
    (status = 200, description = "It has ended."),
    Refusals,
))]
pub(super) async fn logout() {}
