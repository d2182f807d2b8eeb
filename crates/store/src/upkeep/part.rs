//! Parts of all keys, for passes that can't remember all at once: they work in rounds, one for each
//! part.

/// Keys with this remainder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    remainder: u64,
    divisor: u64,
}

impl Part {
    /// All keys.
    pub(crate) const ALL: Part = Part { remainder: 0, divisor: 1 };

    /// Returns whether it contains a key.
    pub(crate) fn contains(self, key: u64) -> bool {
        key % self.divisor == self.remainder
    }

    /// Returns its two halves.
    pub(crate) fn halves(self) -> [Part; 2] {
        let Part { remainder, divisor } = self;
        [
            Part { remainder, divisor: divisor * 2 },
            Part { remainder: remainder + divisor, divisor: divisor * 2 },
        ]
    }
}
