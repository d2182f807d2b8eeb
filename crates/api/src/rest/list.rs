//! Lists: filter, order and pages, in one place for all of them.
//!
//! A list comes in pieces, in its natural order, so that no lock is held for long. In that order
//! (the default) it is read up to the end of the page that was asked for; with `sort` all of it is
//! read, and the best rows are kept. A continuation token is the place of the last row in the order
//! that was asked for, so a page goes on where the last one ended whatever came or went meanwhile.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::order::{Place, SortKey, add, at_path, compare, place, sort_keys, token};
use super::project::project;
use super::query::Query;
use super::{Filter, Refused};

/// The most items of a page, and as many as it has where nothing is asked.
pub(crate) const LIMIT_MAX: usize = 1000;
/// The most items that can be skipped: whoever wants more goes on with the token.
const OFFSET_MAX: u64 = 100_000;
/// How many items are read at once.
const PIECE: usize = 250;

/// An item of a list.
pub(crate) trait Listed: Serialize {
    /// What tells it from all others of its list; where a list comes in pieces, what the next one
    /// is behind.
    fn key(&self) -> String;

    /// The fields that are summed up in `total`.
    fn totalled() -> &'static [&'static str] {
        &[]
    }
}

/// A list that was asked for.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Items {
    /// The items of this page.
    pub items: Vec<Value>,
    /// Whether there are more behind the last one.
    pub more_items_remaining: bool,
    /// Where to go on, if there are more.
    pub continuation_token: Option<String>,
    /// How many items there are on all pages, if that was asked.
    pub total_item_count: Option<usize>,
    /// Sums over all items, if only they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<Vec<Value>>,
}

impl Items {
    /// What was changed or made.
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

/// The parameters that every list takes, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
pub(crate) struct ListParams {
    /// Which items: a condition on their fields, such as `name='db*' and provisioned>=1048576`.
    filter: Option<String>,
    /// By which fields they are ordered, comma-separated; `-` before or behind one turns it round.
    sort: Option<String>,
    /// The most items of a page: up to 1000, which is the default; 0 only counts.
    limit: Option<u64>,
    /// How many items to skip: up to 100000; without a meaning beside a token.
    offset: Option<u64>,
    /// Where to go on: from the last page.
    continuation_token: Option<String>,
    /// Whether to count the items of all pages.
    total_item_count: Option<bool>,
    /// Whether to answer sums over all items instead of the items.
    total_only: Option<bool>,
}

/// Which items of a list, and in which order.
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
    /// Takes the parameters of a list.
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
            // A client that goes through pages repeats all that it asked for the first one.
            offset: if after.is_some() { 0 } else { offset as usize },
            after: after.map(|token| place(&token)).transpose()?,
            counts,
            only_total: query.flag("total_only")?.unwrap_or(false),
        };
        match &listing.after {
            Some(place) if place.values.len() != listing.sort.len() => {
                let text = "The token is of another order: ask for the first page again.";
                Err(Refused::bad("continuation_token", text))
            }
            _ => Ok(listing),
        }
    }

    /// A list that is all there, in its natural order. What is in it twice is shown once.
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
                    let text = "What the last page ended with is gone: ask for the first again.";
                    Refused::bad("continuation_token", text)
                })?,
            };
            Ok(distinct.iter().skip(start).take(limit).map(|item| (*item).clone()).collect())
        })
    }

    /// A list that comes in pieces: `piece` gives up to so many items, in the natural order, from
    /// the first one behind a key on.
    pub(crate) fn pieces<T: Listed>(
        &self,
        piece: impl Fn(Option<&str>, usize) -> Result<Vec<T>, Refused>,
    ) -> Result<Items, Refused> {
        if self.only_total {
            return self.total(piece);
        }
        let (mut rows, counted) = match self.sort.is_empty() {
            true => (self.next_rows(&piece)?, None),
            false => self.best_rows(&piece).map(|(rows, count)| (rows, Some(count)))?,
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

    /// Goes over what fits the filter, from behind a key on, until `each` says that it is enough.
    /// It is told those fields of an item that the filter and the order look at.
    fn walk<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize) -> Result<Vec<T>, Refused>,
        mut after: Option<String>,
        mut each: impl FnMut(T, &Value) -> Result<bool, Refused>,
    ) -> Result<(), Refused> {
        let fields = self.fields();
        loop {
            let items = piece(after.as_deref(), PIECE)?;
            let is_full = items.len() == PIECE;
            after = items.last().filter(|_| is_full).map(Listed::key);
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
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// The fields that the filter and the order look at.
    fn fields(&self) -> Vec<&str> {
        let mut fields = Vec::new();
        if let Some(filter) = &self.filter {
            filter.fields(&mut fields);
        }
        fields.extend(self.sort.iter().filter_map(|key| key.path.first().map(String::as_str)));
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// The rows of the page in the natural order, and one more if there is one.
    fn next_rows<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize) -> Result<Vec<T>, Refused>,
    ) -> Result<Vec<(Place, T)>, Refused> {
        let (mut rows, mut skipped) = (Vec::new(), 0);
        let after = self.after.as_ref().map(|place| place.key.clone());
        self.walk(piece, after, |item, _| {
            if skipped < self.offset {
                skipped += 1;
                return Ok(false);
            }
            rows.push((Place { values: Vec::new(), key: item.key() }, item));
            Ok(rows.len() > self.limit)
        })?;
        Ok(rows)
    }

    /// The rows of the page in the order that was asked for, and one more if there is one; and how
    /// many there are on all pages.
    fn best_rows<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize) -> Result<Vec<T>, Refused>,
    ) -> Result<(Vec<(Place, T)>, usize), Refused> {
        let wanted = self.offset + self.limit + 1;
        let (mut rows, mut count): (Vec<(Place, T)>, _) = (Vec::new(), 0);
        // Behind this one there are enough others already.
        let mut last: Option<Place> = None;
        self.walk(piece, None, |item, row| {
            count += 1;
            let values = self.sort.iter().map(|key| at_path(row, &key.path).clone()).collect();
            let place = Place { values, key: item.key() };
            let is_behind = |other: &Place| self.compare(other, &place) == Ordering::Less;
            if self.after.as_ref().is_some_and(|after| !is_behind(after))
                || last.as_ref().is_some_and(is_behind)
            {
                return Ok(false);
            }
            rows.push((place, item));
            if rows.len() >= 2 * wanted {
                rows.sort_by(|a, b| self.compare(&a.0, &b.0));
                rows.truncate(wanted);
                last = rows.last().map(|(place, _)| place.clone());
            }
            Ok(false)
        })?;
        rows.sort_by(|a, b| self.compare(&a.0, &b.0));
        rows.drain(..self.offset.min(rows.len()));
        rows.truncate(self.limit + 1);
        Ok((rows, count))
    }

    fn count<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize) -> Result<Vec<T>, Refused>,
    ) -> Result<usize, Refused> {
        let mut count = 0;
        self.walk(piece, None, |_, _| {
            count += 1;
            Ok(false)
        })?;
        Ok(count)
    }

    fn total<T: Listed>(
        &self,
        piece: impl Fn(Option<&str>, usize) -> Result<Vec<T>, Refused>,
    ) -> Result<Items, Refused> {
        let (mut total, mut count) = (Map::new(), 0);
        self.walk(&piece, None, |item, _| {
            count += 1;
            let row = project(&item, T::totalled()).map_err(|_| Refused::broken())?;
            for field in T::totalled() {
                let sum = total.entry((*field).to_owned()).or_insert(Value::Null);
                add(sum, &row[*field]);
            }
            Ok(false)
        })?;
        let mut items = Items::of::<Value>([])?;
        items.total_item_count = self.counts.then_some(count);
        items.total = Some(vec![Value::Object(total)]);
        Ok(items)
    }

    fn compare(&self, a: &Place, b: &Place) -> Ordering {
        let values = self.sort.iter().zip(a.values.iter().zip(&b.values));
        let mut orders = values.map(|(key, (a, b))| match key.descending {
            false => compare(a, b),
            true => compare(b, a),
        });
        orders.find(|order| order.is_ne()).unwrap_or_else(|| a.key.cmp(&b.key))
    }
}

/// An item as it is shown.
pub(crate) fn value<T: Serialize>(item: &T) -> Result<Value, Refused> {
    serde_json::to_value(item).map_err(|_| Refused::broken())
}

#[cfg(test)]
mod tests;
