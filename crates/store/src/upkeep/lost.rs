//! Which blocks of which volumes can't be read, for the inspection of a pool that is not in use.

use std::collections::HashSet;

use block::{Sector, SectorCount, SectorRange, VolumeId};
use format::{ChunkId, ChunkRow, MapEntry, NodeId};

use crate::chunks::groups::GroupReader;
use crate::chunks::pages::FastState;
use crate::chunks::verify::{Stored, read_chunk};
use crate::upkeep::Store;
use crate::upkeep::scrub::DamagedRange;
use crate::world::World;

/// Ranges beyond this number are only counted.
const RANGES_MAX: usize = 16_384;

/// Blocks of volumes that can't be read.
#[derive(Clone, Debug, Default)]
pub struct LostBlocks {
    /// By volume, in order.
    pub ranges: Vec<DamagedRange>,
    /// The number of further ranges.
    pub ranges_more: u64,
}

impl Store {
    /// Returns whether the row of a volume can't be read. The id was assigned, and may still be in
    /// use: its I/O is MEDIUM ERROR.
    pub fn is_lost(&self, id: VolumeId) -> bool {
        self.world.is_lost(id)
    }

    /// Returns the blocks of all volumes that can't be read. With `data` every chunk is read and
    /// compared with its fingerprint, otherwise only its metadata. For a pool that is not in use.
    pub fn lost_blocks(&self, data: bool) -> LostBlocks {
        let mut finder = Finder {
            world: &self.world,
            data,
            reader: GroupReader::default(),
            sound_nodes: HashSet::default(),
            sound_chunks: HashSet::default(),
            lost: LostBlocks::default(),
        };
        let mut volumes: Vec<VolumeId> = self.world.volumes.read().keys().copied().collect();
        volumes.sort_unstable();
        for id in volumes {
            let Some(map) = self.world.map_of(id) else { continue };
            finder.entry(id, (map.root, map.level, 0), map.size_blocks);
        }
        finder.lost
    }
}

struct Finder<'a> {
    world: &'a World,
    data: bool,
    reader: GroupReader,
    /// Nodes below which nothing is lost: clones and snapshots share most of theirs.
    sound_nodes: HashSet<NodeId, FastState>,
    sound_chunks: HashSet<ChunkId, FastState>,
    lost: LostBlocks,
}

impl Finder<'_> {
    /// Examines an entry of a node one level up, which is at block `base` of a volume that ends at
    /// `end`. Returns whether all of it can be read.
    fn entry(
        &mut self,
        volume: VolumeId,
        (entry, level, base): (MapEntry, u8, u64),
        end: u64,
    ) -> bool {
        let span = self.world.span_blocks(level);
        let sound = match entry {
            MapEntry::Hole | MapEntry::Zero | MapEntry::Pattern(_) => true,
            MapEntry::Chunk(id) => self.chunk(id),
            MapEntry::Node(id) if self.sound_nodes.contains(&id) => return true,
            MapEntry::Node(id) => match self.world.nodes.get(&self.world.medium, id, level) {
                Ok(node) => {
                    let below = self.world.span_blocks(level - 1);
                    let mut sound = true;
                    for (index, child) in node.entries().enumerate() {
                        let base = base + index as u64 * below;
                        sound &= base >= end || self.entry(volume, (child, level - 1, base), end);
                    }
                    if sound {
                        self.sound_nodes.insert(id);
                    }
                    return sound;
                }
                Err(_) => false,
            },
        };
        if !sound {
            self.add(volume, base, end.min(base + span));
        }
        sound
    }

    fn chunk(&mut self, mut id: ChunkId) -> bool {
        if self.sound_chunks.contains(&id) {
            return true;
        }
        let named = id;
        let row = loop {
            let row = self.world.chunks.get(&self.world.medium, id.0, ChunkRow::decode);
            let Ok(Some(row)) = row else { return false };
            match row.original {
                // Originals are older, so this terminates with any content of the rows.
                Some(original) if original < id => id = original,
                Some(_) => return false,
                None => break row,
            }
        };
        let stored = Stored { id, row };
        let sound = !self.data || read_chunk(&self.world.medium, &mut self.reader, &stored).is_ok();
        if sound {
            self.sound_chunks.insert(named);
        }
        sound
    }

    fn add(&mut self, volume: VolumeId, first: u64, end: u64) {
        let sectors = |blocks: u64| blocks * block::SECTORS_PER_BLOCK;
        if let Some(last) = self.lost.ranges.last_mut()
            && last.volume == volume
            && last.range.start.0 + last.range.count.0 == sectors(first)
        {
            last.range.count.0 += sectors(end - first);
        } else if self.lost.ranges.len() >= RANGES_MAX {
            self.lost.ranges_more += 1;
        } else {
            let count = SectorCount(sectors(end - first));
            let range = SectorRange { start: Sector(sectors(first)), count };
            self.lost.ranges.push(DamagedRange { volume, range });
        }
    }
}
