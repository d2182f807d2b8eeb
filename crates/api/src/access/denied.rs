//! Refusals because of the caller or its rate, in the form that the path calls for.

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
    /// No session, or a dead one, and no token.
    NoSession,
    /// A token that belongs to nobody.
    WrongToken,
    /// The role does not allow it.
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
    /// Not this user, or not this password.
    WrongPassword,
    /// Neither the array nor its directory service lets in, whichever reason that has.
    NotKnown,
    /// The old password is wrong.
    OldPassword,
    /// A new password that is too short or too long.
    BadPassword,
    /// Too many passwords wait to be checked.
    Busy,
    /// The array is at fault.
    Broken,
    /// The body can't be read.
    Body(StatusCode, &'static str),
    /// No random bytes to make a session from.
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
                                 admin makes another: `holdfast token create`."
                .into(),
            Self::WrongPassword => "The user or the password is wrong.".into(),
            Self::NotKnown => "The user or the password is wrong, the user has no role, or the \
                               directory service does not answer."
                .into(),
            Self::OldPassword => "The old password is wrong.".into(),
            Self::BadPassword => {
                "A password has 8 to 128 characters, and no control characters.".into()
            }
            Self::Busy => "Too many people log in at once. Try again in 1 s.".into(),
            Self::Broken => "The array failed to do this; its log says why.".into(),
            Self::Role(role) => {
                format!("The role {role} may not do this. An array admin gives another role.")
            }
            Self::TooManyFailures { seconds } => {
                format!("Too many logins from this address failed. Try again in {seconds} s.")
            }
            Self::TooManyRequests { seconds } => {
                format!("Too many requests with this API token. Try again in {seconds} s.")
            }
            Self::Body(_, text) => (*text).into(),
            Self::NoEntropy => "The machine gives no random bytes, so there is no session.".into(),
        }
    }

    /// The answer to a request for `path`.
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
