//! The world, for code that reads missing metadata directly, or requests it.

use std::ops::Deref;

use format::{ChunkId, ChunkRow, MapEntry};

use crate::StoreError;
use crate::chunks::asking::{Asked, Source};
use crate::nodes::counts::Counts;
use crate::world::{World, missing_chunk};

/// The world, for code that waits for metadata or requests it.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    pub(crate) world: &'a World,
    pub(crate) medium: Source<'a>,
}

impl Deref for View<'_> {
    type Target = World;

    fn deref(&self) -> &World {
        self.world
    }
}

impl<'a> From<&'a World> for View<'a> {
    fn from(world: &'a World) -> Self {
        Self { world, medium: Source::from(&world.medium) }
    }
}

impl<'a> View<'a> {
    /// For code that requests.
    pub(crate) fn asking(world: &'a World, asked: &'a Asked) -> Self {
        Self { world, medium: Source::asking(&world.medium, asked) }
    }

    /// The same, for a plan that needs what is used to stay in memory (`plans`).
    pub(crate) fn planning(self, plan: u64) -> Self {
        Self { medium: self.medium.planning(plan), ..self }
    }

    /// Returns whether an error only means that something was requested, and more may be: then
    /// callers continue, to request everything at once.
    pub(crate) fn may_look_on(self, error: &StoreError) -> bool {
        matches!(error, StoreError::Absent)
            && self.medium.asked().is_some_and(|asked| !asked.is_full())
    }

    /// Returns whether something was requested.
    pub(crate) fn is_waiting(self) -> bool {
        self.medium.asked().is_some_and(Asked::is_waiting)
    }

    /// Returns how much was requested so far.
    pub(crate) fn load_count(self) -> u64 {
        match self.medium.asked() {
            Some(asked) => asked.load_count() as u64,
            None => self.world.memory.misses(),
        }
    }
}

impl View<'_> {
    /// Returns the row of a chunk that must exist.
    pub(crate) fn chunk(self, id: ChunkId) -> Result<ChunkRow, StoreError> {
        self.chunks.get(self.medium, id.0, ChunkRow::decode)?.ok_or_else(|| missing_chunk(id))
    }
}

impl World {
    /// Returns the mapped and the data blocks below an entry of a node of `level` + 1 (0: a block).
    pub(crate) fn counts(&self, entry: MapEntry, level: u8) -> Result<Counts, StoreError> {
        Ok(match entry {
            MapEntry::Node(id) => {
                let row = self.nodes.row(&self.medium, id)?;
                Counts { mapped: row.mapped_blocks, data: row.data_blocks }
            }
            alike => Counts::alike(alike, self.span_blocks(level)),
        })
    }
}
