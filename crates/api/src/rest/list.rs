//! Lists: filter, order and pages, in one place for all of them.
//!
//! A list comes in pieces, in its natural order, so that no lock is held for long. In that order
//! (the default) it is read up to the end of the page that was asked for; with `sort` all of it is
//! read, and the best rows are kept. A continuation token is the place of the last row in the order
//! that was asked for, so a page goes on where the last one ended whatever came or went meanwhile.

mod best;
mod params;

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use array::Looked;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::order::{Place, SortKey, add, at_path, compare, place, sort_keys, token};
use super::project::project;
use super::query::Query;
use super::{Filter, Refused};

use best::Best;
pub(crate) use params::ListParams;

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

/// What can be told of an item before it is made: to make all items of a long list, only to leave
/// most of them out, takes its time.
pub(crate) trait Glance {
    /// The item's key.
    fn key(&self) -> String;

    /// A field of it; `None` where only the item itself can tell.
    fn field(&self, name: &str) -> Option<Value>;
}

/// Decides by a glance whether an item is worth to be made.
pub(crate) type Worth<'a> = &'a mut dyn FnMut(&dyn Glance) -> bool;

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
        self.glanced(|after, limit, _| {
            let items = piece(after, limit)?;
            let next = items.last().filter(|_| items.len() == limit).map(Listed::key);
            Ok(Looked { items, next })
        })
    }

    /// A list that comes in pieces: `piece` looks at up to so many items, in the natural order,
    /// from the first one behind a key on, and makes those that are worth it.
    pub(crate) fn glanced<T: Listed>(
        &self,
        piece: impl Fn(Option<&str>, usize, Worth<'_>) -> Result<Looked<T>, Refused>,
    ) -> Result<Items, Refused> {
        if self.only_total {
            return self.total(&piece);
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
    /// It is told those fields of an item that the filter and the order look at. What `is_worth`
    /// knows by a glance to be of no use does not get there. `size` items are looked at at once.
    fn walk<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize, Worth<'_>) -> Result<Looked<T>, Refused>,
        mut after: Option<String>,
        size: usize,
        mut is_worth: impl FnMut(&dyn Glance) -> bool,
        mut each: impl FnMut(T, &Value) -> Result<bool, Refused>,
    ) -> Result<(), Refused> {
        let fields = self.fields();
        loop {
            let Looked { items, next } = piece(after.as_deref(), size, &mut is_worth)?;
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

    /// Those fields of an item, if a glance tells all of them.
    fn glimpse(fields: &[&str], glance: &dyn Glance) -> Option<Value> {
        let told = fields.iter().map(|name| Some(((*name).to_owned(), glance.field(name)?)));
        told.collect::<Option<Map<_, _>>>().map(Value::Object)
    }

    /// Whether an item fits the filter, if a glance tells.
    fn fits(&self, glance: &dyn Glance) -> Option<bool> {
        let Some(filter) = &self.filter else { return Some(true) };
        let mut fields = Vec::new();
        filter.fields(&mut fields);
        Some(filter.matches(&Self::glimpse(&fields, glance)?))
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
        piece: &impl Fn(Option<&str>, usize, Worth<'_>) -> Result<Looked<T>, Refused>,
    ) -> Result<Vec<(Place, T)>, Refused> {
        let (mut rows, mut skipped) = (Vec::new(), 0);
        let after = self.after.as_ref().map(|place| place.key.clone());
        // Where nothing is left out, no more are made than are shown.
        let all = self.filter.as_ref().map_or(self.offset + self.limit + 1, |_| PIECE);
        let size = all.min(PIECE);
        let is_worth = |glance: &dyn Glance| self.fits(glance) != Some(false);
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

    /// The rows of the page in the order that was asked for, and one more if there is one; and how
    /// many there are on all pages. Of what a glance tells enough, only the best are made.
    fn best_rows<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize, Worth<'_>) -> Result<Looked<T>, Refused>,
    ) -> Result<(Vec<(Place, T)>, usize), Refused> {
        let best = RefCell::new(Best::<T>::new(self));
        let fields = self.fields();
        let is_worth = |glance: &dyn Glance| {
            let Some(row) = Self::glimpse(&fields, glance) else { return true };
            if self.filter.as_ref().is_none_or(|filter| filter.matches(&row)) {
                best.borrow_mut().take(self.place(&row, glance.key()), None);
            }
            false
        };
        self.walk(piece, None, PIECE, is_worth, |item, row| {
            best.borrow_mut().take(self.place(row, item.key()), Some(item));
            Ok(false)
        })?;
        let Best { mut rows, count, .. } = best.into_inner().ended();
        self.make(piece, &mut rows)?;
        let rows = rows.into_iter().filter_map(|(place, item)| Some((place, item?)));
        Ok((rows.collect(), count))
    }

    /// Makes the items of rows that were only looked at; what is gone by now gets none.
    fn make<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize, Worth<'_>) -> Result<Looked<T>, Refused>,
        rows: &mut [(Place, Option<T>)],
    ) -> Result<(), Refused> {
        let looked_at = rows.iter_mut().filter(|(_, item)| item.is_none());
        let mut missing: HashMap<String, &mut Option<T>> =
            looked_at.map(|(place, item)| (place.key.clone(), item)).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let keys: HashSet<String> = missing.keys().cloned().collect();
        let is_worth = |glance: &dyn Glance| keys.contains(&glance.key());
        self.walk(piece, None, PIECE, is_worth, |item, _| {
            if let Some(place) = missing.remove(&item.key()) {
                *place = Some(item);
            }
            Ok(missing.is_empty())
        })
    }

    /// The place of an item in the order that was asked for.
    fn place(&self, row: &Value, key: String) -> Place {
        let values = self.sort.iter().map(|key| at_path(row, &key.path).clone()).collect();
        Place { values, key }
    }

    fn count<T: Listed>(
        &self,
        piece: &impl Fn(Option<&str>, usize, Worth<'_>) -> Result<Looked<T>, Refused>,
    ) -> Result<usize, Refused> {
        let count = Cell::new(0);
        let is_worth = |glance: &dyn Glance| {
            let fits = self.fits(glance);
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
        let (mut total, mut count) = (Map::new(), 0);
        let is_worth = |glance: &dyn Glance| self.fits(glance) != Some(false);
        self.walk(piece, None, PIECE, is_worth, |item, _| {
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
