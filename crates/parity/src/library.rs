//! ISA-L, loaded on demand, so that it is not needed at build time. All unsafe code is here.
//!
//! Of its C interface (`isa-l/erasure_code.h`, `isa-l/raid.h`) only what is unchanged since version
//! 2.14 is used. Its functions only access the memory that they are given, of the given length, and
//! keep no pointers; any number of threads may call them at once.

#![allow(unsafe_code)] // The only place of this crate that may be.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_void};
use std::mem::transmute;
use std::sync::OnceLock;

use block::{FRAME_BYTES, Frame, FrameMut};

use crate::error::LibraryError;
use crate::stripe::{DATA_SHARDS_MAX, PARITY_SHARDS_MAX, SHARDS_MAX};

/// The file name in all versions with this interface.
const FILE_NAME: &CStr = c"libisal.so.2";

/// Bytes of the tables of [`Library::tables`] for one factor. Their content depends on the
/// processor.
pub(crate) const TABLE_BYTES: usize = 32;

const FRAME_LEN: c_int = FRAME_BYTES as c_int;

type Symbol = *mut c_void;
/// Writes an `m` x `k` matrix.
type GenerateMatrix = unsafe extern "C" fn(a: *mut c_uchar, m: c_int, k: c_int);
/// Inverts the `n` x `n` matrix `input`, which it destroys; returns nonzero if there is no inverse.
type InvertMatrix = unsafe extern "C" fn(input: *mut c_uchar, out: *mut c_uchar, n: c_int) -> c_int;
type Multiply = unsafe extern "C" fn(a: c_uchar, b: c_uchar) -> c_uchar;
/// Computes tables for `rows` rows of `k` factors: [`TABLE_BYTES`] for each factor.
type InitTables =
    unsafe extern "C" fn(k: c_int, rows: c_int, a: *mut c_uchar, tables: *mut c_uchar);
/// Computes `rows` vectors of `len` bytes from `k`.
type EncodeData = unsafe extern "C" fn(
    len: c_int,
    k: c_int,
    rows: c_int,
    tables: *mut c_uchar,
    data: *mut *mut c_uchar,
    coding: *mut *mut c_uchar,
);
/// Computes P of all vectors but the last, into that; or P and Q of all but the last two. The
/// vectors are aligned to 32 bytes, and their length is a multiple of that. Returns nonzero if
/// fewer than two are left.
type Generate = unsafe extern "C" fn(vectors: c_int, len: c_int, array: *mut *mut c_void) -> c_int;

/// The functions of the library that are used, with the types of its headers.
#[derive(Debug)]
pub(crate) struct Library {
    gf_gen_rs_matrix: GenerateMatrix,
    gf_invert_matrix: InvertMatrix,
    gf_mul: Multiply,
    ec_init_tables: InitTables,
    ec_encode_data: EncodeData,
    xor_gen: Generate,
    pq_gen: Generate,
}

impl Library {
    /// Returns the library; searched once, found or not.
    pub(crate) fn get() -> Result<&'static Self, LibraryError> {
        static FOUND: OnceLock<Result<Library, LibraryError>> = OnceLock::new();
        FOUND.get_or_init(|| Self::open(FILE_NAME)).as_ref().map_err(Clone::clone)
    }

    /// Opens a library with this name, by the rules of the dynamic linker.
    pub(crate) fn open(file_name: &CStr) -> Result<Self, LibraryError> {
        // SAFETY: the name ends in a zero byte. ISA-L executes nothing when it is loaded.
        let handle = unsafe { libc::dlopen(file_name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(LibraryError::Missing { reason: dl_error() });
        }
        // It is never closed, so the functions stay valid for the life of the process.
        let at = |name: &CStr| {
            // SAFETY: the handle is that of an open library, and the name ends in a zero byte.
            let symbol = unsafe { libc::dlsym(handle, name.as_ptr()) };
            match symbol.is_null() {
                true => Err(LibraryError::Other { reason: dl_error() }),
                false => Ok(symbol),
            }
        };
        // SAFETY: each is a function with the type that the headers of ISA-L declare, and pointers
        // to functions are pointers here, as `dlsym` asks for. None of them is null.
        unsafe {
            Ok(Self {
                gf_gen_rs_matrix: transmute::<Symbol, GenerateMatrix>(at(c"gf_gen_rs_matrix")?),
                gf_invert_matrix: transmute::<Symbol, InvertMatrix>(at(c"gf_invert_matrix")?),
                gf_mul: transmute::<Symbol, Multiply>(at(c"gf_mul")?),
                ec_init_tables: transmute::<Symbol, InitTables>(at(c"ec_init_tables")?),
                ec_encode_data: transmute::<Symbol, EncodeData>(at(c"ec_encode_data")?),
                xor_gen: transmute::<Symbol, Generate>(at(c"xor_gen")?),
                pq_gen: transmute::<Symbol, Generate>(at(c"pq_gen")?),
            })
        }
    }

    /// Generates a matrix with a row of `k` factors for each shard, which make it from the data
    /// shards: identity, then the powers of 1, 2, 4…
    ///
    /// # Panics
    /// If the matrix has no whole rows.
    pub(crate) fn generate(&self, k: usize, matrix: &mut [u8]) {
        assert!(matrix.len().is_multiple_of(k), "whole rows");
        let rows = matrix.len() / k;
        // SAFETY: the matrix has this number of rows and of elements in each.
        unsafe { (self.gf_gen_rs_matrix)(matrix.as_mut_ptr(), rows as c_int, k as c_int) };
    }

    /// Writes the inverse of the `n` x `n` matrix to `out`, and destroys the matrix. Returns
    /// whether there is an inverse.
    ///
    /// # Panics
    /// If one of them is not such a matrix.
    pub(crate) fn invert(&self, n: usize, matrix: &mut [u8], out: &mut [u8]) -> bool {
        assert!(matrix.len() == n * n && out.len() == n * n, "{n} rows of {n}");
        let (matrix, out) = (matrix.as_mut_ptr(), out.as_mut_ptr());
        // SAFETY: both have this number of rows and of elements in each.
        unsafe { (self.gf_invert_matrix)(matrix, out, n as c_int) == 0 }
    }

    /// Returns the product of two elements.
    pub(crate) fn multiply(&self, a: u8, b: u8) -> u8 {
        // SAFETY: it has no preconditions.
        unsafe { (self.gf_mul)(a, b) }
    }

    /// Computes the tables for rows of `k` factors.
    ///
    /// # Panics
    /// If there are no whole rows, or not [`TABLE_BYTES`] for each factor.
    pub(crate) fn tables(&self, k: usize, factors: &[u8], tables: &mut [u8]) {
        assert!(factors.len().is_multiple_of(k), "whole rows");
        assert_eq!(tables.len(), factors.len() * TABLE_BYTES, "a table for each factor");
        let (rows, factors) = (factors.len() / k, factors.as_ptr().cast_mut());
        // SAFETY: there are this number of rows and of factors in each, which are only read, and
        // there is room for a table of each.
        unsafe {
            (self.ec_init_tables)(k as c_int, rows as c_int, factors, tables.as_mut_ptr());
        }
    }

    /// Writes P, or P and Q, of the frames of one row to `parity`.
    ///
    /// # Panics
    /// If there are fewer than 2 data frames or more than [`DATA_SHARDS_MAX`], or another number of
    /// parity frames.
    pub(crate) fn encode<'a>(
        &self,
        data: impl Iterator<Item = &'a Frame>,
        parity: &mut [FrameMut],
    ) {
        let mut vectors = [std::ptr::null_mut::<c_void>(); SHARDS_MAX];
        let mut k = 0;
        for frame in data {
            assert!(k < DATA_SHARDS_MAX, "no stripe has more data shards");
            vectors[k] = frame.as_ptr().cast_mut().cast();
            k += 1;
        }
        assert!(k >= 2, "the parity of one shard is a copy");
        for (vector, frame) in vectors[k..].iter_mut().zip(parity.iter_mut()) {
            *vector = frame.as_mut_ptr().cast();
        }
        let (count, array) = ((k + parity.len()) as c_int, vectors.as_mut_ptr());
        let failed = match parity.len() {
            // SAFETY: the first `k` vectors are frames, which are only read; the last is a separate
            // one. All have this length, and are aligned to it.
            1 => unsafe { (self.xor_gen)(count, FRAME_LEN, array) },
            // SAFETY: as above, with two at the end.
            2 => unsafe { (self.pq_gen)(count, FRAME_LEN, array) },
            other => panic!("{other} parity shards can't be encoded"),
        };
        assert_eq!(failed, 0, "ISA-L accepts {k} data shards");
    }

    /// Writes linear combinations of the frames of one row to `out`, by tables: those of a row of
    /// factors for each frame of `out`, with a factor for each frame of `used`.
    ///
    /// # Panics
    /// If the tables are for other numbers of frames, or there are more frames than a stripe has.
    pub(crate) fn combine<'a>(
        &self,
        tables: &[u8],
        used: impl Iterator<Item = &'a Frame>,
        out: &mut [FrameMut],
    ) {
        let mut sources = [std::ptr::null_mut::<c_uchar>(); DATA_SHARDS_MAX];
        let mut targets = [std::ptr::null_mut::<c_uchar>(); PARITY_SHARDS_MAX];
        let mut k = 0;
        for frame in used {
            assert!(k < DATA_SHARDS_MAX, "no stripe has more data shards");
            sources[k] = frame.as_ptr().cast_mut();
            k += 1;
        }
        let rows = out.len();
        assert!(rows <= PARITY_SHARDS_MAX, "they are made two at a time");
        assert_eq!(tables.len(), k * rows * TABLE_BYTES, "a table for each factor");
        for (target, frame) in targets.iter_mut().zip(out) {
            *target = frame.as_mut_ptr();
        }
        // SAFETY: tables and sources, `k` frames, are only read, and the targets are separate
        // frames, `rows` of them. All have this length.
        unsafe {
            (self.ec_encode_data)(
                FRAME_LEN,
                k as c_int,
                rows as c_int,
                tables.as_ptr().cast_mut(),
                sources.as_mut_ptr(),
                targets.as_mut_ptr(),
            );
        }
    }
}

/// Returns the message of the dynamic linker for the last error in this thread.
fn dl_error() -> String {
    // SAFETY: it has no preconditions.
    let text: *const c_char = unsafe { libc::dlerror() };
    if text.is_null() {
        return String::from("no reason given");
    }
    // SAFETY: it ends in a zero byte, and is valid in this thread until its next call of the
    // dynamic linker, which is after the copy.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().replace('\n', " ")
}
