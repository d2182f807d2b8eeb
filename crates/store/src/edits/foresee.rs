//! Predicting what a log entry will read when it is applied: recovery requests that for many
//! records at once.
//!
//! It is a hint. Earlier entries may change what an entry needs, and metadata may be evicted again:
//! then applying it reads that itself. So nothing here decides, and no error counts.

use block::{BlockNumber, BlockRange, VolumeId};
use format::map::LEVEL_MAX;
use format::{ChunkId, Entry, MapEntry};

use crate::edits::preload::{Looker, Unreadable};
use crate::world::view::View;

/// Reads what applying an entry will read, as far as it is known before earlier entries are
/// applied.
pub(crate) fn entry(view: View<'_>, entry: &Entry) {
    let _ = Looker::new(view).replayed(entry);
}

impl Looker<'_> {
    fn replayed(&mut self, entry: &Entry) -> Result<(), Unreadable> {
        match entry {
            Entry::Map { volume, start, count, .. } => {
                self.set_in(*volume, *start, u64::from(*count), 0)
            }
            Entry::Fill { volume, start, count, .. } => {
                self.set_in(*volume, *start, *count, LEVEL_MAX)
            }
            Entry::Copy { source, source_start, destination, destination_start, count } => {
                let fits = |id, start| self.fits(id, start, *count);
                if !fits(*source, *source_start) || !fits(*destination, *destination_start) {
                    return Ok(());
                }
                let (from, to) = ((*source, *source_start), (*destination, *destination_start));
                let budget = self.world.medium.tuning.commit_work;
                self.copy(from, to, *count, budget, None).map(drop)
            }
            Entry::Release { first, count } => self.run_rows(*first, *count as usize),
            Entry::Store { first, fingerprints, .. }
            | Entry::StoreGroup { first, fingerprints, .. }
            | Entry::Relocate { first, fingerprints, .. } => {
                self.run_rows(*first, fingerprints.len())
            }
            Entry::RelocateGroup { chunks, .. } => {
                chunks.iter().try_for_each(|(id, _)| self.run_rows(*id, 1))
            }
            entry => self.entry(entry),
        }
    }

    /// Returns whether a volume has such blocks.
    fn fits(&self, volume: VolumeId, start: u64, count: u64) -> bool {
        let map = self.world.map_of(volume);
        let end = start.checked_add(count);
        map.zip(end).is_some_and(|(map, end)| count > 0 && end <= map.size_blocks)
    }

    /// Reads the blocks of a volume that are set, if it has them.
    fn set_in(
        &mut self,
        volume: VolumeId,
        start: u64,
        count: u64,
        whole_level: u8,
    ) -> Result<(), Unreadable> {
        match self.fits(volume, start, count) {
            true => self.set(volume, BlockRange::new(start, count), whole_level),
            false => Ok(()),
        }
    }

    /// Reads the rows of consecutive chunks.
    fn run_rows(&mut self, first: ChunkId, count: usize) -> Result<(), Unreadable> {
        self.named_rows(MapEntry::Chunk(first), count.max(1) as u64, BlockNumber(0))
    }
}
