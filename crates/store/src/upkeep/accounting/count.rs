//! Counting for whom everything is stored, in a world that does not change meanwhile and in bounded
//! memory.
//!
//! 1. *Owners.* Every map is walked from its root down to the leaves, which are not examined. A
//!    node with one reference belongs to the owner of the node above it. One with several is
//!    remembered with its owner so far; it is entered again only when that changes, three times at
//!    most.
//! 2. *Chunks.* Now each node's owner is known, and each is examined once. A chunk with one
//!    reference belongs to the owner of its leaf. One with several, by leaves or by aliases, is
//!    remembered with its owner so far, and counted at the end. What does not fit in memory is
//!    counted in further rounds, each for a part of the chunks.
//!
//! If more nodes are shared than can be remembered, the others are entered through each reference;
//! then all chunks below are remembered, so that none counts twice.
//!
//! An owner's *share* comes from the same walk: each reference to a chunk or a node takes an equal
//! part of it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use block::VolumeId;
use format::map::Node;
use format::{ChunkId, MapEntry, NodeId, VolumeRow};

use super::owner::{Owner, Tally};
use crate::StoreError;
use crate::chunks::pages::FastState;
use crate::nodes::node_of;
use crate::upkeep::part::Part;
use crate::world::World;

/// How much may be remembered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Nodes with several references: about 64 bytes each.
    pub(crate) nodes: usize,
    /// Chunks with several references, at least 1: about 64 bytes each.
    pub(crate) chunks: usize,
}

/// Why there is no count.
pub(super) enum Halt {
    /// More chunks are shared than can be remembered in one round.
    Full,
    /// The caller has cancelled it.
    Unwanted,
    /// Something can't be read.
    Failed(StoreError),
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// Returns the volumes and snapshots of a world, in the order of their ids; their positions are the
/// indices of [`Owner`].
pub(super) fn owners_of(world: &World) -> Vec<(VolumeId, VolumeRow)> {
    let volumes = world.volumes.read();
    let rows = volumes.values().filter_map(|volume| Some((volume.id, (*volume.map.read())?)));
    let mut owners: Vec<_> = rows.collect();
    owners.sort_unstable_by_key(|(id, _)| *id);
    owners
}

/// Returns a volume as the owner of what it refers to.
pub(super) fn owner_at(index: usize, row: &VolumeRow) -> Owner {
    Owner::One { index: index as u32, snapshot: row.snapshot }
}

/// Counts. `proceed` is called before each node is examined.
pub(super) fn count(
    world: &World,
    owners: &[(VolumeId, VolumeRow)],
    limits: Limits,
    proceed: &mut dyn FnMut() -> bool,
) -> Result<Tally, Halt> {
    let mut counter = Counter {
        world,
        limits,
        proceed,
        nodes: HashMap::default(),
        chunks: HashMap::default(),
        tally: Tally::default(),
        part: Part::ALL,
        round: 0,
    };
    for (index, (_, row)) in owners.iter().enumerate() {
        if let Some(root) = node_of(row.root) {
            counter.own(root, row.level, owner_at(index, row))?;
        }
    }
    let mut total = Tally::new(owners.len());
    let mut parts = vec![Part::ALL];
    while let Some(part) = parts.pop() {
        match counter.round(owners, part) {
            Ok(tally) => total.add_all(&tally),
            Err(Halt::Full) => parts.extend(part.halves()),
            Err(halt) => return Err(halt),
        }
    }
    Ok(total)
}

/// A node with several references.
struct Remembered {
    owner: Owner,
    /// The last round in which it was examined, and what is below it in that.
    round: u32,
    units: f64,
}

/// A chunk with several references.
struct Named {
    owner: Owner,
    units: u32,
}

struct Counter<'a> {
    world: &'a World,
    limits: Limits,
    proceed: &'a mut dyn FnMut() -> bool,
    nodes: HashMap<NodeId, Remembered, FastState>,
    chunks: HashMap<ChunkId, Named, FastState>,
    tally: Tally,
    /// The chunks that this round counts.
    part: Part,
    round: u32,
}

/// The parent from which something is reached.
#[derive(Clone, Copy)]
struct Above {
    owner: Owner,
    /// It may be reached again: a node above it is shared and not remembered.
    again: bool,
}

impl Counter<'_> {
    fn proceed(&mut self) -> Result<(), Halt> {
        if (self.proceed)() { Ok(()) } else { Err(Halt::Unwanted) }
    }

    /// Adds an owner to a node.
    fn own(&mut self, id: NodeId, level: u8, owner: Owner) -> Result<(), Halt> {
        let mut owner = owner;
        let medium = &self.world.medium;
        if self.world.nodes.row(medium, id)?.reference_count > 1 {
            let is_full = self.nodes.len() >= self.limits.nodes;
            match self.nodes.entry(id) {
                Entry::Occupied(mut entry) => {
                    let joined = entry.get().owner.join(owner);
                    if joined == entry.get().owner {
                        return Ok(());
                    }
                    entry.get_mut().owner = joined;
                    owner = joined;
                }
                Entry::Vacant(_) if is_full => {}
                Entry::Vacant(entry) => {
                    entry.insert(Remembered { owner, round: 0, units: 0.0 });
                }
            }
        }
        if level == 1 {
            return Ok(());
        }
        self.proceed()?;
        let node = self.world.nodes.get(medium, id, level)?;
        for child in node.entries().filter_map(node_of) {
            self.own(child, level - 1, owner)?;
        }
        Ok(())
    }

    /// Counts a part of the chunks.
    fn round(&mut self, owners: &[(VolumeId, VolumeRow)], part: Part) -> Result<Tally, Halt> {
        self.part = part;
        self.round += 1;
        self.chunks.clear();
        self.tally = Tally::new(owners.len());
        for (index, (_, row)) in owners.iter().enumerate() {
            if let Some(root) = node_of(row.root) {
                let from = Above { owner: owner_at(index, row), again: false };
                self.tally.share_units[index] = self.node(root, row.level, from)?;
            }
        }
        for named in self.chunks.values() {
            self.tally.add(named.owner, named.units);
        }
        Ok(std::mem::take(&mut self.tally))
    }

    /// Examines a node, unless this round has; returns the share of one reference to it in what is
    /// below.
    fn node(&mut self, id: NodeId, level: u8, from: Above) -> Result<f64, Halt> {
        let medium = &self.world.medium;
        let references = self.world.nodes.row(medium, id)?.reference_count;
        let mut from = from;
        if references > 1 {
            match self.nodes.get_mut(&id) {
                Some(node) if node.round == self.round => {
                    return Ok(node.units / f64::from(references));
                }
                Some(node) => {
                    node.round = self.round;
                    from = Above { owner: node.owner, again: false };
                }
                None => from.again = true,
            }
        }
        self.proceed()?;
        let node = self.world.nodes.get(medium, id, level)?;
        let units = self.entries(&node, level, from)?;
        if let Some(node) = self.nodes.get_mut(&id) {
            node.units = units;
        }
        Ok(units / f64::from(references.max(1)))
    }

    fn entries(&mut self, node: &Node, level: u8, from: Above) -> Result<f64, Halt> {
        let mut units = 0.0;
        for entry in node.entries() {
            units += match entry {
                MapEntry::Chunk(ChunkId::LOST) => 0.0,
                MapEntry::Chunk(id) => self.chunk(id, from)?,
                MapEntry::Node(id) => self.node(id, level - 1, from)?,
                _ => 0.0,
            };
        }
        Ok(units)
    }

    /// Counts a reference by an entry of a leaf to a chunk; returns its share of the chunk.
    fn chunk(&mut self, id: ChunkId, from: Above) -> Result<f64, Halt> {
        let (mut id, mut row) = (id, self.world.chunk(id)?);
        let mut named = f64::from(row.reference_count);
        while let Some(original) = row.original {
            if original >= id {
                let text = format!("chunk {} is an alias of a newer one", id.0);
                return Err(Halt::Failed(StoreError::Damaged(text)));
            }
            (id, row) = (original, self.world.chunk(original)?);
            named *= f64::from(row.reference_count);
        }
        if row.place.is_none() || !self.part.contains(id.0) {
            return Ok(0.0);
        }
        let units = row.share_units();
        if named > 1.0 || from.again {
            self.remember(id, from.owner, units)?;
        } else {
            self.tally.add(from.owner, units);
        }
        Ok(f64::from(units) / named.max(1.0))
    }

    fn remember(&mut self, id: ChunkId, owner: Owner, units: u32) -> Result<(), Halt> {
        let is_full = self.chunks.len() >= self.limits.chunks;
        match self.chunks.entry(id) {
            Entry::Occupied(mut entry) => {
                let named = entry.get_mut();
                named.owner = named.owner.join(owner);
            }
            Entry::Vacant(_) if is_full => return Err(Halt::Full),
            Entry::Vacant(entry) => {
                entry.insert(Named { owner, units });
            }
        }
        Ok(())
    }
}
