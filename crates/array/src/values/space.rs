//! The thresholds of the pool's space at which hosts get a unit attention.

use crate::error::Error;

/// The maximum number of thresholds.
pub const THRESHOLDS_MAX: usize = 4;

/// The percentages of pool use at which hosts get a unit attention: in ascending order, each from 1
/// to 99, at most four; empty for no unit attentions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpaceThresholds(Vec<u8>);

impl SpaceThresholds {
    /// Checks and sorts thresholds.
    ///
    /// # Errors
    /// `invalid_threshold`.
    pub fn new(mut percents: Vec<u8>) -> Result<Self, Error> {
        let refuse = |text: String| Err(Error::invalid("invalid_threshold", text));
        percents.sort_unstable();
        percents.dedup();
        if percents.len() > THRESHOLDS_MAX {
            let text =
                format!("A pool has up to {THRESHOLDS_MAX} thresholds, not {}.", percents.len());
            return refuse(text);
        }
        if let Some(wrong) = percents.iter().find(|percent| !(1..=99).contains(*percent)) {
            return refuse(format!(
                "A threshold is from 1 to 99 percent of the pool, not {wrong}."
            ));
        }
        Ok(Self(percents))
    }

    /// Returns the percentages in ascending order.
    pub fn percents(&self) -> &[u8] {
        &self.0
    }
}

impl Default for SpaceThresholds {
    /// Returns 80 percent: early enough to free or add space before writes fail.
    fn default() -> Self {
        Self(vec![80])
    }
}
