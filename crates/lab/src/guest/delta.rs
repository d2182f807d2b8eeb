//! What a guest has written since a snapshot: grains of 4 KiB in the order of the writes, like in a
//! space-efficient sparse disk (SEsparse). The table of their locations is kept in memory: a host
//! that dies loses its snapshots here, which no scenario needs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use super::GUEST_BLOCK_BYTES;
use super::disk::is_aligned;
use crate::disk::{DiskError, VirtualDisk};

const GRAIN_BYTES: u64 = GUEST_BLOCK_BYTES as u64;
/// The maximum that a consolidation moves with one read and one write.
const CONSOLIDATE_GRAINS: u64 = 256;

/// The writes since a snapshot.
#[derive(Debug)]
pub(super) struct Delta {
    file: VirtualDisk,
    /// The location of each grain of the disk in the file, in grains.
    table: RefCell<BTreeMap<u64, u64>>,
    /// Grains that the disk below does not have yet.
    fresh: RefCell<BTreeMap<u64, u64>>,
    used_grains: Cell<u64>,
}

impl Delta {
    pub(super) fn new(file: VirtualDisk) -> Self {
        let (table, fresh) = Default::default();
        Self { file, table, fresh, used_grains: Cell::new(0) }
    }

    /// Writes grains. Those that are already in the file are overwritten in place.
    pub(super) async fn write(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        self.check(offset, data.len() as u64)?;
        let (first, count) = (offset / GRAIN_BYTES, data.len() as u64 / GRAIN_BYTES);
        let places: Vec<u64> = (first..first + count).map(|grain| self.place_of(grain)).collect();
        for (at, run, places) in runs(&places) {
            let bytes = &data[at * GUEST_BLOCK_BYTES..(at + run) * GUEST_BLOCK_BYTES];
            self.file.write(places * GRAIN_BYTES, bytes).await?;
        }
        let (mut table, mut fresh) = (self.table.borrow_mut(), self.fresh.borrow_mut());
        for (grain, place) in (first..).zip(places) {
            table.insert(grain, place);
            fresh.insert(grain, place);
        }
        Ok(())
    }

    fn place_of(&self, grain: u64) -> u64 {
        if let Some(place) = self.table.borrow().get(&grain) {
            return *place;
        }
        let place = self.used_grains.get();
        self.used_grains.set(place + 1);
        place
    }

    fn check(&self, offset: u64, bytes: u64) -> Result<(), DiskError> {
        let (end, disk_bytes) = (offset.saturating_add(bytes), self.file.bytes());
        if end > disk_bytes || !is_aligned(offset, bytes) {
            return Err(DiskError::OutOfRange { offset, end, disk_bytes });
        }
        Ok(())
    }

    /// Reads grains from here, and what is not here from the disk below.
    pub(super) async fn read(
        &self,
        base: &VirtualDisk,
        offset: u64,
        bytes: u64,
    ) -> Result<Vec<u8>, DiskError> {
        self.check(offset, bytes)?;
        let mut data = base.read(offset, bytes).await?;
        let first = offset / GRAIN_BYTES;
        let here: Vec<(u64, u64)> = {
            let table = self.table.borrow();
            table.range(first..first + bytes / GRAIN_BYTES).map(|(g, p)| (*g, *p)).collect()
        };
        for (grain, place) in here {
            let held = self.file.read(place * GRAIN_BYTES, GRAIN_BYTES).await?;
            let at = ((grain - first) * GRAIN_BYTES) as usize;
            data[at..at + GUEST_BLOCK_BYTES].copy_from_slice(&held);
        }
        Ok(data)
    }

    /// Writes to the disk below what it does not have yet. What the guest writes meanwhile is for
    /// the next time.
    pub(super) async fn consolidate(&self, base: &VirtualDisk) -> Result<(), DiskError> {
        let fresh = std::mem::take(&mut *self.fresh.borrow_mut());
        let grains: Vec<(u64, u64)> = fresh.into_iter().collect();
        let together = |a: &(u64, u64), b: &(u64, u64)| a.0 + 1 == b.0 && a.1 + 1 == b.1;
        for run in grains.chunk_by(together) {
            for part in run.chunks(CONSOLIDATE_GRAINS as usize) {
                let (grain, place) = part[0];
                let bytes = part.len() as u64 * GRAIN_BYTES;
                let data = self.file.read(place * GRAIN_BYTES, bytes).await?;
                base.write(grain * GRAIN_BYTES, &data).await?;
            }
        }
        Ok(())
    }

    /// Deletes its file.
    pub(super) async fn delete(&self) -> Result<(), DiskError> {
        self.file.close().await?;
        self.file.place().datastore.delete(&self.file.name()).await?;
        Ok(())
    }
}

/// Returns runs of contiguous locations: index, count, first location.
fn runs(places: &[u64]) -> impl Iterator<Item = (usize, usize, u64)> + '_ {
    let mut at = 0;
    places.chunk_by(|a, b| a + 1 == *b).map(move |run| {
        let here = at;
        at += run.len();
        (here, run.len(), run[0])
    })
}

#[cfg(test)]
mod tests {
    use super::runs;

    #[test]
    fn neighbours_are_written_together() {
        let found: Vec<_> = runs(&[4, 5, 6, 9, 3, 4]).collect();
        assert_eq!(found, [(0, 3, 4), (3, 1, 9), (4, 2, 3)]);
    }
}
