//! Refusals because of the caller or its request rate, in the format of the path's API.

use array::Role;
use axum::Json;
use axum::http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use crate::ApiError;

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// The request has no valid session and no token.
    NoSession,
    /// The token belongs to no user.
    WrongToken,
    /// The role does not allow the request.
    Role(Role),
    /// Too many wrong tokens came from this address.
    TooManyFailures {
        /// When to try again, in seconds.
        seconds: u64,
    },
    /// Too many requests with this token.
    TooManyRequests {
        /// When to try again, in seconds.
        seconds: u64,
    },
    /// The user or the password is wrong.
    WrongPassword,
    /// Neither the array nor its directory service accepts the login, for whatever reason.
    NotKnown,
    /// The old password is wrong.
    OldPassword,
    /// The new password is too short or too long, or has control characters.
    BadPassword,
    /// Too many passwords are waiting to be checked.
    Busy,
    /// The array failed.
    Broken,
    /// The body can't be read.
    Body(StatusCode, &'static str),
    /// There are no random bytes for a session.
    NoEntropy,
}

impl Denied {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NoSession | Self::WrongToken | Self::WrongPassword | Self::NotKnown => {
                StatusCode::UNAUTHORIZED
            }
            Self::OldPassword | Self::BadPassword => StatusCode::BAD_REQUEST,
            Self::Role(_) => StatusCode::FORBIDDEN,
            Self::TooManyFailures { .. } | Self::TooManyRequests { .. } | Self::Busy => {
                StatusCode::TOO_MANY_REQUESTS
            }
            Self::Body(status, _) => *status,
            Self::NoEntropy | Self::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    pub(crate) fn code(&self) -> &'static str {
        match self {
            Self::NoSession | Self::WrongToken | Self::WrongPassword | Self::NotKnown => {
                "unauthorized"
            }
            Self::OldPassword => "wrong_password",
            Self::BadPassword => "invalid_password",
            Self::Role(_) => "forbidden",
            Self::TooManyFailures { .. } | Self::TooManyRequests { .. } | Self::Busy => {
                "too_many_requests"
            }
            Self::Body(StatusCode::PAYLOAD_TOO_LARGE, _) => "body_too_long",
            Self::Body(..) => "bad_request",
            Self::NoEntropy | Self::Broken => "internal",
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::NoSession => "The session has ended, or there was none: log in with an API \
                                token, or send one as `Authorization: Bearer TOKEN`."
                .into(),
            Self::WrongToken => "The API token is wrong, has expired or was withdrawn. An array \
                                 admin can create another: `holdfast token create`."
                .into(),
            Self::WrongPassword => "The user or the password is wrong.".into(),
            Self::NotKnown => "The user or the password is wrong, the user has no role, or the \
                               directory service does not answer."
                .into(),
            Self::OldPassword => "The old password is wrong.".into(),
            Self::BadPassword => {
                "A password has 8 to 128 characters, and no control characters.".into()
            }
            Self::Busy => "Too many logins are in progress. Try again in 1 s.".into(),
            Self::Broken => "The array failed to do this; its log says why.".into(),
            Self::Role(role) => {
                format!(
                    "The role {role} does not allow this. An array admin can assign another role."
                )
            }
            Self::TooManyFailures { seconds } => {
                format!("Too many logins from this address failed. Try again in {seconds} s.")
            }
            Self::TooManyRequests { seconds } => {
                format!("Too many requests with this API token. Try again in {seconds} s.")
            }
            Self::Body(_, text) => (*text).into(),
            Self::NoEntropy => {
                "The machine provides no random bytes, so no session can be started.".into()
            }
        }
    }

    /// Returns the response to a request for `path`.
    pub(crate) fn answer(&self, path: &str) -> Response {
        let mut response = if path.starts_with("/api/") {
            let fault = json!({ "context": "", "message": self.text() });
            (self.status(), Json(json!({ "errors": [fault] }))).into_response()
        } else {
            ApiError::new(self.status(), self.code(), self.text()).into_response()
        };
        let headers = response.headers_mut();
        match self {
            Self::TooManyFailures { seconds } | Self::TooManyRequests { seconds } => {
                headers.insert(RETRY_AFTER, HeaderValue::from(*seconds));
            }
            Self::Busy => {
                headers.insert(RETRY_AFTER, HeaderValue::from(1));
            }
            Self::NoSession | Self::WrongToken | Self::WrongPassword | Self::NotKnown => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        Self::new(denied.status(), denied.code(), denied.text())
    }
}
