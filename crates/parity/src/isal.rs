//! Stripes of two data shards and more, computed by ISA-L.

use block::{Frame, FrameMut};

use crate::code::{Code, check_given, survivors};
use crate::error::{LibraryError, ParityError};
use crate::library::{Library, TABLE_BYTES};
use crate::stripe::{DATA_SHARDS_MAX, PARITY_SHARDS_MAX, SHARDS_MAX, Stripe};

/// The factors of a linear combination of shards: one for each.
type Factors = [u8; DATA_SHARDS_MAX];

/// A code for two data shards and more, with parity.
#[derive(Debug)]
pub(crate) struct Isal {
    stripe: Stripe,
    library: &'static Library,
    /// The factors that make each shard from the data shards.
    rows: [Factors; SHARDS_MAX],
}

impl Isal {
    /// Creates the code.
    ///
    /// # Errors
    /// If the library is missing.
    pub(crate) fn new(stripe: Stripe) -> Result<Self, LibraryError> {
        let library = Library::get()?;
        let (k, shards) = (stripe.data(), stripe.shards());
        let mut matrix = [0; SHARDS_MAX * DATA_SHARDS_MAX];
        let matrix = &mut matrix[..shards * k];
        library.generate(k, matrix);
        let mut rows = [Factors::default(); SHARDS_MAX];
        for (row, of_matrix) in rows.iter_mut().zip(matrix.chunks_exact(k)) {
            row[..k].copy_from_slice(of_matrix);
        }
        Ok(Self { stripe, library, rows })
    }

    /// Returns the factors that make the `wanted` shards from those with the numbers `used`.
    fn factors(&self, used: &[usize], wanted: &[usize]) -> Vec<Factors> {
        let k = self.stripe.data();
        let mut matrix = [0; DATA_SHARDS_MAX * DATA_SHARDS_MAX];
        let mut inverse = matrix;
        let (matrix, inverse) = (&mut matrix[..k * k], &mut inverse[..k * k]);
        for (row, number) in matrix.chunks_exact_mut(k).zip(used) {
            row.copy_from_slice(&self.rows[*number][..k]);
        }
        let has_inverse = self.library.invert(k, matrix, inverse);
        assert!(has_inverse, "any {k} shards of {:?} determine all others", self.stripe);
        let factors_of = |number: &usize| {
            let mut factors = Factors::default();
            for (by_data, row) in self.rows[*number].iter().zip(inverse.chunks_exact(k)) {
                for (factor, of_used) in factors.iter_mut().zip(row) {
                    *factor ^= self.library.multiply(*by_data, *of_used);
                }
            }
            factors
        };
        wanted.iter().map(factors_of).collect()
    }

    /// Returns these factors in the form in which the library multiplies by them.
    fn tables(&self, factors: &[Factors]) -> Vec<u8> {
        let k = self.stripe.data();
        let rows: Vec<u8> = factors.iter().flat_map(|row| &row[..k]).copied().collect();
        let mut tables = vec![0; rows.len() * TABLE_BYTES];
        self.library.tables(k, &rows, &mut tables);
        tables
    }
}

impl Code for Isal {
    fn stripe(&self) -> Stripe {
        self.stripe
    }

    fn encode(&self, data: &[&[Frame]]) -> Result<Vec<Vec<Frame>>, ParityError> {
        let numbered = data.iter().copied().enumerate();
        let frames_each = check_given(self.stripe.data(), data.len(), numbered)?;
        let mut parity = vec![Vec::with_capacity(frames_each); self.stripe.parity()];
        let mut out = [FrameMut::stale(), FrameMut::stale()];
        let out = &mut out[..self.stripe.parity()];
        for row in 0..frames_each {
            self.library.encode(data.iter().map(|shard| &shard[row]), out);
            push_row(&mut parity, out);
        }
        Ok(parity)
    }

    fn reconstruct(
        &self,
        shards: &[Option<&[Frame]>],
        wanted: &[usize],
    ) -> Result<Vec<Vec<Frame>>, ParityError> {
        let (used, frames_each) = survivors(self.stripe, shards, wanted)?;
        let numbers: Vec<usize> = used.iter().map(|(number, _)| *number).collect();
        let mut made = vec![Vec::with_capacity(frames_each); wanted.len()];
        // No more can be lost, unless the same one is wanted twice.
        let parts = wanted.chunks(PARITY_SHARDS_MAX).zip(made.chunks_mut(PARITY_SHARDS_MAX));
        let mut out = [FrameMut::stale(), FrameMut::stale()];
        for (wanted, made) in parts {
            let tables = self.tables(&self.factors(&numbers, wanted));
            let out = &mut out[..wanted.len()];
            for row in 0..frames_each {
                let used = used.iter().map(|(_, frames)| &frames[row]);
                self.library.combine(&tables, used, out);
                push_row(made, out);
            }
        }
        Ok(made)
    }

    fn verify(&self, shards: &[&[Frame]]) -> Result<bool, ParityError> {
        let numbered = shards.iter().copied().enumerate();
        let frames_each = check_given(self.stripe.shards(), shards.len(), numbered)?;
        let (data, parity) = shards.split_at(self.stripe.data());
        let mut made = [FrameMut::stale(), FrameMut::stale()];
        let made = &mut made[..parity.len()];
        let is_right = |row: usize| {
            self.library.encode(data.iter().map(|shard| &shard[row]), made);
            made.iter().zip(parity).all(|(made, shard)| made[..] == shard[row][..])
        };
        Ok((0..frames_each).all(is_right))
    }
}

/// Adds a frame to each shard, and replaces it by a new one.
fn push_row(shards: &mut [Vec<Frame>], row: &mut [FrameMut]) {
    for (shard, frame) in shards.iter_mut().zip(row) {
        shard.push(std::mem::replace(frame, FrameMut::stale()).freeze());
    }
}
