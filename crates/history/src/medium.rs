//! The medium that holds the bytes of a history.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

/// A medium. Bytes that were never written read as zeros.
pub trait Medium: Send + Sync {
    /// Fills `bytes` from `offset`.
    ///
    /// # Errors
    /// Those of the system.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()>;

    /// Writes `bytes` at `offset`; need not be durable when it returns.
    ///
    /// # Errors
    /// Those of the system.
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
}

/// The unit in which bytes in memory are held.
const PIECE_BYTES: usize = 4096;

/// Bytes in memory, in pieces, as far as they were written: for tests.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<HashMap<u64, [u8; PIECE_BYTES]>>>);

impl Medium for Memory {
    fn read(&self, mut offset: u64, mut bytes: &mut [u8]) -> io::Result<()> {
        let pieces = self.0.lock();
        while !bytes.is_empty() {
            let (number, at) = place_of(offset);
            let (part, rest) = bytes.split_at_mut(bytes.len().min(PIECE_BYTES - at));
            match pieces.get(&number) {
                Some(piece) => part.copy_from_slice(&piece[at..at + part.len()]),
                None => part.fill(0),
            }
            offset += part.len() as u64;
            bytes = rest;
        }
        Ok(())
    }

    fn write(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        let mut pieces = self.0.lock();
        while !bytes.is_empty() {
            let (number, at) = place_of(offset);
            let (part, rest) = bytes.split_at(bytes.len().min(PIECE_BYTES - at));
            let piece = pieces.entry(number).or_insert([0; PIECE_BYTES]);
            piece[at..at + part.len()].copy_from_slice(part);
            offset += part.len() as u64;
            bytes = rest;
        }
        Ok(())
    }
}

/// Returns the number of the piece that contains an offset, and the place in it.
fn place_of(offset: u64) -> (u64, usize) {
    (offset / PIECE_BYTES as u64, offset as usize % PIECE_BYTES)
}

/// No medium, and why.
pub(crate) struct Absent(pub(crate) String);

impl Medium for Absent {
    fn read(&self, _offset: u64, _bytes: &mut [u8]) -> io::Result<()> {
        Err(io::Error::other(self.0.clone()))
    }

    fn write(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::Error::other(self.0.clone()))
    }
}
