//! Writes that the device falsely reports as done: lost, landed elsewhere, or in part.
//!
//! No single device can repair them. But wrong data must never be returned: each read returns what
//! was written last, or MEDIUM ERROR; a pool opens in that state, or reports that it is damaged;
//! scrubbing lists what can't be read, by name. One case can't be detected on a single device; it
//! is allowed here, and counted: see [`Seen::rolled_back`].
//!
//! One write of a history is struck, and the history continues over the damage: requests,
//! checkpoints, reclaim, scrubbing, and reopening.

mod requests;

use std::collections::BTreeSet;
use std::sync::Arc;

use block::{SectorRange, VolumeError, VolumeId, VolumeReply, VolumeRequest};
use format::RecordHeader;
use format::superblock::SUPERBLOCK_OFFSETS_BYTES;
use store::{CheckOptions, OpenOptions, ScrubStep, Store};

use crate::content::{Tag, tags_of};
use crate::disk::{SimDisk, Struck, Survival, WriteFault};
use crate::rng::Rng;

const POOL_BYTES: u64 = 256 << 20;
const ROUNDS: u64 = 70;

/// The results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// A hash of every I/O.
    pub trace: u64,
    /// Histories in which a write was struck.
    pub struck: u64,
    /// The number of requests to the store.
    pub operations: u64,
    /// Struck writes of a superblock, or that landed on one.
    pub superblocks: u64,
    /// Struck writes of records.
    pub records: u64,
    /// Requests that were refused because something could not be read.
    pub refused_requests: u64,
    /// Pools that reported damage, and were not opened.
    pub refused: u64,
    /// Pools that opened without the end of their log, because the very last record was struck and
    /// nothing after it shows that there was one.
    pub rolled_back: u64,
    /// Blocks that were MEDIUM ERROR.
    pub medium_errors: u64,
    /// Blocks that were right.
    pub right: u64,
    /// Findings listed by scrubbing passes.
    pub found_by_scrub: u64,
    /// Pools in which `check` found something, or could not finish.
    pub found_by_check: u64,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.trace = crate::rng::mix(self.trace ^ other.trace);
        self.struck += other.struck;
        self.operations += other.operations;
        self.superblocks += other.superblocks;
        self.records += other.records;
        self.refused_requests += other.refused_requests;
        self.refused += other.refused;
        self.rolled_back += other.rolled_back;
        self.medium_errors += other.medium_errors;
        self.right += other.right;
        self.found_by_scrub += other.found_by_scrub;
        self.found_by_check += other.found_by_check;
    }
}

impl std::fmt::Display for Seen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { struck, superblocks, records, operations, refused_requests, refused, .. } = self;
        let Self {
            rolled_back, medium_errors, right, found_by_scrub, found_by_check, trace, ..
        } = self;
        writeln!(
            f,
            "{operations} operations, {struck} writes misplaced ({superblocks} at superblocks, \
             {records} of log records), {refused_requests} requests refused"
        )?;
        write!(
            f,
            "{refused} pools refused as damaged, {found_by_check} found damaged by check, \
             {found_by_scrub} findings of scrub, {rolled_back} without their last record; \
             {medium_errors} blocks MEDIUM ERROR, {right} right, none wrong; trace {trace:016x}"
        )
    }
}

/// The content of a volume or of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    id: VolumeId,
    snapshot: bool,
    tags: Vec<Tag>,
}

struct World {
    disk: Arc<SimDisk>,
    store: Store,
    rng: Rng,
    volumes: Vec<Known>,
    /// The content of the volumes before the last change, if no checkpoint was completed since; and
    /// the number of I/Os at that time.
    before: Option<(u64, Vec<Known>)>,
    /// Their content if the change that ended all writing is present.
    uncertain: Option<Vec<Known>>,
    next_tag: u64,
    /// Whether large writes cycle through the pool, so that segments are reused.
    churn: bool,
    /// Whether no checkpoint is requested after the struck write.
    checkpoints_stop: bool,
    seen: Seen,
}

/// The blocks that are lost: their volume, and the first sector of each.
type Lost = BTreeSet<(VolumeId, u64)>;

/// Runs one history, in which one write is done wrongly. `Err` says what was wrong and not
/// reported.
pub fn misplace(seed: u64) -> Result<Seen, String> {
    let mut world = World::new(seed).map_err(|error| format!("seed {seed}: {error}"))?;
    let result = world.run();
    let struck = world.disk.struck();
    result.map_err(|reason| {
        let told = struck.map(|Struck { io, offset_bytes, fault, .. }| {
            format!("{fault:?} at I/O {io}, to byte {offset_bytes:#x}")
        });
        format!("seed {seed}: {reason}; struck: {told:?}")
    })?;
    Ok(Seen { trace: world.disk.trace(), ..world.seen })
}

fn options() -> OpenOptions {
    // No memory, which could hide the content of the device.
    OpenOptions { memory_bytes: 0, ..OpenOptions::default() }
}

impl World {
    fn run(&mut self) -> Result<(), String> {
        // Often at the very end: a write that nothing follows is the hardest to detect.
        let last = self.rng.chance(25);
        let armed_round = if last { ROUNDS - 2 } else { self.rng.below(ROUNDS) };
        for round in 0..ROUNDS {
            if round == armed_round {
                self.arm();
            }
            if self.store.has_failed() {
                break;
            }
            self.seen.operations += 1;
            self.round()?;
        }
        if !self.store.has_failed() {
            let lost = self.read_all()?;
            if self.rng.chance(50) {
                self.scrub(&lost)?;
            }
            if self.rng.chance(50) && !self.checkpoints_have_stopped() {
                self.checkpoint();
            }
        }
        self.note_struck();
        self.open_again()
    }

    /// Chooses how the next write, or the next of a superblock, is done wrongly.
    fn arm(&mut self) {
        let any = self.rng.below(POOL_BYTES / block::BLOCK_BYTES);
        let copy = SUPERBLOCK_OFFSETS_BYTES[self.rng.below(2) as usize] / block::BLOCK_BYTES;
        // Where the log and the first checkpoints are.
        let used = 4096 + self.rng.below(8192);
        let fault = match self.rng.below(8) {
            0..=2 => WriteFault::Lost,
            3..=4 => WriteFault::Shorn,
            5 => WriteFault::Misdirected(any),
            6 => WriteFault::Misdirected(copy),
            _ => WriteFault::Misdirected(used),
        };
        let offsets: &[u64] = if self.rng.chance(30) { &SUPERBLOCK_OFFSETS_BYTES } else { &[] };
        self.disk.set_write_fault(offsets, fault);
        self.checkpoints_stop = self.rng.chance(50);
    }

    fn checkpoints_have_stopped(&self) -> bool {
        self.checkpoints_stop && self.disk.struck().is_some()
    }

    fn note_struck(&mut self) {
        let Some(struck) = self.disk.struck() else { return };
        self.seen.struck += 1;
        self.seen.superblocks += u64::from(hits_superblock(&struck));
        self.seen.records += u64::from(RecordHeader::decode(&struck.first[..]).is_ok());
    }

    /// Reads all blocks: each must be right, or lost.
    fn read_all(&mut self) -> Result<Lost, String> {
        let mut lost = Lost::new();
        for known in &self.volumes {
            for (start, want) in (0..).step_by(8).zip(known.tags.chunks(8)) {
                match read_block(&self.store, known.id, start)? {
                    Some(have) if have == want => self.seen.right += 1,
                    Some(_) => {
                        let id = known.id;
                        return Err(format!("volume {id}: sectors from {start} on are wrong"));
                    }
                    None => {
                        self.seen.medium_errors += 1;
                        lost.insert((known.id, start));
                    }
                }
            }
        }
        Ok(lost)
    }

    /// Runs a scrubbing pass. It repairs what it can, and lists the rest, which must be what can't
    /// be read.
    fn scrub(&mut self, lost: &Lost) -> Result<(), String> {
        self.store.scrub_start(1);
        loop {
            match self.store.scrub_step(self.rng.between(1, 3000), 2) {
                Ok(ScrubStep::Complete) => break,
                Ok(ScrubStep::More { .. }) => {}
                Ok(other) => return Err(format!("scrubbing ended with {other:?}")),
                // It could not write what it intended to, and has reported that.
                Err(_) => return Ok(()),
            }
        }
        let findings = self.store.damage().findings;
        self.seen.found_by_scrub += findings.len() as u64;
        if !lost.is_empty() && findings.is_empty() {
            return Err(format!("scrub found nothing, but reads lost {lost:?}"));
        }
        let ranges = findings.iter().flat_map(|finding| &finding.ranges);
        let named: Lost = ranges
            .flat_map(|damaged| {
                let first = damaged.range.start.0;
                let starts = (first..first + damaged.range.count.0).step_by(8);
                starts.map(|start| (damaged.volume, start))
            })
            .collect();
        let left = self.read_all()?;
        if named != left {
            return Err(format!("scrub reported {named:?}, but reads lose {left:?}"));
        }
        Ok(())
    }

    /// Closes the pool and opens it again: it is as it was, or reports that it is damaged.
    fn open_again(&mut self) -> Result<(), String> {
        // Everything was flushed, as far as the device has reported.
        self.disk.crash(Survival::All, &mut self.rng);
        match Store::open(self.disk.clone(), options()) {
            Ok(store) => self.store = store,
            Err(_) => {
                self.seen.refused += 1;
                return Ok(());
            }
        }
        let report = self.store.check(CheckOptions { data: true });
        let sound = report.is_ok_and(|report| report.findings.is_empty());
        self.seen.found_by_check += u64::from(!sound);
        self.settle_on();
        let lost = self.read_all()?;
        if sound && !lost.is_empty() {
            return Err(format!("check found nothing, but reads lost {lost:?}"));
        }
        self.scrub(&lost)
    }

    /// Determines the allowed alternatives to the known content: a change that ended all writing
    /// may be there; and if the last record of the log was struck, the pool may be as before it.
    /// Nothing else is allowed.
    fn settle_on(&mut self) {
        if self.matches(&self.volumes) {
            return;
        }
        if let Some(volumes) = self.uncertain.take()
            && self.matches(&volumes)
        {
            self.volumes = volumes;
            return;
        }
        let struck = self.disk.struck().map_or(0, |struck| struck.io);
        if let Some((io, volumes)) = self.before.take()
            && struck > io
            && self.matches(&volumes)
        {
            self.volumes = volumes;
            self.seen.rolled_back += 1;
        }
    }

    /// Returns whether the volumes in the pool are these, as far as they can be read.
    fn matches(&self, volumes: &[Known]) -> bool {
        volumes.iter().all(|known| {
            self.store.volume_status(known.id).is_some()
                && (0..).step_by(8).zip(known.tags.chunks(8)).all(|(start, want)| {
                    read_block(&self.store, known.id, start)
                        .is_ok_and(|have| have.is_none_or(|have| have == want))
                })
        })
    }
}

fn hits_superblock(struck: &Struck) -> bool {
    let to = match struck.fault {
        WriteFault::Misdirected(block) => block * block::BLOCK_BYTES,
        _ => struck.offset_bytes,
    };
    [to, struck.offset_bytes].iter().any(|offset| SUPERBLOCK_OFFSETS_BYTES.contains(offset))
}

/// Returns a block's content; `None` if it is lost.
fn read_block(store: &Store, volume: VolumeId, start: u64) -> Result<Option<Vec<Tag>>, String> {
    let range = SectorRange::new(start, 8);
    match store.execute(VolumeRequest::Read { volume, range }) {
        Ok(VolumeReply::Data(data)) => tags_of(&data.to_vec()).map(Some).map_err(|at| {
            format!("volume {volume}: sector {} was never written", start + at as u64)
        }),
        Err(VolumeError::Medium { .. }) => Ok(None),
        other => Err(format!("reading volume {volume} at {start}: {other:?}")),
    }
}
