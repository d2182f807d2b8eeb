//! Reed-Solomon over shards of frames: `k` data shards and `p` parity shards, any `k` of which
//! suffice to reconstruct all of them.
//!
//! * [`Stripe`]: how many of each,
//! * [`Code`]: encode, reconstruct, verify; [`code()`] returns the one for a stripe.
//!
//! ISA-L does the arithmetic (`isal`), with the SIMD instructions of the processor. The library is
//! loaded when the first stripe needs it (`library`), and there is no fallback: without it such a
//! stripe has no code. With one data shard parity is a copy (`copies`), which costs nothing and
//! needs no library, nor do stripes without parity.
//!
//! The code is that of RAID-6, over GF(2^8) with the polynomial 11Dh: parity shard P is the XOR of
//! the data shards D, and Q is the sum of 2^i D\[i\]. A stripe with one parity shard has P. The
//! code is part of the on-disk format: what one version has encoded can be reconstructed by all
//! later ones.
//!
//! A shard is a list of frames, anywhere in memory: row by row, the frames with the same number of
//! all shards are encoded in place. Nothing is copied, and a frame may be in several shards (such
//! as the one of zeros).

mod code;
mod copies;
mod error;
mod isal;
mod library;
#[cfg(test)]
mod measure;
mod stripe;
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use code::Code;
pub use error::{LibraryError, ParityError};
pub use stripe::{DATA_SHARDS_MAX, PARITY_SHARDS_MAX, SHARDS_MAX, Stripe};

/// Returns the code for such stripes.
///
/// # Errors
/// If the stripe has parity of two data shards or more, and ISA-L is missing: what to install. The
/// library is searched once, so one that is installed later is found only after a restart.
pub fn code(stripe: Stripe) -> Result<Arc<dyn Code>, LibraryError> {
    if stripe.data() == 1 || stripe.parity() == 0 {
        return Ok(Arc::new(copies::Copies { stripe }));
    }
    Ok(Arc::new(isal::Isal::new(stripe)?))
}
