//! The web page: static files in the program, which are tried before the management interface.
//!
//! `web/build` creates the files, and whatever is in `web/dist` when the program is built is
//! embedded. A program that was built without them says so on a plain page. The page has its own
//! list of addresses, [`PAGES`] and its files: everything else belongs to the interface. No file is
//! read while the array runs, so no path leads anywhere else.
//!
//! The page uses the interface like any client; the files contain no secret and need no session.

use std::borrow::Cow;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

/// The first path segments of the page's own addresses; `web/src/routes.ts` has the same list. The
/// page interprets the rest.
const PAGES: [&str; 11] = [
    "audit",
    "dashboard",
    "datastores",
    "health",
    "host-groups",
    "hosts",
    "pods",
    "protection",
    "settings",
    "snapshots",
    "volumes",
];

/// The file that serves every address of the page.
const INDEX: &str = "index.html";
/// The directory of files whose names change with their content.
const HASHED: &str = "assets/";
/// The suffix of a file that was compressed when the page was built.
const COMPRESSED: &str = ".gz";

/// Only scripts, styles and requests of the page's own address, nothing inline, in no frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'none'";

/// The page that is served if the web page was not built.
const WITHOUT: &str = "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
                       <title>Holdfast</title>\n<h1>Holdfast</h1>\n\
                       <p>This program was built without its web page. Run <code>web/build</code>, \
                       then build the program again.</p>\n\
                       <p>The command line and the interface (<code>/v1/openapi.json</code>) offer \
                       everything that the page does.</p>\n</html>\n";

/// The files as of the build of the program.
#[derive(RustEmbed)]
#[folder = "../../web/dist"]
#[allow_missing = true]
struct Embedded;

/// A file of the page.
struct File {
    data: Cow<'static, [u8]>,
    /// The SHA-256 of its content.
    hash: [u8; 32],
    /// Its content type, without parameters.
    kind: String,
}

/// A source of files.
trait Site {
    /// Returns the file at a path without a leading slash.
    fn file(&self, path: &str) -> Option<File>;
}

impl Site for Embedded {
    fn file(&self, path: &str) -> Option<File> {
        let file = Self::get(path)?;
        let (hash, kind) = (file.metadata.sha256_hash(), file.metadata.mimetype().to_owned());
        Some(File { data: file.data, hash, kind })
    }
}

/// Returns the management interface together with the web page.
pub fn before(interface: Router) -> Router {
    interface.layer(middleware::from_fn(serve))
}

async fn serve(request: Request, next: Next) -> Response {
    match answer(&Embedded, request.method(), request.uri().path(), request.headers()) {
        Some(answer) => answer,
        None => next.run(request).await,
    }
}

/// Returns the response to a request, if it is for the page.
fn answer(site: &impl Site, method: &Method, path: &str, headers: &HeaderMap) -> Option<Response> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        return None;
    }
    let path = path.strip_prefix('/')?;
    let mut answer = if is_page(path) {
        match site.file(INDEX) {
            Some(index) => of_file(site, INDEX, index, headers),
            None => without(),
        }
    } else if path == INDEX || path.ends_with(COMPRESSED) {
        return None;
    } else {
        of_file(site, path, site.file(path)?, headers)
    };
    let common = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ];
    for (name, value) in common {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    if method == Method::HEAD {
        *answer.body_mut() = Body::empty();
    }
    Some(answer)
}

/// Returns whether this is an address of the page.
fn is_page(path: &str) -> bool {
    path.is_empty() || PAGES.contains(&path.split('/').next().unwrap_or_default())
}

fn without() -> Response {
    let kind = [(CONTENT_TYPE, "text/html; charset=utf-8"), (CACHE_CONTROL, "no-store")];
    (StatusCode::NOT_IMPLEMENTED, kind, WITHOUT).into_response()
}

/// Returns a file, compressed if the client accepts it; only its tag if the client already has it.
fn of_file(site: &impl Site, path: &str, plain: File, headers: &HeaderMap) -> Response {
    let kind = content_type(&plain.kind);
    let compressed = site.file(&format!("{path}{COMPRESSED}"));
    let varies = compressed.is_some();
    let (file, is_compressed) = match compressed.filter(|_| takes_gzip(headers)) {
        Some(file) => (file, true),
        None => (plain, false),
    };
    let cache = match path.starts_with(HASHED) {
        true => "public, max-age=31536000, immutable",
        false => "no-cache",
    };
    let tag = tag(&file.hash);
    let mut answer = match has(headers, &tag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => {
            let length = file.data.len();
            let body = match file.data {
                Cow::Borrowed(data) => Bytes::from_static(data),
                Cow::Owned(data) => Bytes::from(data),
            };
            ([(CONTENT_LENGTH, length)], Body::from(body)).into_response()
        }
    };
    let reported = answer.headers_mut();
    reported.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    // Hex digits, and types from a table, are always valid in a header.
    for (name, text) in [(ETAG, &tag), (CONTENT_TYPE, &kind)] {
        if let Ok(value) = HeaderValue::from_str(text) {
            reported.insert(name, value);
        }
    }
    if varies {
        reported.insert(VARY, HeaderValue::from_static("accept-encoding"));
    }
    if is_compressed {
        reported.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    answer
}

fn content_type(kind: &str) -> String {
    match kind.starts_with("text/") {
        true => format!("{kind}; charset=utf-8"),
        false => kind.to_owned(),
    }
}

/// Returns the tag of a file's content: half of its hash suffices.
fn tag(hash: &[u8; 32]) -> String {
    let digits: String = hash[..16].iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digits}\"")
}

/// Returns whether the client has the file with this tag (RFC 9110, 13.1.2: weak comparison).
fn has(headers: &HeaderMap, tag: &str) -> bool {
    let given = headers.get_all(IF_NONE_MATCH).into_iter().filter_map(|value| value.to_str().ok());
    let mut tags = given.flat_map(|text| text.split(',')).map(str::trim);
    tags.any(|given| given == "*" || given.strip_prefix("W/").unwrap_or(given) == tag)
}

/// Returns whether the client accepts gzip (RFC 9110, 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let given =
        headers.get_all(ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    given.flat_map(|text| text.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_some_and(|weight: f32| weight > 0.0)
    })
}

#[cfg(test)]
mod tests;
