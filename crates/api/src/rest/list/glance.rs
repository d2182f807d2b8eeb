//! A look at an item before it is made: to make all items of a long list, only to leave most of
//! them out, takes its time.

use serde_json::{Map, Value};

use super::Listing;

/// What can be told of an item before it is made.
pub(crate) trait Glance {
    /// The item's key.
    fn key(&self) -> String;

    /// The value that a path leads to, such as `["space", "unique"]`; `None` where only the item
    /// itself can tell.
    fn field(&self, path: &[&str]) -> Option<Value>;

    /// Gives `sum` all that the item adds to `total`, and `true`; or nothing and `false` where only
    /// the item itself can tell.
    fn add_to(&self, _sum: &mut dyn FnMut(&'static [&'static str], u64)) -> bool {
        false
    }
}

/// What a list looks at of each item.
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

    /// Whether an item fits the filter, if a glance tells.
    pub(super) fn fits(&self, glance: &dyn Glance) -> Option<bool> {
        let Some(filter) = &self.listing.filter else { return Some(true) };
        let mut row = Value::Null;
        for path in &self.filter {
            put(&mut row, path, glance.field(path)?);
        }
        Some(filter.matches(&row))
    }

    /// What an item holds in the fields of the order, if a glance tells.
    pub(super) fn values(&self, glance: &dyn Glance) -> Option<Vec<Value>> {
        self.sort.iter().map(|path| glance.field(path)).collect()
    }
}

/// Puts a value where a path leads to. A path through another one's value finds it there.
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
