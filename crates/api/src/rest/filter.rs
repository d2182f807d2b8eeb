//! The filter language of lists: a condition on the items of a response, in the form of the
//! response.
//!
//! ```text
//! filter    = both { "or" both }          both    = single { "and" single }
//! single    = "not" single | "(" filter ")" | "contains(" field "," text ")"
//!           | field operator value | field "=" "(" value { "," value } ")" | field
//! operator  = "=" | "!=" | "<" | ">" | "<=" | ">="
//! value     = 'text' | "text" | number | true | false | null
//! field     = name { "." name }           name    = letters, "_" [ "[any]" | "[all]" ]
//! ```
//!
//! `*` in a text stands for any characters, with `=` and `!=`; a backslash escapes a quote or
//! another backslash. Case is ignored, as in names. If the path to a field leads through a list,
//! one matching element is enough; with `[all]`, all elements must match. `!=` is the opposite of
//! `=`. A field alone is true if it is present and not false. An absent value equals only `null`,
//! and is neither less nor greater than anything.
//!
//! The cost of a filter is bounded: its length and depth, and the number of conditions for each
//! item ([`FILTER_TERMS_MAX`]). All values that one field is compared with count as one condition
//! (`name=('a','b')`, or `name='a' or name='b'`): one look-up finds them. A text with a star counts
//! separately.

mod one_of;
mod parse;
mod pattern;

#[cfg(test)]
pub(super) mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt;

use serde_json::{Number, Value};

pub use one_of::OneOf;
pub use parse::{FIELD_STEPS_MAX, FILTER_BYTES_MAX, FILTER_DEPTH_MAX, FILTER_TERMS_MAX};
pub use pattern::Pattern;

/// A condition on an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All of them are true.
    And(Vec<Filter>),
    /// At least one of them is true.
    Or(Vec<Filter>),
    /// The condition is false.
    Not(Box<Filter>),
    /// The field equals one of these.
    OneOf(Field, Box<OneOf>),
    /// The field is less or greater.
    Compare(Field, Operator, Literal),
    /// The field contains this text, which is in lower case.
    Contains(Field, String),
    /// The field is present, and not false.
    Present(Field),
}

/// The path to a value in an item.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Step {
    name: String,
    index: Index,
}

/// Which elements of a list must match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Index {
    Any,
    All,
}

/// The comparison of two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=`
    Equal,
    /// `!=`
    NotEqual,
    /// `<=`
    AtMost,
    /// `>=`
    AtLeast,
    /// `<`
    Less,
    /// `>`
    Greater,
}

impl Operator {
    /// All operators; one that begins with another precedes it.
    const ALL: [Self; 6] =
        [Self::Equal, Self::NotEqual, Self::AtMost, Self::AtLeast, Self::Less, Self::Greater];

    fn text(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::NotEqual => "!=",
            Self::AtMost => "<=",
            Self::AtLeast => ">=",
            Self::Less => "<",
            Self::Greater => ">",
        }
    }
}

/// A value in a filter.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// A text, in lower case.
    Text(String),
    /// A number.
    Number(Number),
    /// `true` or `false`.
    Bool(bool),
    /// An absent value.
    Null,
}

/// Why a text is not a filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// The position, in bytes from the beginning.
    at: usize,
    why: &'static str,
}

impl FilterError {
    fn new(at: usize, why: &'static str) -> Self {
        Self { at, why }
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Invalid filter, at character {}: {}.", self.at + 1, self.why)
    }
}

impl Filter {
    /// Parses a filter of at most [`FILTER_BYTES_MAX`], nested at most [`FILTER_DEPTH_MAX`] deep,
    /// with at most [`FILTER_TERMS_MAX`] conditions on fields of at most [`FIELD_STEPS_MAX`] parts.
    ///
    /// # Errors
    /// The text is not a filter, or exceeds a limit; the error contains the position.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        parse::parse(text)
    }

    /// Returns the paths to the values that the filter reads, some of them twice.
    pub(super) fn paths(&self) -> Vec<Vec<&str>> {
        match self {
            Self::And(filters) | Self::Or(filters) => {
                filters.iter().flat_map(Self::paths).collect()
            }
            Self::Not(filter) => filter.paths(),
            Self::OneOf(field, _)
            | Self::Compare(field, ..)
            | Self::Contains(field, _)
            | Self::Present(field) => {
                vec![field.0.iter().map(|step| step.name.as_str()).collect()]
            }
        }
    }

    /// Returns the number of conditions that an item is checked against.
    pub(super) fn terms(&self) -> usize {
        match self {
            Self::And(filters) | Self::Or(filters) => filters.iter().map(Self::terms).sum(),
            Self::Not(filter) => filter.terms(),
            Self::OneOf(_, one_of) => one_of.terms(),
            Self::Compare(..) | Self::Contains(..) | Self::Present(_) => 1,
        }
    }

    /// Returns the texts of which a field must have one, in lower case, if the filter requires
    /// that.
    pub(super) fn texts_of(&self, name: &str) -> Option<&HashSet<String>> {
        match self {
            Self::OneOf(Field(steps), one_of) => {
                let is_it = matches!(&steps[..], [step] if step.name == name);
                one_of.texts().filter(|_| is_it)
            }
            Self::And(filters) => filters.iter().find_map(|filter| filter.texts_of(name)),
            _ => None,
        }
    }

    /// Joins filters by `and`. Conditions on the values that a field must not have are merged into
    /// one.
    fn all(filters: Vec<Self>) -> Self {
        let flat = filters.into_iter().flat_map(|filter| match filter {
            Self::And(inner) => inner,
            other => vec![other],
        });
        let turned = |filter| match filter {
            Self::Not(inner) if matches!(*inner, Self::OneOf(..)) => Ok(*inner),
            other => Err(other),
        };
        let not = |filter| Self::Not(Box::new(filter));
        let mut joined = joined(flat.map(turned), not);
        if joined.len() == 1 { joined.swap_remove(0) } else { Self::And(joined) }
    }

    /// Joins filters by `or`. Conditions on the values that a field may have are merged into one.
    fn any(filters: Vec<Self>) -> Self {
        let flat = filters.into_iter().flat_map(|filter| match filter {
            Self::Or(inner) => inner,
            other => vec![other],
        });
        let turned = |filter| match filter {
            equal @ Self::OneOf(..) => Ok(equal),
            other => Err(other),
        };
        let mut joined = joined(flat.map(turned), |filter| filter);
        if joined.len() == 1 { joined.swap_remove(0) } else { Self::Or(joined) }
    }

    /// Returns whether an item matches.
    pub fn matches(&self, item: &Value) -> bool {
        match self {
            Self::And(all) => all.iter().all(|filter| filter.matches(item)),
            Self::Or(any) => any.iter().any(|filter| filter.matches(item)),
            Self::Not(filter) => !filter.matches(item),
            Self::OneOf(field, one_of) => field.holds(item, &|value| one_of.has(value)),
            Self::Compare(field, operator, literal) => {
                field.holds(item, &|value| compares(value, *operator, literal))
            }
            Self::Contains(field, text) => field.holds(item, &|value| match value {
                Value::String(value) => lower(value).contains(text.as_str()),
                _ => false,
            }),
            Self::Present(field) => {
                field.holds(item, &|value| !matches!(value, Value::Null | Value::Bool(false)))
            }
        }
    }
}

/// Joins the conditions that are `Ok` into one for each field. If all elements of a list must
/// match, two conditions can't be joined.
fn joined(
    filters: impl Iterator<Item = Result<Filter, Filter>>,
    turn: impl Fn(Filter) -> Filter,
) -> Vec<Filter> {
    let mut equal: Vec<(Field, Box<OneOf>)> = Vec::new();
    let mut places: HashMap<Field, usize> = HashMap::new();
    let mut found = Vec::new();
    for filter in filters {
        match filter {
            Ok(Filter::OneOf(field, one_of)) if field.needs_any() => match places.get(&field) {
                Some(at) => {
                    let known = std::mem::take(&mut equal[*at].1);
                    *equal[*at].1 = known.or(*one_of);
                }
                None => {
                    places.insert(field.clone(), equal.len());
                    equal.push((field, one_of));
                }
            },
            Ok(other) => found.push(turn(other)),
            Err(other) => found.push(other),
        }
    }
    let equal = equal.into_iter().map(|(field, one_of)| turn(Filter::OneOf(field, one_of)));
    equal.chain(found).collect()
}

impl Field {
    /// Returns whether one matching element of each list on the path is enough.
    fn needs_any(&self) -> bool {
        self.0.iter().all(|step| step.index == Index::Any)
    }

    /// Returns whether a condition is true for the value at this path; `null` if there is none.
    fn holds(&self, item: &Value, condition: &dyn Fn(&Value) -> bool) -> bool {
        #[cfg(test)]
        tests::LOOKS.with(|looks| looks.set(looks.get() + 1));
        walk(item, &self.0, condition)
    }
}

fn walk(value: &Value, steps: &[Step], condition: &dyn Fn(&Value) -> bool) -> bool {
    let Some((step, rest)) = steps.split_first() else { return condition(value) };
    match value.get(&step.name) {
        Some(Value::Array(elements)) => match step.index {
            Index::Any => elements.iter().any(|element| walk(element, rest, condition)),
            Index::All => elements.iter().all(|element| walk(element, rest, condition)),
        },
        Some(inner) => walk(inner, rest, condition),
        None => condition(&Value::Null),
    }
}

fn compares(value: &Value, operator: Operator, literal: &Literal) -> bool {
    let Some(order) = order(value, literal) else { return false };
    match operator {
        Operator::Less => order.is_lt(),
        Operator::Greater => order.is_gt(),
        Operator::AtMost => order.is_le(),
        Operator::AtLeast => order.is_ge(),
        Operator::Equal => order.is_eq(),
        Operator::NotEqual => order.is_ne(),
    }
}

fn order(value: &Value, literal: &Literal) -> Option<Ordering> {
    match (value, literal) {
        (Value::Number(value), Literal::Number(number)) => order_numbers(value, number),
        (Value::Number(value), Literal::Text(text)) => order_numbers(value, &text.parse().ok()?),
        (Value::String(value), Literal::Text(text)) => Some(lower(value).as_ref().cmp(text)),
        _ => None,
    }
}

/// Converts a text to lower case, for comparisons. Most names already are, and cost nothing.
pub(super) fn lower(text: &str) -> Cow<'_, str> {
    match text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.to_lowercase()),
    }
}

/// Compares numbers, exactly if both are integers: the bytes of large pools don't fit a float.
pub(super) fn order_numbers(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}
