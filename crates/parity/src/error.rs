//! What is refused.

/// Why shards were not encoded, reconstructed or verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParityError {
    /// No stripe is made so.
    #[error("a stripe has 1 to 16 data and 0 to 2 parity shards, not {data} and {parity}")]
    Stripe {
        /// Data shards that were asked for.
        data: usize,
        /// Parity shards that were asked for.
        parity: usize,
    },
    /// Not all shards were given, or more.
    #[error("{given} shards were given, of {expected}")]
    Shards {
        /// How many the stripe has.
        expected: usize,
        /// How many were given.
        given: usize,
    },
    /// Shards of different lengths.
    #[error("shard {shard} has {frames} frames, and the first one {expected}")]
    Lengths {
        /// The number of the shard among those that were given.
        shard: usize,
        /// How many frames it has.
        frames: usize,
        /// How many it should have.
        expected: usize,
    },
    /// More is lost than parity can make good.
    #[error("only {left} shards are left, and {needed} are needed")]
    TooFew {
        /// How many it takes.
        needed: usize,
        /// How many there are.
        left: usize,
    },
    /// A shard that is there was to be reconstructed, or one that is none of the stripe.
    #[error("shard {0} is not lost")]
    NotLost(usize),
}

/// Why there is no code for a stripe: ISA-L can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// It is not there, or can't be loaded.
    #[error(
        "parity needs ISA-L, which can't be loaded: install libisal2 (Debian, Ubuntu: apt-get \
         install libisal2; Fedora: dnf install isa-l): {reason}"
    )]
    Missing {
        /// What the dynamic linker says.
        reason: String,
    },
    /// What is there is not ISA-L, or a version without a function that is used.
    #[error(
        "parity needs ISA-L from 2.14 on, and another library is in its place: install libisal2 \
         (Debian, Ubuntu: apt-get install --reinstall libisal2; Fedora: dnf reinstall isa-l): \
         {reason}"
    )]
    Other {
        /// What the dynamic linker says.
        reason: String,
    },
}
