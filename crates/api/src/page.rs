//! Parameters that select objects, and pages of a list.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use utoipa::IntoParams;

/// Which part of a list to return.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Page {
    /// Only objects after this name.
    pub after: Option<String>,
    /// The most objects to return: 1 to 10000 (the default).
    pub limit: Option<usize>,
}

impl Page {
    /// Returns the objects of this page, and whether there are more. `find` returns up to a number
    /// of objects after a name.
    pub(crate) fn of<T>(&self, find: impl FnOnce(Option<&str>, usize) -> Vec<T>) -> (Vec<T>, bool) {
        let limit = self.limit.unwrap_or(crate::PAGE_MAX).clamp(1, crate::PAGE_MAX);
        let mut found = find(self.after.as_deref(), limit + 1);
        let more = found.len() > limit;
        found.truncate(limit);
        (found, more)
    }
}

/// Which volumes to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct VolumeFilter {
    /// Only volumes after this name.
    pub after: Option<String>,
    /// The most volumes to return: 1 to 10000 (the default).
    pub limit: Option<usize>,
    /// Destroyed ones instead of the others.
    #[serde(default)]
    pub destroyed: bool,
}

impl VolumeFilter {
    pub(crate) fn page(&self) -> Page {
        Page { after: self.after.clone(), limit: self.limit }
    }
}

/// Parses a whole number in a query, within the range that the description gives: below 2^63.
pub(crate) fn whole<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let number = Option::<u64>::deserialize(deserializer)?;
    match number {
        Some(number) if i64::try_from(number).is_err() => {
            Err(D::Error::custom("the number is too large"))
        }
        _ => Ok(number),
    }
}
