//! The common parts of the descriptions of all requests under `/v1`.

use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};

/// The refusals of any request: because of the caller, its rate, or input that can't be read.
const REFUSALS: [(&str, &str); 6] = [
    ("400", "The request is invalid: the message says why."),
    ("401", "There is no session and no token, or it has ended."),
    ("403", "The role does not allow it."),
    ("413", "The body is longer than 64 KiB."),
    ("429", "Too many requests: Retry-After says when to try again."),
    ("500", "The array failed."),
];

/// The refusal of a body.
const OF_BODY: (&str, &str) = ("415", "The content type of the body is not JSON.");

/// Adds the common refusals to operations that do not list them yet.
pub(crate) fn with_refusals(description: &mut OpenApi) {
    for (path, item) in &mut description.paths.paths {
        // The version needs no authentication.
        if !path.starts_with("/v1/") || path == "/v1/version" {
            continue;
        }
        for operation in operations(item) {
            let of_body = operation.request_body.as_ref().map(|_| OF_BODY);
            for (status, why) in REFUSALS.into_iter().chain(of_body) {
                let reported = operation.responses.responses.entry(status.into());
                reported.or_insert_with(|| RefOr::T(refusal(why)));
            }
        }
    }
}

/// Returns the operations of a path.
pub(crate) fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let PathItem { get, put, post, delete, patch, .. } = item;
    [get, put, post, delete, patch].into_iter().flatten()
}

fn refusal(why: &str) -> Response {
    let schema = RefOr::Ref(Ref::from_schema_name("Refusal"));
    let content = ContentBuilder::new().schema(Some(schema)).build();
    ResponseBuilder::new().description(why).content("application/json", content).build()
}

/// Returns the types of a description, without its requests: the types of the web page are
/// generated from them. Pages of lists repeat their items, and are left out.
pub(crate) fn types_only(mut description: OpenApi) -> OpenApi {
    description.paths.paths.clear();
    let components = description.components.get_or_insert_default();
    components.schemas.retain(|name, _| !name.starts_with("ItemsOf_"));
    description
}

#[cfg(test)]
mod tests {
    /// The types of the web page are generated from this file when the page is built, without this
    /// program.
    #[test]
    fn the_page_is_built_with_current_types() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
        let kept = std::fs::read_to_string(root.join("web/openapi.json")).unwrap();
        let now = serde_json::to_string_pretty(&crate::types_for_the_page()).unwrap() + "\n";
        let first = kept.lines().zip(now.lines()).find(|(kept, now)| kept != now);
        assert!(
            kept == now,
            "web/openapi.json is stale, first at {first:?}. Regenerate it: cargo run -p api \
             --example openapi > web/openapi.json"
        );
    }
}
