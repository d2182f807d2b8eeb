//! Patterns, in which `*` stands for any characters.

/// A pattern, split at its stars. One pass over a text decides whether it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    /// The prefix of a matching text.
    first: String,
    /// The parts that follow, in this order.
    middle: Vec<String>,
    /// The suffix.
    last: String,
    /// The minimum length of a matching text, in bytes.
    least_bytes: usize,
}

impl Pattern {
    /// Creates a pattern from a text with at least one star.
    pub(super) fn new(text: &str) -> Self {
        let (first, rest) = text.split_once('*').unwrap_or((text, ""));
        let (middle, last) = rest.rsplit_once('*').unwrap_or(("", rest));
        let middle = middle.split('*').filter(|part| !part.is_empty()).map(str::to_owned);
        let least_bytes = text.bytes().filter(|byte| *byte != b'*').count();
        Self { first: first.into(), middle: middle.collect(), last: last.into(), least_bytes }
    }

    pub(super) fn fits(&self, text: &str) -> bool {
        if text.len() < self.least_bytes {
            return false;
        }
        let rest = text.strip_prefix(self.first.as_str());
        let Some(mut rest) = rest.and_then(|rest| rest.strip_suffix(self.last.as_str())) else {
            return false;
        };
        // The first occurrence leaves the most for the parts after it.
        self.middle.iter().all(|part| match rest.find(part.as_str()) {
            Some(at) => {
                rest = &rest[at + part.len()..];
                true
            }
            None => false,
        })
    }
}
