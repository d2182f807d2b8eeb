//! Staging: how a copy is one commit though it must move more data than a record holds.
//!
//! A copy whose source and destination are not aligned alike to 4 KiB can't share blocks. Up to a
//! record's worth it simply brings its blocks along. A longer one, up to 64 MiB, brings them in
//! *parts*, a commit each, as chunks that nothing names yet; the last commit, a few bytes a part,
//! names them all at once. After a crash in between the chunks are staged still, and recovery
//! releases them.
//!
//! Each part is read at its own time, as a copy by the host would be; what the destination keeps
//! in its partly covered blocks is taken with the last commit, and only if it has not changed.

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

/// A part with more runs than this is stored as it is, zeros and all, so that it stays one entry.
const PART_RUNS_MAX: usize = 4;

/// A run of blocks whose content is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LinkedRun {
    pub(crate) count: u64,
    /// A hole, zeros or a pattern; or the first of consecutive chunks.
    pub(crate) entry: MapEntry,
}

/// Blocks that are still to be brought.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// The step that names them in the end.
    step: usize,
    /// The copy's segments up to and with the one that it belongs to.
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
    /// Runs of the parts that were brought.
    named_runs: usize,
    pub(crate) frames: Vec<Frame>,
    pub(crate) classes: Vec<Class>,
    /// What the last commit wants, while a part is brought.
    last_wanted: Wanted,
}

impl Edit {
    /// The blocks that must be read before the edit can be submitted, as runs of neighbours: all
    /// that is compared is one, to be looked up at one moment. Where it differs nothing is
    /// submitted that could show that it changed meanwhile.
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

    /// Adds steps that name `inner` once its parts were brought.
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

    /// What all parts need to know.
    pub(crate) fn stage_segments(&mut self, segments: &[CopySegment]) {
        if !self.staging.parts.is_empty() {
            self.staging.segments = segments.to_vec();
        }
    }

    /// Whether a part is being brought.
    pub(crate) fn is_staging(&self) -> bool {
        self.staging.current.is_some()
    }

    /// Whether a part is being brought, or will be next.
    pub(crate) fn is_to_stage(&self) -> bool {
        self.is_staging() || !self.staging.parts.is_empty()
    }

    /// Whether it needs a place before it goes on: for its next part, or for what it moves with
    /// its commit, if that is much.
    pub(crate) fn wants_place(&self, tuning: &Tuning) -> bool {
        let staging = &self.staging;
        if self.is_staging() || staging.place.is_some() {
            return false;
        }
        let copies = !self.copied.is_empty() || matches!(self.rest, Some(Rest::Copy { .. }));
        !staging.parts.is_empty() || copies && self.wanted.len() > tuning.placeless_blocks_max
    }

    /// Has the next part in a place, if there is one.
    pub(crate) fn place_in(&mut self, place: Option<PartPlace>) -> bool {
        self.staging.place = place;
        self.staging.place.is_some()
    }

    /// Turns to the next part, if there is one and none is under way.
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

    /// The frame that a gather of a part fills.
    pub(crate) fn staged_frame(&mut self, gather: &Gather) -> Option<&mut Frame> {
        self.staging.frames.get_mut(gather.frame as usize)
    }

    /// Looks at the blocks of the part under way.
    pub(crate) fn classify_part(&mut self, keys: &Keys, runs_max: usize) {
        let staging = &mut self.staging;
        // Each part still to come has one run at least.
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

    /// The part under way is in the log: notes what names it, and turns back to the last commit.
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

    /// The chunks that were brought and that nothing names yet: first id and count.
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

/// Where the runs of a linked step start.
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
