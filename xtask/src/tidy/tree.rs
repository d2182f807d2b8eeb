//! The files that the checks read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The tracked text files, by path from the root of the repository, and the paths of others.
#[derive(Default)]
pub struct Tree {
    files: BTreeMap<String, String>,
    /// Other files, such as pictures, which a document may link to.
    others: BTreeSet<String>,
}

impl Tree {
    /// Reads the files that git tracks, as they are in the work tree. Without git (a source
    /// archive), all files except hidden ones and `target`.
    pub fn tracked(root: &Path) -> Result<Self> {
        let mut tree = Self::default();
        for path in list(root)? {
            // A file that was deleted but is still in the index does not count; neither does a
            // directory.
            let Ok(bytes) = std::fs::read(root.join(&path)) else { continue };
            match String::from_utf8(bytes) {
                Ok(text) => drop(tree.files.insert(path, text)),
                Err(_) => drop(tree.others.insert(path)),
            }
        }
        if tree.files.is_empty() {
            bail!("{} contains no files to check", root.display());
        }
        Ok(tree)
    }

    /// Adds a file, or replaces one with the same path.
    pub fn insert(&mut self, path: &str, text: &str) {
        self.files.insert(path.to_owned(), text.to_owned());
    }

    /// Returns a file's text.
    pub fn get(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Returns all files, sorted by path.
    pub fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// Returns the files whose path ends in `suffix`.
    pub fn ending_in<'a>(&'a self, suffix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files().filter(move |(path, _)| path.ends_with(suffix))
    }

    /// Returns whether such a file exists, or a directory that contains one.
    pub fn exists(&self, path: &str) -> bool {
        let directory = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self.others.contains(path)
            || self.files.keys().chain(&self.others).any(|file| file.starts_with(&directory))
    }
}

/// Returns the paths to read.
fn list(root: &Path) -> Result<Vec<String>> {
    if !root.join(".git").exists() {
        let mut paths = Vec::new();
        walk(root, "", &mut paths)?;
        return Ok(paths);
    }
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(root)
        .output()
        .context("git could not be started: it lists the tracked files")?;
    if !output.status.success() {
        bail!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let names = String::from_utf8(output.stdout).context("a path is not UTF-8")?;
    Ok(names.split_terminator('\0').map(str::to_owned).collect())
}

/// Adds the files below `directory` (from the root, empty or ending in a slash).
fn walk(root: &Path, directory: &str, paths: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        let path = format!("{directory}{name}");
        if entry.file_type()?.is_dir() {
            walk(root, &format!("{path}/"), paths)?;
        } else {
            paths.push(path);
        }
    }
    Ok(())
}
