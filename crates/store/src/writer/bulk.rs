//! Bulk jobs, which write much data: parts of staged copies and long writes.
//!
//! A record takes only a few of them, and a window of long copies has a hundred ready at once. So
//! jobs that wait for room are in two queues: a small write waits for the next commit, not for all
//! earlier jobs. Neither kind starves: small jobs leave room in each record for a bulk one.

use crate::Token;
use crate::edits::edit::Edit;
use crate::edits::entries::entries_bytes_max;
use crate::world::World;
use crate::writer::Writer;
use crate::writer::job::{Answer, Job};

/// A job is bulk if fewer than this many like it fit one record.
const IN_RECORD_MIN: usize = 16;

impl Writer {
    /// Returns whether a job writes so much data that others do not wait for it.
    pub(crate) fn is_bulk(&self, job: &Job) -> bool {
        let may_be = matches!(job, Job::Edit(_) | Job::Stage(_));
        may_be && job.data_blocks() > self.tuning.record_blocks_max / IN_RECORD_MIN
    }

    /// Returns whether earlier jobs of its kind wait for room.
    pub(crate) fn is_behind_others(&self, job: &Job) -> bool {
        self.queues.has_put_off(self.is_bulk(job))
    }

    /// Lets a job wait for room, after others of its kind.
    pub(crate) fn put_off(&mut self, token: Token, job: Job) {
        let is_bulk = self.is_bulk(&job);
        self.queues.put_off(token, job, is_bulk);
    }

    /// Returns whether the open record has room for an edit.
    pub(crate) fn fits(&self, edit: &Edit, is_bulk: bool) -> bool {
        let blocks = edit.data_blocks();
        let has_room = self.has_room(blocks, entries_bytes_max(edit));
        has_room && (is_bulk || self.leaves_room(blocks))
    }

    /// Returns whether the open record has room for this many blocks of small jobs, and for a bulk
    /// one.
    fn leaves_room(&self, blocks: usize) -> bool {
        let Some(first) = self.queues.first_bulk() else { return true };
        let together = self.open.payload_blocks() + blocks + first.data_blocks();
        let is_free = blocks == 0 || self.open.is_empty() || self.open.has_bulk;
        is_free || together <= self.tuning.record_blocks_max
    }

    /// Lets up to `most` bulk jobs join, in their order, as far as there is room, until this many
    /// blocks were examined ([`crate::space::supply::Supply::needs_looked_at`]).
    pub(crate) fn take_bulk(
        &mut self,
        world: &World,
        most: usize,
        looked_at_max: u64,
        answers: &mut Vec<Answer>,
    ) {
        for _ in 0..most.min(self.queues.bulk_count()) {
            let has_room = |job: &Job| {
                let blocks = job.data_blocks();
                let bytes = match job {
                    Job::Edit(edit) => entries_bytes_max(edit),
                    _ => 64 + blocks * 64,
                };
                self.has_room(blocks, bytes)
            };
            let is_next = self.supply.needs_looked_at() < looked_at_max;
            if !is_next || !self.queues.first_bulk().is_some_and(has_room) {
                return;
            }
            if let Some((token, job)) = self.queues.pop_bulk() {
                let submitted = self.join(world, token, job);
                answers.extend(submitted.answer(token));
            }
        }
    }
}
