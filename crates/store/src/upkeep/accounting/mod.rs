//! Space accounting: for whom the bytes in use are stored.
//!
//! Every stored byte that is live is exactly one of these:
//!
//! * *unique* to a volume: eradicating that volume, and nothing else, would free it;
//! * of *snapshots*: only one or several snapshots refer to it;
//! * *shared*: a volume refers to it, and another volume or a snapshot;
//! * of the *system*: metadata, and unreferenced data that is about to be freed.
//!
//! Bytes are those of the medium, after reduction, in the units of 64 in which segments count what
//! is live. Metadata with two copies counts twice. A chunk that was compressed with others counts
//! as its part of the group, which is what is freed with it. Map nodes of a volume are metadata:
//! they count as the system's.
//!
//! A chunk or a node does not know what refers to it. So a *pass* walks all maps (`count`). It
//! reads the last checkpoint (`image`), never what is changing, takes no lock and delays no
//! request; its figures are exact, as of that checkpoint. They are not durable: after a start there
//! are none before the first pass. `check` computes the same figures in another way and compares
//! (`proof`).

mod count;
mod image;
mod owner;
mod proof;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use block::{BLOCK_BYTES, VolumeId};
use format::VolumeRow;

use crate::StoreError;
use crate::chunks::pages::FastState;
use crate::log::checkpointer::Checkpointer;
use crate::sync::{Mutex, RwLock};
use crate::upkeep::Store;
use crate::world::{State, World};
pub(crate) use count::Limits;
use count::{Halt, count, owners_of};
use owner::{Tally, bytes};
pub(crate) use proof::findings;

/// A pass takes a sixteenth of the store's memory in addition, at least 1 MiB and at most 256 MiB.
const MEMORY_DIVISOR: u64 = 16;
const MEMORY_BYTES_MIN: u64 = 1 << 20;
const MEMORY_BYTES_MAX: u64 = 256 << 20;
/// The maximum memory for remembering a node or a chunk, including its table entry.
const REMEMBERED_BYTES: u64 = 64;
/// How many nodes are examined between two checks whether the pass blocks space.
const NODES_PER_LOOK: u32 = 1024;

/// The figures of one volume or snapshot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeSpace {
    /// Whether it is a snapshot.
    pub snapshot: bool,
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Mapped bytes: written and not unmapped since, including zeros and patterns.
    pub mapped_bytes: u64,
    /// Those of them that refer to stored data: neither zeros nor a pattern.
    pub mapped_data_bytes: u64,
    /// Stored bytes that eradicating only this one would free.
    pub unique_bytes: u64,
    /// Its share of what is stored: everything that is unique to it, and for shared data a part
    /// equal to that of every other reference. The shares of all volumes and snapshots add up to
    /// everything that they refer to.
    pub share_bytes: u64,
}

/// For whom everything is stored, at one point in time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpaceFigures {
    /// That point in time, in seconds since 1970.
    pub as_of_s: u64,
    /// The provisioned bytes of all volumes, without snapshots.
    pub provisioned_bytes: u64,
    /// The mapped bytes of all volumes, without snapshots.
    pub mapped_bytes: u64,
    /// Those of them that refer to stored data: neither zeros nor a pattern.
    pub mapped_data_bytes: u64,
    /// Stored bytes that are unique to volumes.
    pub unique_bytes: u64,
    /// Stored bytes to which only snapshots refer.
    pub snapshots_bytes: u64,
    /// Stored bytes to which a volume refers, and another volume or a snapshot.
    pub shared_bytes: u64,
    /// Stored bytes of metadata, counting both copies.
    pub metadata_bytes: u64,
    /// Stored bytes of unreferenced data.
    pub unnamed_bytes: u64,
    /// All stored bytes that were live then: the sum of the others.
    pub live_bytes: u64,
    volumes: HashMap<VolumeId, VolumeSpace, FastState>,
    lsn: u64,
}

impl SpaceFigures {
    /// Returns the figures of a volume or a snapshot, if it existed then.
    pub fn volume(&self, id: VolumeId) -> Option<&VolumeSpace> {
        self.volumes.get(&id)
    }

    /// Returns the stored bytes of the system: metadata, and data that is about to be freed.
    pub fn system_bytes(&self) -> u64 {
        self.metadata_bytes + self.unnamed_bytes
    }

    /// Returns the stored bytes of data to which volumes and snapshots refer.
    pub fn named_bytes(&self) -> u64 {
        self.unique_bytes + self.snapshots_bytes + self.shared_bytes
    }
}

/// The state of accounting.
#[derive(Clone, Debug, Default)]
pub struct SpaceStatus {
    /// The figures of the last pass; `None` before the first one has ended.
    pub figures: Option<Arc<SpaceFigures>>,
    /// Whether they are still exact: nothing has changed since.
    pub current: bool,
    /// Whether a pass is running, or was requested.
    pub pending: bool,
}

/// The result of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpacePass {
    /// There are new figures.
    Complete,
    /// Its caller stopped it.
    Stopped,
    /// It gave up: what it holds back is needed, because the pool is nearly full and hosts write.
    GaveWay,
}

/// What is known of space.
#[derive(Default)]
pub(crate) struct Accounting {
    figures: RwLock<Option<Arc<SpaceFigures>>>,
    /// One pass at a time.
    pass: Mutex<()>,
    /// Whether one is running, and whether one was requested since it began.
    running: AtomicBool,
    wanted: AtomicBool,
    /// Whether it must give up: a checkpoint finds no room beside what it holds back.
    is_in_the_way: AtomicBool,
}

/// Marks a pass as running, for as long as it is.
struct Running<'a>(&'a Accounting);

impl<'a> Running<'a> {
    fn begin(accounting: &'a Accounting) -> Self {
        accounting.running.store(true, Ordering::Release);
        accounting.wanted.store(false, Ordering::Release);
        accounting.is_in_the_way.store(false, Ordering::Release);
        Self(accounting)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.store(false, Ordering::Release);
    }
}

impl Limits {
    /// The limits of a pass that may take so much memory; the image takes half of it.
    fn of_memory(memory_bytes: u64) -> Self {
        let each = (memory_bytes / 4 / REMEMBERED_BYTES) as usize;
        Self { nodes: each, chunks: each }
    }
}

impl Store {
    /// Returns the state of accounting.
    pub fn space_status(&self) -> SpaceStatus {
        let figures = self.accounting.figures.read().clone();
        let current = figures.as_ref().is_some_and(|figures| {
            let writer = self.writer.lock();
            let data_bytes = figures.named_bytes() + figures.unnamed_bytes;
            writer.log.position().lsn == figures.lsn
                && writer.state.segments.live_log_bytes() == data_bytes
        });
        let Accounting { running, wanted, .. } = &self.accounting;
        let pending = wanted.load(Ordering::Acquire) || running.load(Ordering::Acquire);
        SpaceStatus { figures, current, pending }
    }

    /// Returns the figures of the last pass, as in [`Store::space_status`].
    pub fn space_figures(&self) -> Option<Arc<SpaceFigures>> {
        self.accounting.figures.read().clone()
    }

    /// Requests a pass that begins from now on.
    pub fn ask_for_space_figures(&self) {
        self.accounting.wanted.store(true, Ordering::Release);
    }

    /// Returns whether a pass was requested, and none has begun since.
    pub fn are_space_figures_asked_for(&self) -> bool {
        self.accounting.wanted.load(Ordering::Acquire)
    }

    /// Computes new figures, as of this point in time (`now_s`, in seconds since 1970): writes a
    /// checkpoint if anything has changed, and walks all maps in it. Takes long in a large pool;
    /// for a background thread. `proceed` is called for each map node, may sleep, and returns
    /// whether to continue.
    ///
    /// # Errors
    /// Those of the store: what can't be read can't be counted.
    pub fn account_space(
        &self,
        now_s: u64,
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<SpacePass, StoreError> {
        let memory = self.options.memory_bytes / MEMORY_DIVISOR;
        let memory = memory.clamp(MEMORY_BYTES_MIN, MEMORY_BYTES_MAX);
        self.account_within(now_s, memory / 2, Limits::of_memory(memory), proceed)
    }

    pub(crate) fn account_within(
        &self,
        now_s: u64,
        image_bytes: u64,
        limits: Limits,
        proceed: &mut dyn FnMut() -> bool,
    ) -> Result<SpacePass, StoreError> {
        let _pass = self.accounting.pass.lock();
        let _running = Running::begin(&self.accounting);
        let image = self.image(image_bytes)?;
        let (mut nodes, mut ended) = (0, SpacePass::Stopped);
        let mut proceed = || {
            nodes += 1;
            let asked = self.accounting.is_in_the_way.load(Ordering::Acquire);
            if asked || nodes % NODES_PER_LOOK == 0 && self.is_in_the_way() {
                ended = SpacePass::GaveWay;
                return false;
            }
            proceed()
        };
        let owners = owners_of(&image.world);
        let tally = match count(&image.world, &owners, limits, &mut proceed) {
            Ok(tally) => tally,
            Err(Halt::Failed(error)) => return Err(error),
            Err(_) => return Ok(ended),
        };
        let figures = figures(&image.world, &image.state, &owners, &tally)?;
        let figures = SpaceFigures { as_of_s: now_s, lsn: image.lsn, ..figures };
        *self.accounting.figures.write() = Some(Arc::new(figures));
        Ok(SpacePass::Complete)
    }

    /// Returns whether a checkpoint finds no room because of a pass that reads an earlier one,
    /// whose holes must not be filled. The pass then gives up at its next node.
    pub(crate) fn is_pass_why(&self, checkpointer: &Checkpointer) -> bool {
        let is_why = checkpointer.is_earlier_image_read();
        if is_why {
            self.accounting.is_in_the_way.store(true, Ordering::Release);
        }
        is_why
    }

    /// Returns whether segments that a pass holds back run short.
    fn is_in_the_way(&self) -> bool {
        let wanted = self.world.medium.segments_wanted();
        let segments = &mut self.writer.lock().state.segments;
        segments.metadata_in_limbo() > 0 && segments.free_count() < wanted
    }
}

fn figures(
    world: &World,
    state: &State,
    owners: &[(VolumeId, VolumeRow)],
    tally: &Tally,
) -> Result<SpaceFigures, StoreError> {
    let mut volumes: HashMap<VolumeId, VolumeSpace, FastState> = HashMap::default();
    for (index, (id, row)) in owners.iter().enumerate() {
        let counts = world.counts(row.root, row.level)?;
        let space = VolumeSpace {
            snapshot: row.snapshot,
            size_bytes: row.size_blocks * BLOCK_BYTES,
            mapped_bytes: counts.mapped * BLOCK_BYTES,
            mapped_data_bytes: counts.data * BLOCK_BYTES,
            unique_bytes: bytes(tally.unique_units[index]),
            share_bytes: (tally.share_units[index] * bytes(1) as f64).round() as u64,
        };
        volumes.insert(*id, space);
    }
    let data_bytes = state.segments.live_log_bytes();
    let live_bytes = state.segments.live_bytes();
    let named_bytes = bytes(tally.named_units());
    let unnamed_bytes = data_bytes.checked_sub(named_bytes).ok_or_else(|| {
        StoreError::Damaged(format!(
            "maps refer to {named_bytes} bytes, and log segments count {data_bytes} of \
             {live_bytes} as live"
        ))
    })?;
    let sum = |bytes: fn(&VolumeSpace) -> u64| -> u64 {
        volumes.values().filter(|space| !space.snapshot).map(bytes).sum()
    };
    Ok(SpaceFigures {
        provisioned_bytes: sum(|space| space.size_bytes),
        mapped_bytes: sum(|space| space.mapped_bytes),
        mapped_data_bytes: sum(|space| space.mapped_data_bytes),
        unique_bytes: bytes(tally.volumes_units),
        snapshots_bytes: bytes(tally.snapshots_units),
        shared_bytes: bytes(tally.shared_units),
        metadata_bytes: live_bytes - data_bytes,
        unnamed_bytes,
        live_bytes,
        volumes,
        ..SpaceFigures::default()
    })
}
