//! Staging: how a copy is one commit although it must move more data than fits a record.
//!
//! A copy whose source and destination are not aligned alike to 4 KiB can't share blocks. If its
//! data fits a record, the record simply contains it. A longer one, up to 64 MiB, is stored in
//! *parts*, a commit each, as chunks to which nothing refers yet; the last commit, a few bytes per
//! part, maps them all at once. After a crash in between the chunks are still staged, and recovery
//! releases them.
//!
//! Each part is read at its own time, as in a copy by the host; what the destination keeps in its
//! partly covered blocks is read with the last commit, and accepted only if it has not changed.

use std::collections::{BTreeMap, VecDeque};

use block::{BlockCount, BlockNumber, BlockRange, CopySegment, Frame, Sector, VolumeId};
use format::{ChunkId, Keys, MapEntry};

use crate::chunks::asking::Asked;
use crate::edits::classify::{Class, classify};
use crate::edits::copies::origin_of;
use crate::edits::edit::{Edit, Step};
use crate::edits::origins::{Gather, Wanted, add_gather, gather_of};
use crate::edits::rest::Rest;
use crate::tuning::Tuning;
use crate::world::places::PartPlace;

/// A part with more runs than this is stored uncompressed, including zeros, so that it stays one
/// entry.
const PART_RUNS_MAX: usize = 4;

/// A run of blocks whose content is already stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkedRun {
    pub(crate) count: u64,
    /// A hole, zeros or a pattern; or the first of consecutive chunks.
    pub(crate) entry: MapEntry,
}

/// Blocks that are still to be stored.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// The step that will map them.
    step: usize,
    /// The copy's segments up to and including the one that it belongs to.
    segments: usize,
    volume: VolumeId,
    range: BlockRange,
}

/// The parts of an edit.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    segments: Vec<CopySegment>,
    parts: VecDeque<Part>,
    current: Option<Part>,
    place: Option<PartPlace>,
    /// The number of runs of the stored parts.
    named_runs: usize,
    pub(crate) frames: Vec<Frame>,
    pub(crate) classes: Vec<Class>,
    /// The blocks that the last commit needs, while a part is being stored.
    last_wanted: Wanted,
}

impl Edit {
    /// Returns the blocks that must be read before the edit can be submitted, as contiguous runs:
    /// everything that is compared is one run, looked up at one moment, because if it differs
    /// nothing is submitted that could reveal that it changed meanwhile.
    pub(crate) fn wanted_runs(&self) -> Vec<(VolumeId, BlockRange)> {
        let mut runs: Vec<(VolumeId, BlockRange)> = Vec::new();
        for (volume, block) in self.wanted.keys().copied() {
            match runs.last_mut() {
                Some((of, run)) if *of == volume && run.end() == block => run.count.0 += 1,
                _ => runs.push((volume, BlockRange { start: block, count: BlockCount(1) })),
            }
        }
        runs
    }

    /// Adds steps that map `inner` once its parts were stored.
    pub(crate) fn stage(
        &mut self,
        segments: &[CopySegment],
        inner: BlockRange,
        part_blocks_max: u64,
    ) {
        let Some(segment) = segments.last() else { return };
        let volume = segment.destination;
        let mut at = inner.start.0;
        while at < inner.end().0 {
            let count = part_blocks_max.min(inner.end().0 - at);
            let range = BlockRange::new(at, count);
            let part = Part { step: self.steps.len(), segments: segments.len(), volume, range };
            self.staging.parts.push_back(part);
            self.steps.push(Step::Linked { volume, range, runs: Vec::new() });
            at += count;
        }
    }

    /// Sets what all parts need to know.
    pub(crate) fn stage_segments(&mut self, segments: &[CopySegment]) {
        if !self.staging.parts.is_empty() {
            self.staging.segments = segments.to_vec();
        }
    }

    /// Returns whether a part is being stored.
    pub(crate) fn is_staging(&self) -> bool {
        self.staging.current.is_some()
    }

    /// Returns whether a part is being stored, or will be next.
    pub(crate) fn is_to_stage(&self) -> bool {
        self.is_staging() || !self.staging.parts.is_empty()
    }

    /// Returns whether it needs a slot before it continues: for its next part, or for what it moves
    /// with its commit, if that is much.
    pub(crate) fn wants_place(&self, tuning: &Tuning) -> bool {
        let staging = &self.staging;
        if self.is_staging() || staging.place.is_some() {
            return false;
        }
        let copies = !self.copied.is_empty() || matches!(self.rest, Some(Rest::Copy { .. }));
        !staging.parts.is_empty() || copies && self.wanted.len() > tuning.placeless_blocks_max
    }

    /// Puts the next part into a slot, if there is one.
    pub(crate) fn place_in(&mut self, place: Option<PartPlace>) -> bool {
        self.staging.place = place;
        self.staging.place.is_some()
    }

    /// Begins the next part, if there is one and none is in progress.
    pub(crate) fn begin_part(&mut self) {
        if self.is_staging() {
            return;
        }
        let Some(part) = self.staging.parts.pop_front() else { return };
        self.asked = Asked::default();
        let mut wanted: Wanted = BTreeMap::new();
        let segments = &self.staging.segments[..part.segments];
        let first = part.range.start.sector().0;
        for sector in first..part.range.end().sector().0 {
            let (volume, from) = origin_of(segments, (part.volume, Sector(sector)));
            let gather = gather_of(None, sector - first, from);
            add_gather(wanted.entry((volume, from.block())).or_default(), gather);
        }
        self.staging.frames = vec![Frame::zeros(); part.range.count.0 as usize];
        self.staging.classes.clear();
        self.staging.last_wanted = std::mem::replace(&mut self.wanted, wanted);
        self.staging.current = Some(part);
    }

    /// Returns the frame that a gather of a part fills.
    pub(crate) fn staged_frame(&mut self, gather: &Gather) -> Option<&mut Frame> {
        self.staging.frames.get_mut(gather.frame as usize)
    }

    /// Classifies the blocks of the current part.
    pub(crate) fn classify_part(&mut self, keys: &Keys, runs_max: usize) {
        let staging = &mut self.staging;
        // Each later part has at least one run.
        let left = runs_max.saturating_sub(staging.named_runs + staging.parts.len());
        staging.classes = staging.frames.iter().map(|frame| classify(keys, frame)).collect();
        let runs = staging.classes.chunk_by(|a, b| match (a, b) {
            (Class::Data(_), Class::Data(_)) => true,
            (a, b) => a == b,
        });
        if runs.count() > PART_RUNS_MAX.min(left) {
            let sums = staging.frames.iter().map(|frame| keys.fingerprint(&frame[..]));
            staging.classes = sums.map(Class::Data).collect();
        }
    }

    /// Ends the current part, which is in the log: records what maps it, and returns to the last
    /// commit.
    pub(crate) fn end_part(&mut self, runs: Vec<LinkedRun>) {
        let staging = &mut self.staging;
        let Some(part) = staging.current.take() else { return };
        staging.place = None;
        self.wanted = std::mem::take(&mut staging.last_wanted);
        staging.frames.clear();
        staging.classes.clear();
        staging.named_runs += runs.len();
        if let Some(Step::Linked { runs: named, .. }) = self.steps.get_mut(part.step) {
            *named = runs;
        }
    }

    /// Returns the stored chunks to which nothing refers yet: first id and count.
    pub(crate) fn staged_chunks(&self) -> Vec<(ChunkId, u32)> {
        let mut chunks = Vec::new();
        for step in &self.steps {
            let Step::Linked { runs, .. } = step else { continue };
            for run in runs {
                if let MapEntry::Chunk(first) = run.entry {
                    chunks.push((first, run.count as u32));
                }
            }
        }
        chunks
    }
}

/// Returns where the runs of a linked step start.
pub(crate) fn run_starts(
    start: BlockNumber,
    runs: &[LinkedRun],
) -> impl Iterator<Item = (u64, LinkedRun)> + '_ {
    let mut at = start.0;
    runs.iter().map(move |run| {
        let here = at;
        at += run.count;
        (here, *run)
    })
}
