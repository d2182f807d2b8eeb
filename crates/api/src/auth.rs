//! Who may ask: whoever knows the token.

use std::fmt;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use subtle::ConstantTimeEq;

use crate::{ApiError, Interface};

/// What a request must carry. `Debug` does not show it.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A token of 64 hex digits from 32 random bytes.
    pub fn from_entropy(entropy: &[u8; 32]) -> Self {
        Self(entropy.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The token itself, to be written where only its owner reads it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether `other` is the same, in a time that does not tell how much of it is.
    pub(crate) fn is(&self, other: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(other).into()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Refuses requests without the token.
pub(crate) async fn check(
    State(interface): State<Arc<Interface>>,
    request: Request,
    next: Next,
) -> Response {
    let header = request.headers().get(AUTHORIZATION).map(|value| value.as_bytes());
    let given = header.and_then(bearer);
    let is_open = request.uri().path() == "/v1/version";
    if is_open || given.is_some_and(|given| interface.token.is(given)) {
        return next.run(request).await;
    }
    ApiError::unauthorized().into_response()
}

/// The token of an `Authorization` header.
pub(crate) fn bearer(header: &[u8]) -> Option<&[u8]> {
    match header.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => Some(token),
        _ => None,
    }
}
