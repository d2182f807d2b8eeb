//! Walking a volume's map, for readers and for the writer alike.

use block::BlockRange;
use format::{MapEntry, VolumeRow};

use crate::StoreError;
use crate::world::World;

/// A run of blocks with one entry, which is no node: they are all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: u64,
    pub(crate) count: u64,
    pub(crate) entry: MapEntry,
}

/// Calls `visit` for all of `range` (which must be inside the root's span), in order.
pub(crate) fn walk(
    world: &World,
    map: &VolumeRow,
    range: BlockRange,
    visit: &mut impl FnMut(Run) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    if range.count.0 == 0 {
        return Ok(());
    }
    walk_entry(world, map.root, map.level, 0, range, visit)
}

fn walk_entry(
    world: &World,
    entry: MapEntry,
    level: u8,
    base: u64,
    range: BlockRange,
    visit: &mut impl FnMut(Run) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let start = range.start.0.max(base);
    let end = range.end().0.min(base + world.span_blocks(level));
    let MapEntry::Node(id) = entry else {
        return visit(Run { start, count: end - start, entry });
    };
    let node = world.nodes.get(&world.medium, id, level)?;
    let child_span = world.span_blocks(level - 1);
    let first = (start - base) / child_span;
    let last = (end - 1 - base) / child_span;
    debug_assert!(last < world.medium.tuning.fanout.entries() as u64);
    for index in first..=last {
        let child_base = base + index * child_span;
        walk_entry(world, node.get(index as usize), level - 1, child_base, range, visit)?;
    }
    Ok(())
}

/// The entry of one block.
pub(crate) fn entry_of(world: &World, map: &VolumeRow, block: u64) -> Result<MapEntry, StoreError> {
    let mut found = MapEntry::Hole;
    walk(world, map, BlockRange::new(block, 1), &mut |run| {
        found = run.entry;
        Ok(())
    })?;
    Ok(found)
}
