//! Sums over the items of a list.

use serde_json::{Map, Value};

use super::glance::{Glance, put};
use crate::rest::order::add;

/// The sums so far.
pub(super) struct Sums {
    /// The number of items that were summed up.
    pub(super) count: usize,
    /// The sums of items that were created, by the names of their fields.
    made: Map<String, Value>,
    /// The sums of items that were only looked at.
    glanced: Vec<(&'static [&'static str], u64)>,
}

impl Sums {
    /// Returns empty sums of these fields.
    pub(super) fn of(fields: &[&str]) -> Self {
        let made = fields.iter().map(|field| ((*field).to_owned(), Value::Null)).collect();
        Self { count: 0, made, glanced: Vec::new() }
    }

    /// Adds an item from a glance; returns whether that was possible.
    pub(super) fn take(&mut self, glance: &dyn Glance) -> bool {
        let taken = glance.add_to(&mut |path, value| match self
            .glanced
            .iter_mut()
            .find(|(known, _)| *known == path)
        {
            Some((_, sum)) => *sum = sum.saturating_add(value),
            None => self.glanced.push((path, value)),
        });
        self.count += usize::from(taken);
        taken
    }

    /// Adds the fields of an item that are summed up.
    pub(super) fn add(&mut self, row: &Value) {
        self.count += 1;
        self.made.iter_mut().for_each(|(field, sum)| add(sum, &row[field]));
    }

    /// Returns all sums.
    pub(super) fn ended(self) -> Value {
        let mut glanced = Value::Object(Map::new());
        self.glanced.iter().for_each(|(path, sum)| put(&mut glanced, path, Value::from(*sum)));
        let mut total = self.made;
        total.iter_mut().for_each(|(field, sum)| add(sum, &glanced[field]));
        Value::Object(total)
    }
}
