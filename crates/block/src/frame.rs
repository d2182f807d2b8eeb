//! Frames: 4 KiB of memory, aligned to 4 KiB, reference-counted.
//!
//! A frame is filled from a socket, hashed, written to the device and kept in the cache without
//! being copied. A [`FrameMut`] has one owner and can be filled; freezing it makes a [`Frame`],
//! which can be shared and never changes again. An unreferenced frame returns to a small pool of
//! the thread that dropped it, together with its reference count, so a steady load allocates
//! nothing.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

/// Bytes in a frame.
pub const FRAME_BYTES: usize = 4096;

/// How many frames a thread keeps for reuse: 16 MiB, a few of the largest commands.
const POOL_FRAMES_MAX: usize = 4096;

#[repr(C, align(4096))]
struct Page([u8; FRAME_BYTES]);

/// The page is boxed so that the reference count is not in the same aligned allocation, which would
/// double its size.
type Counted = Arc<Box<Page>>;

thread_local! {
    /// Frames without other references.
    static POOL: RefCell<Vec<Counted>> = const { RefCell::new(Vec::new()) };
}

fn take_from_pool() -> Option<Counted> {
    POOL.try_with(|pool| pool.borrow_mut().pop()).ok().flatten()
}

/// Returns a frame without other references to the pool. If two threads drop their references at
/// the same time, possibly neither is the last; the frame is then freed.
fn give_to_pool(page: Counted) {
    if Arc::strong_count(&page) > 1 {
        return;
    }
    // The thread is exiting and its pool is gone: free the frame instead.
    let _ = POOL.try_with(|pool| {
        let mut pool = pool.borrow_mut();
        if pool.len() < POOL_FRAMES_MAX {
            pool.push(page);
        }
    });
}

/// A frame with one owner, which can be filled.
pub struct FrameMut(Option<Counted>);

impl FrameMut {
    /// Returns a frame of zeros.
    pub fn zeroed() -> Self {
        let mut frame = Self::stale();
        frame.fill(0);
        frame
    }

    /// Returns a frame with arbitrary content, for callers that overwrite all of it.
    pub fn stale() -> Self {
        let fresh = || Arc::new(Box::new(Page([0; FRAME_BYTES])));
        Self(Some(take_from_pool().unwrap_or_else(fresh)))
    }

    /// Returns a frame that starts with `bytes`, followed by zeros.
    ///
    /// # Panics
    /// If `bytes` is longer than a frame.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut frame = Self::stale();
        frame[..bytes.len()].copy_from_slice(bytes);
        frame[bytes.len()..].fill(0);
        frame
    }

    /// Makes the frame shared and immutable.
    pub fn freeze(mut self) -> Frame {
        Frame(self.0.take())
    }
}

impl Deref for FrameMut {
    type Target = [u8; FRAME_BYTES];

    fn deref(&self) -> &[u8; FRAME_BYTES] {
        &self.0.as_ref().expect("a FrameMut holds its page until it is frozen").0
    }
}

impl DerefMut for FrameMut {
    fn deref_mut(&mut self) -> &mut [u8; FRAME_BYTES] {
        let page = self.0.as_mut().expect("a FrameMut holds its page until it is frozen");
        &mut Arc::get_mut(page).expect("a FrameMut is the only one that refers to its page").0
    }
}

impl Drop for FrameMut {
    fn drop(&mut self) {
        if let Some(page) = self.0.take() {
            give_to_pool(page);
        }
    }
}

impl std::fmt::Debug for FrameMut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FrameMut")
    }
}

/// A shared, immutable frame.
#[derive(Clone)]
pub struct Frame(Option<Counted>);

impl Frame {
    /// Returns the shared frame of zeros.
    pub fn zeros() -> Frame {
        static ZEROS: OnceLock<Frame> = OnceLock::new();
        ZEROS.get_or_init(|| FrameMut::zeroed().freeze()).clone()
    }

    /// Returns a frame that can be filled: this one if it is not shared, otherwise a copy.
    pub fn into_mut(mut self) -> FrameMut {
        let mut page = self.0.take().expect("a Frame holds its page");
        match Arc::get_mut(&mut page) {
            Some(_) => FrameMut(Some(page)),
            None => FrameMut::from_bytes(&page.0),
        }
    }

    /// Returns whether both refer to the same memory.
    pub fn is_same(&self, other: &Frame) -> bool {
        match (&self.0, &other.0) {
            (Some(a), Some(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }
}

impl Deref for Frame {
    type Target = [u8; FRAME_BYTES];

    fn deref(&self) -> &[u8; FRAME_BYTES] {
        &self.0.as_ref().expect("a Frame holds its page").0
    }
}

impl Drop for Frame {
    fn drop(&mut self) {
        if let Some(page) = self.0.take() {
            give_to_pool(page);
        }
    }
}

impl PartialEq for Frame {
    fn eq(&self, other: &Frame) -> bool {
        self.is_same(other) || self[..] == other[..]
    }
}

impl Eq for Frame {}

impl std::fmt::Debug for Frame {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Frame({:02x?}…)", &self[..8])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_aligned_and_reused() {
        let first = FrameMut::stale();
        let address = first.as_ptr() as usize;
        assert_eq!(address % FRAME_BYTES, 0);
        drop(first.freeze());
        assert_eq!(FrameMut::stale().as_ptr() as usize, address);
    }

    #[test]
    fn a_shared_frame_is_copied_before_it_is_filled() {
        let shared = FrameMut::from_bytes(b"one").freeze();
        let other = shared.clone();
        let mut copy = other.into_mut();
        copy[0] = b'O';
        assert_eq!(&shared[..3], b"one");
        assert_eq!(&copy[..4], b"One\0");
    }

    #[test]
    fn a_frame_with_one_holder_is_filled_in_place() {
        let frame = FrameMut::zeroed().freeze();
        let address = frame.as_ptr();
        assert_eq!(frame.into_mut().as_ptr(), address);
    }
}
