//! Waiting until everything that was applied early is durable (`durability = "flush"`): a
//! checkpoint must not refer to what a failed flush may still lose.

#[cfg(test)]
use std::sync::atomic::Ordering;

use crate::StoreError;
use crate::upkeep::Store;

impl Store {
    /// Blocks new jobs until everything that was applied early is durable.
    pub(crate) fn raise_barrier(&self) -> Result<(), StoreError> {
        self.writer.lock().raise_barrier();
        let mut waits = false;
        loop {
            {
                let mut writer = self.writer.lock();
                #[cfg(test)]
                self.barrier_turns.fetch_add(1, Ordering::Relaxed);
                if waits && writer.is_leading() && !writer.wants_commit() && !writer.has_failed() {
                    // The device may take long.
                    self.landed.wait(&mut writer);
                }
                if writer.is_flushed() || writer.has_failed() {
                    return Ok(());
                }
                if writer.has_no_segment() {
                    // `room` makes sure that this does not happen.
                    writer.lower_barrier();
                    let needed_bytes = self.world.medium.geometry().segment_bytes();
                    return Err(StoreError::NoRoom { needed_bytes, free_bytes: 0 });
                }
            }
            // If there is no commit to take, another thread has one in flight.
            waits = !self.commit_here() && !self.world.medium.disk.give_way();
        }
    }
}
