//! Notes of metadata that was found bad in its first copy, for who writes it anew.
//!
//! They are kept in memory only, and so many at most: what is not noted is found again by the next
//! reader, or by the next scrub.

use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};

/// Notes that are kept of one kind.
const NOTES_MAX: usize = 256;

/// What was found bad in its first copy.
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
    /// Something was read from its second copy.
    pub(crate) fn note(&self, key: K) {
        let mut noted = self.noted.lock();
        if noted.len() < NOTES_MAX && !noted.contains(&key) {
            noted.push(key);
        }
        self.is_some.store(true, Ordering::Release);
    }

    /// Whether anything was noted. Takes no lock.
    pub(crate) fn is_some(&self) -> bool {
        self.is_some.load(Ordering::Acquire)
    }

    /// Takes what was noted.
    pub(crate) fn take(&self) -> Vec<K> {
        if !self.is_some() {
            return Vec::new();
        }
        let mut noted = self.noted.lock();
        self.is_some.store(false, Ordering::Release);
        std::mem::take(&mut *noted)
    }
}
