//! Which parts of a volume are mapped, for GET LBA STATUS.
//!
//! A scan is bounded by its work, not by what it covers: a hole is one entry however long it is,
//! and the row of a node says whether all of it is mapped, or nothing, so that its entries are not
//! read. What is beyond the bound is left to the next request.

use block::{
    BlockRange, LbaExtent, LbaState, Sector, SectorCount, SectorRange, VolumeError, VolumeId,
    VolumeReply,
};
use format::{MapEntry, NodeId, VolumeRow};

use crate::StoreError;
use crate::world::view::View;

/// The maximum number of nodes that one scan reads: each may have to be read from the device.
const NODES_MAX: usize = 64;
/// The maximum number of rows of nodes that one scan reads.
const ROWS_MAX: usize = 1024;
/// The maximum number of entries that one scan passes.
const ENTRIES_MAX: usize = 16_384;

/// Returns which parts of a range are mapped: up to `limit` of them, from its start on.
pub(crate) fn extents(
    view: View<'_>,
    id: VolumeId,
    range: SectorRange,
    limit: usize,
) -> Result<VolumeReply, VolumeError> {
    let volume = view.volume(id).ok_or(VolumeError::NoSuchVolume(id))?;
    let guard = volume.map.read();
    let map = guard.as_ref().ok_or(VolumeError::NoSuchVolume(id))?;
    if !range.fits(SectorCount(map.size_blocks * block::SECTORS_PER_BLOCK)) {
        return Err(VolumeError::OutOfRange);
    }
    let mut look = Look::new(view, range, limit);
    match look.at_map(map) {
        Ok(()) => Ok(VolumeReply::Extents(look.found)),
        // What was found before is returned; the next scan begins where this one failed.
        Err(_) if !look.found.is_empty() => Ok(VolumeReply::Extents(look.found)),
        Err(_) => Err(VolumeError::Medium { sector: look.next }),
    }
}

/// One scan: what it has found, and its remaining budget.
struct Look<'a> {
    world: View<'a>,
    range: SectorRange,
    blocks: BlockRange,
    limit: usize,
    found: Vec<LbaExtent>,
    /// The sector after what was found.
    next: Sector,
    nodes_left: usize,
    rows_left: usize,
    entries_left: usize,
}

impl<'a> Look<'a> {
    fn new(world: View<'a>, range: SectorRange, limit: usize) -> Self {
        Self {
            world,
            range,
            blocks: range.covering_blocks(),
            limit: limit.max(1),
            found: Vec::new(),
            next: range.start,
            nodes_left: NODES_MAX,
            rows_left: ROWS_MAX,
            entries_left: ENTRIES_MAX,
        }
    }

    fn at_map(&mut self, map: &VolumeRow) -> Result<(), StoreError> {
        if self.range.is_empty() {
            return Ok(());
        }
        self.at_entry(map.root, map.level, 0).map(drop)
    }

    /// Scans what an entry spans. Returns whether there is budget left.
    fn at_entry(&mut self, entry: MapEntry, level: u8, base: u64) -> Result<bool, StoreError> {
        if self.entries_left == 0 {
            return Ok(false);
        }
        self.entries_left -= 1;
        let span = self.world.span_blocks(level);
        let MapEntry::Node(id) = entry else {
            let mapped = entry != MapEntry::Hole;
            return Ok(self.tell(base, span, mapped));
        };
        match self.is_mapped(id, span)? {
            Some(mapped) => Ok(self.tell(base, span, mapped)),
            None => self.at_node(id, level, base),
        }
    }

    /// Returns whether a node is completely mapped, or not at all; `None` if neither, or if finding
    /// out is expensive.
    fn is_mapped(&mut self, id: NodeId, span: u64) -> Result<Option<bool>, StoreError> {
        if self.rows_left == 0 {
            return Ok(None);
        }
        self.rows_left -= 1;
        let mapped = self.world.nodes.row(self.world.medium, id)?.mapped_blocks;
        Ok(match mapped {
            0 => Some(false),
            mapped if mapped == span => Some(true),
            _ => None,
        })
    }

    fn at_node(&mut self, id: NodeId, level: u8, base: u64) -> Result<bool, StoreError> {
        if self.nodes_left == 0 || self.rows_left == 0 {
            return Ok(false);
        }
        self.nodes_left -= 1;
        let node = self.world.nodes.get(self.world.medium, id, level)?;
        let child_span = self.world.span_blocks(level - 1);
        let end = self.blocks.end().0.min(base + self.world.span_blocks(level));
        let first = (self.blocks.start.0.max(base) - base) / child_span;
        let last = (end - 1 - base) / child_span;
        for index in first..=last {
            let child_base = base + index * child_span;
            if !self.at_entry(node.get(index as usize), level - 1, child_base)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Records the state of some blocks, within the requested range. Returns whether there is room
    /// for more.
    fn tell(&mut self, base: u64, blocks: u64, mapped: bool) -> bool {
        let state = if mapped { LbaState::Mapped } else { LbaState::Deallocated };
        let range = clip(base, blocks, self.range);
        debug_assert_eq!(range.start, self.next, "extents are consecutive");
        if let Some(last) = self.found.last_mut().filter(|last| last.state == state) {
            last.range.count.0 += range.count.0;
        } else if self.found.len() == self.limit {
            return false;
        } else {
            self.found.push(LbaExtent { range, state });
        }
        self.next = Sector(range.start.0 + range.count.0);
        true
    }
}

/// Returns the part of some blocks that is inside `range`.
fn clip(start: u64, blocks: u64, range: SectorRange) -> SectorRange {
    let sectors = |blocks: u64| blocks.saturating_mul(block::SECTORS_PER_BLOCK);
    let first = sectors(start).max(range.start.0);
    let end = sectors(start.saturating_add(blocks)).min(range.start.0 + range.count.0);
    SectorRange::new(first, end - first)
}
