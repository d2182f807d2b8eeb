//! Scrubbing: a pass over every durable byte that is live, a part at a time.
//!
//! | phase | what is read | redundancy |
//! |---|---|---|
//! | superblocks, labels | both copies | each other |
//! | streams | pending nodes; segment table, key-value space: all copies | memory |
//! | pages | all copies of each page of the tables, of nodes and leaves | each other, memory |
//! | log | the records that recovery would read, and their payload | their effect was applied |
//! | rewrite | nothing: a checkpoint, if damage was found that can be rewritten | |
//! | chunks | every block of a row, in all copies | other devices; the cache, if there |
//! | parity | in stripes: all columns of each record | data that matches its record |
//! | names | chunk rows and maps, if there is permanent damage: which blocks of volumes | |
//!
//! Everything is read from the device, even if it is in memory. A step holds the checkpointer: no
//! checkpoint is in progress meanwhile, so nothing stored moves and no segment is freed. If one is
//! in progress, the step does nothing. The writer continues: it changes only memory and the end of
//! the log.
//!
//! A pass sees what was stored when it began, and what was moved or written since was read or
//! created then. Its progress does not survive a restart.

mod aliases;
mod chunks;
mod findings;
mod log;
mod names;
mod pages;
mod parity;
mod repair;
mod superblocks;

use std::collections::BTreeSet;

use block::BLOCK_BYTES;
use format::Place;

pub use findings::{DamageList, DamagedRange, Finding, Repair, What};

use crate::log::checkpointer::Checkpointer;
use crate::sync::MutexGuard;
use crate::upkeep::Store;
use crate::world::World;
use crate::{StoreError, TableName};
use findings::Findings;
use names::Naming;
use repair::Rescued;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScrubStep {
    /// No pass is running.
    Idle,
    /// A checkpoint is being written: try again.
    Busy,
    /// It read this many blocks, and there is more to do.
    More {
        /// Blocks of 4 KiB.
        blocks: u64,
    },
    /// The pass is complete.
    Complete,
}

/// The state of scrubbing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScrubStatus {
    /// Whether a pass is running.
    pub running: bool,
    /// The number of the pass since the store was opened; 0 before the first.
    pub pass: u64,
    /// When it began, in seconds since 1970.
    pub started_s: u64,
    /// When the last complete pass ended, in seconds since 1970; 0 if none did since the start.
    pub completed_s: u64,
    /// Blocks of 4 KiB that the pass has read.
    pub blocks_done: u64,
    /// About how many it will read.
    pub blocks_total: u64,
    /// Blocks read by all passes since the store was opened.
    pub blocks_scrubbed: u64,
    /// How often damage was found since the store was opened.
    pub findings: u64,
    /// How often it was repaired since the store was opened.
    pub repairs: u64,
    /// The number of listed findings.
    pub listed: u64,
    /// How many of them are not repaired.
    pub damaged: u64,
}

enum Phase {
    Superblocks,
    Streams,
    /// Rows of this table from this page on, and nodes.
    Pages(usize, u64),
    Log(Option<format::LogPosition>),
    Rewrite,
    /// Chunks whose rows are in this page or later ones.
    Chunks(u64),
    /// Records from this row of this segment on.
    Parity(u32, u32),
    Names(Box<Naming>),
}

struct Pass {
    phase: Phase,
    now_s: u64,
    /// Whether a checkpoint must rewrite something.
    rewrite: bool,
    rescued: Vec<Rescued>,
}

/// The state of scrubbing, and its findings.
#[derive(Default)]
pub(crate) struct Scrub {
    pass: Option<Pass>,
    findings: Findings,
    status: ScrubStatus,
}

impl Scrub {
    /// Creates it with what opening the pool has found: unreadable pages of the volume table, and
    /// whether the log had to change something unreadable.
    pub(crate) fn of_opening(world: &World, losses: u64) -> Self {
        let mut scrub = Self::default();
        for ((level, number), _) in &*world.lost_volumes.read() {
            let table = TableName::Volumes;
            let stored = world.volume_table.stored_at(&world.medium, (*level, *number));
            let place = stored.map_or(Place::NONE, |page| page.place);
            let what = What::Page { table, level: *level, number: *number };
            scrub.found_at_opening(what, offset_bytes_of(world, place));
        }
        if losses > 0 || !world.lost_rows.read().is_empty() {
            scrub.found_at_opening(What::Lost, 0);
        }
        scrub
    }

    fn found_at_opening(&mut self, what: What, offset_bytes: u64) {
        self.note(what, offset_bytes, Repair::Impossible);
    }

    /// Adds damage that was not found by a pass.
    fn note(&mut self, what: What, offset_bytes: u64, repair: Repair) {
        self.status.findings += 1;
        let (ranges, ranges_more) = (Vec::new(), 0);
        let (found_s, pass) = (0, self.status.pass);
        let found = Finding { what, offset_bytes, found_s, repair, ranges, ranges_more, pass };
        self.findings.add(found);
    }
}

fn offset_bytes_of(world: &World, place: Place) -> u64 {
    let bytes = u64::from(place.offset_units) * format::PLACE_UNIT_BYTES;
    let geometry = world.medium.geometry_of(place.segment);
    geometry.offset_bytes(Place { offset_units: 0, ..place }).saturating_add(bytes)
}

impl Store {
    /// Begins a pass; returns `false` if one is running. `now_s` is the time, in seconds since
    /// 1970.
    pub fn scrub_start(&self, now_s: u64) -> bool {
        let live_bytes = {
            let writer = self.writer.lock();
            writer.state.segments.live_bytes() + writer.log.bytes()
        };
        let scrub = &mut *self.scrub.lock();
        if scrub.pass.is_some() {
            return false;
        }
        self.catch_up.is_scrubbed();
        let phase = Phase::Superblocks;
        scrub.pass = Some(Pass { phase, now_s, rewrite: false, rescued: Vec::new() });
        scrub.findings.begin();
        scrub.status = ScrubStatus {
            pass: scrub.status.pass + 1,
            started_s: now_s,
            blocks_done: 0,
            blocks_total: live_bytes.div_ceil(BLOCK_BYTES) + superblocks::ROOT_BLOCKS,
            ..scrub.status
        };
        true
    }

    /// Stops the running pass, if there is one. Its findings stay listed.
    pub fn scrub_stop(&self) -> bool {
        self.scrub.lock().pass.take().is_some()
    }

    /// Returns the state of scrubbing.
    pub fn scrub_status(&self) -> ScrubStatus {
        let scrub = self.scrub.lock();
        let (listed, damaged) = scrub.findings.counts();
        let running = scrub.pass.is_some();
        ScrubStatus { running, listed, damaged, ..scrub.status }
    }

    /// Returns damage, repaired or not, as found by the last pass and by this one so far.
    pub fn damage(&self) -> DamageList {
        let stuck_nodes = self.writer.lock().state.stuck.len() as u64;
        let (findings, findings_more) = self.scrub.lock().findings.list();
        DamageList { findings, findings_more, stuck_nodes }
    }

    /// Continues the running pass: about `budget_blocks` blocks of 4 KiB. Waits for the device; for
    /// a background thread. `now_s` is the time, in seconds since 1970.
    ///
    /// # Errors
    /// [`StoreError::Volume`] if the store has failed: what it intended to write differs from the
    /// content of the device. A running pass stays so.
    pub fn scrub_step(&self, budget_blocks: u64, now_s: u64) -> Result<ScrubStep, StoreError> {
        let Some(checkpointer) = self.checkpointing.try_lock() else { return Ok(ScrubStep::Busy) };
        let mut scrub = self.scrub.lock();
        let Some(mut pass) = scrub.pass.take() else { return Ok(ScrubStep::Idle) };
        if self.has_failed() {
            scrub.pass = Some(pass);
            return Err(StoreError::Volume(block::VolumeError::WriteFailed));
        }
        pass.now_s = now_s;
        let before = scrub.status.blocks_done;
        let of_one_copy = self.segments_of_one_copy();
        let mut step =
            Step { store: self, checkpointer, scrub, pass, budget_blocks, before, of_one_copy };
        let ended = step.run();
        let Step { checkpointer, mut scrub, mut pass, .. } = step;
        drop(checkpointer);
        let rescued = std::mem::take(&mut pass.rescued);
        let blocks = scrub.status.blocks_done - before;
        let complete = match ended {
            Ok(complete) => complete,
            Err(error) => {
                scrub.pass = Some(pass);
                return Err(error);
            }
        };
        scrub.status.blocks_scrubbed += blocks;
        scrub.status.blocks_total = scrub.status.blocks_total.max(scrub.status.blocks_done);
        if complete {
            let number = scrub.status.pass;
            scrub.findings.end(number);
            scrub.status.completed_s = now_s;
            scrub.status.blocks_total = scrub.status.blocks_done;
        } else {
            scrub.pass = Some(pass);
        }
        drop(scrub);
        self.put_back(rescued)?;
        if complete {
            self.retry_stuck();
        }
        Ok(if complete { ScrubStep::Complete } else { ScrubStep::More { blocks } })
    }

    /// Returns the segments of metadata with one copy.
    fn segments_of_one_copy(&self) -> BTreeSet<u32> {
        self.writer.lock().state.segments.tally().of_one_copy.clone()
    }

    /// Records that what was read from its second copy was rewritten.
    pub(crate) fn note_repaired(&self, found: &[(What, Place)]) {
        let scrub = &mut *self.scrub.lock();
        for (what, place) in found {
            scrub.status.repairs += 1;
            let offset_bytes = offset_bytes_of(&self.world, *place);
            scrub.note(*what, offset_bytes, Repair::Done);
        }
    }

    /// Retries to free what could not be read.
    fn retry_stuck(&self) {
        let state = &mut self.writer.lock().state;
        let stuck = std::mem::take(&mut state.stuck);
        state.pending.extend(stuck);
    }
}

/// A step of a pass.
struct Step<'a> {
    store: &'a Store,
    checkpointer: MutexGuard<'a, Checkpointer>,
    scrub: MutexGuard<'a, Scrub>,
    pass: Pass,
    budget_blocks: u64,
    before: u64,
    /// Segments of metadata with one copy, in an upgraded pool.
    of_one_copy: BTreeSet<u32>,
}

impl Step<'_> {
    /// Works until the budget is used. Returns `true` if the pass is complete.
    fn run(&mut self) -> Result<bool, StoreError> {
        while !self.is_spent() {
            let phase = std::mem::replace(&mut self.pass.phase, Phase::Superblocks);
            self.pass.phase = match phase {
                Phase::Superblocks => {
                    self.superblocks()?;
                    Phase::Streams
                }
                Phase::Streams => {
                    self.streams();
                    Phase::Pages(0, 0)
                }
                Phase::Pages(table, _) if table == TableName::ALL.len() => Phase::Log(None),
                Phase::Pages(table, from) => match self.pages(table, from) {
                    Some(next) => Phase::Pages(table, next),
                    None => Phase::Pages(table + 1, 0),
                },
                Phase::Log(at) => match self.log(at) {
                    Some(next) => Phase::Log(Some(next)),
                    None => Phase::Rewrite,
                },
                Phase::Rewrite => {
                    self.rewrite()?;
                    Phase::Chunks(0)
                }
                Phase::Chunks(from) => match self.chunks(from) {
                    Some(next) => Phase::Chunks(next),
                    None => Phase::Parity(1, 0),
                },
                Phase::Parity(segment, row) => match self.parity(segment, row) {
                    Some((segment, row)) => Phase::Parity(segment, row),
                    None => Phase::Names(Box::default()),
                },
                // What is in memory is rewritten first, and need not be reported.
                Phase::Names(naming) if !self.pass.rescued.is_empty() => {
                    self.pass.phase = Phase::Names(naming);
                    return Ok(false);
                }
                Phase::Names(naming) => match self.names(naming) {
                    Some(naming) => Phase::Names(naming),
                    None => return Ok(true),
                },
            };
        }
        Ok(false)
    }

    fn is_spent(&self) -> bool {
        self.scrub.status.blocks_done - self.before >= self.budget_blocks
    }

    /// Counts blocks read.
    fn count(&mut self, blocks: u64) {
        self.scrub.status.blocks_done += blocks;
    }

    fn offset_bytes(&self, place: Place) -> u64 {
        offset_bytes_of(&self.store.world, place)
    }

    fn find(&mut self, what: What, offset_bytes: u64, repair: Repair) {
        self.pass.rewrite |= repair == Repair::Underway;
        let (found_s, pass) = (self.pass.now_s, self.scrub.status.pass);
        let (ranges, ranges_more) = (Vec::new(), 0);
        let found = Finding { what, offset_bytes, found_s, repair, ranges, ranges_more, pass };
        self.scrub.status.findings += u64::from(self.scrub.findings.add(found));
        self.scrub.status.repairs += u64::from(repair == Repair::Done);
    }

    /// Rewrites what is right in memory and damaged on the device, if there is anything.
    fn rewrite(&mut self) -> Result<(), StoreError> {
        if std::mem::take(&mut self.pass.rewrite) {
            self.store.checkpoint_with(&mut self.checkpointer)?;
            self.scrub.status.repairs += self.scrub.findings.written();
        }
        Ok(())
    }
}
