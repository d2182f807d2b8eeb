//! Reading and writing little-endian integers, without a panic on bad input.

use crate::FormatError;

/// Takes fields off the front of untrusted bytes.
#[derive(Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

macro_rules! integer {
    ($(#[$doc:meta])* $name:ident, $type:ty) => {
        $(#[$doc])*
        pub fn $name(&mut self) -> Result<$type, FormatError> {
            let raw = self.bytes(size_of::<$type>())?;
            let mut array = [0; size_of::<$type>()];
            array.copy_from_slice(raw);
            Ok(<$type>::from_le_bytes(array))
        }
    };
}

impl<'a> Reader<'a> {
    /// Starts at the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns how many bytes were taken.
    pub fn offset(&self) -> usize {
        self.at
    }

    /// Returns how many bytes are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns an error at the reader's position.
    pub fn error(&self, what: &'static str) -> FormatError {
        FormatError { what, offset: self.at }
    }

    /// Takes `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8], FormatError> {
        let end = self.at.checked_add(count).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or(FormatError { what: "truncated data", offset: self.at })?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    /// Takes `N` bytes.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], FormatError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    integer!(
        /// Takes a byte.
        u8,
        u8
    );
    integer!(
        /// Takes two bytes.
        u16,
        u16
    );
    integer!(
        /// Takes four bytes.
        u32,
        u32
    );
    integer!(
        /// Takes eight bytes.
        u64,
        u64
    );
}

/// Reads a `u32` at a fixed offset of a structure whose size is known.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut array = [0; 4];
    array.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(array)
}

/// Reads a `u64` at a fixed offset of a structure whose size is known.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut array = [0; 8];
    array.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(array)
}

/// Reads a 40-bit integer at a fixed offset of a structure whose size is known.
pub(crate) fn u40_at(bytes: &[u8], offset: usize) -> u64 {
    let mut array = [0; 8];
    array[..5].copy_from_slice(&bytes[offset..offset + 5]);
    u64::from_le_bytes(array)
}

/// Reads 16 bytes at a fixed offset of a structure whose size is known.
pub(crate) fn b16_at(bytes: &[u8], offset: usize) -> [u8; 16] {
    let mut array = [0; 16];
    array.copy_from_slice(&bytes[offset..offset + 16]);
    array
}

/// Writes `field` at `offset`.
pub(crate) fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    bytes[offset..offset + field.len()].copy_from_slice(field);
}
