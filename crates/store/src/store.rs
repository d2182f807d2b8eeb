//! The store as its callers see it: requests in, device reads and commits out.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use block::{
    BlockRange, DataIn, Sector, SectorCount, SectorRange, SpaceUse, VolumeError, VolumeId,
    VolumeReply, VolumeRequest,
};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::api::Pending;
use crate::asking::{Asked, Then, View};
use crate::edit::{Edit, Sizes};
use crate::fetch::Fetch;
use crate::preload;
use crate::wait::Waiters;
use crate::world::World;
use crate::writer::{Answer, Job, Submitted, Writer};
use crate::{
    Commit, Durability, OpenOptions, Outcome, ReadOperation, Sink, SinkId, Started, Token, Tuning,
};

/// The store. Shared by all threads behind an [`Arc`].
pub struct Store {
    pub(crate) world: World,
    pub(crate) writer: Mutex<Writer>,
    /// A commit has ended and was applied, or was not.
    pub(crate) landed: Condvar,
    /// How often a checkpoint has looked whether all has landed.
    #[cfg(test)]
    pub(crate) barrier_turns: AtomicU64,
    /// One checkpoint at a time.
    pub(crate) checkpointing: Mutex<crate::checkpoint::Checkpointer>,
    pub(crate) scrub: Mutex<crate::scrub::Scrub>,
    /// The background pass of reduction.
    pub(crate) optimizing: crate::optimize::Optimizer,
    pub(crate) reclaiming: Mutex<crate::reclaim::Reclaimer>,
    pub(crate) accounting: crate::accounting::Accounting,
    pub(crate) options: OpenOptions,
    pub(crate) pool_id: [u8; 16],
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

impl Store {
    pub(crate) fn assemble(
        world: World,
        writer: Writer,
        checkpointer: crate::checkpoint::Checkpointer,
        options: OpenOptions,
    ) -> Self {
        let waiters = Arc::new(Waiters::default());
        let superblock = checkpointer.superblock();
        Self {
            pool_id: superblock.pool_id,
            scrub: Mutex::new(crate::scrub::Scrub::of_opening(&world, writer.state.losses)),
            world,
            writer: Mutex::new(writer),
            landed: Condvar::new(),
            #[cfg(test)]
            barrier_turns: AtomicU64::new(0),
            checkpointing: Mutex::new(checkpointer),
            optimizing: Default::default(),
            reclaiming: Mutex::default(),
            accounting: crate::accounting::Accounting::default(),
            options,
            checkpoint_count: AtomicU64::new(0),
            checkpoint_bytes: AtomicU64::new(0),
            sinks: RwLock::new(vec![waiters.clone()]),
            waiters,
        }
    }

    /// How often the device was asked again for what it had refused.
    pub fn device_retries(&self) -> u64 {
        self.world.medium.disk.retry_count()
    }

    /// The sizes that it was opened with.
    pub fn tuning(&self) -> crate::Tuning {
        self.options.tuning
    }

    /// Makes a place for answers. At most 65,535 in a store's life.
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
            change => match Edit::plan(change, &self.world) {
                Ok(edit) => self.start_edit(Box::new(edit), token),
                Err(error) => Started::Done(Err(error)),
            },
        }
    }

    /// Goes on after the device reads of `operation` were performed.
    // It comes boxed from `Started`, and goes back as it came.
    #[allow(clippy::boxed_local)]
    pub fn resume(&self, operation: Box<ReadOperation>, token: Token) -> Started {
        let ReadOperation { reads, pending } = *operation;
        match pending {
            Pending::Read { mut fetch, phase, len } => {
                fetch.finish(&self.world, reads);
                Started::Done(data_reply(fetch, phase, len))
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

    /// Begins anew with metadata that has come.
    fn go_on(&self, (asked, then): (Asked, Then), token: Token) -> Started {
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

    /// Ends a request that was to go on with `operation`: what it has done stays, the rest is not
    /// wanted any more.
    // It comes boxed from `Started`.
    #[allow(clippy::boxed_local)]
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
    }

    fn start_read(&self, volume: VolumeId, range: SectorRange, asked: Asked) -> Started {
        let located = self.locate(View::asking(&self.world, &asked), volume, range);
        if asked.is_waiting() {
            return asked.wait(&self.world, Then::Read { volume, range });
        }
        match located {
            Ok(mut fetch) => {
                let phase = range.start.offset_in_block_bytes();
                let len = (range.count.0 * block::SECTOR_BYTES) as usize;
                let reads = fetch.take_reads();
                if reads.is_empty() {
                    return Started::Done(data_reply(fetch, phase, len));
                }
                let pending = Pending::Read { fetch, phase, len };
                Started::Read(Box::new(ReadOperation { reads, pending }))
            }
            Err(error) => Started::Done(Err(error)),
        }
    }

    fn start_extents(
        &self,
        volume: VolumeId,
        range: SectorRange,
        limit: usize,
        asked: Asked,
    ) -> Started {
        let found = self.extents(volume, range, limit, View::asking(&self.world, &asked));
        if asked.is_waiting() {
            return asked.wait(&self.world, Then::Extents { volume, range, limit });
        }
        Started::Done(found)
    }

    fn locate(
        &self,
        view: View<'_>,
        id: VolumeId,
        range: SectorRange,
    ) -> Result<Fetch, VolumeError> {
        range.end().ok_or(VolumeError::OutOfRange)?;
        if range.bytes().is_none_or(|bytes| bytes > block::request::limits::TRANSFER_BYTES_MAX) {
            return Err(VolumeError::TooLong);
        }
        self.locate_blocks(view, id, range.covering_blocks())
    }

    fn locate_blocks(
        &self,
        view: View<'_>,
        id: VolumeId,
        blocks: BlockRange,
    ) -> Result<Fetch, VolumeError> {
        let volume = self.world.volume(id).ok_or(VolumeError::NoSuchVolume(id))?;
        let mut fetch = Fetch::default();
        fetch.locate(view, &volume, blocks)?;
        Ok(fetch)
    }

    fn start_flush(&self, volume: VolumeId, token: Token) -> Started {
        if self.world.volume(volume).is_none() {
            return Started::Done(Err(VolumeError::NoSuchVolume(volume)));
        }
        if self.options.durability == Durability::Commit {
            // What was answered is durable already.
            return Started::Done(Ok(VolumeReply::Done));
        }
        match self.writer.lock().submit(&self.world, token, Job::Flush) {
            Submitted::Done(reply) => Started::Done(reply),
            _ => Started::Queued,
        }
    }

    /// Reads what an edit needs from volumes, and submits it.
    fn start_edit(&self, mut edit: Box<Edit>, token: Token) -> Started {
        edit.begin_piece(&self.options.tuning);
        edit.begin_part();
        if !edit.wants_blocks() {
            return self.submit(edit, token);
        }
        let mut fetches = Vec::new();
        let mut reads = Vec::new();
        let asked = std::mem::take(&mut edit.asked);
        let view = View::asking(&self.world, &asked);
        for (id, run) in edit.wanted_runs() {
            match self.locate_blocks(view, id, run) {
                Ok(mut fetch) => {
                    reads.extend(fetch.take_reads());
                    fetches.push(fetch);
                }
                Err(error) => return self.give_up(&edit, error),
            }
            if asked.is_full() {
                break;
            }
        }
        if asked.is_waiting() {
            return asked.wait(&self.world, Then::Edit(edit));
        }
        edit.asked = asked;
        if reads.is_empty() {
            return self.gathered(edit, fetches, token);
        }
        let pending = Pending::Edit { fetches, edit };
        Started::Read(Box::new(ReadOperation { reads, pending }))
    }

    fn gathered(&self, mut edit: Box<Edit>, fetches: Vec<Fetch>, token: Token) -> Started {
        edit.expectations.clear();
        let mut contents = Vec::with_capacity(edit.wanted.len());
        for ((volume, _), fetch) in edit.wanted_runs().into_iter().zip(fetches) {
            for found in &fetch.blocks {
                edit.expectations.push((volume, found.block, found.entry));
            }
            match fetch.frames() {
                Ok(frames) => contents.extend(frames),
                Err(error) => return self.give_up(&edit, error),
            }
        }
        match edit.fill_gathers(&contents) {
            Ok(()) => self.submit(edit, token),
            Err(error) => self.give_up(&edit, error),
        }
    }

    /// Answers with an error, and lets go of what the edit has staged.
    fn give_up(&self, edit: &Edit, error: VolumeError) -> Started {
        self.writer.lock().release_staged(&self.world, edit);
        Started::Done(Err(edit.told(error)))
    }

    fn submit(&self, mut edit: Box<Edit>, token: Token) -> Started {
        if !edit.is_staging() {
            return self.reduce(edit, token);
        }
        // A part may be read at any time of the copy.
        edit.expectations.clear();
        let runs_max = self.world.medium.tuning.named_runs_max();
        edit.classify_part(&self.world.medium.keys, runs_max);
        self.submit_job(Job::Stage(edit), token)
    }

    /// An edit that was looked at goes to the writer, if all that it touches can be read.
    pub(crate) fn submit_edit(&self, mut edit: Box<Edit>, token: Token) -> Started {
        edit.grafts_seen = self.world.grafts();
        let asked = std::mem::take(&mut edit.asked);
        let view = View::asking(&self.world, &asked);
        let looked = match preload::edit(view, &mut edit) {
            Err(_) if !asked.is_waiting() => {
                // What others free meanwhile looks as if it were lost. Nothing is while this holds
                // the lock: so what can't be read now can't be read.
                let _writer = self.writer.lock();
                edit.grafts_seen = self.world.grafts();
                preload::edit(view, &mut edit)
            }
            looked => looked,
        };
        if asked.is_waiting() {
            return asked.wait(&self.world, Then::Submit(edit));
        }
        edit.asked = asked;
        match looked {
            Ok(true) => self.submit_job(Job::Edit(edit), token),
            Ok(false) => {
                self.writer.lock().release_staged(&self.world, &edit);
                self.start_edit(Box::new(edit.in_pieces()), token)
            }
            Err(error) => self.give_up(&edit, error),
        }
    }

    fn submit_job(&self, job: Job, token: Token) -> Started {
        let submitted = self.writer.lock().submit(&self.world, token, job);
        match submitted {
            Submitted::Queued => Started::Queued,
            Submitted::Done(reply) => Started::Done(reply),
            Submitted::Stale(edit) => Started::Read(restart(edit)),
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

    /// Takes the writer's role, if something is queued and the device may get another commit: write
    /// it, then [`Store::finish_commit`]. Commits may end in any order.
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

    /// Gives the writer's role back: applies the commit, once all in front of it have ended, and
    /// answers its requests.
    pub fn finish_commit(&self, commit: Commit, result: io::Result<()>) {
        self.writer.lock().land(&commit, result.is_ok());
        self.settle_commits();
    }

    /// As [`Store::finish_commit`], in two steps: takes the next commit first, so that the device
    /// works while the one that has ended is applied. Start the write of what is returned, and
    /// call [`Store::settle_commits`] in any case.
    pub fn hand_on_commit(&self, commit: Commit, result: io::Result<()>) -> Option<Commit> {
        let mut writer = self.writer.lock();
        writer.land(&commit, result.is_ok());
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

    /// All of the key-value space, in the order of the keys.
    pub fn config(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let writer = self.writer.lock();
        writer.state.config.iter().map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Whether the writer has given up, so that only reads are answered.
    pub fn has_failed(&self) -> bool {
        self.writer.lock().failed
    }
}

fn restart(edit: Box<Edit>) -> Box<ReadOperation> {
    Box::new(ReadOperation { reads: Vec::new(), pending: Pending::Restart(edit) })
}

fn data_reply(fetch: Fetch, phase: usize, len: usize) -> Result<VolumeReply, VolumeError> {
    let first = fetch.blocks.first().map_or(0, |first| first.block.sector().0);
    let asked = Sector(first + phase as u64 / block::SECTOR_BYTES);
    let frames = fetch.frames().map_err(|error| match error {
        VolumeError::Medium { sector } => VolumeError::Medium { sector: sector.max(asked) },
        error => error,
    })?;
    Ok(VolumeReply::Data(DataIn::from_frames(frames, phase, len)))
}
