//! Jobs that wait to join the open record, or to restart.
//!
//! | queue | waits for |
//! |---|---|
//! | overflow | room in the open record, or a checkpoint |
//! | bulk | the same, for jobs that write much data (`bulk`) |
//! | heavy | a record that has the budget to apply it |
//! | deferred | the application of records that change blocks which it has read |
//! | placeless | a slot for the next part of a copy (`places`) |
//! | starved | space (`starved`) |
//!
//! Invariants:
//! 1. A job waits in one queue, or in none: what is taken out of one is joined, answered, or put
//!    back.
//! 2. Each queue is in order of arrival: jobs that were tried and did not fit come before jobs that
//!    were not tried.

use std::collections::VecDeque;

use crate::Token;
use crate::edits::edit::Edit;
use crate::writer::job::Job;

/// Jobs in order.
pub(crate) type Jobs = VecDeque<(Token, Job)>;
/// Edits in order.
pub(crate) type Edits = VecDeque<(Token, Box<Edit>)>;

/// The queues; see the module.
#[derive(Default)]
pub(crate) struct Queues {
    overflow: Jobs,
    bulk: Jobs,
    heavy: Edits,
    deferred: Vec<(Token, Box<Edit>)>,
    placeless: Edits,
    starved: Jobs,
}

impl Queues {
    /// Returns whether requests wait because the device does not keep up.
    pub(crate) fn is_pressed(&self) -> bool {
        !self.overflow.is_empty() || !self.bulk.is_empty() || self.has_starved()
    }

    /// Returns whether jobs wait only for the next commit, or for the end of what has blocked them.
    pub(crate) fn has_ready(&self) -> bool {
        !self.overflow.is_empty()
            || !self.bulk.is_empty()
            || !self.heavy.is_empty()
            || !self.deferred.is_empty()
    }

    /// Lets a job wait for room, after others of its kind.
    pub(crate) fn put_off(&mut self, token: Token, job: Job, is_bulk: bool) {
        let queue = if is_bulk { &mut self.bulk } else { &mut self.overflow };
        queue.push_back((token, job));
    }

    /// Returns whether jobs of a kind wait for room.
    pub(crate) fn has_put_off(&self, is_bulk: bool) -> bool {
        let queue = if is_bulk { &self.bulk } else { &self.overflow };
        !queue.is_empty()
    }

    /// Takes the jobs that wait for room and are not bulk; see [`Queues::put_back`].
    pub(crate) fn take_overflow(&mut self) -> Jobs {
        std::mem::take(&mut self.overflow)
    }

    /// Puts back jobs that were taken and not tried, after those that were put back meanwhile.
    pub(crate) fn put_back(&mut self, not_asked: Jobs) {
        put_back(&mut self.overflow, not_asked);
    }

    /// Lets these jobs join before all others that wait for room.
    pub(crate) fn let_go_first(&mut self, ready: Vec<(Token, Job)>) {
        ready.into_iter().rev().for_each(|job| self.overflow.push_front(job));
    }

    /// Returns the first bulk job.
    pub(crate) fn first_bulk(&self) -> Option<&Job> {
        self.bulk.front().map(|(_, job)| job)
    }

    /// Returns the number of bulk jobs.
    pub(crate) fn bulk_count(&self) -> usize {
        self.bulk.len()
    }

    /// Takes the first bulk job.
    pub(crate) fn pop_bulk(&mut self) -> Option<(Token, Job)> {
        self.bulk.pop_front()
    }

    /// Takes all jobs that wait for room.
    pub(crate) fn take_put_off(&mut self) -> impl Iterator<Item = (Token, Job)> + use<> {
        let bulk = std::mem::take(&mut self.bulk);
        self.take_overflow().into_iter().chain(bulk)
    }

    /// Returns whether edits wait for a record with enough budget.
    pub(crate) fn has_heavy(&self) -> bool {
        !self.heavy.is_empty()
    }

    /// Lets an edit wait for such a record.
    pub(crate) fn push_heavy(&mut self, token: Token, edit: Box<Edit>) {
        self.heavy.push_back((token, edit));
    }

    /// Takes those edits; see [`Queues::put_back_heavy`].
    pub(crate) fn take_heavy(&mut self) -> Edits {
        std::mem::take(&mut self.heavy)
    }

    /// Puts back edits, as [`Queues::put_back`].
    pub(crate) fn put_back_heavy(&mut self, not_asked: Edits) {
        put_back(&mut self.heavy, not_asked);
    }

    /// Lets an edit wait until the changes of what it has read are applied.
    pub(crate) fn defer(&mut self, token: Token, edit: Box<Edit>) {
        self.deferred.push((token, edit));
    }

    /// Takes the first deferred edits, until examining them has cost so much work.
    pub(crate) fn take_deferred(&mut self, work_max: u64) -> Vec<(Token, Box<Edit>)> {
        let mut work = 0;
        let mut fits = |(_, edit): &(Token, Box<Edit>)| {
            let is_next = work < work_max;
            work += if is_next { edit.looked_at() } else { 0 };
            is_next
        };
        let count = self.deferred.iter().take_while(|waiting| fits(waiting)).count();
        self.deferred.drain(..count).collect()
    }

    /// Lets a copy wait for a slot.
    pub(crate) fn push_placeless(&mut self, token: Token, edit: Box<Edit>) {
        self.placeless.push_back((token, edit));
    }

    /// Returns how many copies wait for a slot.
    pub(crate) fn placeless_count(&self) -> usize {
        self.placeless.len()
    }

    /// Takes the first of those.
    pub(crate) fn take_placeless(&mut self, most: usize) -> Edits {
        let count = most.min(self.placeless.len());
        self.placeless.drain(..count).collect()
    }

    /// Lets a job wait for space.
    pub(crate) fn push_starved(&mut self, token: Token, job: Job) {
        self.starved.push_back((token, job));
    }

    /// Returns whether any job waits for space.
    pub(crate) fn has_starved(&self) -> bool {
        !self.starved.is_empty()
    }

    /// Returns the jobs that wait for space, oldest first.
    pub(crate) fn starved(&self) -> impl ExactSizeIterator<Item = &Job> {
        self.starved.iter().map(|(_, job)| job)
    }

    /// Takes all of those; none is added meanwhile.
    pub(crate) fn take_starved(&mut self) -> Jobs {
        std::mem::take(&mut self.starved)
    }

    /// Puts back jobs that still wait for space.
    pub(crate) fn put_back_starved(&mut self, starved: Jobs) {
        assert!(self.starved.is_empty(), "jobs that wait for space keep their order");
        self.starved = starved;
    }

    /// Takes all jobs, because none joins after this; returns their tokens.
    pub(crate) fn take_all(&mut self) -> Vec<Token> {
        let jobs = self.overflow.drain(..).chain(self.bulk.drain(..)).chain(self.starved.drain(..));
        let edits = self.heavy.drain(..).chain(self.placeless.drain(..));
        let edits = edits.chain(self.deferred.drain(..));
        jobs.map(|(token, _)| token).chain(edits.map(|(token, _)| token)).collect()
    }

    /// Returns the bulk jobs.
    #[cfg(test)]
    pub(crate) fn bulk(&self) -> impl Iterator<Item = &Job> {
        self.bulk.iter().map(|(_, job)| job)
    }
}

/// Puts back jobs that did not fit before those that were not tried, which stay where they are
/// because there may be very many.
fn put_back<T>(queue: &mut VecDeque<T>, mut waiting: VecDeque<T>) {
    std::mem::swap(queue, &mut waiting);
    waiting.into_iter().rev().for_each(|job| queue.push_front(job));
}
