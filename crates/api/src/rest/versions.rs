//! The versions of REST 2.x.

use axum::Json;
use axum::extract::Request;
use axum::http::HeaderName;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{MINOR_MAX, Refused};

/// The versions of the interface.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ApiVersions {
    /// In ascending order: clients take the last one that they know.
    #[schema(example = json!(["2.0", "2.1"]))]
    pub version: Vec<String>,
}

/// Lists the supported versions of REST.
#[utoipa::path(get, path = "/api/api_version", tag = "sessions", security(()), responses(
    (status = 200, body = ApiVersions),
))]
pub(super) async fn api_version() -> Json<ApiVersions> {
    let version = (0..=MINOR_MAX).map(|minor| format!("2.{minor}")).collect();
    Json(ApiVersions { version })
}

/// A client's identifier of its request; the response repeats it.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Copies the identifier of a request into its response.
pub(super) async fn name(request: Request, next: Next) -> Response {
    let id = request.headers().get(REQUEST_ID).cloned();
    let mut response = next.run(request).await;
    if let Some(id) = id.filter(|id| id.len() <= 128) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// Refuses unsupported versions, which the routes accept like any other number.
pub(super) async fn check(request: Request, next: Next) -> Response {
    if request.uri().path() == "/api/api_version" || minor(request.uri().path()).is_some() {
        return next.run(request).await;
    }
    Refused::no_such_path().into_response()
}

/// Returns the minor version in a path, if it is supported.
pub(super) fn minor(path: &str) -> Option<u32> {
    let (minor, _) = path.strip_prefix("/api/2.")?.split_once('/')?;
    let number: u32 = minor.parse().ok()?;
    (number <= MINOR_MAX && number.to_string() == minor).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_supported_versions_are_accepted() {
        assert_eq!(minor("/api/2.0/volumes"), Some(0));
        assert_eq!(minor("/api/2.42/volumes"), Some(42));
        for bad in ["/api/2.43/x", "/api/2.026/x", "/api/2.+1/x", "/api/2.x/x", "/api/1.1/x"] {
            assert_eq!(minor(bad), None, "{bad}");
        }
    }
}
