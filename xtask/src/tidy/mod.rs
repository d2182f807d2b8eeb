//! `cargo xtask tidy`: style as a test.
//!
//! Every check is a function from the [`Tree`] of tracked files to findings, so that its unit tests
//! can pass it their own tree, including one with faults.

mod arrows;
mod circles;
mod conformance;
mod docs;
pub mod format_doc;
mod ratchet;
mod rust;
mod text;
mod tree;

#[cfg(test)]
mod tests;

use std::fmt;
use std::path::Path;

use anyhow::Result;

use tree::Tree;

/// A problem that a check found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    /// The file, from the root of the repository.
    path: String,
    /// The line, from 1; 0 for the whole file.
    line: usize,
    /// What is wrong, and what to do instead.
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// A check: from the tracked files to the findings.
type Check = fn(&Tree) -> Vec<Finding>;

/// The checks, with their names in the summary.
const CHECKS: &[(&str, Check)] = &[
    ("dependencies between crates", arrows::check_arrows),
    ("external dependencies are listed", arrows::check_dependencies),
    ("lines: length, tabs, trailing blanks", text::check_lines),
    ("leftover markers", text::check_markers),
    ("machine paths and hosts", text::check_places),
    ("rust: every file parses and starts with a module comment", rust::check_documents),
    ("rust: unsafe", rust::check_unsafe),
    ("rust: banned names", rust::check_banned_names),
    ("lengths of files and functions", ratchet::check),
    ("modules without import circles", circles::check),
    ("links of documents", docs::check_links),
    ("the README links to every document", docs::check_index),
    ("the format document matches the code", format_doc::check),
    ("the conformance document lists every command", conformance::check_commands),
];

/// Runs all checks. Returns false if one found something. With `accept` the ratchet is written
/// first.
pub fn run(root: &Path, accept: bool) -> Result<bool> {
    let mut tree = Tree::tracked(root)?;
    if accept {
        let text = ratchet::accept(&tree);
        std::fs::write(root.join(ratchet::PATH), &text)?;
        tree.insert(ratchet::PATH, &text);
    }
    let mut failed = 0;
    for (name, check) in CHECKS {
        let mut findings = check(&tree);
        findings.sort();
        println!("tidy: {} {name}", if findings.is_empty() { "ok    " } else { "FAILED" });
        for finding in &findings {
            println!("  {finding}");
        }
        failed += usize::from(!findings.is_empty());
    }
    println!("tidy: {} of {} checks passed", CHECKS.len() - failed, CHECKS.len());
    Ok(failed == 0)
}
