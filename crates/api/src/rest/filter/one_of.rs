//! Equality with one of many values: a single look-up, however many there are.

use std::collections::HashSet;

use serde_json::{Number, Value};

use super::{Literal, Pattern, lower};

/// The permitted values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OneOf {
    /// Texts in lower case, without stars.
    texts: HashSet<String>,
    /// Texts with stars: each is compared separately.
    patterns: Vec<Pattern>,
    integers: HashSet<i128>,
    /// The integers as floats, to compare with fractional values; sorted.
    rounded: Vec<f64>,
    /// Numbers that are not integers, sorted.
    fractions: Vec<f64>,
    /// Numbers in their written form, for values that are texts.
    written: HashSet<String>,
    is_true: bool,
    is_false: bool,
    is_null: bool,
}

impl OneOf {
    pub(super) fn of(literals: Vec<Literal>) -> Self {
        let mut one_of = Self::default();
        literals.into_iter().for_each(|literal| one_of.add(literal));
        one_of.in_order();
        one_of
    }

    fn add(&mut self, literal: Literal) {
        match literal {
            Literal::Null => self.is_null = true,
            Literal::Bool(true) => self.is_true = true,
            Literal::Bool(false) => self.is_false = true,
            Literal::Number(number) => {
                self.add_number(&number);
                self.written.insert(number.to_string());
            }
            // A text may also stand for a number or a boolean: some clients quote everything.
            Literal::Text(text) => {
                self.is_true |= text == "true";
                self.is_false |= text == "false";
                if let Ok(number) = text.parse() {
                    self.add_number(&number);
                }
                match text.contains('*') {
                    true => self.add_pattern(Pattern::new(&text)),
                    false => drop(self.texts.insert(text)),
                }
            }
        }
    }

    fn add_pattern(&mut self, pattern: Pattern) {
        if !self.patterns.contains(&pattern) {
            self.patterns.push(pattern);
        }
    }

    fn add_number(&mut self, number: &Number) {
        match (number.as_i128(), number.as_f64()) {
            (Some(integer), rounded) => {
                self.integers.insert(integer);
                self.rounded.extend(rounded);
            }
            (None, fraction) => self.fractions.extend(fraction),
        }
    }

    fn in_order(&mut self) {
        for numbers in [&mut self.rounded, &mut self.fractions] {
            numbers.sort_by(f64::total_cmp);
            numbers.dedup();
        }
    }

    /// Returns the union of both.
    pub(super) fn or(mut self, other: Self) -> Self {
        self.texts.extend(other.texts);
        other.patterns.into_iter().for_each(|pattern| self.add_pattern(pattern));
        self.integers.extend(other.integers);
        self.rounded.extend(other.rounded);
        self.fractions.extend(other.fractions);
        self.written.extend(other.written);
        self.is_true |= other.is_true;
        self.is_false |= other.is_false;
        self.is_null |= other.is_null;
        self.in_order();
        self
    }

    /// Returns the number of conditions that this counts for.
    pub(super) fn terms(&self) -> usize {
        self.patterns.len().max(1)
    }

    /// Returns the permitted texts, if no other text can match.
    pub(super) fn texts(&self) -> Option<&HashSet<String>> {
        (self.patterns.is_empty() && self.written.is_empty()).then_some(&self.texts)
    }

    pub(super) fn has(&self, value: &Value) -> bool {
        match value {
            Value::Null => self.is_null,
            Value::Bool(true) => self.is_true,
            Value::Bool(false) => self.is_false,
            Value::Number(number) => self.has_number(number),
            Value::String(text) => {
                let lowered = lower(text);
                self.texts.contains(lowered.as_ref())
                    || self.written.contains(text)
                    || self.patterns.iter().any(|pattern| pattern.fits(&lowered))
            }
            Value::Array(_) | Value::Object(_) => false,
        }
    }

    fn has_number(&self, number: &Number) -> bool {
        let is_in = |numbers: &[f64]| {
            number.as_f64().is_some_and(|number| {
                let at = numbers.partition_point(|other| *other < number);
                numbers.get(at) == Some(&number)
            })
        };
        match number.as_i128() {
            Some(integer) => self.integers.contains(&integer) || is_in(&self.fractions),
            None => is_in(&self.rounded) || is_in(&self.fractions),
        }
    }
}
