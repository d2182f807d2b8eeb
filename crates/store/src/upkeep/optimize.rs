//! The background pass of reduction: finds duplicates, and recompresses cold data.
//!
//! 1. *Twins.* All chunk rows are examined, in the order of their ids, for repeated fingerprints.
//!    The contents are read and compared; then the younger chunk becomes an alias of the older one.
//!    What fits in memory is examined at once; a larger pool takes several rounds, each for a part
//!    of the fingerprints.
//! 2. *Packing.* Segments with data compressed by LZ4 are rewritten as by reclaim: live data is
//!    placed together, in groups of eight, compressed by Zstandard. So are segments in which a
//!    block that was stored uncompressed would be shorter now: up to 1,024 of these are read, for
//!    each segment once since the store was opened.
//!
//! The pass runs in small turns ([`Store::optimize_step`]), in parallel with everything else, and
//! what it finds may have changed by the time it is applied: then nothing happens.

use std::collections::{HashMap, VecDeque};

use block::VolumeError;
use format::page::ROWS_PER_PAGE;
use format::{ChunkId, ChunkRow, Codec, Entry, Fingerprint, SegmentState};

use crate::StoreError;
use crate::chunks::groups::GroupReader;
use crate::chunks::pack::gains;
use crate::chunks::pages::FastState;
use crate::chunks::verify::{Stored, read_chunk};
use crate::sync::Mutex;
use crate::upkeep::Store;
use crate::upkeep::part::Part;
use crate::world::sharing::is_shareable;

/// How many row pages one turn examines.
const PAGES_PER_STEP: u64 = 8;
/// How many fingerprints are remembered in one round: 48 MiB.
const SEEN_MAX: usize = 1 << 20;

/// How many of a segment's uncompressed blocks are examined again: 4 MiB.
const SAMPLED_MAX: usize = 1024;

/// The state of the background pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OptimizeStatus {
    /// Whether a pass is running.
    pub running: bool,
    /// Completed passes since the store was opened.
    pub passes: u64,
    /// Failed passes since the store was opened.
    pub failed_passes: u64,
    /// Why the last pass failed; `None` if it did not, or is running.
    pub failure: Option<String>,
    /// Rows of chunks that the last pass has examined, counted in each round.
    pub rows_done: u64,
    /// How many it examines, as far as known.
    pub rows_total: u64,
    /// Segments that it has examined after that, and rewritten where that gains something.
    pub segments_done: u64,
    /// How many it examines; 0 before it is done with rows.
    pub segments_total: u64,
    /// Duplicate chunks found by all passes.
    pub aliased_chunks: u64,
    /// Segments rewritten by all passes.
    pub rewritten_segments: u64,
}

impl OptimizeStatus {
    /// Begins a pass that examines this many rows.
    fn begin(&mut self, rows_total: u64) {
        (self.running, self.failure) = (true, None);
        self.rows_total = rows_total;
        (self.rows_done, self.segments_done, self.segments_total) = (0, 0, 0);
    }

    /// Records the end of a step: what follows, or why nothing does.
    fn tell(&mut self, next: &Result<Option<Stage>, StoreError>) {
        match next {
            Ok(Some(_)) => return,
            Ok(None) => self.passes += 1,
            Err(error) => {
                self.failed_passes += 1;
                self.failure = Some(error.to_string());
            }
        }
        self.running = false;
    }
}

/// The state of a pass.
#[derive(Default)]
pub(crate) struct Optimizer {
    /// Locked for a whole step.
    stage: Mutex<Option<Stage>>,
    /// Locked only briefly, so that queries do not wait for a step.
    status: Mutex<OptimizeStatus>,
    /// Segments in which no block gains anything: which, and when they were opened.
    hopeless: Mutex<HashMap<u32, u64, FastState>>,
}

enum Stage {
    Twins(Twins),
    Packing { segments: VecDeque<u32>, current: VecDeque<Stored> },
}

struct Twins {
    part: Part,
    /// Parts for further rounds.
    later: Vec<Part>,
    page: u64,
    seen: HashMap<Fingerprint, ChunkId, FastState>,
    seen_max: usize,
}

/// Returns the key that assigns a fingerprint to a part.
fn key_of(fingerprint: Fingerprint) -> u64 {
    (u128::from_le_bytes(fingerprint.0) >> 64) as u64
}

impl Twins {
    fn new(part: Part, later: Vec<Part>, seen_max: usize) -> Self {
        Self { part, later, page: 0, seen: HashMap::default(), seen_max }
    }

    /// Returns how many rows are still to be examined, in a table of this many pages.
    fn rows_left(&self, pages: u64) -> u64 {
        let later = self.later.len() as u64 * pages;
        (pages.saturating_sub(self.page) + later) * ROWS_PER_PAGE
    }

    /// Examines a stored chunk; returns the older one with its fingerprint, if there is one.
    fn look(&mut self, id: ChunkId, row: &ChunkRow) -> Option<ChunkId> {
        if !self.part.contains(key_of(row.fingerprint)) {
            return None;
        }
        if let Some(original) = self.seen.get(&row.fingerprint) {
            return Some(*original);
        }
        if self.seen.len() >= self.seen_max {
            let [now, later] = self.part.halves();
            self.part = now;
            self.later.push(later);
            self.seen.retain(|fingerprint, _| now.contains(key_of(*fingerprint)));
        }
        if self.part.contains(key_of(row.fingerprint)) {
            self.seen.insert(row.fingerprint, id);
        }
        None
    }
}

impl Store {
    /// Begins a pass; returns `false` if one is running.
    pub fn optimize(&self) -> bool {
        self.optimize_with(SEEN_MAX)
    }

    pub(crate) fn optimize_with(&self, seen_max: usize) -> bool {
        if self.optimize_status().running {
            return false;
        }
        let mut stage = self.optimizing.stage.lock();
        if stage.is_some() {
            return false;
        }
        let twins = Twins::new(Part::ALL, Vec::new(), seen_max);
        let rows_total = twins.rows_left(self.chunk_pages());
        self.optimizing.status.lock().begin(rows_total);
        *stage = Some(Stage::Twins(twins));
        true
    }

    /// Stops the running pass, if there is one; it is not counted. Waits for the end of a step.
    pub fn optimize_stop(&self) -> bool {
        let mut stage = self.optimizing.stage.lock();
        self.optimizing.status.lock().running = false;
        stage.take().is_some()
    }

    /// Returns the state of the background pass.
    pub fn optimize_status(&self) -> OptimizeStatus {
        self.optimizing.status.lock().clone()
    }

    /// Does one turn of the running pass. Returns whether more is left. Waits for a commit.
    ///
    /// # Errors
    /// Those of the store, such as no space to move anything to. The pass has then failed; the
    /// status says why.
    pub fn optimize_step(&self) -> Result<bool, StoreError> {
        let mut stage = self.optimizing.stage.lock();
        let Some(under_way) = stage.take() else { return Ok(false) };
        let next = match under_way {
            Stage::Twins(twins) => self.find_twins(twins),
            Stage::Packing { segments, current } => self.pack_segments(segments, current),
        };
        self.optimizing.status.lock().tell(&next);
        *stage = next?;
        Ok(stage.is_some())
    }

    /// Returns the number of pages of chunk rows.
    fn chunk_pages(&self) -> u64 {
        self.writer.lock().state.next_chunk.div_ceil(ROWS_PER_PAGE)
    }

    fn find_twins(&self, mut twins: Twins) -> Result<Option<Stage>, StoreError> {
        // What is found now keeps its location while the token is held.
        let token = self.world.reader_token();
        let mut pairs: Vec<(Stored, ChunkId)> = Vec::new();
        let (begin, end) = (twins.page, self.chunk_pages());
        for page in begin..end.min(begin + PAGES_PER_STEP) {
            let first = page * ROWS_PER_PAGE;
            // Whoever needs an unreadable page reports it.
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
        let aliased_chunks = entries.len() as u64;
        if !entries.is_empty() {
            self.commit_entries(entries)?;
        }
        {
            let mut status = self.optimizing.status.lock();
            status.aliased_chunks += aliased_chunks;
            status.rows_done += (twins.page - begin) * ROWS_PER_PAGE;
            status.rows_total = status.rows_done + twins.rows_left(end);
        }
        if twins.page < end {
            return Ok(Some(Stage::Twins(twins)));
        }
        let mut later = std::mem::take(&mut twins.later);
        Ok(Some(match later.pop() {
            Some(part) => Stage::Twins(Twins::new(part, later, twins.seen_max)),
            None => {
                // What recovery would read stays where it is: after a checkpoint that is little.
                self.checkpoint()?;
                let segments = self.log_segments();
                self.optimizing.status.lock().segments_total = segments.len() as u64;
                Stage::Packing { segments, current: VecDeque::new() }
            }
        }))
    }

    /// Returns entries for the pairs with equal contents.
    fn compare_twins(&self, pairs: &[(Stored, ChunkId)]) -> Vec<Entry> {
        let world = &self.world;
        let mut readers = [GroupReader::default(), GroupReader::default()];
        let mut entries = Vec::new();
        for (chunk, original) in pairs {
            let other = world.chunks.get(&world.medium, original.0, ChunkRow::decode);
            let Some(other) = other.ok().flatten().filter(may_merge) else { continue };
            let [own_reader, other_reader] = &mut readers;
            let other = Stored { id: *original, row: other };
            if self.is_under_way(chunk.id) || self.is_under_way(*original) {
                continue;
            }
            let own = read_chunk(&world.medium, own_reader, chunk);
            if own.is_ok() && own == read_chunk(&world.medium, other_reader, &other) {
                entries.push(Entry::Alias { chunk: chunk.id, original: *original });
            }
        }
        entries
    }

    /// Returns whether a device may still lack a chunk that is being written: then it must not be
    /// repaired.
    fn is_under_way(&self, id: ChunkId) -> bool {
        let medium = &self.world.medium;
        medium.disk.copies() > 1 && self.world.unplaced.contains(id)
    }

    /// Returns the segments with data that recovery would not read now.
    fn log_segments(&self) -> VecDeque<u32> {
        let writer = self.writer.lock();
        let rows = writer.state.segments.rows();
        rows.filter(|(segment, row)| {
            row.state == SegmentState::Log
                && row.live_units > 0
                && !writer.log.segments().contains(segment)
                && !writer.supply.is_unreclaimable(*segment)
        })
        .map(|(segment, _)| segment)
        .collect()
    }

    fn pack_segments(
        &self,
        mut segments: VecDeque<u32>,
        mut current: VecDeque<Stored>,
    ) -> Result<Option<Stage>, StoreError> {
        if current.is_empty() {
            let Some(segment) = segments.pop_front() else {
                self.checkpoint()?;
                return Ok(None);
            };
            let live = self.live_chunks(segment)?;
            let gains = live.iter().any(|chunk| chunk.row.codec == Codec::Lz4)
                || self.gains_by_packing(segment, &live);
            let mut status = self.optimizing.status.lock();
            if gains {
                status.rewritten_segments += 1;
                current = live.into();
            } else {
                status.segments_done += 1;
            }
            return Ok(Some(Stage::Packing { segments, current }));
        }
        let count = current.len().min(self.options.tuning.move_blocks_max);
        let batch: Vec<Stored> = current.drain(..count).collect();
        if !self.move_chunks(&batch)? {
            return Err(VolumeError::NoSpace.into());
        }
        if current.is_empty() {
            self.optimizing.status.lock().segments_done += 1;
            self.free_emptied(&mut self.reclaiming.lock().compaction)?;
        }
        Ok(Some(Stage::Packing { segments, current }))
    }
}

impl Store {
    /// Returns whether a block of a segment that was stored uncompressed would be shorter now.
    fn gains_by_packing(&self, segment: u32, live: &[Stored]) -> bool {
        let opened_lsn = self.writer.lock().state.segments.row(segment).opened_lsn;
        if self.optimizing.hopeless.lock().get(&segment) == Some(&opened_lsn) {
            return false;
        }
        let raw =
            |chunk: &&Stored| chunk.row.codec == Codec::Raw && !chunk.row.handling.uncompressed;
        let count = live.iter().filter(raw).count();
        // What is read keeps its location while the token is held.
        let _token = self.world.reader_token();
        let mut reader = GroupReader::default();
        let mut sample = live.iter().filter(raw).step_by(count.div_ceil(SAMPLED_MAX).max(1));
        let found = sample.any(|chunk| {
            // Before a repair it must be known that it did not move before the token was taken.
            let is_there = self.world.medium.disk.copies() <= 1 || self.is_still(chunk);
            let mut read = || read_chunk(&self.world.medium, &mut reader, chunk);
            is_there && read().is_ok_and(|frame| gains(&frame))
        });
        if !found {
            self.optimizing.hopeless.lock().insert(segment, opened_lsn);
        }
        found
    }
}

/// Returns whether a chunk can become an alias, or the original of one.
fn may_merge(row: &ChunkRow) -> bool {
    row.original.is_none() && !row.place.is_none() && is_shareable(row)
}
