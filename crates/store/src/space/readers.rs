//! Who reads from the device, by generations: what is freed waits for those that may have found it.

use std::sync::Arc;

use crate::sync::Mutex;

/// Held by who reads from the device: a segment that was freed is not written again before all
/// readers are gone that may have found a place in it.
#[derive(Debug, Default)]
pub(crate) struct ReaderToken;

/// Generations of readers.
#[derive(Debug, Default)]
pub(crate) struct Readers(Mutex<Arc<ReaderToken>>);

impl Readers {
    /// What one of this generation holds meanwhile.
    pub(crate) fn token(&self) -> Arc<ReaderToken> {
        self.0.lock().clone()
    }

    /// Begins a new generation, and returns the token of the one before.
    pub(crate) fn turn(&self) -> Arc<ReaderToken> {
        std::mem::take(&mut *self.0.lock())
    }
}
