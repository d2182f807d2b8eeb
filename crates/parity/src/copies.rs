//! Stripes of one data shard, whose parity is a copy of it, and those without parity.

use block::Frame;

use crate::code::{Code, check_given, survivors};
use crate::error::ParityError;
use crate::stripe::Stripe;

/// Plain segments, mirrors, and stripes without parity.
#[derive(Debug)]
pub(crate) struct Copies {
    pub(crate) stripe: Stripe,
}

impl Code for Copies {
    fn stripe(&self) -> Stripe {
        self.stripe
    }

    fn encode(&self, data: &[&[Frame]]) -> Result<Vec<Vec<Frame>>, ParityError> {
        let numbered = data.iter().copied().enumerate();
        check_given(self.stripe.data(), data.len(), numbered)?;
        Ok(vec![data[0].to_vec(); self.stripe.parity()])
    }

    fn reconstruct(
        &self,
        shards: &[Option<&[Frame]>],
        wanted: &[usize],
    ) -> Result<Vec<Vec<Frame>>, ParityError> {
        let (left, _) = survivors(self.stripe, shards, wanted)?;
        Ok(vec![left[0].1.to_vec(); wanted.len()])
    }

    fn verify(&self, shards: &[&[Frame]]) -> Result<bool, ParityError> {
        let numbered = shards.iter().copied().enumerate();
        check_given(self.stripe.shards(), shards.len(), numbered)?;
        let parity = &shards[self.stripe.data()..];
        Ok(parity.iter().all(|copy| *copy == shards[0]))
    }
}
