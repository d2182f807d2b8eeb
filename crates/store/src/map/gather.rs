//! What a copy takes from its source: references to everything in a range, without moving it.

use format::{ChunkId, MapEntry, NodeId, VolumeRow};

use crate::StoreError;
use crate::map::tree::Editor;
use crate::map::value::Value;
use crate::nodes::Referenced;
use crate::nodes::node_of;

/// A part of a copy's source, which has a reference for the destination.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) count: u64,
    content: Content,
}

/// The content of a piece.
#[derive(Clone, Debug)]
enum Content {
    Uniform(MapEntry),
    /// All blocks are the same chunk, which has one reference for them ([`Editor::let_go`]).
    Same(ChunkId),
    Blocks(Vec<MapEntry>),
    Nodes(Vec<Referenced>, u8),
}

impl Piece {
    /// Returns the value for the destination.
    pub(crate) fn value(&self) -> Value<'_> {
        match &self.content {
            Content::Uniform(entry) => Value::Uniform(*entry),
            Content::Same(chunk) => Value::Same(*chunk),
            Content::Blocks(entries) => Value::Blocks(entries),
            Content::Nodes(nodes, level) => Value::Graft { nodes, level: *level },
        }
    }
}

impl Editor<'_> {
    /// Takes a reference to everything in `count` blocks from `start` of `map`, as pieces that can
    /// be set `start - to` lower.
    pub(crate) fn gather(
        &mut self,
        map: &VolumeRow,
        start: u64,
        count: u64,
        to: u64,
    ) -> Result<Vec<Piece>, StoreError> {
        let mut pieces: Vec<Piece> = Vec::new();
        let wanted = Wanted { start, end: start + count, to };
        if count > 0 {
            self.gather_entry(map.root, map.level, 0, wanted, &mut pieces)?;
        }
        let medium = &self.world.medium;
        for piece in &mut pieces {
            if let Content::Nodes(nodes, _) = &mut piece.content {
                self.world.nodes.reference_all(medium, nodes)?;
            }
        }
        Ok(pieces)
    }

    fn gather_entry(
        &mut self,
        entry: MapEntry,
        level: u8,
        base: u64,
        wanted: Wanted,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), StoreError> {
        let start = wanted.start.max(base);
        let end = wanted.end.min(base + self.world.span_blocks(level));
        let to = wanted.to + (start - wanted.start);
        let mut entry = self.world.nameable(self.state, entry)?;
        if let Some((node, to)) = graft_of(entry, self.world.span_blocks(level), base, wanted) {
            let span = self.world.span_blocks(level);
            push_nodes(pieces, to, std::iter::once(node), (level, span));
            return Ok(());
        }
        if let MapEntry::Node(id) = entry
            && self.world.is_node_lost(self.state, id, level)?
        {
            entry = MapEntry::Chunk(ChunkId::LOST);
        }
        match entry {
            MapEntry::Node(id) => {
                let node = self.world.nodes.get(&self.world.medium, id, level)?;
                let span = self.world.span_blocks(level - 1);
                // All of these are wanted completely; either all of them can be shared at the
                // destination, or none.
                let whole = (start - base).div_ceil(span)..(end - base) / span;
                let shifted_to = |index: u64| (wanted.to + base + index * span) - wanted.start;
                // While the log is replayed each is examined separately: its row may be lost.
                let grafts = shifted_to(whole.start).is_multiple_of(span) && !self.state.replaying;
                let mut index = (start - base) / span;
                while index <= (end - 1 - base) / span {
                    let child = node.get(index as usize);
                    if grafts && whole.contains(&index) && node_of(child).is_some() {
                        let run = (index..whole.end).map_while(|at| node_of(node.get(at as usize)));
                        index += push_nodes(pieces, shifted_to(index), run, (level - 1, span));
                        continue;
                    }
                    self.gather_entry(child, level - 1, base + index * span, wanted, pieces)?;
                    index += 1;
                }
            }
            entry if level == 0 => {
                if let MapEntry::Chunk(chunk) = entry {
                    self.world.reference_chunk(chunk, 1)?;
                }
                push_block(pieces, to, entry);
            }
            MapEntry::Chunk(chunk) => {
                if push_alike(pieces, to, end - start, entry) {
                    self.world.reference_chunk(chunk, 1)?;
                }
            }
            _ => drop(push_alike(pieces, to, end - start, entry)),
        }
        Ok(())
    }

    /// Releases pieces that were set: the references that kept them alive until then.
    pub(crate) fn let_go(&mut self, pieces: &[Piece]) -> Result<(), StoreError> {
        let held = pieces.iter().filter_map(|piece| match piece.content {
            Content::Same(chunk) => Some(chunk),
            _ => None,
        });
        let world = self.world;
        world.release_chunks(self.state, held, |id| world.drop_content(id))
    }
}

/// Returns the node that the destination can share as it is, and where: all of it is wanted, and
/// its destination is aligned to its span.
fn graft_of(entry: MapEntry, span: u64, base: u64, wanted: Wanted) -> Option<(NodeId, u64)> {
    let MapEntry::Node(node) = entry else { return None };
    if base < wanted.start || base + span > wanted.end {
        return None;
    }
    let to = wanted.to + (base - wanted.start);
    // A span is a power of two.
    (to & (span - 1) == 0).then_some((node, to))
}

#[derive(Clone, Copy)]
struct Wanted {
    start: u64,
    end: u64,
    to: u64,
}

/// Adds a block of a leaf.
fn push_block(pieces: &mut Vec<Piece>, start: u64, entry: MapEntry) {
    if let Some(last) = pieces.last_mut()
        && last.start + last.count == start
        && let Content::Blocks(entries) = &mut last.content
    {
        entries.push(entry);
        last.count += 1;
        return;
    }
    pieces.push(Piece { start, count: 1, content: Content::Blocks(vec![entry]) });
}

/// Adds consecutive nodes, and returns how many there were.
fn push_nodes(
    pieces: &mut Vec<Piece>,
    start: u64,
    run: impl Iterator<Item = NodeId>,
    (level, span): (u8, u64),
) -> u64 {
    let run = run.map(Referenced::unread);
    if let Some(last) = pieces.last_mut()
        && last.start + last.count == start
        && let Content::Nodes(nodes, same) = &mut last.content
        && *same == level
    {
        let before = nodes.len();
        nodes.extend(run);
        let count = (nodes.len() - before) as u64;
        last.count += count * span;
        return count;
    }
    let mut nodes = Vec::with_capacity(run.size_hint().1.unwrap_or(1));
    nodes.extend(run);
    let count = nodes.len() as u64;
    let content = Content::Nodes(nodes, level);
    pieces.push(Piece { start, count: count * span, content });
    count
}

/// Adds blocks that are all alike; returns whether they are a piece of their own.
fn push_alike(pieces: &mut Vec<Piece>, start: u64, count: u64, entry: MapEntry) -> bool {
    let content = match entry {
        MapEntry::Chunk(chunk) => Content::Same(chunk),
        entry => Content::Uniform(entry),
    };
    if let Some(last) = pieces.last_mut()
        && last.start + last.count == start
        && match (&last.content, &content) {
            (Content::Uniform(a), Content::Uniform(b)) => a == b,
            (Content::Same(a), Content::Same(b)) => a == b,
            _ => false,
        }
    {
        last.count += count;
        return false;
    }
    pieces.push(Piece { start, count, content });
    true
}
