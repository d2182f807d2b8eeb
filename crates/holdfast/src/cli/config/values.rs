//! The forms of values in the configuration.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};

use crate::cli::{interval, size};

/// Returns a size: `"256M"`, or a number of bytes.
pub(super) fn bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Size {
        Bytes(u64),
        Text(String),
    }
    match Size::deserialize(deserializer) {
        Ok(Size::Bytes(bytes)) => Ok(bytes),
        Ok(Size::Text(text)) => size::parse(&text).map_err(de::Error::custom),
        Err(_) => Err(de::Error::custom("a size looks like \"256M\" or 268435456")),
    }
}

/// Returns a path, or a list of paths.
pub(super) fn paths<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<PathBuf>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Paths {
        One(PathBuf),
        Several(Vec<PathBuf>),
    }
    match Paths::deserialize(deserializer) {
        Ok(Paths::One(path)) => Ok(vec![path]),
        Ok(Paths::Several(paths)) => Ok(paths),
        Err(_) => Err(de::Error::custom("a pool is a path, or a list of paths")),
    }
}

/// Returns a duration: `"7d"`, or `"off"`.
pub(super) fn time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    interval::parse(&text).map_err(de::Error::custom)
}

/// Refuses the old name: it had another meaning, so it is not accepted as the new one.
pub(super) fn renamed_cache<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    de::IgnoredAny::deserialize(deserializer)?;
    let text = "`cache` was replaced by `memory`, which limits data and metadata together";
    Err(de::Error::custom(text))
}
