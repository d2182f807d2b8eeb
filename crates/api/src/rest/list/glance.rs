//! A glance at an item before it is created: creating all items of a long list, only to drop most
//! of them, is slow.

use serde_json::{Map, Value};

use super::Listing;

/// What is known about an item before it is created.
pub(crate) trait Glance {
    /// Returns the item's key.
    fn key(&self) -> String;

    /// Returns the value at a path, such as `["space", "unique"]`; `None` if only the created item
    /// shows it.
    fn field(&self, path: &[&str]) -> Option<Value>;

    /// Passes to `sum` everything that the item adds to `total`, and returns `true`; or passes
    /// nothing and returns `false` if only the created item shows it.
    fn add_to(&self, _sum: &mut dyn FnMut(&'static [&'static str], u64)) -> bool {
        false
    }
}

/// The fields of each item that a list uses.
pub(super) struct Wanted<'a> {
    listing: &'a Listing,
    filter: Vec<Vec<&'a str>>,
    sort: Vec<Vec<&'a str>>,
}

impl<'a> Wanted<'a> {
    pub(super) fn of(listing: &'a Listing) -> Self {
        let mut filter = listing.filter.as_ref().map_or(Vec::new(), |filter| filter.paths());
        filter.sort_unstable();
        filter.dedup();
        let sort = listing.sort.iter().map(|key| key.path.iter().map(String::as_str).collect());
        Self { listing, filter, sort: sort.collect() }
    }

    /// Returns whether an item matches the filter, if a glance suffices to decide.
    pub(super) fn fits(&self, glance: &dyn Glance) -> Option<bool> {
        let Some(filter) = &self.listing.filter else { return Some(true) };
        let mut row = Value::Null;
        for path in &self.filter {
            put(&mut row, path, glance.field(path)?);
        }
        Some(filter.matches(&row))
    }

    /// Returns the item's values of the fields of the order, if a glance suffices.
    pub(super) fn values(&self, glance: &dyn Glance) -> Option<Vec<Value>> {
        self.sort.iter().map(|path| glance.field(path)).collect()
    }
}

/// Puts a value at a path. If an earlier value contains this path, the value is already there.
pub(super) fn put(row: &mut Value, path: &[&str], value: Value) {
    let Some((step, rest)) = path.split_first() else {
        *row = value;
        return;
    };
    if !row.is_object() {
        *row = Value::Object(Map::new());
    }
    if let Some(fields) = row.as_object_mut() {
        put(fields.entry(*step).or_insert(Value::Null), rest, value);
    }
}
