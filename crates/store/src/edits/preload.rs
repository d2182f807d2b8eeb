//! Reading what a change will touch before it is accepted.
//!
//! Entries are applied when their record is durable: one that can't be applied then, because a node
//! or a row can't be read, would end all writing. So what an edit will read is read here first,
//! with no lock held: damage refuses only that edit. A host's edit requests what is not in memory,
//! as much at once as is known, and restarts when it was read (`asking`). Everything examined stays
//! in memory until the entries are applied (`plans`).
//!
//! A copy replaces nodes that were read: see `grafts` for which edits wait for that, and which are
//! planned again.

use std::collections::BTreeSet;
use std::ops::Range;

use block::{BlockNumber, BlockRange, VolumeError, VolumeId};
use format::map::{Fanout, LEVEL_MAX};
use format::page::ROWS_PER_PAGE;
use format::{ChunkId, ChunkRow, Entry, MapEntry, NodeId, VolumeRow};

use crate::StoreError;
use crate::edits::edit::{Edit, Step};
use crate::edits::entries::{entry_runs, repeated};
use crate::edits::put::Put;
use crate::edits::stage::run_starts;
use crate::nodes::node_of;
use crate::tuning::NODE_WORK;
use crate::world::view::View;

/// Stands for the ids of new chunks: no existing chunk comes right before it.
const NEW_CHUNKS: ChunkId = ChunkId(1 << 62);

/// The cost of one end of a range that is set: the descent to it, creating a node at each level
/// where the old content was uniform.
const END_WORK: u64 = 128;

/// Returns the cost of setting blocks with a descent of their own. If they are alike, whole nodes
/// between the ends become one entry.
fn run_work(blocks: u64, alike: bool) -> u64 {
    NODE_WORK + if alike { blocks.min(2 * END_WORK) } else { blocks }
}

/// The first block below which something can't be read.
pub(crate) type Unreadable = BlockNumber;

/// Reads what an edit will touch, and records its cost. One that is done in pieces is cut to what
/// one commit may cost. Returns `false` if it is too much, and must be done in pieces.
///
/// # Errors
/// [`VolumeError::Medium`] with the first sector that can't be read because of it.
///
/// If metadata was requested, neither the result nor the error counts.
pub(crate) fn edit(view: View<'_>, edit: &mut Edit) -> Result<bool, VolumeError> {
    let mut looker = Looker::new(view);
    let budget = view.medium.tuning.commit_work;
    let pieces = edit.is_in_pieces().then(|| edit.is_taken_from_its_end());
    let (mut work, mut cut) = (0, None);
    for (index, step) in edit.steps.iter().enumerate() {
        let left = budget.saturating_sub(work);
        let broken = looker.broken_up(step, &edit.steps[..index]);
        if !broken.map_err(|at| VolumeError::Medium { sector: at.sector() })? && pieces.is_none() {
            return Ok(false);
        }
        let (cost, enough) = looker
            .step(step, left, pieces)
            .map_err(|at| VolumeError::Medium { sector: at.sector() })?;
        work += cost;
        match (enough, pieces) {
            (None, _) => {}
            (Some(_), None) => return Ok(false),
            (Some(blocks), Some(_)) => cut = Some(blocks),
        }
    }
    edit.work = work + looker.shared_entries;
    // What was not examined yet must not be left to the next piece.
    if let Some(blocks) = cut.filter(|_| !view.is_waiting()) {
        edit.cut(blocks);
    }
    Ok(true)
}

/// Reads what a change by an administrator will touch.
///
/// # Errors
/// [`VolumeError::Medium`], as [`edit`].
pub(crate) fn entries(view: View<'_>, entries: &[Entry]) -> Result<(), VolumeError> {
    let mut looker = Looker::new(view);
    for entry in entries {
        looker.entry(entry).map_err(|at| VolumeError::Medium { sector: at.sector() })?;
    }
    Ok(())
}

/// Returns whether the rows of consecutive chunks can be read now.
pub(crate) fn are_rows_there(view: View<'_>, first: ChunkId, count: u32) -> bool {
    let entry = MapEntry::Chunk(first);
    let found = Looker::new(view).named_rows(entry, u64::from(count.max(1)), BlockNumber(0));
    found.is_ok() && !view.is_waiting()
}

/// Reads the row of a chunk, and of its original.
pub(crate) fn row_of(view: View<'_>, chunk: ChunkId) -> Result<(), Unreadable> {
    Looker::new(view).block_row(MapEntry::Chunk(chunk), BlockNumber(0))
}

/// Reads what freeing a node will touch, except what is below its children.
pub(crate) fn freeing(view: View<'_>, id: NodeId) -> Result<(), StoreError> {
    let (node, _) = view.nodes.find(view.medium, id)?;
    view.nodes.row(view.medium, id)?;
    let mut looker = Looker::new(view);
    let readable = node.entries().try_for_each(|entry| looker.row(entry, BlockNumber(0)));
    readable.map_err(|_| StoreError::Damaged(format!("node {} can't be freed", id.0)))
}

/// The blocks that are set, among those that an entry spans.
#[derive(Clone, Copy)]
struct Blocks {
    start: u64,
    end: u64,
    /// An entry that spans this many levels is replaced as a whole, and not examined.
    whole_level: u8,
}

impl Blocks {
    /// Returns which entries of a node of `level`, from block `base` on, span some of them.
    fn children(self, base: u64, level: u8, fanout: Fanout) -> Range<u64> {
        let span = fanout.span_blocks(level - 1);
        let first = self.start.saturating_sub(base) / span;
        first..self.end.saturating_sub(base).div_ceil(span).min(fanout.entries() as u64)
    }
}

pub(crate) struct Looker<'a> {
    pub(super) world: View<'a>,
    /// The last page of node rows: neighbors share one.
    node_page: Option<u64>,
    /// The last chunk whose row was read: a repeated block has many entries.
    chunk: Option<ChunkId>,
    /// Nodes to which the edit itself adds a reference: what it sets in them afterwards copies
    /// them.
    pub(super) grafted: BTreeSet<NodeId>,
    /// The last shared nodes on the path.
    shared: [Option<NodeId>; LEVEL_MAX as usize + 1],
    /// The number of entries of these: each gets another reference when a node is copied.
    shared_entries: u64,
}

impl<'a> Looker<'a> {
    pub(super) fn new(world: View<'a>) -> Self {
        let shared = [None; LEVEL_MAX as usize + 1];
        let (node_page, chunk, grafted) = Default::default();
        Self { world, node_page, chunk, grafted, shared, shared_entries: 0 }
    }

    /// Returns what was read, if it was; nothing if it was requested, and more may be.
    pub(crate) fn found<T>(
        &self,
        read: Result<T, StoreError>,
        at: BlockNumber,
    ) -> Result<Option<T>, Unreadable> {
        match read {
            Ok(found) => Ok(Some(found)),
            Err(error) if self.world.may_look_on(&error) => Ok(None),
            Err(_) => Err(at),
        }
    }

    pub(crate) fn fanout(&self) -> Fanout {
        self.world.medium.tuning.fanout
    }

    /// Returns the cost of a step, and how many blocks suffice, if not all do. `pieces`: whether it
    /// may be cut, and whether its end is taken then.
    fn step(
        &mut self,
        step: &Step,
        budget: u64,
        pieces: Option<bool>,
    ) -> Result<(u64, Option<u64>), Unreadable> {
        if let Step::Copy { source, from, destination, to } = step {
            let (source, destination) = ((*source, from.0), (*destination, to.start.0));
            return self.copy(source, destination, to.count.0, budget, pieces);
        }
        Ok((self.other_step(step)?, None))
    }

    fn other_step(&mut self, step: &Step) -> Result<u64, Unreadable> {
        match step {
            Step::Put(put) => self.put(put),
            Step::Fill { volume, range, .. } | Step::Repeat { volume, range, .. } => {
                self.set(*volume, *range, LEVEL_MAX)?;
                Ok(2 * END_WORK)
            }
            Step::Linked { volume, range, runs } => {
                let mut work = 0;
                for (start, run) in run_starts(range.start, runs) {
                    let alike = !matches!(run.entry, MapEntry::Chunk(_));
                    let whole_level = if alike { LEVEL_MAX } else { 0 };
                    self.set(*volume, BlockRange::new(start, run.count), whole_level)?;
                    self.named_rows(run.entry, run.count, BlockNumber(start))?;
                    work += run_work(run.count, alike);
                }
                Ok(work)
            }
            Step::Copy { .. } => Ok(0),
        }
    }

    /// Returns the cost of a put. Its first run, and as many blocks as it stores, are free: the
    /// room in a record bounds these. What it repeats or finds in the pool takes no room.
    fn put(&mut self, put: &Put) -> Result<u64, Unreadable> {
        let (mut at, mut work) = (put.start.0, 0);
        // The chunks that it refers to are examined when they are pinned (`Writer::pin_known`).
        for run in entry_runs(&put.entries(NEW_CHUNKS)) {
            let alike = repeated(run).is_some();
            let range = BlockRange::new(at, run.len() as u64);
            self.set(put.volume, range, if alike { LEVEL_MAX } else { 0 })?;
            at += run.len() as u64;
            work += run_work(run.len() as u64, alike);
        }
        Ok(work.saturating_sub(NODE_WORK + put.stored_blocks() as u64))
    }

    pub(super) fn entry(&mut self, entry: &Entry) -> Result<(), Unreadable> {
        match entry {
            Entry::VolumeCreate { volume, .. } => self.volume_row(*volume),
            Entry::VolumeResize { volume, size_blocks } => {
                let Some(map) = self.world.map_of(*volume) else { return Ok(()) };
                self.root_row(&map)?;
                let cut = map.size_blocks.saturating_sub(*size_blocks);
                self.set(*volume, BlockRange::new(*size_blocks, cut), LEVEL_MAX)
            }
            Entry::VolumeDestroy { volume } => self.volume(*volume),
            Entry::VolumeClone { source, volume, .. }
            | Entry::VolumeOverwrite { source, volume } => {
                self.volume(*source)?;
                self.volume(*volume)
            }
            Entry::VolumeHandling { volume, .. } => self.volume_row(*volume),
            Entry::Alias { chunk, original } => [*chunk, *original]
                .into_iter()
                .try_for_each(|id| self.block_row(MapEntry::Chunk(id), BlockNumber(0))),
            _ => Ok(()),
        }
    }

    /// Reads the row of a volume, which need not exist yet, and that of its root.
    fn volume(&mut self, volume: VolumeId) -> Result<(), Unreadable> {
        self.volume_row(volume)?;
        match self.world.map_of(volume) {
            Some(map) => self.root_row(&map),
            None => Ok(()),
        }
    }

    fn volume_row(&self, volume: VolumeId) -> Result<(), Unreadable> {
        let row = self.world.volume_table.get(self.world.medium, volume.0, |_| ());
        self.found(row, BlockNumber(0)).map(drop)
    }

    fn root_row(&mut self, map: &VolumeRow) -> Result<(), Unreadable> {
        self.node_row(map.root, BlockNumber(0))
    }

    pub(super) fn copy(
        &mut self,
        (source, start): (VolumeId, u64),
        (destination, to): (VolumeId, u64),
        count: u64,
        budget: u64,
        pieces: Option<bool>,
    ) -> Result<(u64, Option<u64>), Unreadable> {
        let Some(map) = self.world.map_of(source) else { return Ok((0, None)) };
        let taken = self.take(&map, start..start + count, to, budget, pieces)?;
        for run in &taken.runs {
            self.set(destination, BlockRange::new(run.start, run.count), run.whole_level)?;
        }
        Ok((taken.work, (taken.blocks < count).then_some(taken.blocks)))
    }

    /// Examines blocks of a volume that are set.
    pub(crate) fn set(
        &mut self,
        volume: VolumeId,
        range: BlockRange,
        whole_level: u8,
    ) -> Result<(), Unreadable> {
        let Some(map) = self.world.map_of(volume) else { return Ok(()) };
        if range.count.0 == 0 {
            return Ok(());
        }
        self.volume_row(volume)?;
        let blocks = Blocks { start: range.start.0, end: range.end().0, whole_level };
        self.target(map.root, map.level, 0, blocks, false)
    }

    /// Examines what is set in an entry that spans `level`, from block `base` on. `shared`:
    /// something above it has several references, and will be copied.
    fn target(
        &mut self,
        entry: MapEntry,
        level: u8,
        base: u64,
        blocks: Blocks,
        shared: bool,
    ) -> Result<(), Unreadable> {
        let at = BlockNumber(base.max(blocks.start));
        let MapEntry::Node(id) = entry else { return self.block_row(entry, at) };
        let source = self.world.medium;
        let row = self.world.nodes.row(source, id);
        let Some(row) = self.found(row, at)? else { return Ok(()) };
        let whole = blocks.start <= base && blocks.end >= base + self.world.span_blocks(level);
        if whole && level <= blocks.whole_level {
            return Ok(());
        }
        let node = match self.world.nodes.get(source, id, level) {
            Ok(node) => node,
            // A leaf of which nothing remains need not be readable.
            Err(error) if whole && level == 1 && !matches!(error, StoreError::Absent) => {
                return Ok(());
            }
            Err(error) if self.world.may_look_on(&error) => return Ok(()),
            Err(_) => return Err(at),
        };
        #[cfg(test)]
        self.world.call_hook();
        let shared = shared || row.reference_count > 1 || self.grafted.contains(&id);
        let set = blocks.children(base, level, self.fanout());
        let all = shared && self.shared[usize::from(level)].replace(id) != Some(id);
        let entries = self.fanout().entries() as u64;
        self.shared_entries += if all { entries } else { 0 };
        let touched = if all { 0..entries } else { set.clone() };
        for index in touched {
            let child = node.get(index as usize);
            let start = base + index * self.world.span_blocks(level - 1);
            let at = BlockNumber(start.max(blocks.start));
            match set.contains(&index) && level > 1 {
                true => self.target(child, level - 1, start, blocks, shared)?,
                false => self.row(child, at)?,
            }
        }
        Ok(())
    }

    /// Reads the row of what an entry refers to.
    pub(crate) fn row(&mut self, entry: MapEntry, at: BlockNumber) -> Result<(), Unreadable> {
        match entry {
            MapEntry::Node(_) => self.node_row(entry, at),
            entry => self.block_row(entry, at),
        }
    }

    /// Reads the row of the chunk that an entry refers to, if it does. If that is an alias, also
    /// the row of its original: the last release of the alias releases the original.
    fn block_row(&mut self, entry: MapEntry, at: BlockNumber) -> Result<(), Unreadable> {
        let MapEntry::Chunk(mut id) = entry else { return Ok(()) };
        if self.chunk == Some(id) {
            return Ok(());
        }
        let named = id;
        loop {
            let original = |raw: &[u8]| ChunkRow::decode(raw).and_then(|row| row.original);
            let row = self.world.chunks.get(self.world.medium, id.0, original);
            match self.found(row, at)?.flatten() {
                // Originals are older, so this terminates with any content of the rows.
                Some(original) if original < id => id = original,
                _ => break,
            }
        }
        self.chunk = Some(named);
        Ok(())
    }

    /// Reads the rows of consecutive chunks, to the first of which an entry refers.
    pub(super) fn named_rows(
        &mut self,
        first: MapEntry,
        count: u64,
        at: BlockNumber,
    ) -> Result<(), Unreadable> {
        let MapEntry::Chunk(ChunkId(first)) = first else { return Ok(()) };
        for page in first / ROWS_PER_PAGE..=(first + count - 1) / ROWS_PER_PAGE {
            let row = self.world.chunks.get(self.world.medium, page * ROWS_PER_PAGE, |_| ());
            self.found(row, at)?;
        }
        Ok(())
    }

    /// Reads the row of the node that an entry refers to, if it does.
    fn node_row(&mut self, entry: MapEntry, at: BlockNumber) -> Result<(), Unreadable> {
        let Some(NodeId(id)) = node_of(entry) else { return Ok(()) };
        let page = Some(id / ROWS_PER_PAGE);
        if self.node_page != page {
            let rows = &self.world.nodes.table;
            let row = rows.get(self.world.medium, id, |_| ());
            self.found(row, at)?;
            self.node_page = page;
        }
        Ok(())
    }
}
