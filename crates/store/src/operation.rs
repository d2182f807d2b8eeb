//! Requests in progress: what each waits for, and how it continues.

use block::{SectorRange, VolumeError, VolumeId, VolumeReply};

use crate::DiskReads;
use crate::chunks::asking::{Asked, Load};
use crate::edits::edit::Edit;
use crate::edits::put::Candidate;
use crate::fetch::Fetch;
use crate::tuning::Tuning;
use crate::world::World;

/// Receives the answers of queued requests. Called by the thread that finished the commit, without
/// any lock of the store: post to a mailbox, and wake the owner if it is another thread.
pub trait Sink: Send + Sync {
    /// The request that was started with `id` has ended, or must be resumed.
    fn complete(&self, id: u64, outcome: Outcome);

    /// Work is queued and no thread has the writer's role: call [`crate::Engine::take_commit`].
    fn commit_wanted(&self);
}

/// How a queued request ended.
#[derive(Debug)]
pub enum Outcome {
    /// The answer.
    Reply(Result<VolumeReply, VolumeError>),
    /// What it depends on has changed in the meantime: perform the reads (perhaps none), and call
    /// [`Engine::resume`](crate::Engine::resume) with the same token.
    Again(Box<ReadOperation>),
}

/// The result of starting or resuming a request.
#[derive(Debug)]
pub enum Started {
    /// Already completed.
    Done(Result<VolumeReply, VolumeError>),
    /// Device reads are needed first: perform them, then [`crate::Engine::resume`].
    Read(Box<ReadOperation>),
    /// It joined the open record; the answer comes through the token's sink.
    Queued,
}

/// A request that waits for device reads.
#[derive(Debug)]
pub struct ReadOperation {
    /// The reads, in any order or in parallel. Fill the frames in place, or take the vectors out
    /// and put them back.
    pub reads: DiskReads,
    pub(crate) pending: Pending,
}

impl ReadOperation {
    /// Returns the cost of continuing until it waits again, in bytes that could be read, checked
    /// and compressed in that time.
    pub fn cost_bytes(&self, tuning: &Tuning) -> u64 {
        match &self.pending {
            Pending::Restart(edit) => edit.cost_bytes(tuning),
            // It has already waited for the device, and continues.
            _ => 0,
        }
    }
}

/// How a request continues after its reads.
#[derive(Debug)]
pub(crate) enum Pending {
    /// Answers with the data that was read.
    Read { fetch: Fetch, phase: usize, len: usize },
    /// Fills an edit's gathers, and submits it.
    Edit { fetches: Vec<Fetch>, edit: Box<Edit> },
    /// Compares the data of an edit with chunks that may have the same content, and submits it.
    Compare { fetch: Fetch, candidates: Vec<Candidate>, edit: Box<Edit> },
    /// Determines again what an edit needs.
    Restart(Box<Edit>),
    /// Restarts a step with metadata that was not in memory.
    Metadata { waiting: Box<Waiting> },
}

/// The step that restarts once metadata was read.
#[derive(Debug)]
pub(crate) enum Then {
    Read {
        volume: VolumeId,
        range: SectorRange,
    },
    Extents {
        volume: VolumeId,
        range: SectorRange,
        limit: usize,
    },
    /// Determines what the edit needs.
    Edit(Box<Edit>),
    /// Finds data of the edit that is already stored.
    Reduce(Box<Edit>),
    /// Checks what the edit will touch.
    Submit(Box<Edit>),
}

/// A request that waits for metadata.
#[derive(Debug)]
pub(crate) struct Waiting {
    asked: Asked,
    loads: Vec<Load>,
    then: Then,
}

impl Waiting {
    /// Returns the waiting edit, if it is one.
    pub(crate) fn edit(&self) -> Option<&Edit> {
        match &self.then {
            Then::Edit(edit) | Then::Reduce(edit) | Then::Submit(edit) => Some(edit),
            Then::Read { .. } | Then::Extents { .. } => None,
        }
    }

    /// Stores the metadata that was read.
    pub(crate) fn came(self, world: &World, reads: DiskReads) -> (Asked, Then) {
        let Self { mut asked, loads, then } = self;
        reads.iter().for_each(|_| world.memory.missed());
        asked.came(&world.medium, loads, reads);
        (asked, then)
    }
}

/// Returns the reads that a request asks for; it continues with `then`.
pub(crate) fn wait_for_metadata(mut asked: Asked, world: &World, then: Then) -> Started {
    let (loads, reads) = asked.reads(&world.medium);
    let pending = Pending::Metadata { waiting: Box::new(Waiting { asked, loads, then }) };
    Started::Read(Box::new(ReadOperation { reads, pending }))
}

/// Has an edit determined again what it needs.
pub(crate) fn restart(edit: Box<Edit>) -> Box<ReadOperation> {
    Box::new(ReadOperation { reads: DiskReads::new(), pending: Pending::Restart(edit) })
}
