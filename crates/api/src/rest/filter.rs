//! The filter language of lists: a condition on the items of an answer, as they are shown.
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
//! `*` in a text stands for any characters, with `=` and `!=`; a backslash takes a quote or another
//! backslash behind it as it is. Case does not count, as in names.
//! Where a list is on the way to a field, one of its elements is enough, with `[all]` all of them
//! are needed. `!=` is the opposite of `=`. A field alone is true where it is there and not false.
//! What is not there equals `null` only, and is neither less nor greater than anything.

mod parse;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;

use serde_json::{Number, Value};

pub use parse::{FILTER_BYTES_MAX, FILTER_DEPTH_MAX};

/// A condition on an item.
#[derive(Clone, Debug, PartialEq)]
pub enum Filter {
    /// All of them hold.
    And(Vec<Filter>),
    /// One of them holds.
    Or(Vec<Filter>),
    /// It does not hold.
    Not(Box<Filter>),
    /// The field compares so with one of the literals; with `!=` with all of them.
    Compare(Field, Operator, Vec<Literal>),
    /// The field has this text in it, which is in lower case.
    Contains(Field, String),
    /// The field is there, and not false.
    Present(Field),
}

/// The way to a value in an item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Step {
    name: String,
    index: Index,
}

/// Which elements of a list count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Index {
    Any,
    All,
}

/// How two values compare.
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
    /// All of them, the longer one first where one begins with another.
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
    /// What is not there.
    Null,
}

/// Why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterError {
    /// Where, in bytes from the beginning.
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
    /// Reads a filter of at most [`FILTER_BYTES_MAX`], nested at most [`FILTER_DEPTH_MAX`] deep.
    ///
    /// # Errors
    /// Where the text is no filter, or too long, or too deep.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        parse::parse(text)
    }

    /// The ways to the values that it looks at, some of them twice.
    pub(super) fn paths(&self) -> Vec<Vec<&str>> {
        match self {
            Self::And(filters) | Self::Or(filters) => {
                filters.iter().flat_map(Self::paths).collect()
            }
            Self::Not(filter) => filter.paths(),
            Self::Compare(field, ..) | Self::Contains(field, _) | Self::Present(field) => {
                vec![field.0.iter().map(|step| step.name.as_str()).collect()]
            }
        }
    }

    /// Whether it holds for an item.
    pub fn matches(&self, item: &Value) -> bool {
        match self {
            Self::And(all) => all.iter().all(|filter| filter.matches(item)),
            Self::Or(any) => any.iter().any(|filter| filter.matches(item)),
            Self::Not(filter) => !filter.matches(item),
            Self::Compare(field, Operator::NotEqual, literals) => {
                !field.holds(item, &|value| literals.iter().any(|literal| equal(value, literal)))
            }
            Self::Compare(field, operator, literals) => field.holds(item, &|value| {
                literals.iter().any(|literal| compares(value, *operator, literal))
            }),
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

impl Field {
    /// Whether a condition holds for the value that this leads to, `null` where there is none.
    fn holds(&self, item: &Value, condition: &dyn Fn(&Value) -> bool) -> bool {
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
    let holds = |order: Option<Ordering>| match operator {
        Operator::Less => order == Some(Ordering::Less),
        Operator::Greater => order == Some(Ordering::Greater),
        Operator::AtMost => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Operator::AtLeast => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Operator::Equal | Operator::NotEqual => false,
    };
    match operator {
        Operator::Equal => equal(value, literal),
        Operator::NotEqual => !equal(value, literal),
        _ => holds(order(value, literal)),
    }
}

/// Texts of numbers and booleans stand for these: some clients put everything in quotes.
fn equal(value: &Value, literal: &Literal) -> bool {
    match (value, literal) {
        (Value::Null, Literal::Null) => true,
        (Value::Bool(value), Literal::Bool(literal)) => value == literal,
        (Value::Bool(value), Literal::Text(text)) => value.to_string() == *text,
        (Value::String(value), Literal::Text(pattern)) => wild(&lower(value), pattern),
        (Value::String(value), Literal::Number(number)) => *value == number.to_string(),
        _ => order(value, literal) == Some(Ordering::Equal),
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

/// In lower case, as texts are compared: names mostly are already, and cost nothing then.
pub(super) fn lower(text: &str) -> Cow<'_, str> {
    match text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.to_lowercase()),
    }
}

/// Exact where both are integers: bytes of large pools don't fit a float.
pub(super) fn order_numbers(a: &Number, b: &Number) -> Option<Ordering> {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Whether a text fits a pattern in which `*` stands for any characters: at most one step for each
/// pair of their bytes.
fn wild(text: &str, pattern: &str) -> bool {
    let (text, pattern) = (text.as_bytes(), pattern.as_bytes());
    let (mut t, mut p) = (0, 0);
    // Where the last star stands, and how much of the text it has taken.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == text[t] => {
                t += 1;
                p += 1;
            }
            _ => {
                let Some((at, taken)) = star else { return false };
                star = Some((at, taken + 1));
                p = at + 1;
                t = taken + 1;
            }
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}
