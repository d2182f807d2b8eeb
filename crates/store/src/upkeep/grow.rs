//! Growing a pool while it is in use.
//!
//! | step | a crash after it leaves |
//! |---|---|
//! | 1. the disk has the new length, durably | the old pool on a longer disk |
//! | 2. the segment table has rows for the new segments, only for metadata at first | the same |
//! | 3. a checkpoint, whose superblock has the new capacity | the new pool |
//! | 4. the same checkpoint has written the other copy as well | the new pool |
//! | 5. the new segments may be opened for anything | the new pool |
//!
//! The checkpoint of step 3 uses the new segments first, so that a pool without free segments can
//! grow. No record is in a segment that the superblock from which it is found does not have.

use format::{Geometry, Superblock};

use crate::StoreError;
use crate::log::checkpointer::Checkpointer;
use crate::space::widths::SegmentWidths;
use crate::upkeep::Store;
use crate::world::World;
use crate::writer::Writer;

impl Store {
    /// Grows the pool to `capacity_bytes`, while it is in use, and its disk if it is smaller; in a
    /// striped pool each disk by its part of that. Durable when it returns; what was refused for
    /// lack of space can be tried again.
    ///
    /// # Errors
    /// [`StoreError::Size`] if that is less than a whole segment more than the pool has, or more
    /// segments than a pool can have; [`StoreError::Io`] if the disk can't be so large;
    /// [`StoreError::NoRoom`] if there are too few new segments for the changed metadata.
    pub fn grow(&self, capacity_bytes: u64) -> Result<(), StoreError> {
        let mut checkpointer = self.checkpointing.lock();
        let old = self.world.medium.geometry();
        let old_capacity_bytes = checkpointer.superblock().capacity_bytes;
        let (device_bytes, geometry) = grown_geometry(checkpointer.superblock(), capacity_bytes)?;
        self.world.medium.disk.grow(device_bytes)?;
        let mut writer = self.writer.lock();
        extend(&self.world, &mut writer, &mut checkpointer, device_bytes, geometry);
        drop(writer);
        if let Err(error) = self.checkpoint_with(&mut checkpointer) {
            // If some of the new segments were used, it can't be undone: the next checkpoint that
            // fits grows the pool.
            let is_refused = matches!(error, StoreError::NoRoom { .. });
            if is_refused && self.writer.lock().state.segments.shrink(old.segment_count) {
                self.world.medium.grown(old);
                checkpointer.grow(old_capacity_bytes, old);
            }
            return Err(error);
        }
        drop(checkpointer);
        self.is_starving();
        Ok(())
    }

    /// Completes what recovery has begun for a pool that grows.
    pub(crate) fn finish_growing(&self) -> Result<(), StoreError> {
        self.checkpoint()
    }
}

/// Sets the capacity for the next checkpoint, which may use the new segments.
pub(crate) fn extend(
    world: &World,
    writer: &mut Writer,
    checkpointer: &mut Checkpointer,
    capacity_bytes: u64,
    geometry: Geometry,
) {
    let before = world.medium.geometry().segment_count;
    writer.state.segments.extend(geometry.segment_count);
    world.medium.grown(geometry);
    let widths = SegmentWidths::of(&world.medium, before..geometry.segment_count);
    writer.widths_changed(world, &widths);
    checkpointer.grow(capacity_bytes, geometry);
}

/// Returns how much of each device a pool of this capacity uses, and its division.
pub(crate) fn grown_geometry(
    superblock: &Superblock,
    capacity_bytes: u64,
) -> Result<(u64, Geometry), StoreError> {
    let (old, most) = (superblock.geometry, superblock.features.segments_max());
    let size = |text: String| Err(StoreError::Size(text));
    let columns = u64::from(old.columns);
    let device_bytes = capacity_bytes.div_ceil(columns);
    let count = old.count_in(device_bytes);
    let has = old.pool_bytes() * columns;
    if count <= u64::from(old.segment_count) {
        let step = old.segment_bytes();
        return size(format!("the pool has {has} bytes, and grows in steps of {step}"));
    }
    if count > most {
        let most = Geometry { segment_count: most as u32, ..old }.pool_bytes() * columns;
        return size(format!("a pool that was made this small holds at most {most} bytes"));
    }
    Ok((device_bytes, Geometry { segment_count: count as u32, ..old }))
}
