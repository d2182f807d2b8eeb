//! The number of shards of a stripe.

use crate::error::ParityError;

/// The maximum number of data shards of a stripe.
pub const DATA_SHARDS_MAX: usize = 16;
/// The maximum number of parity shards of a stripe.
pub const PARITY_SHARDS_MAX: usize = 2;
/// The maximum number of shards of a stripe.
pub const SHARDS_MAX: usize = DATA_SHARDS_MAX + PARITY_SHARDS_MAX;

/// The number of data and parity shards of a stripe. Shards are numbered in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stripe {
    data: u8,
    parity: u8,
}

impl Stripe {
    /// Creates a stripe with `data` data shards (1 to 16) and `parity` parity shards (0 to 2).
    ///
    /// # Errors
    /// [`ParityError::Stripe`] for other numbers.
    pub const fn new(data: usize, parity: usize) -> Result<Self, ParityError> {
        if data < 1 || data > DATA_SHARDS_MAX || parity > PARITY_SHARDS_MAX {
            return Err(ParityError::Stripe { data, parity });
        }
        Ok(Self { data: data as u8, parity: parity as u8 })
    }

    /// Returns the number of data shards.
    pub const fn data(self) -> usize {
        self.data as usize
    }

    /// Returns the number of parity shards: as many shards may be lost.
    pub const fn parity(self) -> usize {
        self.parity as usize
    }

    /// Returns the number of all shards.
    pub const fn shards(self) -> usize {
        self.data() + self.parity()
    }
}
