//! How many times one number is another.

use std::fmt;

use super::number;

/// A ratio of two measured numbers, either of which may be missing, or zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ratio {
    /// One of them is missing, or both are zero.
    Unknown,
    /// So many times.
    Times(f64),
    /// The second is zero, and the first is not.
    Unbounded,
}

impl Ratio {
    /// How many times `right` is `left`.
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
            Self::Times(times) => write!(f, "{}×", number::three(*times)),
            Self::Unbounded => f.write_str("∞"),
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
    }

    #[test]
    fn they_are_shown_as_times() {
        assert_eq!(Ratio::Times(50.26).to_string(), "50.3×");
        assert_eq!(Ratio::Times(1234.0).to_string(), "1,234×");
        assert_eq!(Ratio::Unbounded.to_string(), "∞");
        assert_eq!(Ratio::Unknown.to_string(), "–");
    }
}
