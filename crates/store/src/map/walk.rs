//! Walking a volume's map, for readers and the writer.

use block::BlockRange;
use format::{MapEntry, VolumeRow};

use crate::StoreError;
use crate::world::view::View;

/// A run of blocks with one entry that is not a node: they are all alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) start: u64,
    pub(crate) count: u64,
    pub(crate) entry: MapEntry,
}

/// Calls `visit` for all of `range` (which must be inside the root's span), in order. What is below
/// nodes that were requested is skipped ([`View::may_look_on`]).
pub(crate) fn walk<'a>(
    view: impl Into<View<'a>>,
    map: &VolumeRow,
    range: BlockRange,
    visit: &mut impl FnMut(Run) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    if range.count.0 == 0 {
        return Ok(());
    }
    walk_entry(view.into(), map.root, map.level, 0, range, visit)
}

fn walk_entry(
    view: View<'_>,
    entry: MapEntry,
    level: u8,
    base: u64,
    range: BlockRange,
    visit: &mut impl FnMut(Run) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let start = range.start.0.max(base);
    let end = range.end().0.min(base + view.span_blocks(level));
    let MapEntry::Node(id) = entry else {
        return visit(Run { start, count: end - start, entry });
    };
    let node = match view.nodes.get(view.medium, id, level) {
        Err(error) if view.may_look_on(&error) => return Ok(()),
        node => node?,
    };
    let child_span = view.span_blocks(level - 1);
    let first = (start - base) / child_span;
    let last = (end - 1 - base) / child_span;
    debug_assert!(last < view.medium.tuning.fanout.entries() as u64);
    for index in first..=last {
        let child_base = base + index * child_span;
        walk_entry(view, node.get(index as usize), level - 1, child_base, range, visit)?;
    }
    Ok(())
}

/// Returns the entry of one block.
///
/// # Errors
/// [`StoreError::Absent`] if it was requested.
pub(crate) fn entry_of(
    view: View<'_>,
    map: &VolumeRow,
    block: u64,
) -> Result<MapEntry, StoreError> {
    let mut found = None;
    walk(view, map, BlockRange::new(block, 1), &mut |run| {
        found = Some(run.entry);
        Ok(())
    })?;
    found.ok_or(StoreError::Absent)
}
