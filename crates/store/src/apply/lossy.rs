//! Replaying the log over unreadable metadata.
//!
//! A record after the checkpoint may have to change a node or a row that is damaged. It was
//! acknowledged, and so were later ones; so it is applied as far as possible, and blocks whose
//! content is unknown after that are set to [`ChunkId::LOST`]: reading them returns MEDIUM ERROR
//! until they are overwritten. Nothing else is lost, and no wrong data is returned, because:
//!
//! * **No reference count becomes too low.** A reference to a chunk or node whose row can't be read
//!   is replaced by `LOST`, so no reference is uncounted. A removed reference can't be subtracted
//!   from such a row: its count stays too high, which only wastes space.
//! * **Nothing old comes back.** A map entry `LOST` is permanent, whether or not the damaged node
//!   becomes readable again. A page of the volume table that missed a change is never read again
//!   ([`PageRef::spoiled`]), nor is the row of a volume that became a copy of a lost one
//!   ([`VolumeRow::LOST`]).
//! * **No location is used twice.** Space is freed by rows that were read. The space of an
//!   unreadable row is never freed.
//! * **A device that does not respond loses nothing.** Unreadable metadata counts as damaged only
//!   while a superblock can be read; otherwise the pool does not open.
//!
//! All of this is in memory until the next checkpoint. A crash before that leaves the log as it
//! was. Records for which no row could be found are missing in the counts of inner nodes: these are
//! recomputed from their children, where an unknown child counts as full.

use block::VolumeId;
use format::map::Node;
use format::page::{PageRef, REFS_PER_DIRECTORY, ROWS_PER_PAGE};
use format::{ChunkId, Entry, MapEntry, NodeId, VolumeRow};
use smallvec::SmallVec;

use crate::StoreError;
use crate::chunks::medium::{Medium, twice};
use crate::chunks::pages::{PageKey, parent_of};
use crate::chunks::table::Table;
use crate::map::tree::Editor;
use crate::map::value::Value;
use crate::nodes::counts::Counts;
use crate::nodes::node_of;
use crate::world::{State, World};

const LOST: MapEntry = MapEntry::Chunk(ChunkId::LOST);

impl Table {
    /// Makes sure that an unreadable page that missed a change is never read again.
    fn spoil(&self, medium: &Medium, key: PageKey) -> Result<(), StoreError> {
        let mut root = self.root.write();
        if key.0 >= root.height {
            root.page = root.page.spoiled();
            return Ok(());
        }
        drop(root);
        let parent = parent_of(key);
        let index = (key.1 % REFS_PER_DIRECTORY) as usize;
        self.change_page(medium, parent, |directory| {
            PageRef::in_directory(directory, index).spoiled().put_in_directory(directory, index);
        })
    }
}

impl World {
    /// Handles metadata that can't be read, though an entry has to change it: returns `error`,
    /// unless the log is being replayed; then it is lost.
    pub(crate) fn give_up(&self, state: &mut State, error: StoreError) -> Result<(), StoreError> {
        let is_damage = matches!(error, StoreError::Damaged(_) | StoreError::Io(_));
        if !state.replaying || !is_damage {
            return Err(error);
        }
        self.medium.answers()?;
        state.losses += 1;
        Ok(())
    }

    /// Returns whether something that an entry has to change, or to refer to, is lost: it can't be
    /// read while the log is replayed.
    fn is_lost_for_log<T>(
        &self,
        state: &mut State,
        read: impl FnMut() -> Result<T, StoreError>,
    ) -> Result<bool, StoreError> {
        if !state.replaying {
            return Ok(false);
        }
        match twice(read) {
            Ok(_) => Ok(false),
            Err(error) => self.give_up(state, error).map(|()| true),
        }
    }

    fn is_chunk_lost(&self, state: &mut State, id: ChunkId) -> Result<bool, StoreError> {
        if id == ChunkId::LOST {
            return Ok(false);
        }
        self.is_lost_for_log(state, || self.chunks.get(&self.medium, id.0, |_| ()))
    }

    /// Returns whether the row of a node can't be read while the log is replayed.
    fn is_row_lost(&self, state: &mut State, id: NodeId) -> Result<bool, StoreError> {
        self.is_lost_for_log(state, || self.nodes.table.get(&self.medium, id.0, |_| ()))
    }

    /// Returns whether a node can't be read while the log is replayed.
    pub(crate) fn is_node_lost(
        &self,
        state: &mut State,
        id: NodeId,
        level: u8,
    ) -> Result<bool, StoreError> {
        self.is_lost_for_log(state, || self.nodes.get(&self.medium, id, level))
    }

    /// Returns the value that an entry sets, or that it is lost if it can't be referred to while
    /// the log is replayed.
    pub(crate) fn nameable(
        &self,
        state: &mut State,
        entry: MapEntry,
    ) -> Result<MapEntry, StoreError> {
        let is_lost = match entry {
            MapEntry::Chunk(id) => self.is_chunk_lost(state, id)?,
            MapEntry::Node(id) => self.is_row_lost(state, id)?,
            _ => false,
        };
        Ok(if is_lost { LOST } else { entry })
    }

    /// Marks a volume as lost: from here on only its existence is known. Its data is not freed.
    pub(crate) fn lose_volume(&self, state: &mut State, id: VolumeId) -> Result<(), StoreError> {
        if let Some(volume) = self.volumes.write().remove(&id)
            && let Some(map) = volume.map.write().take()
        {
            state.provisioned_blocks -= crate::map::volumes::provisioned(&map);
        }
        state.next_volume = state.next_volume.max(id.0 + 1);
        let row = VolumeRow::LOST;
        match twice(|| self.volume_table.update(&self.medium, id.0, |raw| row.encode(raw))) {
            Ok(()) => drop(self.lost_rows.write().insert(id.0)),
            Err(error) => {
                self.give_up(state, error)?;
                self.lose_page_of(id)?;
            }
        }
        Ok(())
    }

    /// Handles an entry for a volume whose row can't be read: it stays lost.
    pub(crate) fn keep_lost(&self, state: &State, entry: &Entry) -> Result<(), StoreError> {
        if !state.replaying || self.lost_volumes.read().is_empty() {
            return Ok(());
        }
        match entry {
            Entry::Map { volume: id, .. }
            | Entry::Fill { volume: id, .. }
            | Entry::Copy { destination: id, .. }
            | Entry::VolumeResize { volume: id, .. }
            | Entry::VolumeDestroy { volume: id }
            | Entry::VolumeOverwrite { volume: id, .. }
            | Entry::VolumeHandling { volume: id, .. }
                if self.is_lost(*id) && !self.lost_rows.read().contains(&id.0) =>
            {
                self.lose_page_of(*id)
            }
            _ => Ok(()),
        }
    }

    /// Handles the unreadable page of a volume's row: it is never read again.
    fn lose_page_of(&self, id: VolumeId) -> Result<(), StoreError> {
        let page = id.0 / ROWS_PER_PAGE;
        let level = self.volume_table.unreadable_level(&self.medium, page).unwrap_or(0);
        let key = (level, page / REFS_PER_DIRECTORY.pow(u32::from(level)));
        let mut lost = self.lost_volumes.write();
        match lost.iter_mut().find(|(known, _)| *known == key) {
            Some((_, ids)) => ids.end = ids.end.max(id.0 + 1),
            None => lost.push((key, id.0..id.0 + 1)),
        }
        self.volume_table.spoil(&self.medium, key)
    }
}

impl Editor<'_> {
    /// Returns the entry; if it refers to a node that can't be read while the log is replayed,
    /// returns an entry for lost blocks instead. The node then has one reference less.
    pub(crate) fn sound(&mut self, entry: MapEntry, level: u8) -> Result<MapEntry, StoreError> {
        match entry {
            MapEntry::Node(id) if self.world.is_node_lost(self.state, id, level)? => {
                self.release(entry)?;
                Ok(LOST)
            }
            entry => Ok(entry),
        }
    }

    /// Returns whether the row of a node can't be read while the log is replayed.
    pub(crate) fn is_row_lost(&mut self, id: NodeId) -> Result<bool, StoreError> {
        self.world.is_row_lost(self.state, id)
    }

    /// Returns which of `nodes` can't be counted down, because their rows can't be read.
    pub(crate) fn uncountable(
        &mut self,
        nodes: impl Iterator<Item = NodeId>,
    ) -> Result<SmallVec<[NodeId; 4]>, StoreError> {
        let mut lost = SmallVec::new();
        if self.state.replaying {
            for id in nodes {
                if self.is_row_lost(id)? {
                    lost.push(id);
                }
            }
        }
        Ok(lost)
    }

    /// Returns the counts below an entry; if they can't be read while the log is replayed, sets
    /// `known` to false.
    pub(crate) fn counts(
        &mut self,
        entry: MapEntry,
        level: u8,
        known: &mut bool,
    ) -> Result<Counts, StoreError> {
        match node_of(entry) {
            Some(id) if self.is_row_lost(id)? => {
                *known = false;
                Ok(Counts::alike(LOST, self.world.span_blocks(level)))
            }
            _ => self.world.counts(entry, level),
        }
    }

    /// Recomputes the counts of a node whose old content could not be read.
    pub(crate) fn recount(&mut self, id: NodeId, level: u8) -> Result<(), StoreError> {
        let node = self.world.nodes.get(&self.world.medium, id, level)?;
        let mut counts = Counts::default();
        for entry in node.entries() {
            counts += self.counts(entry, level - 1, &mut true)?;
        }
        self.world.nodes.update_row(&self.world.medium, id, |row| {
            (row.mapped_blocks, row.data_blocks) = (counts.mapped, counts.data);
        })
    }

    /// Returns a copy of a shared node without references to unreadable rows while the log is
    /// replayed; and whether it is unchanged.
    pub(crate) fn copy_of(&mut self, node: &Node) -> Result<(Node, bool), StoreError> {
        let (mut copy, mut same) = (Node::clone(node), true);
        if self.state.replaying {
            for (index, entry) in node.entries().enumerate() {
                let named = self.world.nameable(self.state, entry)?;
                if named != entry {
                    copy.set(index, named);
                    same = false;
                }
            }
        }
        Ok((copy, same))
    }

    /// Returns the blocks of a run of chunks, with a reference for each, if some of the rows can't
    /// be read while the log is replayed: those are lost.
    pub(crate) fn run_with_losses(
        &mut self,
        value: Value<'_>,
        count: u64,
    ) -> Result<Option<Vec<MapEntry>>, StoreError> {
        let Value::Run { first } = value else { return Ok(None) };
        if !self.state.replaying {
            return Ok(None);
        }
        let mut is_lost = false;
        let mut id = first.0;
        while id < first.0 + count && !is_lost {
            is_lost = self.world.is_chunk_lost(self.state, ChunkId(id))?;
            id = (id / ROWS_PER_PAGE + 1) * ROWS_PER_PAGE;
        }
        if !is_lost {
            return Ok(None);
        }
        let mut entries = Vec::with_capacity(count as usize);
        for id in first.0..first.0 + count {
            let entry = self.world.nameable(self.state, MapEntry::Chunk(ChunkId(id)))?;
            if let MapEntry::Chunk(id) = entry {
                self.world.reference_chunk(id, 1)?;
            }
            entries.push(entry);
        }
        Ok(Some(entries))
    }

    /// Returns the value, or that all is lost if it is one chunk whose row can't be read.
    pub(crate) fn same_or_lost<'a>(&mut self, value: Value<'a>) -> Result<Value<'a>, StoreError> {
        Ok(match value {
            Value::Same(id) => match self.world.nameable(self.state, MapEntry::Chunk(id))? {
                LOST => Value::Same(ChunkId::LOST),
                _ => value,
            },
            value => value,
        })
    }
}
