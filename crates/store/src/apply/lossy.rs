//! Following the log over what can't be read.
//!
//! A record behind the checkpoint may have to change a node, or a row, that is damaged. It was
//! answered, and so was what follows it; so it is applied as far as it can be, and the blocks whose
//! content that leaves unknown are set to [`ChunkId::LOST`]: reads of them are MEDIUM ERROR from
//! then on, until they are overwritten. Nothing else is lost by it, and nothing wrong is read,
//! since:
//!
//! * **No count of references becomes too low.** What would name a chunk or a node whose row can't
//!   be read names `LOST` in its place, so no name goes uncounted. A name that goes away can't be
//!   taken off such a row: what it counts stays too high, which costs space and nothing else.
//! * **Nothing old comes back.** A map that names `LOST` does so for good, whether or not the node
//!   that stood there can be read some day. A page of the volume table that misses a change of one
//!   of its rows is never read again ([`PageRef::spoiled`]), nor is the row of a volume that became
//!   what a lost one was ([`VolumeRow::LOST`]).
//! * **No place is used twice.** Space is freed by rows that were read. What a row that can't be
//!   read takes is never freed.
//! * **A device that does not answer loses nothing.** What can't be read counts as damaged only
//!   while a superblock can be; else the pool does not open.
//!
//! All of it is in memory until the next checkpoint. A crash before that finds the log as it was.
//! What records say that no row could be found for stays out of the counts of inner nodes: those
//! are made again from what their children say, a child of which nothing is known counting as full.

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
    /// Sees to it that a page which can't be read is never read again: it missed a change.
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
    /// Something that the log has to change can't be read. Passes `error` on unless the log is
    /// being followed; then it is lost.
    pub(crate) fn give_up(&self, state: &mut State, error: StoreError) -> Result<(), StoreError> {
        let is_damage = matches!(error, StoreError::Damaged(_) | StoreError::Io(_));
        if !state.replaying || !is_damage {
            return Err(error);
        }
        self.medium.answers()?;
        state.losses += 1;
        Ok(())
    }

    /// Whether something that the log has to change, or to name, is lost: it can't be read.
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

    /// Whether the row of a node can't be read while the log is followed.
    fn is_row_lost(&self, state: &mut State, id: NodeId) -> Result<bool, StoreError> {
        self.is_lost_for_log(state, || self.nodes.table.get(&self.medium, id.0, |_| ()))
    }

    /// Whether a node can't be looked into while the log is followed.
    pub(crate) fn is_node_lost(
        &self,
        state: &mut State,
        id: NodeId,
        level: u8,
    ) -> Result<bool, StoreError> {
        self.is_lost_for_log(state, || self.nodes.get(&self.medium, id, level))
    }

    /// What can be named of what an entry says, while the log is followed: itself, or that it is
    /// lost.
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

    /// Nothing is known of a volume from here on, but that it is there. What it was is not freed.
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

    /// An entry of the log that concerns a volume whose row can't be read: it stays lost.
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

    /// The row of a volume is in a page that can't be read: that is never read again.
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
    /// The entry, or where it names a node that can't be looked into while the log is followed,
    /// that all of it is lost. The node is named once less then.
    pub(crate) fn sound(&mut self, entry: MapEntry, level: u8) -> Result<MapEntry, StoreError> {
        match entry {
            MapEntry::Node(id) if self.world.is_node_lost(self.state, id, level)? => {
                self.release(entry)?;
                Ok(LOST)
            }
            entry => Ok(entry),
        }
    }

    /// Whether the row of a node can't be read while the log is followed.
    pub(crate) fn is_row_lost(&mut self, id: NodeId) -> Result<bool, StoreError> {
        self.world.is_row_lost(self.state, id)
    }

    /// What of `nodes` can't be counted down, because the row can't be read.
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

    /// What is below an entry; where that can't be read while the log is followed, `known` becomes
    /// false.
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

    /// Counts anew what is below a node, because what stood there could not be read.
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

    /// A copy of a shared node that names nothing whose row can't be read while the log is
    /// followed; and whether it is the node as it was.
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

    /// The blocks of a run of chunks, with a reference for each, if some of the chunks have rows
    /// that can't be read while the log is followed: those are lost.
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

    /// The value, or, where it is one chunk whose row can't be read, that all is lost.
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
