//! Stripes of two data shards and more, by ISA-L.

use std::ffi::{c_int, c_uchar, c_void};

use block::{FRAME_BYTES, Frame, FrameMut};

use crate::code::{Code, check_given, survivors};
use crate::error::ParityError;
use crate::ffi::{self, TABLE_BYTES};
use crate::stripe::{DATA_SHARDS_MAX, PARITY_SHARDS_MAX, SHARDS_MAX, Stripe};

const FRAME_LEN: c_int = FRAME_BYTES as c_int;

/// What makes a vector of others: a factor for each of these.
type Factors = [u8; DATA_SHARDS_MAX];

/// Two data shards and more.
#[derive(Debug)]
pub(crate) struct Isal {
    stripe: Stripe,
    /// What makes each shard of the data shards.
    rows: [Factors; SHARDS_MAX],
}

impl Isal {
    /// # Panics
    /// If there is one data shard only, of which the library makes no parity.
    pub(crate) fn new(stripe: Stripe) -> Self {
        let (k, shards) = (stripe.data(), stripe.shards());
        assert!(k >= 2, "the parity of one shard is a copy");
        let mut matrix = [0; SHARDS_MAX * DATA_SHARDS_MAX];
        // SAFETY: the matrix has room for as many rows as there are shards at most, of as many
        // elements as there are data shards at most.
        unsafe { ffi::gf_gen_rs_matrix(matrix.as_mut_ptr(), shards as c_int, k as c_int) };
        let mut rows = [Factors::default(); SHARDS_MAX];
        for (row, of_matrix) in rows.iter_mut().zip(matrix.chunks_exact(k)).take(shards) {
            row[..k].copy_from_slice(of_matrix);
        }
        Self { stripe, rows }
    }

    /// Puts into `parity` what these frames of one row have: as many as the stripe has of each.
    fn encode_row<'a>(&self, data: impl Iterator<Item = &'a Frame>, parity: &mut [FrameMut]) {
        let mut vectors = [std::ptr::null_mut::<c_void>(); SHARDS_MAX];
        let (k, shards) = (self.stripe.data(), self.stripe.shards());
        let mut count = 0;
        for (vector, frame) in vectors[..k].iter_mut().zip(data) {
            *vector = frame.as_ptr().cast_mut().cast();
            count += 1;
        }
        assert!(count == k && parity.len() == shards - k, "a row has a frame of each shard");
        for (vector, frame) in vectors[k..shards].iter_mut().zip(parity.iter_mut()) {
            *vector = frame.as_mut_ptr().cast();
        }
        let array = vectors.as_mut_ptr();
        let failed = match parity.len() {
            0 => 0,
            // SAFETY: the first `k` vectors are frames, which are only read; the others are frames
            // of their own. All have this length, and are aligned to it.
            1 => unsafe { ffi::xor_gen(shards as c_int, FRAME_LEN, array) },
            // SAFETY: as above.
            _ => unsafe { ffi::pq_gen(shards as c_int, FRAME_LEN, array) },
        };
        assert_eq!(failed, 0, "ISA-L takes {} data shards", k);
    }

    /// What makes the `wanted` shards of those with the numbers `used`.
    fn factors(&self, used: &[usize], wanted: &[usize]) -> Vec<Factors> {
        let k = self.stripe.data();
        let mut matrix = [0; DATA_SHARDS_MAX * DATA_SHARDS_MAX];
        for (row, number) in matrix.chunks_exact_mut(k).zip(used) {
            row.copy_from_slice(&self.rows[*number][..k]);
        }
        let mut inverse = [0; DATA_SHARDS_MAX * DATA_SHARDS_MAX];
        // SAFETY: both have room for as many rows of as many elements as there can be data shards.
        let failed =
            unsafe { ffi::gf_invert_matrix(matrix.as_mut_ptr(), inverse.as_mut_ptr(), k as c_int) };
        assert_eq!(failed, 0, "any {k} shards of {:?} give all of them", self.stripe);
        // SAFETY: it asks for nothing.
        let product = |a, b| unsafe { ffi::gf_mul(a, b) };
        let factors_of = |number: &usize| {
            let mut factors = Factors::default();
            for (by_data, row) in self.rows[*number].iter().zip(inverse.chunks_exact(k)) {
                for (factor, of_used) in factors.iter_mut().zip(row) {
                    *factor ^= product(*by_data, *of_used);
                }
            }
            factors
        };
        wanted.iter().map(factors_of).collect()
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
            self.encode_row(data.iter().map(|shard| &shard[row]), out);
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
        // More can't be lost, unless the same one is wanted twice.
        let parts = wanted.chunks(PARITY_SHARDS_MAX).zip(made.chunks_mut(PARITY_SHARDS_MAX));
        let mut out = [FrameMut::stale(), FrameMut::stale()];
        for (wanted, made) in parts {
            let tables = Tables::new(self.stripe, &self.factors(&numbers, wanted));
            let out = &mut out[..wanted.len()];
            for row in 0..frames_each {
                tables.make_row(used.iter().map(|(_, frames)| &frames[row]), out);
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
            self.encode_row(data.iter().map(|shard| &shard[row]), made);
            made.iter().zip(parity).all(|(made, shard)| made[..] == shard[row][..])
        };
        Ok((0..frames_each).all(is_right))
    }
}

/// Adds a frame to each shard, and leaves others in their place.
fn push_row(shards: &mut [Vec<Frame>], row: &mut [FrameMut]) {
    for (shard, frame) in shards.iter_mut().zip(row) {
        shard.push(std::mem::replace(frame, FrameMut::stale()).freeze());
    }
}

/// Factors in the form in which the library multiplies by them.
struct Tables {
    stripe: Stripe,
    bytes: [c_uchar; TABLE_BYTES * DATA_SHARDS_MAX * PARITY_SHARDS_MAX],
}

impl Tables {
    fn new(stripe: Stripe, factors: &[Factors]) -> Self {
        let k = stripe.data();
        assert!(factors.len() <= PARITY_SHARDS_MAX, "they are made two at a time");
        let mut matrix = [0; DATA_SHARDS_MAX * PARITY_SHARDS_MAX];
        for (row, factors) in matrix.chunks_exact_mut(k).zip(factors) {
            row.copy_from_slice(&factors[..k]);
        }
        let mut bytes = [0; TABLE_BYTES * DATA_SHARDS_MAX * PARITY_SHARDS_MAX];
        let (k, rows) = (k as c_int, factors.len() as c_int);
        // SAFETY: the matrix has `rows` rows of `k` elements, and there is room
        // for a table of each.
        unsafe { ffi::ec_init_tables(k, rows, matrix.as_mut_ptr(), bytes.as_mut_ptr()) };
        Self { stripe, bytes }
    }

    /// Puts into `out` what these frames of one row make: as many as there are rows of factors.
    fn make_row<'a>(&self, used: impl Iterator<Item = &'a Frame>, out: &mut [FrameMut]) {
        let mut sources = [std::ptr::null_mut::<c_uchar>(); DATA_SHARDS_MAX];
        let mut targets = [std::ptr::null_mut::<c_uchar>(); PARITY_SHARDS_MAX];
        let k = self.stripe.data();
        let mut count = 0;
        for (source, frame) in sources[..k].iter_mut().zip(used) {
            *source = frame.as_ptr().cast_mut();
            count += 1;
        }
        assert!(count == k && out.len() <= targets.len(), "a row has a frame of each shard");
        for (target, frame) in targets.iter_mut().zip(out.iter_mut()) {
            *target = frame.as_mut_ptr();
        }
        let (tables, rows) = (self.bytes.as_ptr().cast_mut(), out.len() as c_int);
        // SAFETY: tables and sources, `k` frames, are only read, and the targets are frames of
        // their own, as many as `rows` says. All have this length.
        unsafe {
            ffi::ec_encode_data(
                FRAME_LEN,
                k as c_int,
                rows,
                tables,
                sources.as_mut_ptr(),
                targets.as_mut_ptr(),
            );
        }
    }
}
