//! The requests in a history with a misplaced write: each is completely done, or refused.

use std::sync::Arc;

use block::{CopySegment, DataOut, Sector, SectorCount, SectorRange, VolumeError, VolumeRequest};
use store::{Change, Store, StoreError, VolumeChange};

use super::{Known, POOL_BYTES, Seen, World, options};
use crate::content::{Tag, bytes_of, packed_tag, unique_tag};
use crate::disk::SimDisk;
use crate::rng::Rng;

const VOLUMES: usize = 2;
const SECTORS: u64 = 4096;
/// Sectors of a write that cycles through the pool: 2 MiB.
const CHURN_SECTORS: u64 = 4096;

impl World {
    pub(super) fn new(seed: u64) -> Result<Self, StoreError> {
        let disk = Arc::new(SimDisk::new(POOL_BYTES, seed));
        Store::create(&*disk, &[5; 64])?;
        let store = Store::open(disk.clone(), options())?;
        let mut volumes = Vec::new();
        let mut change = Change::default();
        for _ in 0..VOLUMES {
            let id = store.allocate_volume_id();
            change.volumes.push(VolumeChange::Create { id, size: SectorCount(SECTORS) });
            volumes.push(Known { id, snapshot: false, tags: vec![0; SECTORS as usize] });
        }
        store.change(change)?;
        let rng = Rng::new(seed);
        let churn = seed.is_multiple_of(2);
        let (before, uncertain, seen) = (None, None, Seen::default());
        Ok(Self {
            disk,
            store,
            rng,
            volumes,
            before,
            uncertain,
            next_tag: 0,
            churn,
            checkpoints_stop: false,
            seen,
        })
    }

    /// Does one random thing.
    pub(super) fn round(&mut self) -> Result<(), String> {
        let slot = self.rng.below(VOLUMES as u64) as usize;
        match self.rng.weighted(&[12, 3, 3, 3, 2, 1, 1]) {
            0 => self.write(slot),
            1 => self.copy(slot),
            2 => self.unmap(slot),
            3 => {
                if !self.checkpoints_have_stopped() {
                    self.checkpoint();
                }
                Ok(())
            }
            4 => self.snapshot(slot),
            5 => {
                // It may write a checkpoint as well.
                if !self.checkpoints_have_stopped() {
                    drop(self.store.reclaim_segment());
                }
                Ok(())
            }
            _ => {
                self.store.optimize();
                drop(self.store.optimize_step());
                self.store.housekeep();
                Ok(())
            }
        }
    }

    /// Records the result of a request: what `change` says, or nothing if it was refused.
    fn settle(
        &mut self,
        result: Result<(), StoreError>,
        change: impl FnOnce(&mut Vec<Known>),
    ) -> Result<(), String> {
        match result {
            Ok(()) => change(&mut self.volumes),
            Err(StoreError::Volume(VolumeError::Medium { .. })) => self.refused(),
            // Its fate is unknown: as if the power had failed.
            Err(_) if self.store.has_failed() => {
                let mut volumes = self.volumes.clone();
                change(&mut volumes);
                self.uncertain = Some(volumes);
                self.refused();
            }
            Err(error) => return Err(format!("executing a request: {error}")),
        }
        Ok(())
    }

    fn refused(&mut self) {
        self.seen.refused_requests += 1;
    }

    /// Keeps the state before a change.
    fn remember(&mut self) {
        self.before = Some((self.disk.io_count(), self.volumes.clone()));
    }

    fn request(
        &mut self,
        request: VolumeRequest,
        change: impl FnOnce(&mut Vec<Known>),
    ) -> Result<(), String> {
        self.remember();
        let result = self.store.execute(request).map(drop).map_err(StoreError::Volume);
        self.settle(result, change)
    }

    fn range(&mut self, count_max: u64) -> SectorRange {
        let start = self.rng.below(SECTORS);
        SectorRange::new(start, self.rng.between(1, count_max).min(SECTORS - start))
    }

    fn write(&mut self, slot: usize) -> Result<(), String> {
        let range = match self.churn {
            true => SectorRange::new(0, CHURN_SECTORS),
            false => self.range(200),
        };
        let packed = self.rng.chance(30);
        let tags: Vec<Tag> = (0..range.count.0)
            .map(|_| {
                self.next_tag += 1;
                if packed { packed_tag(self.next_tag) } else { unique_tag(self.next_tag) }
            })
            .collect();
        let data = DataOut::from_bytes(&bytes_of(&tags), range.start.offset_in_block_bytes());
        let volume = self.volumes[slot].id;
        let request = VolumeRequest::Write { volume, range, data, fua: false };
        self.request(request, |volumes| put(&mut volumes[slot], range, &tags))
    }

    fn copy(&mut self, slot: usize) -> Result<(), String> {
        let range = self.range(600);
        let other = self.rng.below(self.volumes.len() as u64) as usize;
        let from = self.rng.below(SECTORS - range.count.0 + 1);
        if other == slot && from.abs_diff(range.start.0) < range.count.0 {
            return Ok(());
        }
        let segment = CopySegment {
            source: self.volumes[other].id,
            source_start: Sector(from),
            destination: self.volumes[slot].id,
            destination_start: range.start,
            count: range.count,
        };
        let here = from as usize..(from + range.count.0) as usize;
        let tags = self.volumes[other].tags[here].to_vec();
        let request = VolumeRequest::Copy { segments: vec![segment] };
        self.request(request, |volumes| put(&mut volumes[slot], range, &tags))
    }

    fn unmap(&mut self, slot: usize) -> Result<(), String> {
        let range = self.range(2000);
        let request = VolumeRequest::Unmap { volume: self.volumes[slot].id, ranges: vec![range] };
        let tags = vec![0; range.count.0 as usize];
        self.request(request, |volumes| put(&mut volumes[slot], range, &tags))
    }

    /// Replaces the last snapshot of the volume by a new one.
    fn snapshot(&mut self, slot: usize) -> Result<(), String> {
        self.remember();
        let id = self.store.allocate_volume_id();
        let source = self.volumes[slot].clone();
        let mut change = Change::default();
        change.volumes.push(VolumeChange::Clone { source: source.id, id, snapshot: true });
        let old = self.volumes.iter().position(|known| known.snapshot);
        let old = old.filter(|_| self.volumes.len() >= 2 * VOLUMES);
        let gone = old.map(|at| self.volumes[at].id);
        change.volumes.extend(gone.map(|id| VolumeChange::Destroy { id }));
        let result = self.store.change(change);
        self.settle(result, |volumes| {
            old.map(|at| volumes.remove(at));
            volumes.push(Known { id, snapshot: true, ..source });
        })
    }

    pub(super) fn checkpoint(&mut self) {
        // An error means that something is lost; later requests show the consequences.
        if self.store.checkpoint().is_ok() {
            self.before = None;
        }
    }
}

fn put(known: &mut Known, range: SectorRange, tags: &[Tag]) {
    let start = range.start.0 as usize;
    known.tags[start..start + tags.len()].copy_from_slice(tags);
}
