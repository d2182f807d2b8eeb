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

/// Bytes in memory, by the offset that they were written at: for tests.
#[derive(Clone, Debug, Default)]
pub struct Memory(Arc<Mutex<HashMap<u64, Vec<u8>>>>);

impl Medium for Memory {
    fn read(&self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        bytes.fill(0);
        if let Some(found) = self.0.lock().get(&offset) {
            let len = found.len().min(bytes.len());
            bytes[..len].copy_from_slice(&found[..len]);
        }
        Ok(())
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut all = self.0.lock();
        // As on a disk, bytes beyond a shorter write stay.
        let place = all.entry(offset).or_default();
        if place.len() < bytes.len() {
            place.resize(bytes.len(), 0);
        }
        place[..bytes.len()].copy_from_slice(bytes);
        Ok(())
    }
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
