//! The world, as someone sees it who reads what is not in memory, or asks for it.

use std::ops::Deref;

use format::{ChunkId, ChunkRow, MapEntry};

use crate::StoreError;
use crate::chunks::asking::{Asked, Source};
use crate::nodes::counts::Counts;
use crate::world::{World, missing_chunk};

/// The world, as someone sees it who waits for metadata or asks for it.
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
    /// The world of someone who asks.
    pub(crate) fn asking(world: &'a World, asked: &'a Asked) -> Self {
        Self { world, medium: Source::asking(&world.medium, asked) }
    }

    /// The same, for a plan that what is looked at is kept in memory for (`plans`).
    pub(crate) fn planning(self, plan: u64) -> Self {
        Self { medium: self.medium.planning(plan), ..self }
    }

    /// Whether an error says nothing but that something was asked for, and more may be: who has
    /// more to look at goes on, and asks for all of it at once.
    pub(crate) fn may_look_on(self, error: &StoreError) -> bool {
        matches!(error, StoreError::Absent)
            && self.medium.asked().is_some_and(|asked| !asked.is_full())
    }

    /// Whether something was asked for.
    pub(crate) fn is_waiting(self) -> bool {
        self.medium.asked().is_some_and(Asked::is_waiting)
    }

    /// How much was asked for so far.
    pub(crate) fn load_count(self) -> u64 {
        match self.medium.asked() {
            Some(asked) => asked.load_count() as u64,
            None => self.world.memory.misses(),
        }
    }
}

impl View<'_> {
    /// The row of a chunk that must exist.
    pub(crate) fn chunk(self, id: ChunkId) -> Result<ChunkRow, StoreError> {
        self.chunks.get(self.medium, id.0, ChunkRow::decode)?.ok_or_else(|| missing_chunk(id))
    }
}

impl World {
    /// Mapped and data blocks below an entry of a node of `level` + 1 (0: a block).
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
