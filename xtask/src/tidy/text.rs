//! Checks that need only lines of text.

use std::sync::LazyLock;

use regex::Regex;

use super::{Finding, Tree};

/// The most characters in a line.
const LINE_LENGTH_MAX: usize = 100;

/// The most characters in a line of a document, which is read and not compared side by side.
const DOCUMENT_LINE_LENGTH_MAX: usize = 125;

/// The reminders that editors highlight. Split in two, or this file would be reported.
static MARKERS: LazyLock<Regex> = LazyLock::new(|| {
    let words = [["TO", "DO"], ["FIX", "ME"], ["XX", "X"], ["HA", "CK"]].map(|half| half.concat());
    let macros = [["to", "do!"], ["unimple", "mented!"], ["db", "g!"]].map(|half| half.concat());
    Regex::new(&format!(r"\b(?:{})\b|\b(?:{})", words.join("|"), macros.join("|")))
        .expect("the pattern is constant")
});

/// An absolute path: preceded by a blank, a quote or a bracket, with at least two parts.
static ABSOLUTE_PATH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r#"(?:^|[\s"'`(=\[<])/([A-Za-z0-9_.-]+)/[A-Za-z0-9_.{$-]"#)
        .expect("the pattern is constant")
});

/// A host in a URL.
static HOST: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\b(?:https?|ftp|ssh|git)://([A-Za-z0-9.-]+)").expect("the pattern is constant")
});

/// First parts of absolute paths that every Linux machine has, or that are not file paths but parts
/// of URLs and JSON.
const FIRST_PARTS: &[&str] = &[
    "api",
    "assets",
    "bin",
    "dev",
    "etc",
    "host-groups",
    "hosts",
    "jobs",
    "lib",
    "metrics",
    "mnt",
    "pods",
    "proc",
    "protection",
    "run",
    "sbin",
    "settings",
    "srv",
    "sys",
    "tmp",
    "usr",
    "v1",
    "v2",
    "var",
    "volumes",
];

/// The same for options of ESXi, which are written like paths.
const OPTION_PARTS: &[&str] = &["DataMover", "Misc", "VMFS3"];

/// Hosts that may be named: those of the standards, the peers and Debian, and this machine itself.
const HOSTS: &[&str] = &[
    "127.0.0.1",
    "deb.debian.org",
    "docs.rs",
    "example.com",
    "github.com",
    "localhost",
    "rustup.rs",
    "sh.rustup.rs",
    "www.apache.org",
    "www.rfc-editor.org",
    "www.t10.org",
];

/// Returns whether a file is written by hand, and so must follow the style.
fn is_written_by_hand(path: &str) -> bool {
    let made = [".lock", ".svg", "package-lock.json", "grafana/holdfast.json", "web/openapi.json"];
    let is_made =
        made.iter().any(|end| path.ends_with(end)) || path.contains("/proptest-regressions/");
    !is_made && !path.starts_with("LICENSE")
}

/// Checks that there are no long lines (except tables and links of documents, and dependencies), no
/// tabs, and no trailing blanks.
pub fn check_lines(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files().filter(|(path, _)| is_written_by_hand(path)) {
        let markdown = path.ends_with(".md");
        let length_max = if markdown { DOCUMENT_LINE_LENGTH_MAX } else { LINE_LENGTH_MAX };
        for (index, line) in text.lines().enumerate() {
            let length = line.chars().count();
            let may_be_long = path.ends_with("Cargo.toml")
                || markdown && (line.starts_with('|') || line.contains("](http"));
            if length > length_max && !may_be_long {
                let message = format!("{length} characters; {length_max} at most");
                findings.push(Finding::new(path, index + 1, message));
            }
            // gofmt indents with tabs.
            let may_have_tabs = path.ends_with("Makefile") || path.ends_with(".go");
            if line.contains('\t') && !may_have_tabs {
                findings.push(Finding::new(path, index + 1, "a tab; indent with spaces"));
            }
            if line.ends_with([' ', '\r']) {
                findings.push(Finding::new(path, index + 1, "trailing spaces"));
            }
        }
        if !text.is_empty() && !text.ends_with('\n') {
            findings.push(Finding::new(path, 0, "the last line has no newline"));
        }
    }
    findings
}

/// Checks that nothing is marked as unfinished.
pub fn check_markers(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, line, text) in lines(tree) {
        if let Some(found) = MARKERS.find(text) {
            let message = format!("`{}`: finish it or open an issue", found.as_str());
            findings.push(Finding::new(path, line, message));
        }
    }
    findings
}

/// Checks that there is no path that only one machine has, and no host that only one network has.
pub fn check_places(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, line, text) in lines(tree) {
        // The first line of a script contains its interpreter.
        let text = text.strip_prefix("#!").unwrap_or(text);
        for capture in ABSOLUTE_PATH.captures_iter(text) {
            if ![FIRST_PARTS, OPTION_PARTS].concat().contains(&&capture[1]) {
                let message = format!("/{}/ does not exist on every machine", &capture[1]);
                findings.push(Finding::new(path, line, message));
            }
        }
        for capture in HOST.captures_iter(text) {
            // A single letter is an example, not a host.
            if capture[1].len() > 1 && !HOSTS.contains(&&capture[1]) {
                let message = format!("host {} is not in the list of tidy/text.rs", &capture[1]);
                findings.push(Finding::new(path, line, message));
            }
        }
    }
    findings
}

/// Returns the lines of all files written by hand, numbered from 1.
fn lines(tree: &Tree) -> impl Iterator<Item = (&str, usize, &str)> {
    tree.files().filter(|(path, _)| is_written_by_hand(path)).flat_map(|(path, text)| {
        text.lines().enumerate().map(move |(index, line)| (path, index + 1, line))
    })
}
