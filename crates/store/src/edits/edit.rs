//! Edits: the plan of a request that changes something.
//!
//! A request becomes steps in whole blocks, and *gathers*: sectors of a step's blocks that come
//! from the current content of volumes (the edges of a write that is not aligned to 4 KiB, a copy
//! between different alignments, everything that COMPARE AND WRITE compares). The blocks of gathers
//! are read first; the writer takes the edit only if none of their map entries has changed
//! meanwhile. Chunks never change, so an unchanged entry means unchanged content; otherwise the
//! blocks are read again.

use std::collections::BTreeMap;

use block::request::limits::{TRANSFER_BYTES_MAX, UNMAP_RANGES_MAX};
use block::{
    BlockCount, BlockNumber, BlockRange, CopySegment, DataOut, Frame, FrameMut, SECTORS_PER_BLOCK,
    Sector, SectorCount, SectorRange, VolumeError, VolumeId, VolumeRequest,
};
use format::{Fingerprint, Handling, Keys, MapEntry};
use smallvec::SmallVec;

use crate::chunks::asking::Asked;
use crate::edits::classify::uniform_entry;
use crate::edits::compare::Compare;
use crate::edits::entries::contains;
use crate::edits::origins::Wanted;
use crate::edits::put::Put;
use crate::edits::rest::{Rest, UNMAP_PIECE_RANGES};
use crate::edits::stage::{LinkedRun, Staging};
use crate::tuning::Tuning;

/// One step of an edit, in whole blocks.
#[derive(Debug)]
pub(crate) enum Step {
    /// Sets blocks to this data.
    Put(Put),
    /// Sets blocks to a hole, zeros or a pattern.
    Fill { volume: VolumeId, range: BlockRange, entry: MapEntry },
    /// Sets all blocks to this one.
    Repeat {
        volume: VolumeId,
        range: BlockRange,
        frame: Frame,
        fingerprint: Fingerprint,
        handling: Handling,
    },
    /// Sets blocks to what was staged for them.
    Linked { volume: VolumeId, range: BlockRange, runs: Vec<LinkedRun> },
    /// Sets blocks to the content of others.
    Copy { source: VolumeId, from: BlockNumber, destination: VolumeId, to: BlockRange },
}

impl Step {
    /// Returns what it changes.
    pub(crate) fn target(&self) -> (VolumeId, BlockRange) {
        match self {
            Self::Put(put) => (put.volume, put.range()),
            Self::Fill { volume, range, .. }
            | Self::Repeat { volume, range, .. }
            | Self::Linked { volume, range, .. } => (*volume, *range),
            Self::Copy { destination, to, .. } => (*destination, *to),
        }
    }
}

/// The plan of a request.
#[derive(Debug, Default)]
pub(crate) struct Edit {
    pub(crate) steps: SmallVec<[Step; 1]>,
    pub(crate) fua: bool,
    pub(crate) compare: Option<Compare>,
    /// The map entries of the wanted blocks when they were read.
    pub(crate) expectations: Vec<(VolumeId, BlockNumber, MapEntry)>,
    /// The blocks that must be read, with the sectors that are taken from each.
    pub(crate) wanted: Wanted,
    pub(crate) staging: Staging,
    /// The metadata that was read for it.
    pub(crate) asked: Asked,
    /// The number of the plan with which everything that it touches was examined (`plans`).
    pub(crate) plan: u64,
    /// [`crate::world::World::grafts`] when everything that it touches was read.
    pub(crate) grafts_seen: u64,
    /// [`crate::world::World::applied`] at the same time.
    pub(crate) applied_seen: u64,
    /// The cost of applying it, as far as that depends on what it finds: see `take`.
    pub(crate) work: u64,
    /// The segments of a copy that is one commit, or may still be.
    pub(super) copied: Vec<CopySegment>,
    /// The rest of the request, if it is done in pieces.
    pub(super) rest: Option<Rest>,
    /// Its wait for space: see `starved`.
    pub(crate) wait: Option<crate::space::need::Wait>,
    /// The ranges in the host's request, except for a copy.
    pub(super) named: SmallVec<[SectorRange; 1]>,
}

/// The sizes of volumes, for checking ranges.
pub(crate) trait Sizes {
    /// Returns the size of a volume, or why there is none.
    fn size(&self, volume: VolumeId) -> Result<SectorCount, VolumeError>;
    /// Returns the limits of an edit, and of a part of one.
    fn tuning(&self) -> &Tuning;
}

impl Edit {
    /// Plans a request that changes something.
    pub(crate) fn plan(request: VolumeRequest, sizes: &dyn Sizes) -> Result<Edit, VolumeError> {
        match request {
            VolumeRequest::Write { volume, range, data, fua } => {
                let mut edit = Edit { fua, ..Edit::default() };
                edit.check(volume, range, sizes)?;
                edit.put(volume, range, data)?;
                Ok(edit)
            }
            VolumeRequest::CompareAndWrite { volume, range, expected, data, fua, .. } => {
                let mut edit = Edit { fua, ..Edit::default() };
                edit.check(volume, range, sizes)?;
                if range.bytes() != Some(expected.len() as u64) {
                    return Err(VolumeError::TooLong);
                }
                edit.put(volume, range, data)?;
                for block in blocks_of(range.covering_blocks()) {
                    edit.wanted.entry((volume, block)).or_default();
                }
                edit.compare = Some(Compare { volume, range, expected, compared: None });
                Ok(edit)
            }
            VolumeRequest::Zero { volume, range, fua } => {
                let mut edit = Edit { fua, ..Edit::default() };
                edit.check(volume, range, sizes)?;
                edit.fill(volume, range, MapEntry::Zero, &Frame::zeros());
                Ok(edit)
            }
            VolumeRequest::Fill { volume, range, pattern, fua } => {
                let mut edit = Edit { fua, ..Edit::default() };
                edit.check(volume, range, sizes)?;
                match uniform_entry(&pattern) {
                    Some(entry) => edit.fill(volume, range, entry, &pattern),
                    None => edit.repeat(volume, range, &pattern),
                }
                Ok(edit)
            }
            VolumeRequest::Unmap { volume, ranges } => {
                let mut edit = Edit::default();
                ranges.iter().try_for_each(|range| edit.check(volume, *range, sizes))?;
                if ranges.len() > UNMAP_RANGES_MAX {
                    return Err(VolumeError::TooLong);
                }
                let ranges = merge(ranges);
                if ranges.len() > UNMAP_PIECE_RANGES {
                    edit.rest = Some(Rest::Unmap { volume, ranges: ranges.into(), piece: 0 });
                } else {
                    edit.unmap(volume, ranges.into_iter());
                }
                Ok(edit)
            }
            VolumeRequest::Copy { segments } => Edit::plan_copy(&segments, sizes),
            _ => Err(VolumeError::TooLong),
        }
    }

    pub(crate) fn check(
        &mut self,
        volume: VolumeId,
        range: SectorRange,
        sizes: &dyn Sizes,
    ) -> Result<(), VolumeError> {
        self.named.push(range);
        if range.fits(sizes.size(volume)?) { Ok(()) } else { Err(VolumeError::OutOfRange) }
    }

    /// Adds a step that writes `data`; sectors of the edge blocks that it does not cover are
    /// gathered from the volume itself.
    fn put(
        &mut self,
        volume: VolumeId,
        range: SectorRange,
        data: DataOut,
    ) -> Result<(), VolumeError> {
        let bytes = range.bytes().unwrap_or(u64::MAX);
        if bytes > TRANSFER_BYTES_MAX || bytes != data.len() as u64 {
            return Err(VolumeError::TooLong);
        }
        if range.is_empty() {
            return Ok(());
        }
        let phase = range.start.offset_in_block_bytes();
        let data = if data.phase() == phase { data } else { data.split(0, bytes as usize, phase) };
        let frames = data.into_frames().0.into_iter().map(FrameMut::freeze).collect();
        let blocks = range.covering_blocks();
        self.steps.push(Step::Put(Put::new(volume, blocks.start, frames)));
        self.gather_edges(volume, range, blocks);
        Ok(())
    }

    /// Splits a range into its whole blocks and the partial ones at its ends.
    pub(crate) fn split_edges(range: SectorRange) -> (Vec<SectorRange>, BlockRange) {
        let end = range.start.0 + range.count.0;
        let first = range.start.0.div_ceil(SECTORS_PER_BLOCK);
        let last = end / SECTORS_PER_BLOCK;
        if first > last {
            return (vec![range], BlockRange::new(first, 0));
        }
        let mut edges = Vec::new();
        let (inner_start, inner_end) = (first * SECTORS_PER_BLOCK, last * SECTORS_PER_BLOCK);
        if range.start.0 < inner_start {
            edges.push(SectorRange::new(range.start.0, inner_start - range.start.0));
        }
        if inner_end < end {
            edges.push(SectorRange::new(inner_end, end - inner_end));
        }
        (edges, BlockRange::new(first, last - first))
    }

    fn fill_edges(&mut self, volume: VolumeId, edges: &[SectorRange], pattern: &Frame) {
        for &edge in edges {
            let blocks = edge.covering_blocks();
            let frames = vec![FrameMut::from_bytes(&pattern[..]).freeze()];
            self.steps.push(Step::Put(Put::new(volume, blocks.start, frames)));
            self.gather_edges(volume, edge, blocks);
        }
    }

    fn fill(&mut self, volume: VolumeId, range: SectorRange, entry: MapEntry, pattern: &Frame) {
        if range.is_empty() {
            return;
        }
        let (edges, range) = Self::split_edges(range);
        if range.count.0 > 0 {
            self.steps.push(Step::Fill { volume, range, entry });
        }
        self.fill_edges(volume, &edges, pattern);
    }

    /// Several ranges may each cover a part of one block: the rest of the block is gathered once.
    pub(crate) fn unmap(&mut self, volume: VolumeId, ranges: impl Iterator<Item = SectorRange>) {
        let mut partial: BTreeMap<BlockNumber, u8> = BTreeMap::new();
        for range in ranges {
            let (edges, range) = Self::split_edges(range);
            if range.count.0 > 0 {
                self.steps.push(Step::Fill { volume, range, entry: MapEntry::Hole });
            }
            for edge in edges {
                for sector in edge.start.0..edge.start.0 + edge.count.0 {
                    let mask = partial.entry(Sector(sector).block()).or_default();
                    *mask |= 1 << (sector % SECTORS_PER_BLOCK);
                }
            }
        }
        for (block, mask) in partial {
            let range = BlockRange { start: block, count: BlockCount(1) };
            if mask == u8::MAX {
                self.steps.push(Step::Fill { volume, range, entry: MapEntry::Hole });
                continue;
            }
            let frames = vec![FrameMut::zeroed().freeze()];
            self.steps.push(Step::Put(Put::new(volume, block, frames)));
            for at in (0..SECTORS_PER_BLOCK).filter(|at| mask & 1 << at == 0) {
                self.gather_sector(at, (volume, Sector(block.sector().0 + at)));
            }
        }
    }

    fn repeat(&mut self, volume: VolumeId, range: SectorRange, pattern: &Frame) {
        if range.is_empty() {
            return;
        }
        let (edges, range) = Self::split_edges(range);
        if range.count.0 > 0 {
            self.steps.push(Step::Repeat {
                volume,
                range,
                frame: pattern.clone(),
                fingerprint: Fingerprint::default(),
                handling: Handling::default(),
            });
        }
        self.fill_edges(volume, &edges, pattern);
    }

    /// Returns whether blocks must be read.
    pub(crate) fn wants_blocks(&self) -> bool {
        !self.wanted.is_empty()
    }

    /// Detects zeros and patterns, and fingerprints the rest: the front end's part of the work.
    pub(crate) fn classify(&mut self, keys: &Keys, handling: impl Fn(VolumeId) -> Handling) {
        for step in &mut self.steps {
            match step {
                Step::Put(put) if !put.is_classified() => {
                    put.classify(keys, handling(put.volume));
                }
                Step::Repeat { volume, frame, fingerprint, handling: own, .. } => {
                    *fingerprint = keys.fingerprint(&frame[..]);
                    *own = handling(*volume);
                }
                _ => {}
            }
        }
    }

    /// Converts an error for the host: for an unreadable block, the first of its sectors that the
    /// host has requested.
    pub(crate) fn told(&self, error: VolumeError) -> VolumeError {
        let VolumeError::Medium { sector } = error else { return error };
        let concerned = |range: &&SectorRange| contains(range.covering_blocks(), sector.block());
        let first = self.named.iter().find(concerned).map_or(sector, |range| range.start);
        VolumeError::Medium { sector: sector.max(first) }
    }
}

pub(crate) fn blocks_of(range: BlockRange) -> impl Iterator<Item = BlockNumber> {
    (range.start.0..range.end().0).map(BlockNumber)
}

/// Sorts ranges, and merges those that touch or overlap.
fn merge(mut ranges: Vec<SectorRange>) -> Vec<SectorRange> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<SectorRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        let end = range.start.0 + range.count.0;
        match merged.last_mut() {
            Some(last) if range.start.0 <= last.start.0 + last.count.0 => {
                last.count.0 = last.count.0.max(end - last.start.0);
            }
            _ => merged.push(range),
        }
    }
    merged
}
