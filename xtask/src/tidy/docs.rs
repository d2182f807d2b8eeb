//! Checks the documents: links are valid, and the README links to all of them.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{Finding, Tree};

/// `[text](target)`, the target without a title.
static LINK: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\]\(([^)\s]+)\)").expect("the pattern is constant"));

/// Code spans, which contain no links.
static CODE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"`[^`]*`").expect("the pattern is constant"));

/// Checks that every relative link names a tracked file, and an existing heading if it has a
/// fragment.
pub fn check_links(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.ending_in(".md") {
        for (number, line) in prose(text) {
            let line = CODE.replace_all(line, "code");
            for capture in LINK.captures_iter(&line) {
                let target = &capture[1];
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                if let Some(message) = broken(tree, path, target) {
                    findings.push(Finding::new(path, number, message));
                }
            }
        }
    }
    findings
}

/// Checks that the README links to every file in `docs`, directly or through its link to the
/// directory's own README (the RFCs).
pub fn check_index(tree: &Tree) -> Vec<Finding> {
    const README: &str = "README.md";
    let Some(readme) = tree.get(README) else {
        return vec![Finding::new(README, 0, "the file does not exist")];
    };
    let mut targets = BTreeSet::new();
    for (_, line) in prose(readme) {
        for capture in LINK.captures_iter(line) {
            let file = capture[1].split('#').next().unwrap_or_default();
            targets.insert(file.trim_end_matches('/').to_owned());
        }
    }
    let mut findings = Vec::new();
    for (path, _) in tree.ending_in(".md").filter(|(path, _)| path.starts_with("docs/")) {
        let directory = path.rsplit_once('/').map(|(directory, _)| directory).unwrap_or_default();
        let by_directory = directory != "docs" && targets.contains(directory);
        if !targets.contains(path) && !by_directory {
            findings.push(Finding::new(README, 0, format!("no link points to {path}")));
        }
    }
    findings
}

/// Returns what is wrong with a relative link; `None` if it is valid.
fn broken(tree: &Tree, from: &str, target: &str) -> Option<String> {
    let (file, heading) = match target.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (target, None),
    };
    let Some(file) = resolve(from, file) else {
        return Some(format!("{target} points out of the repository"));
    };
    if !tree.exists(&file) {
        return Some(format!("{target} does not exist"));
    }
    let heading = heading?;
    let text = tree.get(&file)?;
    let known = prose(text)
        .filter(|(_, line)| line.starts_with('#'))
        .any(|(_, line)| anchor(line) == heading);
    (!known).then(|| format!("{file} has no heading #{heading}"))
}

/// Returns the path from the root that `target` means in the file `from`.
fn resolve(from: &str, target: &str) -> Option<String> {
    if target.is_empty() {
        return Some(from.to_owned());
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the anchor of a heading in links: lower case, blanks as hyphens, no punctuation.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() })
        .collect()
}

/// Returns the lines outside fenced code, numbered from 1.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
            return None;
        }
        (!fenced).then_some((index + 1, line))
    })
}
