//! Checks lengths of files and functions: a limit, and a ratchet for those over it.
//!
//! `xtask/ratchet.toml` contains what was too long when it was accepted, and how many modules of
//! each crate were in import cycles. No entry may grow and none may be added unnoticed; `cargo
//! xtask tidy --accept` rewrites it, for the reviewer to see.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Finding, Tree, circles, rust};

/// The file with the accepted numbers.
pub const PATH: &str = "xtask/ratchet.toml";

/// The most lines of a file, regardless of the ratchet.
const FILE_LINES_MAX: usize = 800;
/// The most lines of a file without an entry in the ratchet.
const FILE_LINES: usize = 400;
/// The most lines of a function without an entry in the ratchet.
const FUNCTION_LINES: usize = 70;

/// A long file or function: its key in the ratchet, and where it is.
struct Long {
    path: String,
    line: usize,
    key: String,
    length: usize,
    limit: usize,
}

/// Checks that files and functions are within the limits, or no longer than accepted.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let Accepted { files, functions, .. } = match accepted(tree) {
        Ok(accepted) => accepted,
        Err(error) => {
            return vec![Finding::new(PATH, 0, format!("the file does not parse: {error}"))];
        }
    };
    let mut findings = Vec::new();
    let (long_files, long_functions) = measure(tree);
    for (long, accepted) in long_files
        .iter()
        .map(|long| (long, files.get(&long.key)))
        .chain(long_functions.iter().map(|long| (long, functions.get(&long.key))))
    {
        let allowed = accepted.copied().unwrap_or(long.limit);
        if long.length > allowed {
            let what =
                long.key.strip_prefix(&long.path).unwrap_or_default().trim_start_matches(':');
            let what = if what.is_empty() { "the file" } else { what };
            let message = format!("{what}: {} lines; at most {allowed}: split it", long.length);
            findings.push(Finding::new(&long.path, long.line, message));
        }
    }
    for long in long_files.iter().filter(|long| long.length > FILE_LINES_MAX) {
        let message =
            format!("{} lines; at most {FILE_LINES_MAX}, regardless of the ratchet", long.length);
        findings.push(Finding::new(&long.path, 0, message));
    }
    findings
}

/// Returns the ratchet that fits the tree.
pub fn accept(tree: &Tree) -> String {
    let (files, functions) = measure(tree);
    let mut out = String::from(
        "# Lengths over the limits, and modules in import circles, as accepted: written by\n\
         # `cargo xtask tidy --accept`.\n\
         # A number may go down; say in the commit why one went up.\n",
    );
    for (name, entries) in [("files", files), ("functions", functions)] {
        writeln!(out, "\n[{name}]").expect("writing to a string succeeds");
        for long in entries {
            writeln!(out, "{:?} = {}", long.key, long.length)
                .expect("writing to a string succeeds");
        }
    }
    writeln!(out, "\n[circles]").expect("writing to a string succeeds");
    for (name, count) in circles::counts(tree) {
        writeln!(out, "{name} = {count}").expect("writing to a string succeeds");
    }
    out
}

/// Returns all files and functions over their limits.
fn measure(tree: &Tree) -> (Vec<Long>, Vec<Long>) {
    let mut files = Vec::new();
    let mut functions = BTreeMap::new();
    for (path, text) in tree.ending_in(".rs") {
        let length = text.lines().count();
        let limit = FILE_LINES;
        if length > limit {
            files.push(Long { path: path.into(), line: 0, key: path.into(), length, limit });
        }
        for function in rust::functions(text) {
            let (length, limit) = (function.length, FUNCTION_LINES);
            let key = format!("{path}:{}", function.name);
            if length > limit {
                // If two have the same name (in two impls of one type) the longer one counts.
                let long = Long { path: path.into(), line: function.line, key, length, limit };
                functions
                    .entry(long.key.clone())
                    .and_modify(|other: &mut Long| other.length = other.length.max(length))
                    .or_insert(long);
            }
        }
    }
    (files, functions.into_values().collect())
}

type Numbers = BTreeMap<String, usize>;

/// The accepted numbers.
pub struct Accepted {
    /// The lengths of files, by path.
    files: Numbers,
    /// The lengths of functions, by path and name.
    functions: Numbers,
    /// The number of modules in import cycles, by crate.
    pub circles: Numbers,
}

/// Parses the tree's ratchet.
pub fn accepted(tree: &Tree) -> Result<Accepted, String> {
    let text = tree.get(PATH).unwrap_or_default();
    let table: toml::Table = text.parse().map_err(|error| format!("{error}"))?;
    let section = |name: &str| -> Result<Numbers, String> {
        let Some(section) = table.get(name) else { return Ok(Numbers::new()) };
        let section = section.as_table().ok_or_else(|| format!("{name} is not a table"))?;
        section
            .iter()
            .map(|(key, value)| {
                let number = value.as_integer().and_then(|value| usize::try_from(value).ok());
                Ok((key.clone(), number.ok_or_else(|| format!("{key} is not a number"))?))
            })
            .collect()
    };
    let (files, functions) = (section("files")?, section("functions")?);
    Ok(Accepted { files, functions, circles: section("circles")? })
}
