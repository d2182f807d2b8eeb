//! Locks, condition variables and ordering atomics, from one place: those of `parking_lot` and of
//! the standard library or, for the models in `tests`, those of a scheduler that decides at each of
//! them which thread runs next.
//!
//! Atomics that only count, or that are hints, are always those of the standard library: scheduling
//! points there would be useless.

#[cfg(not(feature = "models"))]
pub(crate) use parking_lot::{Condvar, Mutex, MutexGuard, RwLock, RwLockWriteGuard};
#[cfg(feature = "models")]
pub(crate) use shuttle::thread::yield_now;
#[cfg(feature = "models")]
pub(crate) use shuttle_parking_lot::{Mutex, MutexGuard, RwLock, RwLockWriteGuard};
#[cfg(not(feature = "models"))]
pub(crate) use std::thread::yield_now;

/// Atomics with ordering.
pub(crate) mod atomic {
    #[cfg(feature = "models")]
    pub(crate) use shuttle::sync::atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering,
    };
    #[cfg(not(feature = "models"))]
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
}

#[cfg(feature = "models")]
pub(crate) use modelled::Condvar;

#[cfg(feature = "models")]
mod modelled {
    use std::time::Duration;

    use super::MutexGuard;

    /// Has the interface of `parking_lot`'s, for the models. Waits never time out, so a thread that
    /// relies on its timeout waits forever, and the scheduler reports a deadlock.
    #[derive(Debug, Default)]
    pub(crate) struct Condvar {
        /// Held from before a waiter releases its own lock until it waits, so that no wakeup in
        /// between is lost.
        entry: shuttle::sync::Mutex<()>,
        condition: shuttle::sync::Condvar,
    }

    impl Condvar {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
            let entered = self.entry.lock().expect("no thread panics while it holds the lock");
            MutexGuard::unlocked(guard, || drop(self.condition.wait(entered)));
        }

        pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _patience: Duration) {
            self.wait(guard);
        }

        /// The number of woken threads is not known.
        pub(crate) fn notify_all(&self) -> usize {
            let _entered = self.entry.lock().expect("no thread panics while it holds the lock");
            self.condition.notify_all();
            0
        }
    }
}
