//! Readers of the device, in generations: what is freed waits for those that may have found it.

use std::sync::Arc;

use crate::sync::Mutex;

/// Held by a reader of the device: a freed segment is not overwritten before all readers are gone
/// that may have found a place in it.
#[derive(Debug, Default)]
pub(crate) struct ReaderToken;

/// Generations of readers.
#[derive(Debug, Default)]
pub(crate) struct Readers(Mutex<Arc<ReaderToken>>);

impl Readers {
    /// Returns the token that a reader of this generation holds.
    pub(crate) fn token(&self) -> Arc<ReaderToken> {
        self.0.lock().clone()
    }

    /// Begins a new generation, and returns the token of the previous one.
    pub(crate) fn turn(&self) -> Arc<ReaderToken> {
        std::mem::take(&mut *self.0.lock())
    }
}
