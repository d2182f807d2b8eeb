//! Callers that block: management, tests and tools. Front ends never do.

use std::io;

use block::{VolumeError, VolumeReply, VolumeRequest};
use format::Entry;

use crate::log::relocation::Relocation;
use crate::upkeep::Store;
use crate::waiters::WAITERS;
use crate::world::view::View;
use crate::writer::job::{Job, Submitted};
use crate::{Commit, Outcome, ReadOperation, Sink, Started, StoreError, Token};

impl Store {
    /// Executes a request completely on the calling thread, which blocks (for management, tests and
    /// tools; not for front ends).
    pub fn execute(&self, request: VolumeRequest) -> Result<VolumeReply, VolumeError> {
        let token = self.waiting_token();
        let started = self.start(request, token);
        let reply = self.settle(started, token);
        self.hand_over();
        reply
    }

    pub(crate) fn waiting_token(&self) -> Token {
        self.waiters.token()
    }

    pub(crate) fn settle(
        &self,
        mut started: Started,
        token: Token,
    ) -> Result<VolumeReply, VolumeError> {
        loop {
            started = match started {
                Started::Done(reply) => return reply,
                Started::Read(mut operation) => {
                    self.perform(&mut operation);
                    self.resume(operation, token)
                }
                Started::Queued => match self.wait_for(token) {
                    Outcome::Reply(reply) => return reply,
                    Outcome::Again(operation) => Started::Read(operation),
                },
            };
        }
    }

    /// Waits for a job that was submitted with a token of a blocking caller, and lets others
    /// continue that wait after it.
    pub(crate) fn conclude(
        &self,
        submitted: Submitted,
        token: Token,
    ) -> Result<VolumeReply, VolumeError> {
        let started = match submitted {
            Submitted::Done(reply) => Started::Done(reply),
            _ => Started::Queued,
        };
        let reply = self.settle(started, token);
        self.hand_over();
        reply
    }

    /// Commits chunks to their new location; returns `false` if the writer has no room for them.
    /// Blocks.
    pub(crate) fn relocate(&self, mut relocation: Relocation) -> Result<bool, StoreError> {
        let plan = self.world.memory.plans.hold();
        let view = View::from(&self.world).planning(plan.number);
        for brought in relocation.entries.iter().flat_map(Entry::brought) {
            view.chunks.get(view.medium, brought.chunk.0, |_| ())?;
        }
        relocation.plan = Some(plan);
        let token = self.waiting_token();
        let submitted = self.writer.lock().submit(&self.world, token, Job::Relocate(relocation));
        if matches!(submitted, Submitted::Done(Err(VolumeError::NoSpace))) {
            return Ok(false);
        }
        self.conclude(submitted, token)?;
        Ok(true)
    }

    pub(crate) fn perform(&self, operation: &mut ReadOperation) {
        for read in &mut operation.reads {
            let result = self.world.medium.disk.read_patiently(read.place, &mut read.frames);
            read.failed = result.is_err();
        }
    }

    /// Waits for a result, and does the writer's work meanwhile if no other thread does.
    fn wait_for(&self, token: Token) -> Outcome {
        loop {
            if let Some(outcome) = self.waiters.take(token) {
                return outcome;
            }
            if self.commit_here() || self.relieve() || self.feed() {
                continue;
            }
            if self.world.medium.disk.give_way() {
                continue;
            }
            self.waiters.wait_for(token, || self.others_work());
        }
    }

    /// Takes and finishes commits until there are none; returns whether there was one.
    pub(crate) fn commit_here(&self) -> bool {
        let Some(mut commit) = self.take_commit() else { return false };
        loop {
            let result = self.write_commit(&commit);
            let next = self.hand_on_commit(commit, result);
            self.settle_commits();
            match next {
                Some(next) => commit = next,
                None => return true,
            }
        }
    }

    fn write_commit(&self, commit: &Commit) -> io::Result<()> {
        self.world.medium.disk.append_as(commit.place, &commit.frames, commit.persist)
    }

    /// Hands what was collected during a blocking caller's commit to a thread that waits for it.
    pub(crate) fn hand_over(&self) {
        let next = {
            let writer = self.writer.lock();
            if !writer.wants_commit() {
                return;
            }
            writer.first_waiting()
        };
        match next {
            Some(token) if token.sink != WAITERS => {
                let sinks = self.sinks.read();
                if let Some(sink) = sinks.get(usize::from(token.sink.0)) {
                    sink.commit_wanted();
                }
            }
            // Another blocking caller takes it by itself; what no such caller waits for is written
            // here.
            Some(_) => self.waiters.commit_wanted(),
            None => drop(self.commit_here()),
        }
    }
}
