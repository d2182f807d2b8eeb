//! Which objects a list shows, and in which order: `--filter`, `--sort` and `--limit`.
//!
//! Fields have the names of `--csv`. Every output format applies these options, so that a table
//! shows the same objects as JSON.

use std::cmp::Ordering;
use std::str::FromStr;

use clap::Args;
use serde::Serialize;

use super::failure::Failure;
use super::{flat, size};

/// The options of a list.
#[derive(Clone, Debug, Default, Args)]
pub struct Listing {
    /// Only objects with FIELD=VALUE; also !=, <, <=, >, >= and, for a substring, ~. Fields are
    /// those of --csv; a size may be 10G. If there are several conditions, all apply.
    #[arg(long, value_name = "CONDITION")]
    filter: Vec<Condition>,
    /// Sort by this field; with a `-` before it in descending order.
    #[arg(long, value_name = "[-]FIELD", allow_hyphen_values = true)]
    sort: Option<Order>,
    /// This number of objects at most, the first ones.
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
}

/// How a field compares with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    More,
    AtLeast,
    Contains,
}

/// Those of two characters first.
const COMPARISONS: [(&str, Comparison); 7] = [
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("=", Comparison::Equal),
    ("<", Comparison::Less),
    (">", Comparison::More),
    ("~", Comparison::Contains),
];

/// A condition that objects must meet to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Condition {
    field: String,
    comparison: Comparison,
    value: String,
}

impl FromStr for Condition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_of_field = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        let end = text.find(|c| !is_of_field(c)).unwrap_or(text.len());
        let (field, rest) = text.split_at(end);
        let found = COMPARISONS.into_iter().find_map(|(sign, comparison)| {
            rest.strip_prefix(sign).map(|value| (comparison, value.to_owned()))
        });
        match found {
            Some((comparison, value)) if !field.is_empty() => {
                Ok(Self { field: field.to_owned(), comparison, value })
            }
            _ => {
                Err("a condition looks like name~db, size_bytes>=10G or chap.host_user=anna".into())
            }
        }
    }
}

impl Condition {
    /// Returns whether a field meets it. An absent field is empty.
    fn is_met(&self, field: &str) -> bool {
        if self.comparison == Comparison::Contains {
            return field.to_lowercase().contains(&self.value.to_lowercase());
        }
        let order = match (number(field), self.number()) {
            (Some(field), Some(value)) => field.total_cmp(&value),
            // An empty value is neither less nor greater than a number.
            (None, Some(_)) if field.is_empty() => return self.comparison == Comparison::NotEqual,
            _ => field.cmp(&self.value),
        };
        match self.comparison {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::AtMost => order.is_le(),
            Comparison::More => order.is_gt(),
            Comparison::AtLeast => order.is_ge(),
            Comparison::Contains => true, // it returned above
        }
    }

    fn number(&self) -> Option<f64> {
        number(&self.value).or_else(|| size::parse(&self.value).ok().map(|bytes| bytes as f64))
    }
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// The field that a list is sorted by.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Order {
    field: String,
    is_reversed: bool,
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let field = text.strip_prefix('-').unwrap_or(text);
        match field.is_empty() {
            true => Err("name a field, such as name or -size_bytes".into()),
            false => Ok(Self { field: field.to_owned(), is_reversed: field.len() < text.len() }),
        }
    }
}

impl Order {
    /// Compares fields: numbers by value and before words, empty ones last in both directions.
    fn compare(&self, one: &str, other: &str) -> Ordering {
        if one.is_empty() || other.is_empty() {
            return one.is_empty().cmp(&other.is_empty());
        }
        let order = match (number(one), number(other)) {
            (Some(one), Some(other)) => one.total_cmp(&other),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => one.cmp(other),
        };
        if self.is_reversed { order.reverse() } else { order }
    }
}

impl Listing {
    /// Returns the objects to show, in order.
    ///
    /// # Errors
    /// If no object has a given field; the message lists the existing fields.
    pub fn of<T: Serialize>(&self, objects: Vec<T>) -> Result<Vec<T>, Failure> {
        if self.filter.is_empty() && self.sort.is_none() {
            return Ok(self.first(objects));
        }
        let with_fields =
            objects.into_iter().map(|object| flat::fields(&object).map(|fields| (fields, object)));
        let mut all = with_fields.collect::<Result<Vec<_>, _>>()?;
        let sorted_by = self.sort.iter().map(|order| &order.field);
        for field in self.filter.iter().map(|condition| &condition.field).chain(sorted_by) {
            check(field, all.iter().map(|(fields, _)| fields))?;
        }
        all.retain(|(fields, _)| {
            self.filter.iter().all(|condition| condition.is_met(value(fields, &condition.field)))
        });
        if let Some(order) = &self.sort {
            all.sort_by(|(one, _), (other, _)| {
                order.compare(value(one, &order.field), value(other, &order.field))
            });
        }
        Ok(self.first(all.into_iter().map(|(_, object)| object).collect()))
    }

    fn first<T>(&self, mut objects: Vec<T>) -> Vec<T> {
        objects.truncate(self.limit.unwrap_or(usize::MAX));
        objects
    }
}

type Fields = Vec<(String, String)>;

/// Returns a field's value; empty if the object lacks it.
fn value<'a>(fields: &'a Fields, name: &str) -> &'a str {
    fields.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
}

fn check<'a>(name: &str, all: impl Iterator<Item = &'a Fields>) -> Result<(), Failure> {
    let mut known: Vec<&str> = Vec::new();
    for (field, _) in all.flatten() {
        if field == name {
            return Ok(());
        }
        if !known.contains(&field.as_str()) {
            known.push(field);
        }
    }
    // The fields of an empty list are unknown, and nothing is shown.
    if known.is_empty() {
        return Ok(());
    }
    Err(Failure::Usage(format!("there is no field {name:?}; the fields are {}", known.join(", "))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Inner {
        bytes: Option<u64>,
    }

    #[derive(Serialize)]
    struct Volume {
        name: &'static str,
        size_bytes: u64,
        space: Inner,
    }

    fn volumes() -> Vec<Volume> {
        let volume = |name, size_bytes, bytes| Volume { name, size_bytes, space: Inner { bytes } };
        vec![
            volume("db-1", 10 << 30, Some(9)),
            volume("Web", 1 << 30, None),
            volume("db-2", 2 << 40, Some(10)),
        ]
    }

    fn names(filter: &[&str], sort: Option<&str>, limit: Option<usize>) -> Vec<&'static str> {
        let filter = filter.iter().map(|text| text.parse().unwrap()).collect();
        let listing = Listing { filter, sort: sort.map(|text| text.parse().unwrap()), limit };
        listing.of(volumes()).unwrap().into_iter().map(|volume| volume.name).collect()
    }

    #[test]
    fn a_list_shows_objects_that_meet_all_conditions() {
        assert_eq!(names(&["name~DB"], None, None), ["db-1", "db-2"]);
        assert_eq!(names(&["name~db", "size_bytes>10G"], None, None), ["db-2"]);
        assert_eq!(names(&["size_bytes>=10G"], None, None), ["db-1", "db-2"]);
        assert_eq!(names(&["size_bytes=1073741824"], None, None), ["Web"]);
        assert_eq!(names(&["name!=Web"], None, Some(1)), ["db-1"]);
        assert_eq!(names(&["space.bytes<=9"], None, None), ["db-1"]);
        assert_eq!(names(&["space.bytes!=9"], None, None), ["Web", "db-2"]);
        assert_eq!(names(&["space.bytes="], None, None), ["Web"]);
        assert_eq!(names(&["space.bytes<5"], None, None), [""; 0]);
    }

    #[test]
    fn a_list_is_sorted_by_value_with_empty_values_last() {
        assert_eq!(names(&[], Some("size_bytes"), None), ["Web", "db-1", "db-2"]);
        assert_eq!(names(&[], Some("-size_bytes"), Some(2)), ["db-2", "db-1"]);
        assert_eq!(names(&[], Some("space.bytes"), None), ["db-1", "db-2", "Web"]);
        assert_eq!(names(&[], Some("-space.bytes"), None), ["db-2", "db-1", "Web"]);
        assert_eq!(names(&[], Some("name"), Some(0)), [""; 0]);
    }

    #[test]
    fn an_unknown_field_is_refused_with_a_list_of_the_known_ones() {
        let sort = Some("size".parse().unwrap());
        let listing = Listing { sort, ..Listing::default() };
        let text = listing.of(volumes()).err().unwrap().to_string();
        assert!(text.contains("\"size\"") && text.contains("size_bytes, space.bytes"), "{text}");
        assert!(listing.of(Vec::<Volume>::new()).is_ok());
        for bad in ["", "name", "=a", "~", "name:a", " name=a"] {
            assert!(bad.parse::<Condition>().unwrap_err().contains("looks like"), "{bad}");
        }
        assert!("-".parse::<Order>().is_err() && "".parse::<Order>().is_err());
    }
}
