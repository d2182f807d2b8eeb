//! The new content of blocks, and the map entries for it.

use std::ops::Range;

use format::map::{Fanout, Node};
use format::{ChunkId, MapEntry};

use crate::nodes::Referenced;
use crate::nodes::counts::Counts;

/// The new content of some blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Value<'a> {
    /// All alike: a hole, zeros or a pattern.
    Uniform(MapEntry),
    /// All the same chunk.
    Same(ChunkId),
    /// Consecutive chunks.
    Run { first: ChunkId },
    /// An entry for each block; the chunks already have the references.
    Blocks(&'a [MapEntry]),
    /// Consecutive nodes of one level, which already have the references.
    Graft { nodes: &'a [Referenced], level: u8 },
}

/// Returns whether the blocks of `entry` have the content `value` already.
pub(crate) fn says(value: Value<'_>, entry: MapEntry) -> bool {
    match value {
        Value::Uniform(new) => entry.is_uniform() && new == entry,
        Value::Same(chunk) => entry == MapEntry::Chunk(chunk),
        _ => false,
    }
}

/// Returns the single entry for `value` over a whole span of `level`, if there is one.
pub(crate) fn whole(level: u8, value: Value<'_>) -> Option<MapEntry> {
    match value {
        Value::Uniform(entry) => Some(entry),
        Value::Same(chunk) => Some(MapEntry::Chunk(chunk)),
        Value::Graft { nodes, level: at } if at == level => {
            nodes.first().map(|node| MapEntry::Node(node.id))
        }
        _ => None,
    }
}

/// Returns the common value of the first `count` blocks of a value with an entry for each block.
pub(crate) fn alike(value: Value<'_>, count: u64) -> Option<MapEntry> {
    let Value::Blocks(entries) = value else { return None };
    let (first, others) = entries.get(..count as usize)?.split_first()?;
    others.iter().all(|other| other == first).then_some(*first)
}

/// The change of entries of an inner node.
pub(crate) enum Change<'a> {
    One(usize, MapEntry),
    /// Each is set to one entry of the value.
    Whole(Range<usize>, Value<'a>),
}

impl Change<'_> {
    pub(crate) fn make(&self, node: &mut Node) {
        match self {
            Self::One(index, entry) => node.set(*index, *entry),
            Self::Whole(range, Value::Graft { nodes, .. }) => {
                for (index, graft) in range.clone().zip(*nodes) {
                    node.set(index, MapEntry::Node(graft.id));
                }
            }
            Self::Whole(range, Value::Uniform(entry)) => {
                range.clone().for_each(|index| node.set(index, *entry));
            }
            Self::Whole(range, Value::Same(chunk)) => {
                range.clone().for_each(|index| node.set(index, MapEntry::Chunk(*chunk)));
            }
            Self::Whole(_, Value::Blocks(_) | Value::Run { .. }) => {
                unreachable!("no single entry represents several of these blocks")
            }
        }
    }
}

/// Returns the counts below `children` entries with `value`, each of `span` blocks.
pub(crate) fn whole_counts(value: Value<'_>, children: usize, span: u64) -> Counts {
    let mut counts = Counts::default();
    match value {
        Value::Graft { nodes, .. } => {
            nodes.iter().take(children).for_each(|node| counts += node.counts);
        }
        Value::Uniform(entry) => counts = Counts::alike(entry, span * children as u64),
        Value::Same(chunk) => {
            counts = Counts::alike(MapEntry::Chunk(chunk), span * children as u64);
        }
        Value::Blocks(_) | Value::Run { .. } => {}
    }
    counts
}

/// Returns the value from `blocks` further on.
pub(crate) fn advance(value: Value<'_>, blocks: u64, fanout: Fanout) -> Value<'_> {
    match value {
        Value::Graft { nodes, level } => {
            let skipped = ((blocks / fanout.span_blocks(level)) as usize).min(nodes.len());
            Value::Graft { nodes: &nodes[skipped..], level }
        }
        Value::Run { first } => Value::Run { first: ChunkId(first.0 + blocks) },
        Value::Blocks(entries) => Value::Blocks(&entries[(blocks as usize).min(entries.len())..]),
        alike @ (Value::Uniform(_) | Value::Same(_)) => alike,
    }
}

/// Returns the entry of `value` for its block `offset`.
pub(crate) fn block_entry(value: Value<'_>, offset: u64) -> MapEntry {
    match value {
        Value::Uniform(entry) => entry,
        Value::Same(chunk) => MapEntry::Chunk(chunk),
        Value::Run { first } => MapEntry::Chunk(ChunkId(first.0 + offset)),
        Value::Blocks(entries) => entries[offset as usize],
        Value::Graft { .. } => unreachable!("a graft covers the span of its node"),
    }
}
