//! The rows of a page in an order that is not the natural one.

use serde_json::Value;

use super::{Listing, Place};

/// The best rows so far, and a few more.
pub(super) struct Best<'a, T> {
    listing: &'a Listing,
    /// The rows, each with its item if it has been created.
    pub(super) rows: Vec<(Place, Option<T>)>,
    /// The number of rows that were offered.
    pub(super) count: usize,
    /// Rows after this position are not needed: there are enough others already.
    last: Option<Place>,
}

impl<'a, T> Best<'a, T> {
    pub(super) fn new(listing: &'a Listing) -> Self {
        Self { listing, rows: Vec::new(), count: 0, last: None }
    }

    /// Returns the number of rows that are needed: those to skip, those of the page, and one that
    /// shows that there are more.
    fn wanted(&self) -> usize {
        self.listing.offset + self.listing.limit + 1
    }

    /// Takes one more row: its values of the fields of the order, and its key, which is computed
    /// only if the row may be among the best.
    pub(super) fn take(
        &mut self,
        values: Vec<Value>,
        key: impl FnOnce() -> String,
        item: Option<T>,
    ) {
        self.count += 1;
        let is_far_behind =
            |last: &Place| self.listing.compare_values(&last.values, &values).is_lt();
        if self.last.as_ref().is_some_and(is_far_behind) {
            return;
        }
        let place = Place { values, key: key() };
        let is_behind = |other: &Place| self.listing.compare(other, &place).is_lt();
        if self.listing.after.as_ref().is_some_and(|after| !is_behind(after))
            || self.last.as_ref().is_some_and(is_behind)
        {
            return;
        }
        self.rows.push((place, item));
        // In batches, so that rows are seldom sorted.
        if self.rows.len() >= 2 * self.wanted() {
            self.sort();
            self.last = self.rows.last().map(|(place, _)| place.clone());
        }
    }

    fn sort(&mut self) {
        self.rows.sort_by(|a, b| self.listing.compare(&a.0, &b.0));
        self.rows.truncate(self.wanted());
    }

    /// Returns the rows of the page, and one more if there is one.
    pub(super) fn ended(mut self) -> Self {
        self.sort();
        self.rows.drain(..self.listing.offset.min(self.rows.len()));
        self
    }
}
