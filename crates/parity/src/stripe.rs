//! How many shards a stripe has.

use crate::error::ParityError;

/// The most data shards in a stripe.
pub const DATA_SHARDS_MAX: usize = 16;
/// The most parity shards in a stripe.
pub const PARITY_SHARDS_MAX: usize = 2;
/// The most shards in a stripe.
pub const SHARDS_MAX: usize = DATA_SHARDS_MAX + PARITY_SHARDS_MAX;

/// How many data and parity shards a stripe has. Shards are numbered in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stripe {
    data: u8,
    parity: u8,
}

impl Stripe {
    /// `data` data shards (1 to 16) and `parity` parity shards (0 to 2).
    ///
    /// # Errors
    /// [`ParityError::Stripe`] if it has other numbers.
    pub const fn new(data: usize, parity: usize) -> Result<Self, ParityError> {
        if data < 1 || data > DATA_SHARDS_MAX || parity > PARITY_SHARDS_MAX {
            return Err(ParityError::Stripe { data, parity });
        }
        Ok(Self { data: data as u8, parity: parity as u8 })
    }

    /// Data shards.
    pub const fn data(self) -> usize {
        self.data as usize
    }

    /// Parity shards: as many shards may be lost.
    pub const fn parity(self) -> usize {
        self.parity as usize
    }

    /// All shards.
    pub const fn shards(self) -> usize {
        self.data() + self.parity()
    }
}
