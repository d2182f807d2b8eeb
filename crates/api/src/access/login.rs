//! Login and logout as in REST 2.x, and who the caller is.

use array::TokenHash;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::denied::Denied;
use super::session::{Begun, Failed};
use super::{Caller, Origin, SESSION_HEADER, Token};
use crate::{Interface, Refusal, Shared};

/// The header in which a login sends the API token.
const API_TOKEN_HEADER: HeaderName = HeaderName::from_static("api-token");

/// The caller.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// The user.
    pub user: String,
    /// What it may do: `array_admin`, `storage_admin` or `readonly`.
    pub role: String,
}

impl Interface {
    /// Begins a session for the owner of this API token.
    pub(crate) fn log_in(
        &self,
        token: Option<&[u8]>,
        origin: Origin,
    ) -> Result<(Token, Caller), Denied> {
        let (caller, credential) = self.known(token.ok_or(Denied::NoSession)?, origin)?;
        self.count(credential)?;
        let session = Token::from_entropy(&self.access.random().ok_or(Denied::NoEntropy)?);
        let user = caller.user.clone();
        let login = Begun { number: 0, user, origin: origin.0, at_ms: (self.now_ms)() };
        let uptime_ms = (self.access.sources.uptime_ms)();
        self.access.sessions.lock().begin(session.hash(), credential, login, uptime_ms);
        Ok((session, caller))
    }

    /// Ends the session that these headers carry, if any.
    fn log_out(&self, headers: &HeaderMap) {
        if let Some(session) = headers.get(SESSION_HEADER) {
            self.access.sessions.lock().end(&TokenHash::of(session.as_bytes()));
        }
    }

    /// The logins whose sessions have not ended, and the failed ones.
    pub(crate) fn logins(&self) -> (Vec<Begun>, Vec<Failed>) {
        let sessions = self.access.sessions.lock();
        (sessions.begun((self.access.sources.uptime_ms)()), sessions.failed().to_vec())
    }
}

/// Who has logged in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LoggedIn {
    /// The user.
    pub username: String,
}

/// The response to a login.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LoggedInItems {
    /// Who has logged in: always one entry.
    pub items: Vec<LoggedIn>,
}

/// Turns an API token into a session.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/login",
    tag = "sessions",
    security(()),
    params(("api-token" = String, Header, description = "The API token.")),
    responses(
        (status = 200, body = LoggedInItems, headers(
            ("x-auth-token" = String, description = "The session, to be sent with each request.")
        )),
        (status = 401, description = "The API token is missing or wrong."),
        (status = 404, description = "There is no such version."),
        (status = 429, description = "Too many logins failed: Retry-After says when to try again."),
    )
)]
pub(crate) async fn login(
    State(interface): Shared,
    uri: Uri,
    origin: Option<Extension<Origin>>,
    headers: HeaderMap,
) -> Response {
    let origin = origin.map_or(Origin::NOWHERE, |Extension(origin)| origin);
    let token = headers.get(API_TOKEN_HEADER).map(HeaderValue::as_bytes);
    match interface.log_in(token, origin) {
        Ok((session, caller)) => {
            let items = vec![LoggedIn { username: caller.user }];
            let session = [(SESSION_HEADER, session.expose().to_owned())];
            (session, Json(LoggedInItems { items })).into_response()
        }
        Err(denied) => denied.answer(uri.path()),
    }
}

/// Ends the session that the request carries.
#[utoipa::path(post, path = "/api/2.{minor}/logout", tag = "sessions", responses(
    (status = 200, description = "It has ended."),
    (status = 401, description = "There was none."),
    (status = 404, description = "There is no such version."),
))]
pub(crate) async fn logout(State(interface): Shared, headers: HeaderMap) {
    interface.log_out(&headers);
}

/// Returns who the caller is.
#[utoipa::path(get, path = "/v1/session", responses(
    (status = 200, body = Session),
    (status = 401, body = Refusal),
))]
pub(crate) async fn session(Extension(caller): Extension<Caller>) -> Json<Session> {
    Json(Session { user: caller.user, role: caller.role.name().into() })
}
