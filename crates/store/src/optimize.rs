//! The background pass of reduction: finds what was stored twice, and packs better what is cold.
//!
//! 1. *Twins.* All chunk rows are looked at, in the order of their ids, for fingerprints that come
//!    again. The contents are read and compared; then the younger chunk becomes an alias of the
//!    older one. What fits memory is looked for at once; a pool with more has several rounds, each
//!    for a part of the fingerprints.
//! 2. *Packing.* Segments in which something was compressed by LZ4 are rewritten as reclaim would:
//!    what is live comes to stand together, in groups of eight, compressed by Zstandard.
//!
//! It goes on in small turns ([`Store::optimize_step`]), beside everything else, and what it finds
//! may have changed by the time that it is applied: then nothing happens.

use std::collections::{HashMap, VecDeque};

use format::page::ROWS_PER_PAGE;
use format::{ChunkId, ChunkRow, Codec, Entry, Fingerprint, SegmentState};

use crate::StoreError;
use crate::dedup::is_shareable;
use crate::groups::GroupReader;
use crate::pages::FastState;
use crate::relocate::MOVE_BLOCKS_MAX;
use crate::store::Store;
use crate::verify::{Stored, read_chunk};

/// Row pages that one turn looks at.
const PAGES_PER_STEP: u64 = 8;
/// Fingerprints that are remembered in one round: 48 MiB.
const SEEN_MAX: usize = 1 << 20;

/// How the background pass stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptimizeStatus {
    /// Whether a pass is under way.
    pub running: bool,
    /// Passes that have come to their end since the store was opened.
    pub passes: u64,
    /// Chunks that were found to be stored twice, in all passes.
    pub aliased_chunks: u64,
    /// Segments that were rewritten, in all passes.
    pub rewritten_segments: u64,
}

/// What a pass is at.
#[derive(Default)]
pub(crate) struct Optimizer {
    pub(crate) status: OptimizeStatus,
    stage: Option<Stage>,
}

enum Stage {
    Twins(Twins),
    Packing { segments: VecDeque<u32>, current: VecDeque<Stored> },
}

/// A part of the fingerprints: those that leave this remainder.
#[derive(Clone, Copy)]
struct Part {
    remainder: u64,
    divisor: u64,
}

struct Twins {
    part: Part,
    /// Parts for further rounds.
    later: Vec<Part>,
    page: u64,
    seen: HashMap<Fingerprint, ChunkId, FastState>,
    seen_max: usize,
}

impl Part {
    const ALL: Part = Part { remainder: 0, divisor: 1 };

    fn contains(self, fingerprint: Fingerprint) -> bool {
        let all = u128::from_le_bytes(fingerprint.0);
        (all >> 64) as u64 % self.divisor == self.remainder
    }

    /// Both halves of it.
    fn halves(self) -> [Part; 2] {
        let Part { remainder, divisor } = self;
        [
            Part { remainder, divisor: divisor * 2 },
            Part { remainder: remainder + divisor, divisor: divisor * 2 },
        ]
    }
}

impl Twins {
    fn new(part: Part, later: Vec<Part>, seen_max: usize) -> Self {
        Self { part, later, page: 0, seen: HashMap::default(), seen_max }
    }

    /// A chunk that is stored; the older one with its fingerprint, if there is one.
    fn look(&mut self, id: ChunkId, row: &ChunkRow) -> Option<ChunkId> {
        if !self.part.contains(row.fingerprint) {
            return None;
        }
        if let Some(original) = self.seen.get(&row.fingerprint) {
            return Some(*original);
        }
        if self.seen.len() >= self.seen_max {
            let [now, later] = self.part.halves();
            self.part = now;
            self.later.push(later);
            self.seen.retain(|fingerprint, _| now.contains(*fingerprint));
        }
        if self.part.contains(row.fingerprint) {
            self.seen.insert(row.fingerprint, id);
        }
        None
    }
}

impl Store {
    /// Begins a pass, if none is under way.
    pub fn optimize(&self) {
        self.optimize_with(SEEN_MAX);
    }

    pub(crate) fn optimize_with(&self, seen_max: usize) {
        let mut optimizer = self.optimizing.lock();
        if optimizer.stage.is_none() {
            optimizer.stage = Some(Stage::Twins(Twins::new(Part::ALL, Vec::new(), seen_max)));
        }
    }

    /// How the background pass stands.
    pub fn optimize_status(&self) -> OptimizeStatus {
        let optimizer = self.optimizing.lock();
        OptimizeStatus { running: optimizer.stage.is_some(), ..optimizer.status }
    }

    /// One turn of the pass that is under way. Whether more is left. Waits for a commit.
    ///
    /// # Errors
    /// Those of the store. The pass is over then, and not counted.
    pub fn optimize_step(&self) -> Result<bool, StoreError> {
        let mut optimizer = self.optimizing.lock();
        let optimizer = &mut *optimizer;
        let Some(stage) = optimizer.stage.take() else { return Ok(false) };
        optimizer.stage = match stage {
            Stage::Twins(twins) => self.find_twins(twins, &mut optimizer.status)?,
            Stage::Packing { segments, current } => {
                self.pack_segments(segments, current, &mut optimizer.status)?
            }
        };
        let more = optimizer.stage.is_some();
        optimizer.status.passes += u64::from(!more);
        Ok(more)
    }

    fn find_twins(
        &self,
        mut twins: Twins,
        status: &mut OptimizeStatus,
    ) -> Result<Option<Stage>, StoreError> {
        // What is found now keeps its place while the token is held.
        let token = self.world.reader_token();
        let mut pairs: Vec<(Stored, ChunkId)> = Vec::new();
        let end = self.writer.lock().state.next_chunk.div_ceil(ROWS_PER_PAGE);
        for page in twins.page..end.min(twins.page + PAGES_PER_STEP) {
            let first = page * ROWS_PER_PAGE;
            // A page that can't be read is told by whoever needs it.
            let _ = self.world.chunks.rows_of_page(&self.world.medium, first, |at, raw| {
                let id = ChunkId(first + at);
                let stored = ChunkRow::decode(raw).filter(may_merge);
                if let Some(row) = stored
                    && let Some(original) = twins.look(id, &row)
                {
                    pairs.push((Stored { id, row }, original));
                }
            });
            twins.page = page + 1;
        }
        let entries = self.compare_twins(&pairs);
        drop(token);
        status.aliased_chunks += entries.len() as u64;
        if !entries.is_empty() {
            self.commit_entries(entries)?;
        }
        if twins.page < end {
            return Ok(Some(Stage::Twins(twins)));
        }
        let mut later = std::mem::take(&mut twins.later);
        Ok(Some(match later.pop() {
            Some(part) => Stage::Twins(Twins::new(part, later, twins.seen_max)),
            None => Stage::Packing { segments: self.log_segments(), current: VecDeque::new() },
        }))
    }

    /// The pairs whose contents are the same, as entries.
    fn compare_twins(&self, pairs: &[(Stored, ChunkId)]) -> Vec<Entry> {
        let world = &self.world;
        let mut readers = [GroupReader::default(), GroupReader::default()];
        let mut entries = Vec::new();
        for (chunk, original) in pairs {
            let other = world.chunks.get(&world.medium, original.0, ChunkRow::decode);
            let Some(other) = other.ok().flatten().filter(may_merge) else { continue };
            let [own_reader, other_reader] = &mut readers;
            let own = read_chunk(world, own_reader, &chunk.row);
            if own.is_ok() && own == read_chunk(world, other_reader, &other) {
                entries.push(Entry::Alias { chunk: chunk.id, original: *original });
            }
        }
        entries
    }

    /// The segments that hold data and that recovery would not read now.
    fn log_segments(&self) -> VecDeque<u32> {
        let writer = self.writer.lock();
        let rows = writer.state.segments.rows();
        rows.filter(|(segment, row)| {
            row.state == SegmentState::Log
                && row.live_units > 0
                && !writer.log_segments.contains(segment)
                && !writer.unreclaimable.contains(segment)
        })
        .map(|(segment, _)| segment)
        .collect()
    }

    fn pack_segments(
        &self,
        mut segments: VecDeque<u32>,
        mut current: VecDeque<Stored>,
        status: &mut OptimizeStatus,
    ) -> Result<Option<Stage>, StoreError> {
        if current.is_empty() {
            let Some(segment) = segments.pop_front() else {
                self.checkpoint()?;
                return Ok(None);
            };
            let live = self.live_chunks(segment)?;
            if live.iter().any(|chunk| chunk.row.codec == Codec::Lz4) {
                status.rewritten_segments += 1;
                current = live.into();
            }
            return Ok(Some(Stage::Packing { segments, current }));
        }
        let count = current.len().min(MOVE_BLOCKS_MAX);
        let batch: Vec<Stored> = current.drain(..count).collect();
        if !self.move_chunks(&batch)? {
            // There is no room to move anything to: the next pass may have more luck.
            return Ok(None);
        }
        if current.is_empty() {
            self.free_emptied(self.dead_segments_wanted())?;
        }
        Ok(Some(Stage::Packing { segments, current }))
    }
}

/// Whether a chunk can become an alias, or the original of one.
fn may_merge(row: &ChunkRow) -> bool {
    row.original.is_none() && !row.place.is_none() && is_shareable(row)
}
