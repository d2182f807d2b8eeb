//! Checks which crate may depend on which, and the reasons for external crates.
//!
//! The table is the picture in `docs/architecture.md`: protocols and store meet at `block` and know
//! nothing of each other; effects are behind `sys`; the lab reaches the array over iSCSI only.

use std::collections::BTreeSet;

use super::{Finding, Tree};

/// The document with the reason for each external crate.
const DEPENDENCIES: &str = "docs/rfcs/0002-dependencies.md";

/// A crate and the workspace's crates that it may depend on.
const ALLOWED: &[(&str, &[&str])] = &[
    ("block", &[]),
    ("format", &["block"]),
    ("sys", &["block"]),
    ("parity", &["block"]),
    ("segments", &["block", "format", "parity", "sys"]),
    ("store", &["block", "format", "segments", "sys"]),
    ("target", &["block"]),
    ("scsi", &["block", "target"]),
    ("iscsi", &["block"]),
    ("initiator", &[]),
    ("array", &["block", "format", "store"]),
    ("front", &["array", "block", "format", "iscsi", "scsi", "segments", "store", "target"]),
    ("history", &[]),
    ("network", &["array", "sys", "trust"]),
    ("trust", &[]),
    ("api", &["array", "block", "history"]),
    (
        "management",
        &[
            "api", "array", "block", "front", "history", "network", "segments", "store", "sys",
            "trust",
        ],
    ),
    (
        "holdfast",
        &[
            "api",
            "array",
            "block",
            "format",
            "front",
            "iscsi",
            "management",
            "network",
            "scsi",
            "segments",
            "store",
            "sys",
            "target",
            "trust",
        ],
    ),
    ("csi", &["trust"]),
    ("libiscsi", &[]),
    ("lab", &["libiscsi"]),
    (
        "simulator",
        &[
            "array",
            "block",
            "format",
            "front",
            "initiator",
            "iscsi",
            "scsi",
            "segments",
            "store",
            "sys",
        ],
    ),
    ("tests-peer", &["lab", "libiscsi"]),
    ("tests-reduction", &["lab"]),
    ("torture", &["libiscsi", "tests-peer"]),
    ("xtask", &["lab", "libiscsi"]),
    ("fuzz", &["api", "array", "block", "format", "history", "iscsi", "scsi", "store", "sys"]),
];

/// What tests may use in addition, but shipped code may not.
const ALLOWED_IN_TESTS: &[(&str, &[&str])] = &[
    ("array", &["sys"]),
    ("api", &["store", "sys"]),
    ("initiator", &["block", "iscsi"]),
    ("network", &["store"]),
    ("iscsi", &["scsi"]),
    ("parity", &["sys"]),
    ("torture", &["block", "sys"]),
];

/// A dependency in a manifest.
struct Dependency {
    name: String,
    for_tests: bool,
}

/// Checks that the workspace's crates depend on each other only as the table allows, and use the
/// workspace's lints.
pub fn check_arrows(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in manifests(tree) {
        let manifest = match text.parse::<toml::Table>() {
            Ok(manifest) => manifest,
            Err(error) => {
                findings.push(Finding::new(path, 0, format!("the file does not parse: {error}")));
                continue;
            }
        };
        let name = package_name(&manifest);
        let Some(allowed) = lookup(ALLOWED, &name) else {
            let message = format!("crate `{name}` has no row in the table of tidy/arrows.rs");
            findings.push(Finding::new(path, 0, message));
            continue;
        };
        let in_tests = lookup(ALLOWED_IN_TESTS, &name).unwrap_or_default();
        for dependency in dependencies(&manifest) {
            let ours = lookup(ALLOWED, &dependency.name).is_some();
            let fits = allowed.contains(&dependency.name.as_str())
                || dependency.for_tests && in_tests.contains(&dependency.name.as_str());
            if ours && !fits {
                let message = format!(
                    "`{name}` may not depend on `{}`; only on: {}",
                    dependency.name,
                    if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") }
                );
                findings.push(Finding::new(path, 0, message));
            }
        }
        let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if lints.and_then(toml::Value::as_bool) != Some(true) {
            findings.push(Finding::new(path, 0, "add `[lints] workspace = true`"));
        }
    }
    findings
}

/// Checks that every external crate has its row, with the reason, in the document.
pub fn check_dependencies(tree: &Tree) -> Vec<Finding> {
    let accounted: BTreeSet<&str> = tree
        .get(DEPENDENCIES)
        .unwrap_or_default()
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let mut findings = Vec::new();
    let mut used = BTreeSet::new();
    for (path, text) in manifests(tree) {
        // The other check reports a manifest that does not parse.
        let Ok(manifest) = text.parse::<toml::Table>() else { continue };
        for dependency in dependencies(&manifest) {
            if lookup(ALLOWED, &dependency.name).is_none() {
                if !accounted.contains(dependency.name.as_str()) {
                    let message = format!("`{}` has no row in {DEPENDENCIES}", dependency.name);
                    findings.push(Finding::new(path, 0, message));
                }
                used.insert(dependency.name);
            }
        }
    }
    for name in accounted {
        if !used.contains(name) {
            let message = format!("no crate depends on `{name}`: remove its row");
            findings.push(Finding::new(DEPENDENCIES, 0, message));
        }
    }
    findings
}

/// Returns the manifests of packages: the one at the root only describes the workspace.
fn manifests(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.ending_in("/Cargo.toml")
}

fn lookup(
    table: &'static [(&str, &'static [&str])],
    name: &str,
) -> Option<&'static [&'static str]> {
    table.iter().find(|(key, _)| *key == name).map(|(_, allowed)| *allowed)
}

fn package_name(manifest: &toml::Table) -> String {
    let package = manifest.get("package").and_then(|package| package.get("name"));
    package.and_then(toml::Value::as_str).unwrap_or_default().to_owned()
}

/// Returns all dependencies, including those of single platforms.
fn dependencies(manifest: &toml::Table) -> Vec<Dependency> {
    let mut found = Vec::new();
    section(manifest, &mut found);
    if let Some(platforms) = manifest.get("target").and_then(toml::Value::as_table) {
        for platform in platforms.values().filter_map(toml::Value::as_table) {
            section(platform, &mut found);
        }
    }
    found
}

fn section(table: &toml::Table, found: &mut Vec<Dependency>) {
    for key in ["dependencies", "build-dependencies", "dev-dependencies"] {
        let Some(entries) = table.get(key).and_then(toml::Value::as_table) else { continue };
        for (alias, value) in entries {
            // `alias = { package = "name" }` renames a crate; its own name counts.
            let name = value.get("package").and_then(toml::Value::as_str).unwrap_or(alias);
            found.push(Dependency { name: name.to_owned(), for_tests: key == "dev-dependencies" });
        }
    }
}
