//! Operations on the shards of a stripe.

use std::fmt::Debug;

use block::Frame;

use crate::error::ParityError;
use crate::stripe::Stripe;

/// Computes parity from data, and lost shards from others. All shards have the same number of
/// frames.
pub trait Code: Debug + Send + Sync {
    /// Returns the number of shards of each kind.
    fn stripe(&self) -> Stripe;

    /// Returns the parity shards of these data shards.
    ///
    /// # Errors
    /// If there are not as many data shards as the stripe has, or they have different lengths.
    fn encode(&self, data: &[&[Frame]]) -> Result<Vec<Vec<Frame>>, ParityError>;

    /// Reconstructs the shards with these numbers, in this order, from the first available ones, as
    /// many as there are data shards. `shards` has all of the stripe, `None` if one is lost or was
    /// not read.
    ///
    /// # Errors
    /// If there are too few, not as many as the stripe has, or they have different lengths; if a
    /// wanted one is available, or not part of the stripe.
    fn reconstruct(
        &self,
        shards: &[Option<&[Frame]>],
        wanted: &[usize],
    ) -> Result<Vec<Vec<Frame>>, ParityError>;

    /// Returns whether the parity shards match the data shards. `shards` has all of the stripe.
    ///
    /// # Errors
    /// If there are not as many shards as the stripe has, or they have different lengths.
    fn verify(&self, shards: &[&[Frame]]) -> Result<bool, ParityError>;
}

/// Returns the number of frames in each of `shards`, which must be `expected`; 0 if there are no
/// shards.
pub(crate) fn check_given<'a>(
    expected: usize,
    given: usize,
    shards: impl IntoIterator<Item = (usize, &'a [Frame])>,
) -> Result<usize, ParityError> {
    if given != expected {
        return Err(ParityError::Shards { expected, given });
    }
    let mut shards = shards.into_iter();
    let Some((_, first)) = shards.next() else { return Ok(0) };
    let expected = first.len();
    match shards.find(|(_, frames)| frames.len() != expected) {
        Some((shard, frames)) => {
            Err(ParityError::Lengths { shard, frames: frames.len(), expected })
        }
        None => Ok(expected),
    }
}

/// The shards from which a lost one is reconstructed, with their numbers, and the number of frames
/// of each.
pub(crate) type Survivors<'a> = (Vec<(usize, &'a [Frame])>, usize);

/// Returns the first available shards, as many as are needed to reconstruct the `wanted` ones.
pub(crate) fn survivors<'a>(
    stripe: Stripe,
    shards: &[Option<&'a [Frame]>],
    wanted: &[usize],
) -> Result<Survivors<'a>, ParityError> {
    let left = || shards.iter().enumerate().filter_map(|(number, shard)| Some((number, (*shard)?)));
    let frames_each = check_given(stripe.shards(), shards.len(), left())?;
    let is_lost = |number: &usize| matches!(shards.get(*number), Some(None));
    if let Some(number) = wanted.iter().find(|number| !is_lost(number)) {
        return Err(ParityError::NotLost(*number));
    }
    let used: Vec<_> = left().take(stripe.data()).collect();
    match used.len() < stripe.data() {
        true => Err(ParityError::TooFew { needed: stripe.data(), left: used.len() }),
        false => Ok((used, frames_each)),
    }
}
