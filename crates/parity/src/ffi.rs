//! The part of ISA-L's C interface that is used (`isa-l/erasure_code.h`, `isa-l/raid.h`), which is
//! the same in all versions since 2.14.

use std::ffi::{c_int, c_uchar, c_void};

/// Bytes of the tables of `ec_init_tables` for one coefficient. What is in them depends on the
/// processor.
pub(crate) const TABLE_BYTES: usize = 32;

unsafe extern "C" {
    /// Writes an `m` x `k` matrix: identity, then rows of the powers of 1, 2, 4…
    pub(crate) fn gf_gen_rs_matrix(a: *mut c_uchar, m: c_int, k: c_int);
    /// The inverse of the `n` x `n` matrix `input`, which it destroys; not 0 if there is none.
    pub(crate) fn gf_invert_matrix(input: *mut c_uchar, out: *mut c_uchar, n: c_int) -> c_int;
    /// The product of two elements.
    pub(crate) fn gf_mul(a: c_uchar, b: c_uchar) -> c_uchar;
    /// Tables for `rows` rows of `k` coefficients: [`TABLE_BYTES`] for each of them.
    pub(crate) fn ec_init_tables(k: c_int, rows: c_int, a: *mut c_uchar, tables: *mut c_uchar);
    /// `rows` vectors of `len` bytes from `k`.
    pub(crate) fn ec_encode_data(
        len: c_int,
        k: c_int,
        rows: c_int,
        tables: *mut c_uchar,
        data: *mut *mut c_uchar,
        coding: *mut *mut c_uchar,
    );
    /// The XOR of all vectors but the last, into that. They are aligned to 32 bytes. Not 0 if there
    /// are fewer than 3.
    pub(crate) fn xor_gen(vectors: c_int, len: c_int, array: *mut *mut c_void) -> c_int;
    /// P and Q of all vectors but the last two, into those. They are aligned to 32 bytes, and their
    /// length is a multiple of that. Not 0 if there are fewer than 4.
    pub(crate) fn pq_gen(vectors: c_int, len: c_int, array: *mut *mut c_void) -> c_int;
}
