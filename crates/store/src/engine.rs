//! The interface of front ends: requests in, device reads and commits out.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use block::{SectorCount, SpaceUse, VolumeError, VolumeId, VolumeReply, VolumeRequest};
use format::superblock::Superblock;
use segments::Shared;

use crate::chunks::asking::Asked;
use crate::edits::edit::{Edit, Sizes};
use crate::operation::Pending;
use crate::operation::Then;
use crate::operation::restart;
use crate::sync::{Condvar, Mutex, RwLock};
use crate::waiters::Waiters;
use crate::world::World;
use crate::world::comparisons;
use crate::writer::Writer;
use crate::writer::job::{Answer, Job, Submitted};
use crate::{
    Commit, Durability, OpenOptions, Outcome, ReadOperation, Sink, SinkId, Started, Token, Tuning,
};

/// The part of a [`Store`](crate::Store) that answers requests. It never waits for the device.
pub struct Engine {
    pub(crate) world: World,
    pub(crate) writer: Mutex<Writer>,
    /// Signalled when a commit has ended, and was applied or not.
    pub(crate) landed: Condvar,
    /// How often a checkpoint has checked whether all commits have landed.
    #[cfg(test)]
    pub(crate) barrier_turns: AtomicU64,
    pub(crate) options: OpenOptions,
    pub(crate) pool_id: [u8; 16],
    /// The current incarnation (`incarnation`).
    pub(crate) incarnation: AtomicU64,
    pub(crate) checkpoint_count: AtomicU64,
    pub(crate) checkpoint_bytes: AtomicU64,
    pub(crate) sinks: RwLock<Vec<Arc<dyn Sink>>>,
    pub(crate) waiters: Arc<Waiters>,
}

impl Sizes for World {
    fn size(&self, id: VolumeId) -> Result<SectorCount, VolumeError> {
        let map = self.map_of(id).ok_or(VolumeError::NoSuchVolume(id))?;
        Ok(SectorCount(map.size_blocks * block::SECTORS_PER_BLOCK))
    }

    fn tuning(&self) -> &Tuning {
        &self.medium.tuning
    }
}

impl Engine {
    pub(crate) fn assemble(
        world: World,
        writer: Writer,
        superblock: &Superblock,
        options: OpenOptions,
    ) -> Self {
        let waiters = Arc::new(Waiters::default());
        world.memory.plans.begin();
        Self {
            pool_id: superblock.pool_id,
            incarnation: crate::log::incarnation::of(superblock).into(),
            world,
            writer: Mutex::new(writer),
            landed: Condvar::new(),
            #[cfg(test)]
            barrier_turns: AtomicU64::new(0),
            options,
            checkpoint_count: AtomicU64::new(0),
            checkpoint_bytes: AtomicU64::new(0),
            sinks: RwLock::new(vec![waiters.clone()]),
            waiters,
        }
    }

    /// Returns how often refused device calls were retried.
    pub fn device_retries(&self) -> u64 {
        self.world.medium.disk.retry_count()
    }

    /// Returns whether the device refuses all writes at the moment, so that changes wait for
    /// retries.
    pub fn is_device_refusing(&self) -> bool {
        self.world.medium.disk.is_refusing()
    }

    /// Returns the segments of the pool.
    pub fn segments(&self) -> &Shared {
        &self.world.medium.disk
    }

    /// Returns the sizes with which the store was opened.
    pub fn tuning(&self) -> crate::Tuning {
        self.options.tuning
    }

    /// Registers a sink for answers. At most 65,535 in the life of a store.
    ///
    /// # Panics
    /// If there are more.
    pub fn register_sink(&self, sink: Arc<dyn Sink>) -> SinkId {
        let mut sinks = self.sinks.write();
        let id = u16::try_from(sinks.len()).expect("at most 65,535 sinks");
        sinks.push(sink);
        SinkId(id)
    }

    /// Starts a request.
    pub fn start(&self, request: VolumeRequest, token: Token) -> Started {
        let started = self.begin(request, token);
        self.hand_out_places();
        started
    }

    fn begin(&self, request: VolumeRequest, token: Token) -> Started {
        if let Some(lost) = self.world.lost_target(&request) {
            return Started::Done(Err(lost));
        }
        match request {
            VolumeRequest::Read { volume, range } => {
                self.start_read(volume, range, Asked::default())
            }
            VolumeRequest::Flush { volume } => self.start_flush(volume, token),
            VolumeRequest::Extents { volume, range, limit } => {
                self.start_extents(volume, range, limit, Asked::default())
            }
            VolumeRequest::Space { volume } => Started::Done(self.space(volume)),
            change => {
                let compared = comparisons::of_request(&change, &self.world.medium.keys);
                match Edit::plan(change, &self.world) {
                    Ok(mut edit) => {
                        if let Some(compare) = &mut edit.compare {
                            compare.compared = compared;
                        }
                        self.start_edit(Box::new(edit), token)
                    }
                    Err(error) => Started::Done(Err(error)),
                }
            }
        }
    }

    /// Continues a request after the device reads of `operation` were performed.
    // It comes boxed from `Started`, and is returned in the same way.
    #[allow(clippy::boxed_local)]
    pub fn resume(&self, operation: Box<ReadOperation>, token: Token) -> Started {
        let started = self.come_back(*operation, token);
        self.hand_out_places();
        started
    }

    fn come_back(&self, operation: ReadOperation, token: Token) -> Started {
        let ReadOperation { reads, pending } = operation;
        match pending {
            Pending::Read { mut fetch, phase, len } => {
                fetch.finish(&self.world, reads);
                Started::Done(fetch.reply(phase, len))
            }
            Pending::Edit { mut fetches, edit } => {
                let mut reads = reads.into_iter();
                for fetch in &mut fetches {
                    let mine = reads.by_ref().take(fetch.read_count).collect();
                    fetch.finish(&self.world, mine);
                }
                self.gathered(edit, fetches, token)
            }
            Pending::Compare { mut fetch, candidates, edit } => {
                fetch.finish(&self.world, reads);
                self.compared(edit, &candidates, &fetch, token)
            }
            Pending::Restart(edit) => self.start_edit(edit, token),
            Pending::Metadata { waiting } => self.go_on(waiting.came(&self.world, reads), token),
        }
    }

    /// Restarts a step with metadata that was read.
    fn go_on(&self, (asked, then): (Asked, Then), token: Token) -> Started {
        self.turn_plans();
        let with = |mut edit: Box<Edit>, asked| {
            edit.asked = asked;
            edit
        };
        match then {
            Then::Read { volume, range } => self.start_read(volume, range, asked),
            Then::Extents { volume, range, limit } => {
                self.start_extents(volume, range, limit, asked)
            }
            Then::Edit(edit) => self.start_edit(with(edit, asked), token),
            Then::Reduce(edit) => self.reduce(with(edit, asked), token),
            Then::Submit(edit) => self.submit_edit(with(edit, asked), token),
        }
    }

    /// Ends a request that was to continue with `operation`: what it has done stays, and the rest
    /// is dropped.
    pub fn abandon(&self, operation: Box<ReadOperation>) {
        let edit = match &operation.pending {
            Pending::Edit { edit, .. } | Pending::Compare { edit, .. } | Pending::Restart(edit) => {
                Some(&**edit)
            }
            Pending::Metadata { waiting } => waiting.edit(),
            Pending::Read { .. } => None,
        };
        if let Some(edit) = edit {
            self.writer.lock().release_staged(&self.world, edit);
        }
        drop(operation);
        self.hand_out_places();
    }

    /// If memory is short, releases metadata that no planned change needs any longer.
    fn turn_plans(&self) {
        if self.world.memory.plans.is_wanted()
            && let Some(writer) = self.writer.try_lock()
        {
            writer.turn_plans(&self.world);
        }
    }

    fn start_flush(&self, volume: VolumeId, token: Token) -> Started {
        if self.world.volume(volume).is_none() {
            return Started::Done(Err(VolumeError::NoSuchVolume(volume)));
        }
        if self.options.durability == Durability::Commit {
            // What was acknowledged is already durable.
            return Started::Done(Ok(VolumeReply::Done));
        }
        match self.writer.lock().submit(&self.world, token, Job::Flush) {
            Submitted::Done(reply) => Started::Done(reply),
            _ => Started::Queued,
        }
    }

    fn space(&self, id: VolumeId) -> Result<VolumeReply, VolumeError> {
        let status = self.volume_status(id).ok_or(VolumeError::NoSuchVolume(id))?;
        let (pool_used_bytes, pool_capacity_bytes) = self.space_use();
        Ok(VolumeReply::Space(SpaceUse {
            pool_capacity_bytes,
            pool_used_bytes,
            volume_mapped_bytes: status.mapped_bytes,
        }))
    }

    /// Takes the writer's role, if something is queued and the device can take another commit.
    /// Write it, then call [`Engine::finish_commit`]. Commits may end in any order.
    pub fn take_commit(&self) -> Option<Commit> {
        let mut answers = Vec::new();
        let commit = {
            let mut writer = self.writer.lock();
            writer.revive_forgotten(&self.world, &mut answers);
            let commit = writer.take_commit(&self.world);
            answers.extend(writer.abandon(&self.world));
            commit
        };
        self.answer(answers);
        commit
    }

    /// Returns the writer's role: applies the commit once all earlier ones have ended, and answers
    /// its requests.
    pub fn finish_commit(&self, commit: Commit, result: io::Result<()>) {
        self.writer.lock().land(&self.world, &commit, result.is_ok());
        self.settle_commits();
    }

    /// Does the same as [`Engine::finish_commit`] in two steps: takes the next commit first, so
    /// that the device works while the finished one is applied. Start the write of the returned
    /// commit, and then call [`Engine::settle_commits`] in any case.
    pub fn hand_on_commit(&self, commit: Commit, result: io::Result<()>) -> Option<Commit> {
        let mut writer = self.writer.lock();
        writer.land(&self.world, &commit, result.is_ok());
        writer.take_commit(&self.world)
    }

    /// Applies the commits that have ended, and answers their requests.
    pub fn settle_commits(&self) {
        let answers = {
            let mut writer = self.writer.lock();
            let mut answers = writer.apply_landed(&self.world);
            answers.extend(writer.abandon(&self.world));
            answers
        };
        self.landed.notify_all();
        self.answer(answers);
    }

    pub(crate) fn answer(&self, answers: Vec<Answer>) {
        if answers.is_empty() {
            return;
        }
        let sinks = self.sinks.read();
        for answer in answers {
            let (token, outcome) = match answer {
                Answer::Reply(token, reply) => (token, Outcome::Reply(reply)),
                Answer::Again(token, edit) => (token, Outcome::Again(restart(edit))),
            };
            if let Some(sink) = sinks.get(usize::from(token.sink.0)) {
                sink.complete(token.id, outcome);
            }
        }
    }

    /// Records that the initiator has acknowledged the status of a COMPARE AND WRITE, identified by
    /// the `command` of its [`block::request::Sender`]: this command will not count as one whose
    /// response was lost.
    pub fn acknowledged(&self, command: u64) {
        self.world.comparisons.acknowledged(command);
    }

    /// Returns the whole key-value space, ordered by key.
    pub fn config(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let writer = self.writer.lock();
        writer.state.config.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Returns whether the writer has given up, so that only reads are served.
    pub fn has_failed(&self) -> bool {
        self.writer.lock().has_failed()
    }
}
