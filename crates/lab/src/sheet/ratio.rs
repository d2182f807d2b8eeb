//! Ratios of two numbers.

use std::fmt;

use crate::number;

/// A ratio of two measured numbers, either of which may be missing, or zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ratio {
    /// One of them is missing, or both are zero.
    Unknown,
    /// The first is this many times the second.
    Times(f64),
    /// The second is zero, and the first is not.
    Unbounded,
    /// The second exists, but is too small to measure.
    TooFast,
}

impl Ratio {
    /// Returns the same for what can't be measured below `least`.
    pub fn of_measured(left: Option<f64>, right: Option<f64>, least: f64) -> Self {
        match (Self::of(left, right), right) {
            (Self::Times(_) | Self::Unbounded, Some(right)) if right < least => Self::TooFast,
            (ratio, _) => ratio,
        }
    }

    /// Returns `left` divided by `right`.
    pub fn of(left: Option<f64>, right: Option<f64>) -> Self {
        match (left, right) {
            (Some(left), Some(right)) if left.is_finite() && right.is_finite() => {
                match (left == 0.0, right == 0.0) {
                    (true, true) => Self::Unknown,
                    (false, true) => Self::Unbounded,
                    (_, false) => Self::Times(left / right),
                }
            }
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown => f.write_str(number::NONE),
            // Something was divided by almost nothing.
            Self::Times(times) if !times.is_finite() => f.write_str("∞"),
            Self::Times(times) => write!(f, "{}×", number::three(*times)),
            Self::Unbounded => f.write_str("∞"),
            Self::TooFast => f.write_str("too fast to measure"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ratio;

    #[test]
    fn ratios_know_missing_sides_and_zeros() {
        assert_eq!(Ratio::of(Some(10.0), Some(4.0)), Ratio::Times(2.5));
        assert_eq!(Ratio::of(Some(0.0), Some(4.0)), Ratio::Times(0.0));
        assert_eq!(Ratio::of(Some(10.0), Some(0.0)), Ratio::Unbounded);
        assert_eq!(Ratio::of(Some(0.0), Some(0.0)), Ratio::Unknown);
        assert_eq!(Ratio::of(None, Some(4.0)), Ratio::Unknown);
        assert_eq!(Ratio::of(Some(4.0), None), Ratio::Unknown);
        assert_eq!(Ratio::of(Some(f64::NAN), Some(4.0)), Ratio::Unknown);
        assert_eq!(Ratio::of(Some(1.0), Some(f64::INFINITY)), Ratio::Unknown);
    }

    #[test]
    fn an_unmeasurably_short_time_is_not_a_divisor() {
        let ratio = |left, right| Ratio::of_measured(left, right, 0.001);
        assert_eq!(ratio(Some(2.0), Some(0.000_9)), Ratio::TooFast);
        assert_eq!(ratio(Some(2.0), Some(0.0)), Ratio::TooFast);
        assert_eq!(ratio(Some(2.0), Some(0.001)), Ratio::Times(2000.0));
        assert_eq!(ratio(Some(0.0), Some(4.0)), Ratio::Times(0.0));
        assert_eq!(ratio(Some(0.0), Some(0.0)), Ratio::Unknown);
        assert_eq!(ratio(None, Some(0.0)), Ratio::Unknown);
        assert_eq!(Ratio::of_measured(Some(2.0), Some(0.0), 0.0), Ratio::Unbounded);
    }

    #[test]
    fn ratios_are_shown_as_multiples() {
        assert_eq!(Ratio::Times(50.26).to_string(), "50.3×");
        assert_eq!(Ratio::Times(1234.0).to_string(), "1,234×");
        assert_eq!(Ratio::Unbounded.to_string(), "∞");
        assert_eq!(Ratio::Unknown.to_string(), "–");
        assert_eq!(Ratio::TooFast.to_string(), "too fast to measure");
        assert_eq!(Ratio::of(Some(1e300), Some(1e-300)).to_string(), "∞");
    }
}
