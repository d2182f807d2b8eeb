//! The permissions of each role, by method and path.
//!
//! | role | may |
//! |---|---|
//! | `readonly` | view everything but the audit log and the sessions |
//! | `storage_admin` | also change everything that serves hosts: [`OF_STORAGE`] |
//! | `array_admin` | everything |
//!
//! Anything not listed requires an array admin: a forgotten resource is closed, not open.

use array::Role;
use axum::http::Method;

/// The resources that a storage admin may change, by their names after `/v1/` or `/api/2.N/`,
/// including everything below them.
const OF_STORAGE: [&str; 16] = [
    "alerts",
    "connections",
    "container-default-protections",
    "host-groups",
    "hosts",
    "pods",
    "protection-group-snapshots",
    "protection-groups",
    "qos",
    "tags",
    "volume-groups",
    "volume-snapshots",
    "volumes",
    // These change the caller's session, not the array.
    "login",
    "logout",
    "session",
];

/// Returns whether a role may send this request.
pub(super) fn may(role: Role, method: &Method, path: &str) -> bool {
    let resource = resource(path);
    let looks = changes_nothing(method, path);
    match role {
        Role::ArrayAdmin => true,
        _ if matches!(resource, "audit" | "audits" | "sessions") => false,
        Role::StorageAdmin => looks || OF_STORAGE.contains(&resource),
        Role::ReadOnly => looks || matches!(resource, "logout" | "session"),
    }
}

/// Returns whether a request is read-only. A test of receivers or servers is not: it sends a
/// message, which takes as long as the other end takes.
pub(super) fn changes_nothing(method: &Method, path: &str) -> bool {
    let looks = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let tests = match resource(path) {
        "alert-watchers" | "directory-services" | "snmp-managers" | "syslog-servers" => {
            path.ends_with("/test")
        }
        "arrays" => path.ends_with("/ntp-test"),
        _ => false,
    };
    looks && !tests
}

/// Returns the part of a path after the version.
fn resource(path: &str) -> &str {
    let (version, rest) = match path.strip_prefix("/api/") {
        Some(rest) => rest.split_once('/').unwrap_or_default(),
        None => path.trim_start_matches('/').split_once('/').unwrap_or_default(),
    };
    let is_version = version.starts_with("2.") || version == "v1";
    let rest = if is_version { rest } else { "" };
    rest.split('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_distinguished_by_method_and_path() {
        use Role::{ArrayAdmin, ReadOnly, StorageAdmin};
        for (method, path, least) in [
            ("GET", "/v1/volumes", ReadOnly),
            ("HEAD", "/api/2.26/volumes", ReadOnly),
            ("GET", "/v1/users", ReadOnly),
            ("GET", "/v1/settings", ReadOnly),
            ("POST", "/api/2.0/logout", ReadOnly),
            ("POST", "/v1/volumes", StorageAdmin),
            ("PATCH", "/v1/volumes/a", StorageAdmin),
            ("DELETE", "/api/2.26/volumes", StorageAdmin),
            ("PUT", "/api/2.26/volumes/tags/batch", StorageAdmin),
            ("PATCH", "/api/2.4/hosts", StorageAdmin),
            ("BREW", "/api/2.4/hosts", StorageAdmin),
            ("POST", "/api/2.4/admins/api-tokens", ArrayAdmin),
            ("PATCH", "/api/2.4/arrays", ArrayAdmin),
            ("PATCH", "/v1/settings", ArrayAdmin),
            ("PATCH", "/v1/pool", ArrayAdmin),
            ("POST", "/v1/pool/scrub", ArrayAdmin),
            ("POST", "/api/2.26/admins", ArrayAdmin),
            ("DELETE", "/v1/users/anna/password", ArrayAdmin),
            ("DELETE", "/v1/tokens/anna/x", ArrayAdmin),
            ("GET", "/v1/audit", ArrayAdmin),
            ("GET", "/api/2.4/alert-watchers", ReadOnly),
            ("GET", "/api/2.4/alert-watchers/test", ArrayAdmin),
            ("HEAD", "/api/2.4/syslog-servers/test", ArrayAdmin),
            ("GET", "/api/2.4/snmp-managers/test", ArrayAdmin),
            ("GET", "/api/2.4/snmp-managers", ReadOnly),
            ("GET", "/api/2.4/arrays/ntp-test", ArrayAdmin),
            ("GET", "/api/2.36/directory-services/roles", ReadOnly),
            ("PATCH", "/api/2.36/directory-services/roles", ArrayAdmin),
            ("GET", "/api/2.36/directory-services/test", ArrayAdmin),
            ("GET", "/v1/directory", ReadOnly),
            ("PATCH", "/v1/directory", ArrayAdmin),
            ("POST", "/v1/directory/test", ArrayAdmin),
            ("GET", "/v1/time-servers", ReadOnly),
            ("POST", "/v1/time-servers/test", ArrayAdmin),
            ("POST", "/api/2.4/syslog-servers", ArrayAdmin),
            ("PATCH", "/api/2.4/smtp-servers", ArrayAdmin),
            ("GET", "/api/2.26/audits", ArrayAdmin),
            ("GET", "/api/2.26/sessions", ArrayAdmin),
            // An unknown resource, and names that only look like known ones.
            ("POST", "/v1/whatever", ArrayAdmin),
            ("POST", "/v1/Volumes", ArrayAdmin),
            ("POST", "/v1/%76olumes", ArrayAdmin),
            ("POST", "//v1//volumes", ArrayAdmin),
            ("POST", "/volumes", ArrayAdmin),
            ("POST", "/v2/volumes", ArrayAdmin),
            ("POST", "/api/volumes", ArrayAdmin),
            ("POST", "/v1/users/../volumes", ArrayAdmin),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let allowed = Role::ALL.map(|role| may(role, &method, path));
            let rank = Role::ALL.iter().position(|role| *role == least).unwrap();
            let expected = std::array::from_fn(|at| at <= rank);
            assert_eq!(allowed, expected, "{method} {path}");
        }
    }
}
