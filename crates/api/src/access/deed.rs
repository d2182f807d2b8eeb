//! What the audit log records of a request: its sender, its action, and the names that it contains.
//! Of a body, only the fields that name objects are read, so that no secret is kept.

use std::sync::Arc;

use array::Deed;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use super::denied::Denied;
use super::role::changes_nothing;
use super::{Caller, Origin};
use crate::{ApiError, BODY_BYTES_MAX, Interface};

/// The fields of a body that contain names of objects, or lists of them.
const NAMING: [&str; 24] = [
    "add_iqns",
    "base_dn",
    "bind_user",
    "domain",
    "group",
    "group_base",
    "host",
    "iqns",
    "lun",
    "name",
    "name_servers",
    "nameservers",
    "new_name",
    "ntp_servers",
    "place",
    "relay_host",
    "remove_iqns",
    "replaces",
    "source",
    "state",
    "suffix",
    "uris",
    "user",
    "username",
];
/// The query parameters that change what a request does.
const TELLING: [&str; 5] = ["destroyed", "enabled", "overwrite", "truncate", "version"];

tokio::task_local! {
    /// The audit entry for the request being handled.
    static DEED: Deed;
    /// The turn of the request being handled, if it changes nothing.
    static TURN: Turn;
}

/// The permit of a read-only request, released when the last holder drops it.
pub(super) type Turn = Arc<OwnedSemaphorePermit>;

/// Returns the permit of the request being handled; `None` if it has none.
pub(super) fn turn_of_this_request() -> Option<Turn> {
    TURN.try_with(Clone::clone).ok()
}

/// Returns the audit entry for the request being handled; `None` if the request changes nothing.
pub(super) fn of_this_request() -> Option<Deed> {
    DEED.try_with(Clone::clone).ok()
}

/// Runs a request for `caller`. A read-only request first waits for a permit, whatever its handler
/// does: users with read-only access can't delay changes, however many connections they use. The
/// permit is held until the response is complete, because a long list takes time to format.
pub(super) async fn run(
    interface: &Interface,
    caller: Caller,
    request: Request,
    next: Next,
) -> Response {
    let (parts, body) = request.into_parts();
    let path = parts.uri.path().to_owned();
    if changes_nothing(&parts.method, &path) {
        // The handlers of read-only requests don't wait for a body.
        let turn = interface.access.reads.clone().acquire_owned().await;
        let Ok(turn) = turn else { return ApiError::broken().into_response() };
        let request = Request::from_parts(parts, body);
        return TURN.scope(Arc::new(turn), next.run(request)).await;
    }
    let body = match read(body).await {
        Ok(body) => body,
        Err(denied) => return denied.answer(&path),
    };
    // Parsers also accept an object as a list of values, in the order of its fields.
    let is_list = body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    if is_list && path.starts_with("/v1/") {
        let denied = Denied::Body(StatusCode::BAD_REQUEST, "The body is a list, not an object.");
        return denied.answer(&path);
    }
    let deed = Deed {
        time_ms: (interface.now_ms)(),
        user: caller.user,
        role: caller.role,
        origin: Origin::of(&parts.extensions).0.to_canonical().to_string(),
        method: parts.method.to_string(),
        names: names(parts.uri.query().unwrap_or_default(), &body),
        path,
    };
    let request = Request::from_parts(parts, Body::from(body));
    DEED.scope(deed, next.run(request)).await
}

async fn read(body: Body) -> Result<Bytes, Denied> {
    to_bytes(body, BODY_BYTES_MAX).await.map_err(|error| {
        let mut causes =
            std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        match causes.any(|error| error.is::<http_body_util::LengthLimitError>()) {
            true => Denied::Body(
                StatusCode::PAYLOAD_TOO_LARGE,
                "The body is longer than 64 KiB, which no request needs.",
            ),
            false => Denied::Body(StatusCode::BAD_REQUEST, "The body is incomplete."),
        }
    })
}

/// Returns the names in a query and in a body.
fn names(query: &str, body: &[u8]) -> String {
    let mut found = Vec::new();
    for (key, value) in form_urlencoded::parse(query.as_bytes()) {
        let is_naming = key == "names" || key == "ids" || key == "keys";
        if is_naming || key.ends_with("_names") || key.ends_with("_ids") {
            found.push(value.into_owned());
        } else if TELLING.contains(&&*key) {
            found.push(format!("{key}={value}"));
        }
    }
    if let Ok(Value::Object(fields)) = serde_json::from_slice(body) {
        for (key, value) in &fields {
            if NAMING.contains(&key.as_str()) || TELLING.contains(&key.as_str()) {
                note(key, value, &mut found);
            }
        }
    }
    found.join(" ")
}

/// Collects the names in a field that is a name, a list of names, or an object with a name.
fn note(key: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) => found.push(format!("{key}={text}")),
        Value::Bool(flag) => found.push(format!("{key}={flag}")),
        Value::Number(number) => found.push(format!("{key}={number}")),
        Value::Array(list) => {
            let texts: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
            found.push(format!("{key}={}", texts.join(",")));
        }
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get("name") {
                found.push(format!("{key}={text}"));
            }
        }
        Value::Null => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_recorded_and_secrets_are_not() {
        let body = r#"{"name": "esx1", "iqns": ["iqn.a", "iqn.b"], "chap":
            {"initiator": {"user": "u", "secret": "horse"}, "name": "horse"}, "password": "horse",
            "source": {"name": "db1", "secret": "horse"}, "destroyed": true, "role": null}"#;
        let query = "names=a%2Cb&volume_names=c&api_token=horse&secret=horse&truncate=true";
        let noted = names(query, body.as_bytes());
        assert_eq!(
            noted,
            "a,b c truncate=true destroyed=true iqns=iqn.a,iqn.b name=esx1 source=db1"
        );
        for body in ["", "[1]", "\"name\"", "{\"name\": ", "{\"name\": {\"name\": 1}}"] {
            assert_eq!(names("", body.as_bytes()), "", "{body}");
        }
    }
}
