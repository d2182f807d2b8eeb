//! Refusals as HTTP responses.

use array::Kind;
use axum::Json;
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The body of a refusal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Refusal {
    /// The code, for programs: `volume_exists`, `no_such_host`, … It does not change.
    #[schema(example = "volume_exists")]
    pub code: String,
    /// What is wrong and what to do, for people: one line.
    pub message: String,
}

/// A refusal with its status: 400 the request is invalid, 401 no token, 403 the role does not
/// allow it, 404 a named object does not exist, 409 it conflicts with the current state,
/// 507 there is no space, 503 the device accepts no writes for now, 500 the array failed.
#[derive(Debug)]
pub struct ApiError {
    status: StatusCode,
    body: Refusal,
}

impl ApiError {
    pub(crate) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        Self { status, body: Refusal { code: code.to_owned(), message: message.into() } }
    }

    /// Returns a refusal of this kind.
    pub(crate) fn of_kind(kind: Kind, code: &str, message: impl Into<String>) -> Self {
        Self::new(status_of(kind), code, message)
    }

    pub(crate) fn no_such_path() -> Self {
        let text = "This path does not exist; see /v1/openapi.json.";
        Self::new(StatusCode::NOT_FOUND, "no_such_path", text)
    }

    pub(crate) fn no_such_method() -> Self {
        let text = "This path does not support this method; see /v1/openapi.json.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "no_such_method", text)
    }

    pub(crate) fn broken() -> Self {
        let text = "The array failed to do this; its log says why.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", text)
    }

    /// Returns the refusal of a request that could not be read. `text` may span lines.
    fn unreadable(status: StatusCode, text: &str) -> Self {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let code = match status {
            StatusCode::PAYLOAD_TOO_LARGE => "body_too_long",
            StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported_media_type",
            _ => "bad_request",
        };
        // 422 means the same as 400 here, and clients know 400.
        let status = match status {
            StatusCode::UNPROCESSABLE_ENTITY => StatusCode::BAD_REQUEST,
            other => other,
        };
        Self::new(status, code, text)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(self.body)).into_response()
    }
}

fn status_of(kind: Kind) -> StatusCode {
    match kind {
        Kind::Invalid => StatusCode::BAD_REQUEST,
        Kind::NotFound => StatusCode::NOT_FOUND,
        Kind::Conflict => StatusCode::CONFLICT,
        Kind::Full => StatusCode::INSUFFICIENT_STORAGE,
        Kind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        Kind::Fault => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl From<array::Error> for ApiError {
    fn from(error: array::Error) -> Self {
        Self::of_kind(error.kind(), error.code(), error.to_string())
    }
}

impl From<JsonRejection> for ApiError {
    fn from(rejection: JsonRejection) -> Self {
        // The body may contain a secret, so the refusal does not repeat its values.
        let text = match &rejection {
            JsonRejection::JsonSyntaxError(_) => "The body is not JSON.".to_owned(),
            other => without_value(other.body_text()),
        };
        Self::unreadable(rejection.status(), &text)
    }
}

/// Describes the error without the value: the parser says `invalid type: WHAT, expected …`.
fn without_value(text: String) -> String {
    let parts = text.split_once(": invalid ");
    let parts = parts.and_then(|(place, rest)| Some((place, rest.rsplit_once(", expected ")?.1)));
    parts.map_or(text.clone(), |(place, wanted)| format!("{place}: expected {wanted}"))
}

impl From<QueryRejection> for ApiError {
    fn from(rejection: QueryRejection) -> Self {
        Self::unreadable(rejection.status(), &rejection.body_text())
    }
}

impl From<PathRejection> for ApiError {
    fn from(rejection: PathRejection) -> Self {
        Self::unreadable(rejection.status(), &rejection.body_text())
    }
}
