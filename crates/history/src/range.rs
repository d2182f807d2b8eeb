//! A range of a history: its start, its end, and the length of its steps.

use crate::layout::{RINGS, Ring, SPACE_RINGS};

/// The maximum number of points in a range.
pub const POINTS_MAX: u64 = 9000;

/// A range of time, in steps of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    pub(crate) ring: &'static Ring,
    pub(crate) from_ms: u64,
    pub(crate) to_ms: u64,
    pub(crate) step_ms: u64,
}

/// Why a range is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// No stored steps make up this length.
    #[error(
        "The resolution is a whole number of times 30000, 300000 or 3600000 ms, up to 30 days."
    )]
    Resolution,
    /// The same, of space.
    #[error(
        "The resolution of space is a whole number of times 300000, 3600000 or 86400000 ms, up to \
         30 days."
    )]
    SpaceResolution,
    /// The end is not after the start.
    #[error("The end is not after the start.")]
    Backwards,
    /// There would be too many steps.
    #[error("That is more than {0} samples: ask for a coarser resolution.")]
    TooMany(u64),
}

/// The longest step.
const STEP_MS_MAX: u64 = 30 * 86_400_000;

impl Range {
    /// Returns all steps of `step_ms` that begin at or after `from_ms` and before `to_ms`, in
    /// milliseconds since 1970, as far as they are kept at `now_ms`. Without a length, uses the
    /// finest that covers the whole range.
    ///
    /// # Errors
    /// See [`RangeError`].
    pub fn new(
        from_ms: u64,
        to_ms: u64,
        step_ms: Option<u64>,
        now_ms: u64,
    ) -> Result<Self, RangeError> {
        Self::within(&RINGS, from_ms, to_ms, step_ms, now_ms)?.ok_or(RangeError::Resolution)
    }

    /// Returns the same of the space of volumes, whose steps are of other lengths.
    ///
    /// # Errors
    /// See [`RangeError`].
    pub fn of_space(
        from_ms: u64,
        to_ms: u64,
        step_ms: Option<u64>,
        now_ms: u64,
    ) -> Result<Self, RangeError> {
        let range = Self::within(&SPACE_RINGS, from_ms, to_ms, step_ms, now_ms)?;
        range.ok_or(RangeError::SpaceResolution)
    }

    /// Returns the range in the coarsest of the rings that make up its steps; `None` if none does.
    fn within(
        rings: &'static [Ring],
        from_ms: u64,
        to_ms: u64,
        step_ms: Option<u64>,
        now_ms: u64,
    ) -> Result<Option<Self>, RangeError> {
        if to_ms <= from_ms {
            return Err(RangeError::Backwards);
        }
        let step_ms = step_ms.unwrap_or_else(|| finest(rings, from_ms, now_ms));
        let fits = |ring: &&Ring| step_ms.is_multiple_of(ring.step_ms.into());
        let ring = rings.iter().rev().find(fits);
        let Some(ring) = ring.filter(|_| (1..=STEP_MS_MAX).contains(&step_ms)) else {
            return Ok(None);
        };
        let kept_ms = now_ms.saturating_sub(ring.span_ms());
        let from_ms = from_ms.min(now_ms).max(kept_ms).next_multiple_of(step_ms);
        let to_ms = to_ms.min(now_ms.saturating_add(1)).max(from_ms);
        match (to_ms - from_ms).div_ceil(step_ms) > POINTS_MAX {
            true => Err(RangeError::TooMany(POINTS_MAX)),
            false => Ok(Some(Self { ring, from_ms, to_ms, step_ms })),
        }
    }

    /// Returns the length of its steps, in milliseconds.
    pub fn step_ms(&self) -> u64 {
        self.step_ms
    }

    /// Returns the start of each of its steps.
    pub(crate) fn starts(&self) -> impl Iterator<Item = u64> + use<> {
        (self.from_ms..self.to_ms).step_by(self.step_ms as usize)
    }

    /// Returns the starts of the ring's steps that make up one of its steps.
    pub(crate) fn parts(&self, start_ms: u64) -> impl Iterator<Item = u64> + use<> {
        (start_ms..start_ms + self.step_ms).step_by(self.ring.step_ms as usize)
    }

    /// Returns the number of its steps.
    pub fn points(&self) -> u64 {
        (self.to_ms - self.from_ms).div_ceil(self.step_ms)
    }
}

/// Returns the length of the finest steps that are kept since a time.
fn finest(rings: &[Ring], from_ms: u64, now_ms: u64) -> u64 {
    let age_ms = now_ms.saturating_sub(from_ms);
    let keeps = |ring: &&Ring| ring.span_ms() >= age_ms;
    rings.iter().find(keeps).unwrap_or(&rings[rings.len() - 1]).step_ms.into()
}
