//! Continuing jobs that did not fit a record, or waited for a checkpoint, for space, or for others.

use block::VolumeError;

use crate::world::World;
use crate::writer::Writer;
use crate::writer::job::{Answer, Job};
use crate::writer::need::NEEDS_LOOKED_AT_MAX;

impl Writer {
    /// Returns whether a copy waits for a slot and one is free.
    pub(crate) fn has_place(&self, world: &World) -> bool {
        self.queues.placeless_count() > 0 && world.places.free(self.tuning.parts_at_once) > 0
    }

    /// Continues copies for which there are slots.
    pub(crate) fn take_placeless(&mut self, world: &World, answers: &mut Vec<Answer>) {
        let free = world.places.free(self.tuning.parts_at_once);
        let found = self.queues.take_placeless(free);
        answers.extend(found.into_iter().map(|(token, edit)| Answer::Again(token, edit)));
    }

    /// Sends deferred edits back to be read again: only as many as one record may take, because the
    /// others would be deferred once more, and examining an edit costs as much as applying it. The
    /// rest follows with later commits or, if there are none, by [`Writer::revive_forgotten`].
    fn take_deferred(&mut self, answers: &mut Vec<Answer>) {
        let most = if self.failed { u64::MAX } else { self.tuning.commit_work };
        let deferred = self.queues.take_deferred(most).into_iter();
        answers.extend(deferred.map(|(token, edit)| Answer::Again(token, edit)));
    }

    /// Returns whether jobs wait although nothing blocks them, and no commit is to come that would
    /// let them in: the shortage of memory or the barrier that they waited for is over, or the
    /// edits that were sent back did not return.
    pub(crate) fn forgets_some(&self, world: &World) -> bool {
        (self.queues.has_ready() || self.has_place(world))
            && self.is_idle()
            && !self.failed
            && !self.must_wait(world)
    }

    /// Lets in jobs that would otherwise be forgotten.
    pub(crate) fn revive_forgotten(&mut self, world: &World, answers: &mut Vec<Answer>) {
        if self.forgets_some(world) {
            self.take_waiting(world, answers);
        }
    }

    /// Lets heavy edits join in order, as many as fit a record.
    fn take_heavy(&mut self, world: &World, answers: &mut Vec<Answer>) {
        let mut waiting = self.queues.take_heavy();
        while !self.queues.has_heavy()
            && let Some((token, edit)) = waiting.pop_front()
        {
            let submitted = self.join(world, token, Job::Edit(edit));
            answers.extend(submitted.answer(token));
        }
        self.queues.put_back_heavy(waiting);
    }

    /// Sends deferred edits back to be read again, and lets jobs join that wait for room.
    pub(crate) fn take_waiting(&mut self, world: &World, answers: &mut Vec<Answer>) {
        self.take_deferred(answers);
        self.take_placeless(world, answers);
        if self.failed {
            let failed = std::mem::take(&mut self.open.waiting);
            let staging = std::mem::take(&mut self.open.staging);
            answers.extend(
                failed
                    .into_iter()
                    .chain(staging.into_iter().map(|(token, _)| token))
                    .chain(self.queues.take_all())
                    .map(|token| Answer::Reply(token, Err(VolumeError::WriteFailed))),
            );
            return;
        }
        if self.must_wait(world) {
            return;
        }
        self.revive_starved(world);
        self.take_heavy(world, answers);
        let looked_at_max = self.supply.needs_looked_at() + NEEDS_LOOKED_AT_MAX;
        self.take_bulk(world, 1, looked_at_max, answers);
        let mut waiting = self.queues.take_overflow();
        // If one is put back because the record is full, so are all after it.
        while !self.queues.has_put_off(false)
            && self.supply.needs_looked_at() < looked_at_max
            && let Some((token, job)) = waiting.pop_front()
        {
            let submitted = self.join(world, token, job);
            answers.extend(submitted.answer(token));
        }
        self.queues.put_back(waiting);
        self.take_bulk(world, usize::MAX, looked_at_max, answers);
    }
}
