//! Which blocks of which volumes can't be read: one scan of all chunk rows for the aliases of what
//! is damaged, and then one walk over all maps for all findings together.

use std::collections::HashSet;

use block::{BlockCount, BlockNumber, SECTORS_PER_BLOCK, SectorRange, VolumeId};
use format::map::{Fanout, LEVEL_MAX, Node};
use format::{ChunkId, MapEntry, NodeId, VolumeRow};

use super::aliases::Aliases;
use super::{DamagedRange, Repair, Step, What};
use crate::chunks::pages::FastState;

/// The maximum number of nodes remembered as good: clones and snapshots share most of theirs.
const CLEAN_NODES_MAX: usize = 65_536;
/// How many nodes are examined per block of the budget: most are in memory.
const NODES_PER_BLOCK: u64 = 16;

/// A node that is being walked from its beginning.
#[derive(Clone, Copy)]
struct Tracked {
    id: NodeId,
    /// The number of reported ranges when it began.
    told: u64,
}

/// The progress of the walk.
#[derive(Default)]
pub(super) struct Naming {
    begun: bool,
    volume: VolumeId,
    block: u64,
    /// The number of reported ranges.
    told: u64,
    tracked: [Option<Tracked>; LEVEL_MAX as usize + 1],
    clean: HashSet<NodeId, FastState>,
    aliases: Aliases,
}

fn is_lost(what: &What) -> bool {
    *what == What::Lost
}

/// What was found in one part of a map.
struct Seen {
    /// What is damaged: first block and number of blocks.
    damaged: Vec<(What, u64, u64)>,
    /// Where to continue.
    next: u64,
    /// The number of examined nodes.
    nodes: u64,
}

impl Step<'_> {
    /// Continues the walk; returns `None` when all maps were seen, or nothing is to be reported.
    pub(super) fn names(&mut self, mut naming: Box<Naming>) -> Option<Box<Naming>> {
        if !naming.begun {
            self.scrub.findings.forget_names();
            naming.begun = true;
            if !self.scrub.findings.concern_volumes() {
                return None;
            }
            naming.aliases = self.begin_aliases();
        }
        self.aliases(&mut naming.aliases);
        let mut nodes = 0;
        while !self.is_spent() {
            let map = self.store.world.map_of(naming.volume);
            let Some(map) = map.filter(|map| naming.block < map.size_blocks) else {
                naming.turn_to(self.next_volume(naming.volume)?);
                continue;
            };
            let seen = self.look(&mut naming, &map);
            for (what, start, count) in seen.damaged {
                let count = count.min(map.size_blocks - start);
                let range = SectorRange {
                    start: BlockNumber(start).sector(),
                    count: block::SectorCount(BlockCount(count).0 * SECTORS_PER_BLOCK),
                };
                self.scrub.findings.name(what, DamagedRange { volume: naming.volume, range });
                naming.told += 1;
            }
            naming.block = seen.next;
            nodes += seen.nodes;
            if nodes >= NODES_PER_BLOCK {
                self.count(1);
                nodes = 0;
            }
        }
        Some(naming)
    }

    fn next_volume(&self, behind: VolumeId) -> Option<VolumeId> {
        let volumes = self.store.world.volumes.read();
        volumes.keys().copied().filter(|id| *id > behind).min()
    }

    /// Examines a leaf, or another entry with the content of the current block. The map may change
    /// meanwhile: what is reported was seen at some time during this pass.
    fn look(&mut self, naming: &mut Naming, map: &VolumeRow) -> Seen {
        let world = &self.store.world;
        let fanout = world.medium.tuning.fanout;
        let mut seen = Seen { damaged: Vec::new(), next: 0, nodes: 0 };
        let (mut entry, mut level, mut base) = (map.root, map.level, 0);
        loop {
            let end = base + world.span_blocks(level);
            seen.next = end;
            let id = match entry {
                MapEntry::Node(id) if !naming.clean.contains(&id) => id,
                // A block that repeats.
                MapEntry::Chunk(id) => {
                    let what = self.damage_of(id, &naming.aliases);
                    self.note_lost(what);
                    let count = end - naming.block;
                    seen.damaged.extend(what.map(|what| (what, naming.block, count)));
                    naming.leave(fanout, end, seen.damaged.len() as u64);
                    return seen;
                }
                _ => {
                    naming.leave(fanout, end, 0);
                    return seen;
                }
            };
            naming.enter(level, id, naming.block == base);
            seen.nodes += 1;
            let Ok(node) = world.nodes.get(&world.medium, id, level) else {
                let what = self.unreadable(id);
                seen.damaged.push((what, naming.block, end - naming.block));
                naming.leave(fanout, end, 1);
                return seen;
            };
            if level == 1 {
                self.leaf(&node, base, &naming.aliases, &mut seen);
                self.note_lost(seen.damaged.iter().map(|(what, ..)| *what).find(is_lost));
                naming.leave(fanout, end, seen.damaged.len() as u64);
                return seen;
            }
            level -= 1;
            let index = (naming.block - base) / world.span_blocks(level);
            entry = node.get(index as usize);
            base += index * world.span_blocks(level);
        }
    }

    /// Adds lost blocks to the findings, because nothing else reports them.
    fn note_lost(&mut self, what: Option<What>) {
        if what.is_some_and(|what| is_lost(&what)) {
            self.find(What::Lost, 0, Repair::Impossible);
        }
    }

    fn damage_of(&self, id: ChunkId, aliases: &Aliases) -> Option<What> {
        if id == ChunkId::LOST {
            return Some(What::Lost);
        }
        self.scrub.findings.of_chunk(id).or(aliases.damage_of(id))
    }

    fn leaf(&self, node: &Node, base: u64, aliases: &Aliases, seen: &mut Seen) {
        for (index, entry) in node.entries().enumerate() {
            if let MapEntry::Chunk(id) = entry
                && let Some(what) = self.damage_of(id, aliases)
            {
                seen.damaged.push((what, base + index as u64, 1));
            }
        }
    }

    /// Returns the damage because of which a node can't be read.
    fn unreadable(&mut self, id: NodeId) -> What {
        if let Some(what) = self.scrub.findings.of_node(id) {
            return what;
        }
        // It could be read when the pass reached it.
        let what = What::Node(id.0);
        let row = self.store.world.nodes.row(&self.store.world.medium, id);
        let offset_bytes = row.map_or(0, |row| self.offset_bytes(row.place));
        self.find(what, offset_bytes, Repair::Impossible);
        what
    }
}

impl Naming {
    fn turn_to(&mut self, volume: VolumeId) {
        self.volume = volume;
        self.block = 0;
        self.tracked = Default::default();
    }

    /// Records that the walk enters a node, perhaps at its first block.
    fn enter(&mut self, level: u8, id: NodeId, at_start: bool) {
        let slot = &mut self.tracked[usize::from(level)];
        if at_start {
            *slot = Some(Tracked { id, told: self.told });
        } else if slot.is_some_and(|tracked| tracked.id != id) {
            // Another took its place in between.
            *slot = None;
        }
    }

    /// Records that the walk has seen everything up to `end`: nodes that end there without damage
    /// need not be examined again.
    fn leave(&mut self, fanout: Fanout, end: u64, damaged: u64) {
        for level in 1..=fanout.level_max() {
            if !end.is_multiple_of(fanout.span_blocks(level)) {
                break;
            }
            let Some(tracked) = self.tracked[usize::from(level)].take() else { continue };
            if damaged == 0 && tracked.told == self.told && self.clean.len() < CLEAN_NODES_MAX {
                self.clean.insert(tracked.id);
            }
        }
    }
}
