//! The content of each volume: its map in the checkpoint, and what the log says in addition.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use block::VolumeId;
use format::{Entry, MapEntry, VolumeRow};

use super::SalvageVolume;
use super::extents::{Extent, Extents, Value};

/// The content of a volume below the changes in the log.
#[derive(Clone, Copy, Debug)]
enum Base {
    /// The log has created it.
    Empty,
    /// A map of the checkpoint.
    Map(usize),
    /// Its row can't be read.
    Lost,
}

impl Base {
    fn value(self) -> Value {
        match self {
            Self::Empty => Value::Same(MapEntry::Hole),
            Self::Map(map) => Value::Map { map, start: 0 },
            Self::Lost => Value::Unknown,
        }
    }
}

#[derive(Clone, Debug)]
struct Held {
    /// `None` if its row is lost, and the log does not say.
    size_blocks: Option<u64>,
    base: Base,
    changes: Extents,
    snapshot: bool,
}

impl Held {
    fn lost() -> Self {
        Self { size_blocks: None, base: Base::Lost, changes: Extents::default(), snapshot: false }
    }

    fn fits(&self, start: u64, count: u64) -> bool {
        let end = start.checked_add(count);
        end.is_some_and(|end| self.size_blocks.is_none_or(|size| end <= size))
    }

    fn within(&self, start: u64, count: u64) -> Vec<Extent> {
        self.changes.within(start, count, self.base.value())
    }
}

/// All volumes and snapshots.
#[derive(Debug, Default)]
pub(super) struct Volumes {
    held: BTreeMap<VolumeId, Held>,
    /// The maps of the checkpoint.
    maps: Vec<VolumeRow>,
    /// Ids whose rows can't be read.
    lost: Vec<Range<u64>>,
    /// Those that the log has destroyed.
    ended: BTreeSet<VolumeId>,
}

impl Volumes {
    /// Adds a row of the checkpoint.
    pub(super) fn add(&mut self, id: VolumeId, row: VolumeRow) {
        let base = Base::Map(self.maps.len());
        self.maps.push(row);
        let size_blocks = Some(row.size_blocks);
        let changes = Extents::default();
        self.held.insert(id, Held { size_blocks, base, changes, snapshot: row.snapshot });
    }

    /// Adds unreadable rows.
    pub(super) fn lose(&mut self, ids: Range<u64>) {
        if !ids.is_empty() {
            self.lost.push(ids);
        }
    }

    pub(super) fn lost_ids(&self) -> &[Range<u64>] {
        &self.lost
    }

    pub(super) fn is_lost(&self, id: VolumeId) -> bool {
        let found = self.held.get(&id);
        found.is_none_or(|held| matches!(held.base, Base::Lost))
            && self.was_lost(id)
            && !self.ended.contains(&id)
    }

    fn was_lost(&self, id: VolumeId) -> bool {
        self.lost.iter().any(|lost| lost.contains(&id.0))
    }

    pub(super) fn maps(&self) -> &[VolumeRow] {
        &self.maps
    }

    pub(super) fn list(&self) -> Vec<SalvageVolume> {
        let told = |(id, held): (&VolumeId, &Held)| SalvageVolume {
            id: *id,
            size_blocks: held.size_blocks,
            snapshot: held.snapshot,
        };
        self.held.iter().map(told).collect()
    }

    /// Returns the number of blocks of a volume; if unknown, `size_blocks` or as many as are known.
    pub(super) fn size_blocks(&self, id: VolumeId, size_blocks: Option<u64>) -> u64 {
        let Some(held) = self.held.get(&id) else { return 0 };
        held.size_blocks.or(size_blocks).unwrap_or_else(|| held.changes.end())
    }

    /// Returns the content of some blocks of a volume.
    pub(super) fn extents(&self, id: VolumeId, start: u64, count: u64) -> Vec<Extent> {
        self.held.get(&id).map_or_else(Vec::new, |held| held.within(start, count))
    }

    /// Returns a volume that exists, or whose row is lost.
    fn get(&mut self, id: VolumeId) -> Option<&mut Held> {
        if !self.held.contains_key(&id) && self.is_lost(id) {
            self.held.insert(id, Held::lost());
        }
        self.held.get_mut(&id)
    }

    /// Applies a log entry for volumes, as [`crate::apply`] does, without changing any map.
    pub(super) fn apply(&mut self, entry: &Entry) {
        match entry {
            Entry::Map { volume, start, count, first } => {
                self.set(*volume, *start, u64::from(*count), Value::Run(*first));
            }
            Entry::Fill { volume, start, count, entry } => {
                self.set(*volume, *start, *count, Value::Same(*entry));
            }
            Entry::Copy { source, source_start, destination, destination_start, count } => {
                self.copy((*source, *source_start), (*destination, *destination_start), *count);
            }
            Entry::VolumeCreate { volume, size_blocks } => {
                let changes = Extents::default();
                let size_blocks = Some(*size_blocks);
                let held = Held { size_blocks, base: Base::Empty, changes, snapshot: false };
                self.held.insert(*volume, held);
            }
            Entry::VolumeResize { volume, size_blocks } => self.resize(*volume, *size_blocks),
            Entry::VolumeDestroy { volume } => {
                self.held.remove(volume);
                self.ended.insert(*volume);
            }
            Entry::VolumeClone { source, volume, snapshot } => {
                if let Some(from) = self.get(*source).cloned() {
                    self.held.insert(*volume, Held { snapshot: *snapshot, ..from });
                }
            }
            Entry::VolumeOverwrite { source, volume } => self.overwrite(*source, *volume),
            Entry::Store { .. }
            | Entry::StoreGroup { .. }
            | Entry::Config { .. }
            | Entry::TargetState { .. }
            | Entry::Relocate { .. }
            | Entry::RelocateGroup { .. }
            | Entry::Alias { .. }
            | Entry::Compared(_)
            | Entry::VolumeHandling { .. }
            | Entry::Release { .. } => {}
        }
    }

    fn set(&mut self, id: VolumeId, start: u64, count: u64, value: Value) {
        if let Some(held) = self.get(id).filter(|held| held.fits(start, count)) {
            held.changes.set(start, count, value);
        }
    }

    fn copy(&mut self, source: (VolumeId, u64), destination: (VolumeId, u64), count: u64) {
        let fits = |held: &Held, start| held.fits(start, count);
        let Some(from) = self.get(source.0).filter(|held| fits(held, source.1)) else { return };
        let pieces = from.within(source.1, count);
        let Some(to) = self.get(destination.0).filter(|held| fits(held, destination.1)) else {
            return;
        };
        for piece in pieces {
            let start = destination.1 + (piece.start - source.1);
            to.changes.set(start, piece.count, piece.value);
        }
    }

    /// What is beyond the new end is a hole if the volume grows again.
    fn resize(&mut self, id: VolumeId, size_blocks: u64) {
        let Some(held) = self.get(id) else { return };
        let shorter = held.size_blocks.is_none_or(|old| size_blocks < old);
        if shorter {
            let end = 1 << 59;
            held.changes.set(size_blocks, end - size_blocks, Value::Same(MapEntry::Hole));
        }
        held.size_blocks = Some(size_blocks);
    }

    fn overwrite(&mut self, source: VolumeId, id: VolumeId) {
        if source == id || self.get(id).is_none() {
            return;
        }
        let Some(from) = self.get(source).cloned() else { return };
        if let Some(held) = self.held.get_mut(&id) {
            *held = Held { snapshot: held.snapshot, ..from };
        }
    }
}
