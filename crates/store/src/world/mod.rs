//! State that all threads share ([`World`]), and state that only the writer changes ([`State`]).

pub(crate) mod comparisons;
mod lost;
pub(crate) mod places;
pub(crate) mod sharing;
pub(crate) mod view;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use block::{Frame, VolumeId};
use format::page::TableRoot;
use format::row::ROW_BYTES;
use format::{ChunkId, ChunkRow, Fingerprint, NodeId, VolumeRow};

use crate::chunks::bad_copies::BadCopies;
use crate::chunks::data_cache::{DataCache, data_cache};
use crate::chunks::index::Index;
use crate::chunks::medium::{Medium, twice};
use crate::chunks::memory::{Budgets, Memory};
use crate::chunks::pages::{FastState, PageKey};
use crate::chunks::recent::Recent;
use crate::chunks::table::Table;
use crate::chunks::table_name::TableName;
use crate::chunks::unplaced::Unplaced;
use crate::key_space::KeySpace;
use crate::nodes::Nodes;
use crate::space::readers::{ReaderToken, Readers};
use crate::space::segments::Segments;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, RwLock};
use crate::world::comparisons::Comparisons;
use crate::world::places::Places;
use crate::{MemoryStatus, StoreError};
use view::View;

/// A volume's map. Readers hold the lock only for the walk; the writer while it applies an entry.
pub(crate) struct Volume {
    pub(crate) id: VolumeId,
    /// `None` once it was destroyed.
    pub(crate) map: RwLock<Option<VolumeRow>>,
}

impl Volume {
    /// Returns whether it exists and is a snapshot.
    pub(crate) fn is_snapshot(&self) -> bool {
        self.map.read().is_some_and(|map| map.snapshot)
    }
}

/// State that all threads share.
pub(crate) struct World {
    pub(crate) medium: Medium,
    /// The division of memory.
    budgets: Budgets,
    /// The metadata in memory.
    pub(crate) memory: Arc<Memory>,
    pub(crate) volumes: RwLock<HashMap<VolumeId, Arc<Volume>, FastState>>,
    pub(crate) volume_table: Table,
    /// The location of the leaves of the key-value space, all of which is in memory.
    pub(crate) leaves: Table,
    /// The rows of segments as stored, in a pool that has them in pages.
    pub(crate) segment_table: Table,
    /// Leaves whose first copy was bad.
    pub(crate) bad_leaves: BadCopies<u64>,
    /// Ids whose rows can't be read: whether these volumes exist is unknown.
    pub(crate) lost_volumes: RwLock<Vec<(PageKey, std::ops::Range<u64>)>>,
    /// Volumes whose rows say that they are lost ([`VolumeRow::LOST`]).
    pub(crate) lost_rows: RwLock<BTreeSet<u64>>,
    pub(crate) nodes: Nodes,
    pub(crate) chunks: Table,
    /// The content of chunks. Chunk ids are never reused, so nothing in it can be stale.
    pub(crate) cache: DataCache,
    /// Where fingerprints were seen.
    pub(crate) index: Index,
    recent: Recent,
    /// Pages of rows that are still to be reloaded into the index.
    refill: Mutex<std::ops::Range<u64>>,
    /// Chunks that can't be read elsewhere (`durability = "flush"`).
    pub(crate) unplaced: Unplaced,
    /// Readers of data, and readers of the metadata of a checkpoint, its *image*.
    pub(crate) readers: Readers,
    pub(crate) images: Readers,
    /// Slots for parts of staged copies.
    pub(crate) places: Places,
    pub(crate) comparisons: Comparisons,
    /// How many grafts were applied: see `grafts`.
    grafts: AtomicU64,
    /// How many records were applied, or entries of one that is applied early.
    applied: AtomicU64,
    /// Called once, when the row of a chunk was read for a reader.
    #[cfg(test)]
    pub(crate) hook: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

/// State that only the writer changes.
pub(crate) struct State {
    pub(crate) segments: Segments,
    pub(crate) next_chunk: u64,
    pub(crate) next_node: u64,
    pub(crate) next_volume: u64,
    /// Nodes without references, whose children are still to be released.
    pub(crate) pending: Vec<NodeId>,
    /// Those of them that can't be freed, because what they refer to can't be read.
    pub(crate) stuck: Vec<NodeId>,
    /// Chunks that stay without a reference: first id and count.
    pub(crate) staged: BTreeMap<u64, u32>,
    /// Chunks to which unapplied records refer, and how many do.
    pub(crate) pins: HashMap<ChunkId, u32, FastState>,
    /// Set while recovery replays the log: a later record may refer to any chunk that existed when
    /// it was written, so none is freed before the end.
    pub(crate) replaying: bool,
    /// How often something that the log must change could not be read (`lossy`).
    pub(crate) losses: u64,
    pub(crate) config: KeySpace,
    /// Of volumes, without snapshots.
    pub(crate) provisioned_blocks: u64,
}

impl State {
    /// Returns whether an unreferenced chunk must stay for a record that refers to it; it is then
    /// staged.
    fn keeps(&mut self, id: ChunkId) -> bool {
        let stays = self.replaying || self.pins.contains_key(&id);
        if stays {
            self.staged.insert(id.0, 1);
        }
        stays
    }
}

pub(crate) fn missing_chunk(id: ChunkId) -> StoreError {
    StoreError::Damaged(format!("chunk {} is referenced but does not exist", id.0))
}

impl World {
    pub(crate) fn new(
        medium: Medium,
        budgets: Budgets,
        [chunks, nodes, volumes, leaves, segment_table]: [TableRoot; 5],
    ) -> Self {
        let memory = Memory::new(budgets.metadata_bytes);
        Self {
            medium,
            budgets,
            volumes: RwLock::new(HashMap::default()),
            volume_table: Table::new(volumes, &memory),
            leaves: Table::resident(leaves, &memory),
            segment_table: Table::resident(segment_table, &memory),
            bad_leaves: BadCopies::default(),
            lost_volumes: RwLock::default(),
            lost_rows: RwLock::default(),
            nodes: Nodes::new(nodes, &memory),
            chunks: Table::new(chunks, &memory),
            memory,
            cache: data_cache(budgets.cached_blocks()),
            index: Index::sampling(budgets.index_bytes),
            recent: Recent::new(),
            refill: Mutex::new(0..0),
            unplaced: Unplaced::default(),
            readers: Readers::default(),
            images: Readers::default(),
            places: Places::default(),
            comparisons: Comparisons::default(),
            grafts: AtomicU64::new(0),
            applied: AtomicU64::new(0),
            #[cfg(test)]
            hook: Mutex::default(),
        }
    }

    /// Runs what a test inserts between reading the row of a chunk and its bytes.
    #[cfg(test)]
    pub(crate) fn call_hook(&self) {
        let hook = self.hook.lock().take();
        if let Some(hook) = hook {
            hook();
        }
    }

    pub(crate) fn table(&self, name: TableName) -> &Table {
        match name {
            TableName::Chunks => &self.chunks,
            TableName::Nodes => &self.nodes.table,
            TableName::Volumes => &self.volume_table,
            TableName::Leaves => &self.leaves,
            TableName::Segments => &self.segment_table,
        }
    }

    /// Returns the use of memory.
    pub(crate) fn memory_status(&self) -> MemoryStatus {
        let data_cache_bytes = self.cache.len() as u64 * block::BLOCK_BYTES;
        MemoryStatus { data_cache_bytes, ..self.memory.status(&self.budgets) }
    }

    /// Returns how many blocks an entry of a node of `level` + 1 spans.
    #[inline]
    pub(crate) fn span_blocks(&self, level: u8) -> u64 {
        self.medium.tuning.fanout.span_blocks(level)
    }

    pub(crate) fn volume(&self, id: VolumeId) -> Option<Arc<Volume>> {
        self.volumes.read().get(&id).cloned()
    }

    /// Returns a volume's current map.
    pub(crate) fn map_of(&self, id: VolumeId) -> Option<VolumeRow> {
        *self.volumes.read().get(&id)?.map.read()
    }

    /// Returns how many grafts were applied since the start.
    pub(crate) fn grafts(&self) -> u64 {
        self.grafts.load(Ordering::Acquire)
    }

    /// Returns how often entries were applied since the start.
    pub(crate) fn applied(&self) -> u64 {
        self.applied.load(Ordering::Acquire)
    }

    /// Counts applied entries.
    pub(crate) fn count_applied(&self) {
        self.applied.fetch_add(1, Ordering::Release);
    }

    /// Counts applied grafts ([`crate::writer::Writer::grafted`]).
    pub(crate) fn grafted(&self, count: u64) {
        self.grafts.fetch_add(count, Ordering::Release);
    }

    /// Returns the token that a reader of the device holds.
    pub(crate) fn reader_token(&self) -> Arc<ReaderToken> {
        self.readers.token()
    }

    /// Returns the row of a chunk that must exist.
    pub(crate) fn chunk(&self, id: ChunkId) -> Result<ChunkRow, StoreError> {
        View::from(self).chunk(id)
    }

    /// Adds a reference to each of some chunks.
    pub(crate) fn reference_chunks(
        &self,
        ids: impl Iterator<Item = ChunkId>,
    ) -> Result<(), StoreError> {
        let mut rows = self.chunks.cursor(&self.medium);
        for id in ids.filter(|id| *id != ChunkId::LOST) {
            let raw = rows.row(id.0)?;
            ChunkRow::count_references(raw, 1).ok_or_else(|| missing_chunk(id))?;
        }
        Ok(())
    }

    /// Adds this many references to a chunk.
    pub(crate) fn reference_chunk(&self, id: ChunkId, entries: i32) -> Result<(), StoreError> {
        if id == ChunkId::LOST {
            return Ok(());
        }
        let counted = self
            .chunks
            .update(&self.medium, id.0, |raw| ChunkRow::count_references(raw, entries))?;
        counted.map(drop).ok_or_else(|| missing_chunk(id))
    }

    /// Releases a reference to each of some chunks; the last one frees it. Then `freed` is called:
    /// the content is to be removed from the cache ([`World::drop_content`]), now or later.
    pub(crate) fn release_chunks(
        &self,
        state: &mut State,
        ids: impl Iterator<Item = ChunkId>,
        freed: impl FnMut(ChunkId),
    ) -> Result<(), StoreError> {
        let mut originals = self.release_named(state, ids, freed)?;
        // An original may be an alias by now: ids descend, so this terminates.
        while !originals.is_empty() {
            let ids = originals.into_iter();
            originals = self.release_named(state, ids, |id| self.drop_content(id))?;
        }
        Ok(())
    }

    /// Does the same as [`World::release_chunks`], except for the originals of freed aliases, which
    /// it returns.
    fn release_named(
        &self,
        state: &mut State,
        ids: impl Iterator<Item = ChunkId>,
        mut freed: impl FnMut(ChunkId),
    ) -> Result<Vec<ChunkId>, StoreError> {
        let mut originals: Vec<ChunkId> = Vec::new();
        let mut rows = self.chunks.cursor(&self.medium);
        for id in ids.filter(|id| *id != ChunkId::LOST) {
            if state.replaying
                && let Err(error) = twice(|| rows.row(id.0).map(drop))
            {
                self.give_up(state, error)?;
                continue;
            }
            let raw = rows.row(id.0)?;
            let left = ChunkRow::count_references(raw, -1).ok_or_else(|| missing_chunk(id))?;
            if left > 0 || state.keeps(id) {
                continue;
            }
            if let Some(row) = ChunkRow::decode(raw) {
                self.forget_chunk(&mut state.segments, id, &row)?;
                originals.extend(row.original);
            }
            raw[..ROW_BYTES].fill(0);
            freed(id);
        }
        Ok(originals)
    }

    /// Frees the chunk if nothing refers to it.
    pub(crate) fn free_unnamed_chunk(
        &self,
        state: &mut State,
        id: ChunkId,
    ) -> Result<(), StoreError> {
        let row = || self.chunks.get(&self.medium, id.0, ChunkRow::decode);
        let unnamed = match twice(row) {
            Ok(row) => row,
            Err(error) => return self.give_up(state, error),
        };
        let Some(row) = unnamed.filter(|row| row.reference_count == 0) else { return Ok(()) };
        if state.keeps(id) {
            return Ok(());
        }
        self.chunks.update(&self.medium, id.0, |raw| raw[..ROW_BYTES].fill(0))?;
        self.forget_chunk(&mut state.segments, id, &row)?;
        self.drop_content(id);
        match row.original {
            Some(original) => {
                let one = std::iter::once(original);
                self.release_chunks(state, one, |id| self.drop_content(id))
            }
            None => Ok(()),
        }
    }

    /// Unpins a chunk, because a record that refers to it was applied. The last unpin frees it, if
    /// nothing else refers to it.
    pub(crate) fn unpin(&self, state: &mut State, id: ChunkId) -> Result<(), StoreError> {
        let left = match state.pins.get_mut(&id) {
            Some(count) => {
                *count -= 1;
                *count
            }
            None => return Ok(()),
        };
        if left > 0 {
            return Ok(());
        }
        state.pins.remove(&id);
        if state.staged.remove(&id.0).is_some() {
            self.free_unnamed_chunk(state, id)?;
        }
        Ok(())
    }

    pub(crate) fn forget_chunk(
        &self,
        segments: &mut Segments,
        id: ChunkId,
        row: &ChunkRow,
    ) -> Result<(), StoreError> {
        if !row.handling.unshared {
            self.index.remove(row.fingerprint, id);
        }
        if row.place.is_none() {
            self.unplaced.forget(id);
            return Ok(());
        }
        segments.sub_live(row.place, row.share_units())
    }

    /// Removes the content of a freed chunk from the cache.
    pub(crate) fn drop_content(&self, id: ChunkId) {
        self.cache.remove(&id);
    }

    /// Returns the content of a chunk, if it is in memory.
    pub(crate) fn cached_chunk(&self, id: ChunkId) -> Option<Frame> {
        self.cache.get(&id)
    }

    /// Keeps the content of a chunk for later reads.
    pub(crate) fn keep_chunk(&self, id: ChunkId, frame: Frame) {
        self.cache.insert(id, frame);
    }

    /// Returns whether `frame` has this fingerprint.
    pub(crate) fn is_intact(&self, frame: &Frame, fingerprint: Fingerprint) -> bool {
        self.medium.is_intact(frame, fingerprint)
    }
}
