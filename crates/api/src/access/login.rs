//! Login and logout as in REST 2.x, login with a password, and information about the caller.

use array::{PasswordHash, TokenHash, UserInfo, UserUpdate};
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::denied::Denied;
use super::session::{Begun, Failed, Method};
use super::{Caller, Origin, SESSION_HEADER, Token};
use crate::{ApiError, Interface, Refusal, Shared, blocking};

/// The header in which a login sends the API token.
const API_TOKEN_HEADER: HeaderName = HeaderName::from_static("api-token");

/// The caller.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Session {
    /// The user.
    pub user: String,
    /// What it may do: `array_admin`, `storage_admin` or `readonly`.
    #[schema(value_type = crate::words::Role)]
    pub role: String,
}

impl Interface {
    /// Starts a session for the owner of this API token.
    pub(crate) fn log_in(
        &self,
        token: Option<&[u8]>,
        origin: Origin,
    ) -> Result<(Token, Caller), Denied> {
        let (caller, credential) = self.known(token.ok_or(Denied::NoSession)?, origin)?;
        self.begin(caller, credential, Method::Token, origin)
    }

    /// Ends the session in these headers, if any.
    fn log_out(&self, headers: &HeaderMap) {
        if let Some(session) = headers.get(SESSION_HEADER) {
            self.access.sessions.lock().end(&TokenHash::of(session.as_bytes()));
        }
    }

    /// Returns the logins of active sessions, and the failed logins.
    pub(crate) fn logins(&self) -> (Vec<Begun>, Vec<Failed>) {
        let sessions = self.access.sessions.lock();
        (sessions.begun((self.access.sources.uptime_ms)()), sessions.failed().to_vec())
    }
}

/// The user that has logged in.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LoggedIn {
    /// The user.
    pub username: String,
}

/// The response to a login.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LoggedInItems {
    /// The user that has logged in: always one entry.
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
    (status = 200, description = "The session has ended."),
    (status = 401, description = "There is no such session."),
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

/// A user and its password. `Debug` is left out on purpose.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PasswordLogin {
    /// The user.
    pub user: String,
    /// Its password.
    pub password: String,
}

/// Turns a user and its password into a session.
#[utoipa::path(
    post,
    path = "/v1/session",
    security(()),
    request_body = PasswordLogin,
    responses(
        (status = 201, body = Session, headers(
            ("x-auth-token" = String, description = "The session, to be sent with each request.")
        )),
        (status = 400, body = Refusal),
        (status = 401, body = Refusal),
        (status = 429, body = Refusal),
    )
)]
pub(crate) async fn begin_session(
    State(interface): Shared,
    origin: Option<Extension<Origin>>,
    body: Result<Json<PasswordLogin>, JsonRejection>,
) -> Response {
    let origin = origin.map_or(Origin::NOWHERE, |Extension(origin)| origin);
    let PasswordLogin { user, password } = match body {
        Ok(Json(body)) => body,
        Err(refused) => return ApiError::from(refused).into_response(),
    };
    match interface.log_in_by_password(&user, password, origin).await {
        Ok((session, caller)) => {
            let headers = [(SESSION_HEADER, session.expose().to_owned())];
            let reported = Session { user: caller.user, role: caller.role.name().into() };
            (StatusCode::CREATED, headers, Json(reported)).into_response()
        }
        Err(denied) => denied.answer("/v1/session"),
    }
}

/// A new password of the caller.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OwnPassword {
    /// The current password.
    pub old_password: String,
    /// The new one: 8 to 128 characters.
    pub password: String,
}

/// Changes the caller's own password, and ends its other sessions. A user without a password gets
/// one from an array admin.
#[utoipa::path(post, path = "/v1/session/password", request_body = OwnPassword, responses(
    (status = 204, description = "The password was changed."),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 429, body = Refusal),
))]
pub(crate) async fn change_own_password(
    State(interface): Shared,
    Extension(caller): Extension<Caller>,
    origin: Option<Extension<Origin>>,
    headers: HeaderMap,
    body: Result<Json<OwnPassword>, JsonRejection>,
) -> Result<StatusCode, ApiError> {
    let origin = origin.map_or(Origin::NOWHERE, |Extension(origin)| origin);
    let Json(OwnPassword { old_password, password }) = body?;
    if !interface.is_own(&caller.user) {
        let text = "The password of a user of the directory service is changed in the directory.";
        return Err(ApiError::new(StatusCode::BAD_REQUEST, "directory_user", text));
    }
    interface.check_old_password(&caller.user, old_password, origin).await?;
    let hash = interface.password_hash(password).await?;
    let kept = session_of(&headers);
    blocking(interface, move |interface| {
        interface.set_password(&caller.user, Some(hash), kept).map(|_| StatusCode::NO_CONTENT)
    })
    .await
}

/// Returns the session in these headers.
pub(crate) fn session_of(headers: &HeaderMap) -> Option<TokenHash> {
    headers.get(SESSION_HEADER).map(|session| TokenHash::of(session.as_bytes()))
}

impl Interface {
    /// Checks the current password before it is changed.
    pub(crate) async fn check_old_password(
        &self,
        user: &str,
        password: String,
        origin: Origin,
    ) -> Result<(), Denied> {
        match self.check_password(user, password, origin).await {
            Ok(_) => Ok(()),
            // 401 would mean that the session has ended.
            Err(Denied::WrongPassword) => Err(Denied::OldPassword),
            Err(denied) => Err(denied),
        }
    }

    /// Sets or removes the password of a user, and ends all sessions of the user except `kept`.
    pub(crate) fn set_password(
        &self,
        user: &str,
        password: Option<PasswordHash>,
        kept: Option<TokenHash>,
    ) -> Result<UserInfo, array::Error> {
        let update = UserUpdate { role: None, password: Some(password.clone()) };
        let changed = self.array.update_user(user, update)?;
        self.password_changed(user, kept, password.as_ref());
        Ok(changed)
    }
}
