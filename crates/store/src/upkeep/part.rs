//! Parts of all keys, for passes that can't remember all at once: they go on in rounds, one for
//! each part.

/// Keys that leave this remainder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    remainder: u64,
    divisor: u64,
}

impl Part {
    /// All keys.
    pub(crate) const ALL: Part = Part { remainder: 0, divisor: 1 };

    /// Whether a key is in it.
    pub(crate) fn contains(self, key: u64) -> bool {
        key % self.divisor == self.remainder
    }

    /// Both halves of it.
    pub(crate) fn halves(self) -> [Part; 2] {
        let Part { remainder, divisor } = self;
        [
            Part { remainder, divisor: divisor * 2 },
            Part { remainder: remainder + divisor, divisor: divisor * 2 },
        ]
    }
}
