//! The routes from the API description that the array serves (OpenAPI), and which of them were
//! used.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::http::Request;

/// Operations that no row issues in a legal form: method, path and the reason.
type WithoutRow = (&'static str, &'static str, &'static str);

/// The operations of the array without a row. An entry that is not in the description, or that a
/// row covers, fails the test.
pub const WITHOUT_ROW: &[WithoutRow] = &[
    ("POST", "/v1/devices", ONE_DEVICE),
    ("PATCH", "/v1/devices/{number}", ONE_DEVICE),
    ("DELETE", "/v1/devices/{number}", ONE_DEVICE),
    ("POST", "/v1/controllers/switch", ONE_CONTROLLER),
    ("POST", "/v1/controllers/{name}/stop", ONE_CONTROLLER),
];
/// The rows expect refusal; `crates/holdfast/tests/cli/devices.rs` tests success.
const ONE_DEVICE: &str = "the pool of these rows is on one device";

/// The rows expect refusal; the group `controllers` tests success.
const ONE_CONTROLLER: &str = "the pool of these rows is served by one controller";

/// An operation of the description.
#[derive(Clone, Debug)]
pub struct Operation {
    pub method: String,
    /// The path with parameters in braces.
    pub path: String,
    /// The names of its parameters.
    pub parameters: BTreeSet<String>,
    /// Whether it can succeed. The array refuses the others with any content.
    pub is_served: bool,
}

impl Operation {
    /// Returns whether it is a list that can be filtered, sorted and read page by page.
    pub fn is_list(&self) -> bool {
        self.method == "GET" && self.parameters.contains("filter")
    }

    /// Returns the path in requests, with the version that all rows use.
    pub fn concrete(&self) -> String {
        self.path.replace("{minor}", "26")
    }

    fn matches(&self, request: &Request) -> bool {
        let (mut own, mut its) = (self.path.split('/'), request.place().split('/'));
        let is_same = |own: &str, its: &str| match own.split_once('{') {
            Some((before, _)) => its.len() > before.len() && its.starts_with(before),
            None => own == its,
        };
        self.method == request.method
            && loop {
                match (own.next(), its.next()) {
                    (None, None) => break true,
                    (Some(own), Some(its)) if is_same(own, its) => {}
                    _ => break false,
                }
            }
    }
}

/// Returns all operations of a description.
pub fn operations(description: &Value) -> Result<Vec<Operation>> {
    let mut all = Vec::new();
    for (path, item) in description["paths"].as_object().context("no paths")? {
        for method in ["get", "post", "put", "patch", "delete", "head", "options", "trace"] {
            let Some(operation) = item.get(method) else { continue };
            let responses = operation["responses"].as_object().context("no responses")?;
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let names = parameters.filter_map(|it| it["name"].as_str()).map(str::to_owned);
            all.push(Operation {
                method: method.to_ascii_uppercase(),
                path: path.clone(),
                parameters: names.collect(),
                is_served: responses.keys().any(|status| status.starts_with('2')),
            });
        }
    }
    Ok(all)
}

/// Returns the operation of a request. A path without parameters takes precedence over one with
/// them.
pub fn of<'a>(operations: &'a [Operation], request: &Request) -> Result<&'a Operation> {
    let found = operations.iter().filter(|operation| operation.matches(request));
    let found = found.min_by_key(|operation| operation.path.matches('{').count());
    found.with_context(|| format!("the description does not contain {}", request.says()))
}

/// Checks that each operation was used, or is one of those `without_row`, and that none of these
/// was used and all are in the description.
pub fn check_all(
    operations: &[Operation],
    used: &BTreeSet<(String, String)>,
    without_row: &[WithoutRow],
) -> Result<String> {
    let key = |operation: &Operation| (operation.method.clone(), operation.path.clone());
    let without = |method: &str, path: &str| {
        without_row.iter().any(|(own, place, _)| (*own, *place) == (method, path))
    };
    let missing: Vec<String> = operations
        .iter()
        .filter(|it| !used.contains(&key(it)) && !without(&it.method, &it.path))
        .map(|it| format!("{} {}", it.method, it.path))
        .collect();
    ensure!(missing.is_empty(), "no row covers\n{}", missing.join("\n"));
    for (method, path, why) in without_row {
        let is_there = operations.iter().any(|it| it.method == *method && it.path == *path);
        ensure!(is_there, "the description does not contain {method} {path} ({why})");
        let is_used = used.contains(&((*method).to_owned(), (*path).to_owned()));
        ensure!(!is_used, "a row covers {method} {path}: remove it from the exceptions ({why})");
    }
    let served = operations.iter().filter(|it| it.is_served).count();
    Ok(format!("{} operations, {served} of them served", operations.len()))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn described() -> Vec<Operation> {
        let ok = json!({"responses": {"200": {}}});
        let never = json!({"responses": {"400": {}}});
        let paths = json!({
            "/v1/things": {"get": ok, "post": never},
            "/v1/things/{name}": {"get": ok},
            "/api/2.{minor}/things": {"get": ok},
        });
        operations(&json!({ "paths": paths })).unwrap()
    }

    #[test]
    fn a_request_is_matched_to_its_operation_by_path() {
        let all = described();
        let path = |method, path: &str| {
            of(&all, &Request::new(method, path)).ok().map(|operation| operation.path.as_str())
        };
        assert_eq!(path("GET", "/v1/things?limit=1"), Some("/v1/things"));
        assert_eq!(path("GET", "/v1/things/a"), Some("/v1/things/{name}"));
        assert_eq!(path("GET", "/api/2.26/things"), Some("/api/2.{minor}/things"));
        assert_eq!(path("PUT", "/v1/things"), None);
        assert_eq!(path("GET", "/v1/things/a/b"), None);
    }

    #[test]
    fn an_operation_without_a_row_is_an_error() {
        let all = described();
        let key = |operation: &Operation| (operation.method.clone(), operation.path.clone());
        let mut used: BTreeSet<_> = all.iter().map(key).collect();
        let says = |used: &BTreeSet<_>, without: &[WithoutRow]| match check_all(&all, used, without)
        {
            Ok(counts) => counts,
            Err(error) => error.to_string(),
        };
        assert_eq!(says(&used, &[]), "4 operations, 3 of them served");
        let one = ("GET", "/v1/things/{name}", "it takes a day");
        let needless =
            "a row covers GET /v1/things/{name}: remove it from the exceptions (it takes a day)";
        assert_eq!(says(&used, &[one]), needless);
        used.remove(&("GET".to_owned(), "/v1/things/{name}".to_owned()));
        assert_eq!(says(&used, &[]), "no row covers\nGET /v1/things/{name}");
        assert_eq!(says(&used, &[one]), "4 operations, 3 of them served");
        let gone = ("PUT", "/v1/things", "never used");
        let error = "the description does not contain PUT /v1/things (never used)";
        assert_eq!(says(&used, &[one, gone]), error);
    }
}
