//! Requests that are on their way: what each waits for, and what goes on then.

use block::{SectorRange, VolumeError, VolumeId, VolumeReply};

use crate::DiskReads;
use crate::chunks::asking::{Asked, Load};
use crate::edits::edit::Edit;
use crate::edits::put::Candidate;
use crate::fetch::Fetch;
use crate::tuning::Tuning;
use crate::world::World;

/// Where the answers of queued requests go. Called by whichever thread finished the commit, with
/// no lock of the store held: post to a mailbox and wake the owner if it is another thread.
pub trait Sink: Send + Sync {
    /// The request that was started with `id` has ended, or must be started again.
    fn complete(&self, id: u64, outcome: Outcome);

    /// Work is queued and nobody holds the writer's role: call [`crate::Engine::take_commit`].
    fn commit_wanted(&self);
}

/// How a queued request ended.
#[derive(Debug)]
pub enum Outcome {
    /// The answer.
    Reply(Result<VolumeReply, VolumeError>),
    /// What it depends on has changed meanwhile: perform the reads (perhaps none), and
    /// [`Engine::resume`](crate::Engine::resume) with the same token.
    Again(Box<ReadOperation>),
}

/// What became of a request.
#[derive(Debug)]
pub enum Started {
    /// Answered already.
    Done(Result<VolumeReply, VolumeError>),
    /// Device reads are needed first: perform them, then [`crate::Engine::resume`].
    Read(Box<ReadOperation>),
    /// It joined the open record; the answer comes through the token's sink.
    Queued,
}

/// A request that waits for device reads.
#[derive(Debug)]
pub struct ReadOperation {
    /// What to read, in any order, also at the same time. Fill the frames in place, or take the
    /// vectors out and put them back.
    pub reads: DiskReads,
    pub(crate) pending: Pending,
}

impl ReadOperation {
    /// What it costs whoever goes on with it before it waits again, in bytes that could be read,
    /// checked and packed in that time.
    pub fn cost_bytes(&self, tuning: &Tuning) -> u64 {
        match &self.pending {
            Pending::Restart(edit) => edit.cost_bytes(tuning),
            // Somebody has waited for the device: it goes on.
            _ => 0,
        }
    }
}

/// What goes on once the reads are done.
#[derive(Debug)]
pub(crate) enum Pending {
    /// Answer with what was read.
    Read { fetch: Fetch, phase: usize, len: usize },
    /// Fill an edit's gathers, and submit it.
    Edit { fetches: Vec<Fetch>, edit: Box<Edit> },
    /// Compare what an edit brings with chunks that may hold it already, and submit it.
    Compare { fetch: Fetch, candidates: Vec<Candidate>, edit: Box<Edit> },
    /// Look again what an edit needs.
    Restart(Box<Edit>),
    /// Begin anew, with metadata that was not in memory.
    Metadata { waiting: Box<Waiting> },
}

/// What goes on once metadata has come: from its beginning.
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
    /// Look for what the edit needs.
    Edit(Box<Edit>),
    /// Look for what it brings, among what is there.
    Reduce(Box<Edit>),
    /// Look at what it will touch.
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
    /// The edit that waits, if it is one.
    pub(crate) fn edit(&self) -> Option<&Edit> {
        match &self.then {
            Then::Edit(edit) | Then::Reduce(edit) | Then::Submit(edit) => Some(edit),
            Then::Read { .. } | Then::Extents { .. } => None,
        }
    }

    /// The reads have come.
    pub(crate) fn came(self, world: &World, reads: DiskReads) -> (Asked, Then) {
        let Self { mut asked, loads, then } = self;
        reads.iter().for_each(|_| world.memory.missed());
        asked.came(&world.medium, loads, reads);
        (asked, then)
    }
}

/// The reads that a request asks for; `then` goes on behind them.
pub(crate) fn wait_for_metadata(mut asked: Asked, world: &World, then: Then) -> Started {
    let (loads, reads) = asked.reads(&world.medium);
    let pending = Pending::Metadata { waiting: Box::new(Waiting { asked, loads, then }) };
    Started::Read(Box::new(ReadOperation { reads, pending }))
}

/// Looks again what an edit needs.
pub(crate) fn restart(edit: Box<Edit>) -> Box<ReadOperation> {
    Box::new(ReadOperation { reads: DiskReads::new(), pending: Pending::Restart(edit) })
}
