//! Metadata whose first copy was found bad, to be rewritten.
//!
//! The list is in memory only, and bounded: what is not in it is found again by the next reader, or
//! by the next scrub.

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// The maximum number of entries of one kind.
const NOTES_MAX: usize = 256;

/// Metadata whose first copy was found bad.
#[derive(Debug)]
pub(crate) struct BadCopies<K> {
    noted: Mutex<Vec<K>>,
    is_some: AtomicBool,
}

impl<K> Default for BadCopies<K> {
    fn default() -> Self {
        Self { noted: Mutex::new(Vec::new()), is_some: AtomicBool::new(false) }
    }
}

impl<K: PartialEq> BadCopies<K> {
    /// Records that something was read from its second copy.
    pub(crate) fn note(&self, key: K) {
        let mut noted = self.noted.lock();
        if noted.len() < NOTES_MAX && !noted.contains(&key) {
            noted.push(key);
        }
        self.is_some.store(true, Ordering::Release);
    }

    /// Returns whether there are entries. Takes no lock.
    pub(crate) fn is_some(&self) -> bool {
        self.is_some.load(Ordering::Acquire)
    }

    /// Takes all entries.
    pub(crate) fn take(&self) -> Vec<K> {
        if !self.is_some() {
            return Vec::new();
        }
        let mut noted = self.noted.lock();
        self.is_some.store(false, Ordering::Release);
        std::mem::take(&mut *noted)
    }
}
