//! Counting what a thread allocates: for tests that limit it.
//!
//! A test's program has [`Counting`] as its global allocator. [`allocations_of`] then counts what
//! one call allocates on this thread, and [`observe`] sets a function that is called for each of
//! these allocations, to find out where they come from.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ops::{Add, AddAssign};

/// Calls of the allocator that take memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// The number: a block that grows counts once more.
    pub count: u64,
    /// The requested bytes. For a block that grows, all of its new length.
    pub bytes: u64,
}

impl Add for Allocations {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self { count: self.count + more.count, bytes: self.bytes + more.bytes }
    }
}

impl AddAssign for Allocations {
    fn add_assign(&mut self, more: Self) {
        *self = *self + more;
    }
}

/// Called for an allocation of this many bytes. What it allocates itself is not counted.
pub type Observer = fn(bytes: usize);

thread_local! {
    /// The counts so far, while counting is on.
    static COUNTED: Cell<Option<Allocations>> = const { Cell::new(None) };
    static OBSERVER: Cell<Option<Observer>> = const { Cell::new(None) };
}

/// Calls `work`, and counts what it allocates on this thread. Nothing is counted if the program's
/// allocator is not [`Counting`].
pub fn allocations_of<T>(work: impl FnOnce() -> T) -> (T, Allocations) {
    let outer = COUNTED.replace(Some(Allocations::default()));
    let done = work();
    let counted = COUNTED.replace(outer).unwrap_or_default();
    (done, counted)
}

/// Sets or clears the function that is called for each counted allocation of this thread.
pub fn observe(observer: Option<Observer>) {
    OBSERVER.set(observer);
}

/// A thread that is ending no longer counts.
fn count(bytes: usize) {
    let Ok(Some(so_far)) = COUNTED.try_with(Cell::get) else { return };
    COUNTED.set(None);
    if let Some(observer) = OBSERVER.get() {
        observer(bytes);
    }
    COUNTED.set(Some(so_far + Allocations { count: 1, bytes: bytes as u64 }));
}

/// An allocator that counts the allocations of another one.
#[derive(Debug, Default)]
pub struct Counting<A>(pub A);

// SAFETY: each call is passed on unchanged, to an allocator that fulfils the contract.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller fulfils the requirements of the other allocator's call.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as above.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_bytes: usize) -> *mut u8 {
        count(new_bytes);
        // SAFETY: as above; `block` is from the other allocator, as all blocks are.
        unsafe { self.0.realloc(block, layout, new_bytes) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { self.0.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use std::alloc::System;
    use std::hint::black_box;

    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting<System> = Counting(System);

    thread_local! {
        static SEEN_BYTES: Cell<usize> = const { Cell::new(0) };
    }

    #[test]
    fn only_allocations_of_the_call_are_counted() {
        drop(black_box(vec![0_u8; 100]));
        let (kept, counted) = allocations_of(|| {
            let mut kept: Vec<u8> = Vec::with_capacity(10);
            kept.reserve_exact(30);
            kept.extend([1; 30]);
            let inner = allocations_of(|| black_box(vec![0_u8; 7])).1;
            assert_eq!(inner, Allocations { count: 1, bytes: 7 });
            drop(black_box(Box::new(5_u32)));
            kept
        });
        assert_eq!((kept.len(), counted), (30, Allocations { count: 3, bytes: 44 }));
        assert_eq!(allocations_of(|| drop(kept)).1, Allocations::default());
    }

    #[test]
    fn an_observer_sees_each_and_may_allocate() {
        observe(Some(|bytes| {
            drop(black_box(vec![0_u8; 1000]));
            SEEN_BYTES.set(SEEN_BYTES.get() + bytes);
        }));
        let work = || {
            drop(black_box(vec![0_u8; 8]));
            drop(black_box(vec![0_u8; 9]));
        };
        let counted = allocations_of(work).1;
        observe(None);
        assert_eq!((counted, SEEN_BYTES.get()), (Allocations { count: 2, bytes: 17 }, 17));
        allocations_of(work);
        assert_eq!(SEEN_BYTES.get(), 17);
    }
}
