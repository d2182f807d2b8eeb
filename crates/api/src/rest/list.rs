//! Lists: filters, order and pages, in one place for all of them.
//!
//! A list is read in pieces, in its natural order, so that no lock is held for long. In that order
//! (the default) it is read up to the end of the page; with `sort` it is read to its end, and the
//! best rows are kept. A continuation token is the position of the last row in the requested order,
//! so that the next page continues after it even if rows were added or removed meanwhile.

mod best;
mod glance;
mod params;
mod sums;

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::hash_map::{Entry, HashMap};

use array::Looked;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::order::{Place, SortKey, at_path, compare, place, sort_keys, token};
use super::project::project;
use super::query::Query;
use super::{Filter, Refused};

use best::Best;
pub(crate) use glance::Glance;
use glance::Wanted;
pub(crate) use params::ListParams;
use sums::Sums;

/// The maximum number of items of a page, which is also the default.
pub(crate) const LIMIT_MAX: usize = 1000;
/// The maximum number of items that can be skipped: to go further, clients use the token.
const OFFSET_MAX: u64 = 100_000;
/// The number of items that are read at once.
const PIECE: usize = 250;
/// The maximum that one request reads: twice all snapshots, or tags; there may be more connections.
const LOOKED_MAX: usize = 200_000;

/// An item of a list.
pub(crate) trait Listed: Serialize {
    /// Returns the key of the item in its list. If the list is read in pieces, the next piece
    /// begins after this key.
    fn key(&self) -> String;

    /// Returns the fields that are summed up in `total`.
    fn totalled() -> &'static [&'static str] {
        &[]
    }
}

/// Decides from a glance whether an item is worth creating.
pub(crate) type Worth<'a> = &'a mut dyn FnMut(&dyn Glance) -> bool;

/// A page of a list.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Items {
    /// The items of this page.
    pub items: Vec<Value>,
    /// Whether there are more after the last one.
    pub more_items_remaining: bool,
    /// Where to continue, if there are more.
    #[schema(required = true)]
    pub continuation_token: Option<String>,
    /// How many items there are on all pages, if requested.
    #[schema(required = true)]
    pub total_item_count: Option<usize>,
    /// Sums over all items, if only they were requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Vec<Value>>,
}

impl Items {
    /// Adds the array to each item and to the sums, for clients of several arrays.
    pub(crate) fn in_context(mut self, array: &str) -> Self {
        let context = serde_json::json!({ "name": array });
        for item in self.items.iter_mut().chain(self.total.iter_mut().flatten()) {
            if let Some(fields) = item.as_object_mut() {
                fields.entry("context").or_insert_with(|| context.clone());
            }
        }
        self
    }

    /// Returns the items that were changed or created.
    pub(crate) fn of<T: Serialize>(items: impl IntoIterator<Item = T>) -> Result<Self, Refused> {
        let items: Result<_, _> = items.into_iter().map(|item| value(&item)).collect();
        Ok(Self {
            items: items?,
            more_items_remaining: false,
            continuation_token: None,
            total_item_count: None,
            total: None,
        })
    }
}

/// The selection and the order of the items of a list.
#[derive(Debug)]
pub(crate) struct Listing {
    filter: Option<Filter>,
    sort: Vec<SortKey>,
    limit: usize,
    offset: usize,
    after: Option<Place>,
    counts: bool,
    only_total: bool,
}

impl Listing {
    /// Takes the parameters of a list from a query.
    pub(crate) fn take(query: &mut Query) -> Result<Self, Refused> {
        let filter = query.text("filter").filter(|text| !text.is_empty());
        let filter = filter.map(|text| Filter::parse(&text)).transpose()?;
        let sort = sort_keys(&query.list("sort")?)?;
        let limit = query.number("limit")?;
        let offset = query.number("offset")?.unwrap_or(0);
        if offset > OFFSET_MAX {
            let text = format!("At most {OFFSET_MAX} items can be skipped.");
            return Err(Refused::bad("offset", text));
        }
        let after = query.text("continuation_token").filter(|text| !text.is_empty());
        let counts = query.flag("total_item_count")?.unwrap_or(false) || limit == Some(0);
        let listing = Self {
            filter,
            sort,
            limit: limit.map_or(LIMIT_MAX, |limit| limit.min(LIMIT_MAX as u64) as usize),
            // A client that reads page after page repeats the parameters of the first one.
            offset: if after.is_some() { 0 } else { offset as usize },
            after: after.map(|token| place(&token)).transpose()?,
            counts,
            only_total: query.flag("total_only")?.unwrap_or(false),
        };
        match &listing.after {
            Some(place) if place.values.len() != listing.sort.len() => {
                let text = "The token is of another order: request the first page again.";
                Err(Refused::bad("continuation_token", text))
            }
            _ => Ok(listing),
        }
    }

    /// Returns the names of which an item must have one, in lower case and sorted, if the filter
    /// requires that: a list ordered by name looks them up.
    pub(crate) fn names(&self) -> Option<Vec<&str>> {
        let names = self.filter.as_ref()?.texts_of("name")?;
        let mut names: Vec<_> = names.iter().map(String::as_str).collect();
        names.sort_unstable();
        Some(names)
    }

    /// Returns the items of a list ordered by name that may match the filter, in that order.
    pub(crate) fn among<T: Listed + Clone>(&self, items: &[T]) -> Result<Items, Refused> {
        self.pieces(|after, limit| {
            let is_done = |item: &T| {
                after.is_some_and(|after| item.key().to_lowercase() <= after.to_lowercase())
            };
            let start = items.partition_point(is_done);
            Ok(items.iter().skip(start).take(limit).cloned().collect())
        })
    }

    /// Returns a list that is complete, in its natural order. Duplicates are shown once.
    pub(crate) fn all<T: Listed + Clone>(&self, items: &[T]) -> Result<Items, Refused> {
        let mut places = HashMap::new();
        let mut distinct: Vec<&T> = Vec::with_capacity(items.len());
        for item in items {
            if let Entry::Vacant(place) = places.entry(item.key()) {
                place.insert(distinct.len());
                distinct.push(item);
            }
        }
        self.pieces(|after, limit| {
            let start = match after {
                None => 0,
                Some(key) => places.get(key).map(|at| at + 1).ok_or_else(|| {
                    let text =
                        "The last item of the previous page is gone: request the first page again.";
                    Refused::bad("continuation_token", text)
                })?,
            };
            Ok(distinct.iter().skip(start).take(limit).map(|item| (*item).clone()).collect())
        })
    }

    /// Returns a list that is read in pieces: `piece` returns up to a number of items, in the
    /// natural order, after a key.
    pub(crate) fn pieces<T: Listed>(
        &self,
        piece: impl Fn(Option<&str>, usize) -> Result<Vec<T>, Refused>,
    ) -> Result<Items, Refused> {
        let piece = |after: Option<&str>, limit, _: Worth<'_>| {
            let items = piece(after, limit)?;
            let next = items.last().filter(|_| items.len() == limit).map(Listed::key);
            Ok(Looked { items, next })
        };
        self.glanced(piece, |_| None)
    }

    /// Returns a list that is read in pieces: `piece` looks at up to a number of items, in the
    /// natural order, after a key, and creates those that are worth it. `one` creates the item with
    /// a key, if it is still in the list.
    pub(crate) fn glanced<T: Listed>(
        &self,
        piece: impl Fn(Option<&str>, usize, Worth<'_>) -> Result<Looked<T>, Refused>,
        one: impl Fn(&str) -> Option<T>,
    ) -> Result<Items, Refused> {
        if self.only_total {
            return self.total(&piece);
        }
        let (mut rows, counted) = match self.sort.is_empty() {
            true => (self.next_rows(&piece)?, None),
            false => self.best_rows(&piece, &one).map(|(rows, count)| (rows, Some(count)))?,
        };
        let more = rows.len() > self.limit;
        rows.truncate(self.limit);
        let token = rows.last().filter(|_| more).map(|(place, _)| token(place)).transpose()?;
        let count = match (self.counts, counted) {
            (false, _) => None,
            (true, Some(count)) => Some(count),
            (true, None) => Some(self.count(&piece)?),
        };
        let items: Result<_, _> = rows.iter().map(|(_, item)| value(item)).collect();
        Ok(Items {
            items: items?,
            more_items_remaining: more && self.limit > 0,
            continuation_token: token,
            total_item_count: count,
            total: None,
        })
    }

    /// Passes the matching items after a key to `each`, until it returns that it has enough, with
    /// the fields that the filter and the order use. Skips items that `is_worth` rejects from a
    /// glance. Reads `size` items at once.
    fn walk<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize, Worth<'_>) -> Result<Looked<T>, Refused>,
        mut after: Option<String>,
        size: usize,
        mut is_worth: impl FnMut(&dyn Glance) -> bool,
        mut each: impl FnMut(T, &Value) -> Result<bool, Refused>,
    ) -> Result<(), Refused> {
        let (fields, mut looked) = (self.fields(), 0);
        loop {
            let Looked { items, next } = piece(after.as_deref(), size, &mut is_worth)?;
            looked += size;
            if looked > LOOKED_MAX + size {
                let text = "The list has more than 200,000 items to look at. Name some of them, or \
                            read it page by page in its own order, without a filter.";
                return Err(Refused::bad("filter", text));
            }
            for item in items {
                let row = match fields.is_empty() {
                    true => Value::Null,
                    false => project(&item, &fields).map_err(|_| Refused::broken())?,
                };
                let fits = self.filter.as_ref().is_none_or(|filter| filter.matches(&row));
                if fits && each(item, &row)? {
                    return Ok(());
                }
            }
            match next {
                Some(_) => after = next,
                None => return Ok(()),
            }
        }
    }

    /// Returns the fields that the filter and the order use.
    fn fields(&self) -> Vec<&str> {
        let filter = self.filter.iter().flat_map(Filter::paths);
        let mut fields: Vec<_> = filter.filter_map(|path| path.first().copied()).collect();
        fields.extend(self.sort.iter().filter_map(|key| key.path.first().map(String::as_str)));
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// Returns the rows of the page in the natural order, and one more if there is one.
    fn next_rows<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize, Worth<'_>) -> Result<Looked<T>, Refused>,
    ) -> Result<Vec<(Place, T)>, Refused> {
        let (mut rows, mut skipped) = (Vec::new(), 0);
        let after = self.after.as_ref().map(|place| place.key.clone());
        // If nothing is filtered out, no more are created than are shown.
        let all = self.filter.as_ref().map_or(self.offset + self.limit + 1, |_| PIECE);
        let size = all.min(PIECE);
        let wanted = Wanted::of(self);
        let is_worth = |glance: &dyn Glance| wanted.fits(glance) != Some(false);
        self.walk(piece, after, size, is_worth, |item, _| {
            if skipped < self.offset {
                skipped += 1;
                return Ok(false);
            }
            rows.push((Place { values: Vec::new(), key: item.key() }, item));
            Ok(rows.len() > self.limit)
        })?;
        Ok(rows)
    }

    /// Returns the rows of the page in the requested order, and one more if there is one; and the
    /// number of rows on all pages. If a glance suffices for the order, creates only the best rows;
    /// leaves out those deleted by then.
    fn best_rows<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize, Worth<'_>) -> Result<Looked<T>, Refused>,
        one: &impl Fn(&str) -> Option<T>,
    ) -> Result<(Vec<(Place, T)>, usize), Refused> {
        let (best, wanted) = (RefCell::new(Best::<T>::new(self)), Wanted::of(self));
        let is_worth = |glance: &dyn Glance| {
            let (Some(fits), Some(values)) = (wanted.fits(glance), wanted.values(glance)) else {
                return true;
            };
            if fits {
                best.borrow_mut().take(values, || glance.key(), None);
            }
            false
        };
        self.walk(piece, None, PIECE, is_worth, |item, row| {
            let key = item.key();
            best.borrow_mut().take(self.values(row), || key, Some(item));
            Ok(false)
        })?;
        let Best { rows, count, .. } = best.into_inner().ended();
        let made = rows.into_iter().filter_map(|(place, item)| {
            let item = item.or_else(|| one(&place.key))?;
            Some((place, item))
        });
        Ok((made.collect(), count))
    }

    /// Returns the item's values of the fields of the order.
    fn values(&self, row: &Value) -> Vec<Value> {
        self.sort.iter().map(|key| at_path(row, &key.path).clone()).collect()
    }

    fn count<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize, Worth<'_>) -> Result<Looked<T>, Refused>,
    ) -> Result<usize, Refused> {
        let (count, wanted) = (Cell::new(0), Wanted::of(self));
        let is_worth = |glance: &dyn Glance| {
            let fits = wanted.fits(glance);
            count.set(count.get() + usize::from(fits == Some(true)));
            fits.is_none()
        };
        self.walk(piece, None, PIECE, is_worth, |_, _| {
            count.set(count.get() + 1);
            Ok(false)
        })?;
        Ok(count.get())
    }

    fn total<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize, Worth<'_>) -> Result<Looked<T>, Refused>,
    ) -> Result<Items, Refused> {
        let (sums, wanted) = (RefCell::new(Sums::of(T::totalled())), Wanted::of(self));
        let is_worth = |glance: &dyn Glance| match wanted.fits(glance) {
            Some(true) => !sums.borrow_mut().take(glance),
            fits => fits.is_none(),
        };
        self.walk(piece, None, PIECE, is_worth, |item, _| {
            let row = project(&item, T::totalled()).map_err(|_| Refused::broken())?;
            sums.borrow_mut().add(&row);
            Ok(false)
        })?;
        let sums = sums.into_inner();
        let mut items = Items::of::<Value>([])?;
        items.total_item_count = self.counts.then_some(sums.count);
        items.total = Some(vec![sums.ended()]);
        Ok(items)
    }

    /// Compares two rows by the fields of the order only.
    fn compare_values(&self, a: &[Value], b: &[Value]) -> Ordering {
        let values = self.sort.iter().zip(a.iter().zip(b));
        let mut orders = values.map(|(key, (a, b))| match key.descending {
            false => compare(a, b),
            true => compare(b, a),
        });
        orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn compare(&self, a: &Place, b: &Place) -> Ordering {
        self.compare_values(&a.values, &b.values).then_with(|| a.key.cmp(&b.key))
    }
}

/// Converts an item to JSON.
pub(crate) fn value<T: Serialize>(item: &T) -> Result<Value, Refused> {
    serde_json::to_value(item).map_err(|_| Refused::broken())
}

#[cfg(test)]
mod tests;
