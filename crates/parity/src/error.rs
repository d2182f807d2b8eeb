//! Errors.

/// Why shards were not encoded, reconstructed or verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParityError {
    /// There are no such stripes.
    #[error("a stripe has 1 to 16 data and 0 to 2 parity shards, not {data} and {parity}")]
    Stripe {
        /// The requested number of data shards.
        data: usize,
        /// The requested number of parity shards.
        parity: usize,
    },
    /// Too few or too many shards were given.
    #[error("{given} shards were given, of {expected}")]
    Shards {
        /// The number of shards of the stripe.
        expected: usize,
        /// The number that was given.
        given: usize,
    },
    /// Shards have different lengths.
    #[error("shard {shard} has {frames} frames, and the first one {expected}")]
    Lengths {
        /// The index of the shard among those that were given.
        shard: usize,
        /// Its number of frames.
        frames: usize,
        /// The expected number of frames.
        expected: usize,
    },
    /// More is lost than parity can reconstruct.
    #[error("only {left} shards are left, and {needed} are needed")]
    TooFew {
        /// How many shards are needed.
        needed: usize,
        /// How many are left.
        left: usize,
    },
    /// A shard was to be reconstructed that is not lost, or not part of the stripe.
    #[error("shard {0} is not lost")]
    NotLost(usize),
}

/// Why there is no code for a stripe: ISA-L can't be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// It is missing, or can't be loaded.
    #[error(
        "parity needs ISA-L, which can't be loaded: install libisal2 (Debian, Ubuntu: apt-get \
         install libisal2; Fedora: dnf install isa-l): {reason}"
    )]
    Missing {
        /// The message of the dynamic linker.
        reason: String,
    },
    /// The library is not ISA-L, or a version without a required function.
    #[error(
        "parity needs ISA-L 2.14 or newer, but another library was found: install libisal2 \
         (Debian, Ubuntu: apt-get install --reinstall libisal2; Fedora: dnf reinstall isa-l): \
         {reason}"
    )]
    Other {
        /// The message of the dynamic linker.
        reason: String,
    },
}
