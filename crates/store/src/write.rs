//! The path of a change, from its request to the open record.
//!
//! 1. The request is planned as an *edit* (`edit`): steps in whole blocks.
//! 2. Blocks whose current content it needs are read: the edges of a write that is not aligned to 4
//!    KiB, what COMPARE AND WRITE compares ([`Engine::start_edit`], [`Engine::gathered`]).
//! 3. Its data is reduced: patterns, duplicates, compression (`reduce`, `pack`).
//! 4. All metadata that it will touch is checked ([`Engine::submit_edit`], `preload`), and stays in
//!    memory from here on (`plans`).
//! 5. It joins the open record (`join`), or waits for room.
//!
//! The record is written and applied by `commit`. In steps 2 to 4 the front end reads what is not
//! in memory, like data, and the step restarts (`asking`).

use block::{Frame, VolumeError, VolumeReply};

use crate::edits::edit::Edit;
use crate::edits::preload;
use crate::engine::Engine;
use crate::fetch::Fetch;
use crate::operation::Pending;
use crate::operation::Then;
use crate::operation::restart;
use crate::operation::wait_for_metadata;
use crate::world::view::View;
use crate::writer::job::{Job, Submitted};
use crate::{DiskReads, Durability, ReadOperation, Started, Token};

impl Engine {
    /// Reads what an edit needs from volumes, and submits it.
    pub(crate) fn start_edit(&self, mut edit: Box<Edit>, token: Token) -> Started {
        edit.begin_piece(&self.options.tuning);
        edit = match self.begin_part(edit, token) {
            Ok(edit) => edit,
            Err(started) => return started,
        };
        if !edit.wants_blocks() {
            return self.submit(edit, token);
        }
        let mut fetches = Vec::new();
        let mut reads = DiskReads::new();
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
            return wait_for_metadata(asked, &self.world, Then::Edit(edit));
        }
        edit.asked = asked;
        if reads.is_empty() {
            return self.gathered(edit, fetches, token);
        }
        let pending = Pending::Edit { fetches, edit };
        Started::Read(Box::new(ReadOperation { reads, pending }))
    }

    /// Begins the next part of an edit, if it has one, with a slot for the data that it moves;
    /// without one, the edit waits.
    pub(crate) fn begin_part(
        &self,
        mut edit: Box<Edit>,
        token: Token,
    ) -> Result<Box<Edit>, Started> {
        let most = self.options.tuning.parts_at_once;
        let find = |edit: &mut Edit| {
            let found = !edit.wants_place(&self.options.tuning)
                || edit.place_in(self.world.places.take(most));
            if found {
                edit.begin_part();
            }
            found
        };
        if find(&mut edit) {
            return Ok(edit);
        }
        let mut writer = self.writer.lock();
        if writer.has_failed() {
            return Err(Started::Done(Err(VolumeError::WriteFailed)));
        }
        // No other thread would find a slot that was returned in between.
        if find(&mut edit) {
            return Ok(edit);
        }
        writer.queues.push_placeless(token, edit);
        Err(Started::Queued)
    }

    /// Continues copies that wait for slots, if some are free. The next commit does that anyway;
    /// but a copy that failed or was abandoned may not have another.
    pub(crate) fn hand_out_places(&self) {
        if !self.world.places.were_given_back() {
            return;
        }
        let mut answers = Vec::new();
        {
            let mut writer = self.writer.lock();
            if writer.has_place(&self.world) {
                writer.take_placeless(&self.world, &mut answers);
            }
        }
        self.answer(answers);
    }

    pub(crate) fn gathered(
        &self,
        mut edit: Box<Edit>,
        fetches: Vec<Fetch>,
        token: Token,
    ) -> Started {
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
            Err(VolumeError::Miscompare { .. }) if self.was_done(&edit, contents) => {
                self.done_again(&edit, token)
            }
            Err(error) => self.give_up(&edit, error),
        }
    }

    /// Returns whether this is a COMPARE AND WRITE that was done and whose response was lost;
    /// `contents` is the current content of its blocks.
    fn was_done(&self, edit: &Edit, contents: Vec<Frame>) -> bool {
        let Some(compare) = &edit.compare else { return false };
        let done = compare.done_before(contents.into_iter(), &self.world.medium.keys);
        done.is_some_and(|compared| self.world.comparisons.take_over(compared))
    }

    /// Repeats its answer, if necessary once it is durable.
    fn done_again(&self, edit: &Edit, token: Token) -> Started {
        match (self.options.durability, edit.fua) {
            (Durability::Flush, true) => self.submit_job(Job::Flush, token),
            _ => Started::Done(Ok(VolumeReply::Done)),
        }
    }

    /// Answers with an error, and releases what the edit has staged.
    pub(crate) fn give_up(&self, edit: &Edit, error: VolumeError) -> Started {
        self.writer.lock().release_staged(&self.world, edit);
        Started::Done(Err(edit.told(error)))
    }

    pub(crate) fn submit(&self, mut edit: Box<Edit>, token: Token) -> Started {
        if !edit.is_staging() {
            return self.reduce(edit, token);
        }
        // A part may be read at any time during the copy.
        edit.expectations.clear();
        let runs_max = self.world.medium.tuning.named_runs_max();
        edit.classify_part(&self.world.medium.keys, runs_max);
        self.submit_job(Job::Stage(edit), token)
    }

    /// Passes a checked edit to the writer, if all metadata that it touches can be read.
    pub(crate) fn submit_edit(&self, mut edit: Box<Edit>, token: Token) -> Started {
        edit.grafts_seen = self.world.grafts();
        edit.applied_seen = self.world.applied();
        edit.plan = self.world.memory.plans.now();
        let asked = std::mem::take(&mut edit.asked);
        let view = View::asking(&self.world, &asked).planning(edit.plan);
        let looked = match preload::edit(view, &mut edit) {
            Err(_) if !asked.is_waiting() => {
                // Metadata that others free in the meantime looks lost. Nothing is freed while this
                // lock is held, so what can't be read now is lost.
                let _writer = self.writer.lock();
                edit.grafts_seen = self.world.grafts();
                edit.applied_seen = self.world.applied();
                preload::edit(view, &mut edit)
            }
            looked => looked,
        };
        if asked.is_waiting() {
            return wait_for_metadata(asked, &self.world, Then::Submit(edit));
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

    pub(crate) fn submit_job(&self, job: Job, token: Token) -> Started {
        let submitted = self.writer.lock().submit(&self.world, token, job);
        match submitted {
            Submitted::Queued => Started::Queued,
            Submitted::Done(reply) => Started::Done(reply),
            Submitted::Stale(edit) => Started::Read(restart(edit)),
        }
    }
}
