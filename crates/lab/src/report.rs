//! Helpers for showing results.

use std::path::Path;

use serde::Serialize;

/// Writes a value as JSON, for people and programs.
pub fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), String> {
    let text = to_json(value)?;
    std::fs::write(path, text + "\n").map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns a value as JSON.
pub fn to_json<T: Serialize>(value: &T) -> Result<String, String> {
    serde_json::to_string_pretty(value).map_err(|error| error.to_string())
}
