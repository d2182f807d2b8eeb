//! The requests in flight, and the steps in which they proceed.

use std::sync::{Arc, Mutex, PoisonError};

use block::{SectorCount, VolumeError, VolumeReply};
use store::{Commit, Outcome, ReadOperation, Sink, SinkId, Started, Store, Token};

use crate::commits::{Commits, Ground};
use crate::generate::{Expected, Generated, Generator, Region, is_by_block, may_split};
use crate::model::{Changing, Model};
use crate::rng::Rng;

mod judge;
mod torn;
mod underway;

use underway::{Underway, any_touch};

/// Receives the store's answers.
#[derive(Default)]
pub(crate) struct Mailbox(Mutex<Vec<(u64, Outcome)>>);

impl Mailbox {
    pub(crate) fn take(&self) -> Vec<(u64, Outcome)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Sink for Mailbox {
    fn complete(&self, id: u64, outcome: Outcome) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((id, outcome));
    }

    // The world takes commits by itself, at random times.
    fn commit_wanted(&self) {}
}

/// The maximum number of steps without an answer, while waiting for everything in flight: enough to
/// empty a pool of some hundred segments several times.
const IDLE_TURNS_MAX: u64 = 20_000;

struct Op {
    id: u64,
    label: String,
    reads: Vec<Region>,
    writes: Vec<Region>,
    expected: Expected,
    fua: bool,
    by_block: bool,
    /// Whether it may take several commits.
    splits: bool,
    started: u64,
    /// The device reads that it waits for, and how many are done.
    operation: Option<(Box<ReadOperation>, usize)>,
}

impl Op {
    fn changing(&self) -> Option<Changing> {
        let Expected::Done(effects) = &self.expected else { return None };
        let Op { started, by_block, .. } = *self;
        Some(Changing { effects: effects.clone(), started, by_block, racing: Vec::new() })
    }
}

/// The requests in flight on one store, and the oracle.
pub(crate) struct Desk {
    pub(crate) disk: Arc<dyn Ground>,
    pub(crate) mailbox: Arc<Mailbox>,
    pub(crate) sink: SinkId,
    pub(crate) model: Model,
    pub(crate) rng: Rng,
    pub(crate) generator: Generator,
    pub(crate) durable_answers: bool,
    /// Whether the pool may be full.
    pub(crate) may_be_full: bool,
    /// Whether a front end may wait for another disk, because what it read first was wrong.
    pub(crate) may_wait: bool,
    /// The commits in hand.
    pub(crate) commits: Commits,
    /// A logical clock: increases at each start and each answer.
    pub(crate) time: u64,
    pub(crate) answers: u64,
    pub(crate) refused_full: u64,
    pub(crate) in_flight_max: usize,
    ops: Vec<Op>,
    /// Requests that were refused, and may have been done in part.
    torn: Vec<Changing>,
    /// The administrative change in progress.
    change: Option<Underway>,
    next_id: u64,
    /// Device reads of the store itself during a front end's call.
    read_inside: u64,
}

impl Desk {
    pub(crate) fn new(
        disk: Arc<dyn Ground>,
        model: Model,
        generator: Generator,
        rng: Rng,
        durable_answers: bool,
    ) -> Self {
        Self {
            disk,
            mailbox: Arc::default(),
            sink: SinkId(0),
            model,
            rng,
            generator,
            durable_answers,
            may_be_full: false,
            may_wait: false,
            commits: Commits::default(),
            time: 0,
            answers: 0,
            refused_full: 0,
            in_flight_max: 6,
            ops: Vec::new(),
            torn: Vec::new(),
            change: None,
            next_id: 0,
            read_inside: 0,
        }
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.ops.is_empty() && self.commits.is_empty()
    }

    fn token(&self, id: u64) -> Token {
        Token { sink: self.sink, id }
    }

    /// Does one random step.
    pub(crate) fn step(&mut self, store: &Store) -> Result<(), String> {
        // Requests acknowledged before precede those that begin now.
        self.collect()?;
        self.look_at_torn(store)?;
        let reading = self.ops.iter().filter(|op| op.operation.is_some()).count() as u64;
        let room = self.ops.len() < self.in_flight_max;
        let weights = [if room { 4 } else { 0 }, 3 * reading.min(2), 3];
        match self.rng.weighted(&weights) {
            0 => self.start(store),
            1 => self.read_one(store),
            _ => self.commit_one(store),
        }
    }

    /// Does a step that starts nothing; returns whether there was one.
    pub(crate) fn settle_one(&mut self, store: &Store) -> Result<bool, String> {
        // One that restarts may do so until a commit in hand is applied.
        let goes_on = self.commits.is_empty() || self.rng.chance(50);
        if goes_on && self.ops.iter().any(|op| op.operation.is_some()) {
            self.read_one(store)?;
            return Ok(true);
        }
        let before = self.answers;
        let held = !self.commits.is_empty();
        self.commit_one(store)?;
        // What was received may also be a request that restarts.
        let begins = self.ops.iter().any(|op| op.operation.is_some());
        if held || !self.commits.is_empty() || self.answers != before || begins {
            return Ok(true);
        }
        // What waits now waits for a checkpoint, because all of the memory has changed, or for
        // space. If the disk has failed, a turn finds that out and answers what waits.
        let wait = !self.ops.is_empty() && store.maintenance_due();
        if wait {
            match store.maintain() {
                Err(error) if !self.disk.has_failed() => return Err(error.to_string()),
                _ => self.collect()?,
            }
        }
        Ok(wait)
    }

    /// Continues until nothing is in flight. A request that waits then would wait forever.
    pub(crate) fn settle(&mut self, store: &Store) -> Result<(), String> {
        let (mut turns, mut answers) = (0, self.answers);
        while self.settle_one(store)? {
            turns = if answers == self.answers { turns + 1 } else { 0 };
            answers = self.answers;
            if turns > IDLE_TURNS_MAX {
                let labels: Vec<_> = self.ops.iter().map(|op| op.label.as_str()).collect();
                return Err(format!(
                    "{labels:?} got no response within {turns} turns of maintenance"
                ));
            }
        }
        match self.ops.first() {
            None => self.look_at_torn(store),
            Some(op) => Err(format!("request {} never got a response: {}", op.id, op.label)),
        }
    }

    /// Records a power failure: what was in flight may be there or not.
    pub(crate) fn give_up(&mut self) {
        for op in std::mem::take(&mut self.ops) {
            self.forget(op);
        }
        self.torn.drain(..).for_each(|change| self.model.unknown(change));
        self.commits.clear();
        drop(self.mailbox.take());
    }

    /// Returns the model if everything in flight may be there or not.
    pub(crate) fn model_if_lost(&self) -> Model {
        let mut model = self.model.clone();
        let under_way = self.ops.iter().filter_map(Op::changing);
        under_way.chain(self.torn.iter().cloned()).for_each(|change| model.unknown(change));
        model
    }

    fn forget(&mut self, op: Op) {
        if let Some(change) = op.changing() {
            self.model.unknown(change);
        }
    }

    fn start(&mut self, store: &Store) -> Result<(), String> {
        let made = self.generator.request(&self.model.now, &mut self.rng);
        let clash = self.ops.iter().any(|op| {
            any_touch(&op.writes, &made.writes)
                || any_touch(&op.writes, &made.reads)
                || any_touch(&op.reads, &made.writes)
        });
        let torn = self.is_torn(&made.reads) || self.is_torn(&made.writes);
        if clash || torn || self.change.as_ref().is_some_and(|underway| underway.clashes(&made)) {
            return Ok(());
        }
        let Generated { label, request, reads, writes, expected, fua } = made;
        self.next_id += 1;
        self.time += 1;
        let id = self.next_id;
        self.disk.note(&format!("start {id}: {label}"));
        let by_block = is_by_block(&request, &store.tuning());
        let splits = may_split(&request, &store.tuning());
        let (started, operation) = (self.time, None);
        let op =
            Op { id, label, reads, writes, expected, fua, by_block, splits, started, operation };
        self.change.iter_mut().for_each(|underway| underway.add(&op));
        self.ops.push(op);
        let token = self.token(id);
        let started = self.inside(|| store.start(request, token));
        self.started(id, started)?;
        self.collect()
    }

    /// Returns whether a request in flight touches the volume of a slot.
    pub(crate) fn is_busy(&self, slot: usize) -> bool {
        let there = |region: &Region| region.slot == slot;
        self.ops.iter().any(|op| op.reads.iter().chain(&op.writes).any(there))
    }

    /// Returns whether a request in flight changes the volume of a slot.
    pub(crate) fn is_written(&self, slot: usize) -> bool {
        self.ops.iter().flat_map(|op| &op.writes).any(|region| region.slot == slot)
    }

    fn started(&mut self, id: u64, started: Started) -> Result<(), String> {
        match started {
            Started::Done(reply) => self.answered(id, reply),
            Started::Queued => Ok(()),
            Started::Read(operation) => {
                let op = self.ops.iter_mut().find(|op| op.id == id);
                let op = op.ok_or_else(|| format!("request {id} reads but is not in progress"))?;
                op.operation = Some((operation, 0));
                Ok(())
            }
        }
    }

    /// Calls the store as a front end: it must not wait for the device then.
    fn inside<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let before = self.disk.read_count();
        let result = call();
        self.read_inside += self.disk.read_count() - before;
        result
    }

    /// Processes what has arrived.
    pub(crate) fn collect(&mut self) -> Result<(), String> {
        if self.read_inside > 0 && !self.may_wait {
            return Err(format!("a front end has waited for {} reads", self.read_inside));
        }
        for (id, outcome) in self.mailbox.take() {
            match outcome {
                Outcome::Reply(reply) => self.answered(id, reply)?,
                Outcome::Again(operation) => self.started(id, Started::Read(operation))?,
            }
        }
        Ok(())
    }

    /// Does one device read of one request, or ends it.
    fn read_one(&mut self, store: &Store) -> Result<(), String> {
        let reading: Vec<usize> =
            (0..self.ops.len()).filter(|index| self.ops[*index].operation.is_some()).collect();
        if reading.is_empty() {
            return Ok(());
        }
        let index = reading[self.rng.below(reading.len() as u64) as usize];
        let Some((mut operation, done)) = self.ops[index].operation.take() else { return Ok(()) };
        if let Some(read) = operation.reads.get_mut(done) {
            read.failed = store.segments().read_patiently(read.place, &mut read.frames).is_err();
            self.ops[index].operation = Some((operation, done + 1));
            return Ok(());
        }
        let id = self.ops[index].id;
        let token = self.token(id);
        let started = self.inside(|| store.resume(operation, token));
        self.started(id, started)?;
        self.collect()
    }

    /// Takes a commit, or does a step of one of those in hand: they end in any order.
    fn commit_one(&mut self, store: &Store) -> Result<(), String> {
        let take = self.commits.is_empty() || self.rng.below(2) == 0;
        if take && let Some(commit) = self.inside(|| store.take_commit()) {
            self.commits.begin(&*self.disk, store, commit);
            return self.collect();
        }
        if self.commits.is_empty() {
            return self.collect();
        }
        match self.commits.step(&*self.disk, store, &mut self.rng) {
            Some((commit, result)) => self.commit_ended(store, commit, result),
            None => Ok(()),
        }
    }

    /// Ends a commit like a front end: the next commit may be taken before this one is applied.
    fn commit_ended(
        &mut self,
        store: &Store,
        commit: Commit,
        result: std::io::Result<()>,
    ) -> Result<(), String> {
        if self.rng.below(2) == 0 {
            self.inside(|| store.finish_commit(commit, result));
        } else {
            let next = self.inside(|| store.hand_on_commit(commit, result));
            if let Some(commit) = next {
                self.commits.begin(&*self.disk, store, commit);
            }
            self.inside(|| store.settle_commits());
        }
        self.collect()
    }

    /// Finishes the commits in hand.
    pub(crate) fn finish_commits(&mut self, store: &Store) -> Result<(), String> {
        while !self.commits.is_empty() {
            self.commit_one(store)?;
        }
        Ok(())
    }

    fn answered(&mut self, id: u64, reply: Result<VolumeReply, VolumeError>) -> Result<(), String> {
        let index = self.ops.iter().position(|op| op.id == id);
        let index = index.ok_or_else(|| format!("request {id} got two responses"))?;
        let op = self.ops.remove(index);
        self.time += 1;
        self.answers += 1;
        self.tell_change(&op, &reply);
        let told = match &reply {
            Ok(VolumeReply::Data(data)) => format!("{} bytes", data.len()),
            other => format!("{other:?}"),
        };
        self.disk.note(&format!("answer {id}: {told}"));
        let label = op.label.clone();
        self.judge(op, reply).map_err(|reason| format!("request {id} ({label}): {reason}"))
    }

    /// Returns the size of the volume in a slot.
    pub(crate) fn size(&self, slot: usize) -> SectorCount {
        SectorCount(self.model.now.volumes[slot].tags.len() as u64)
    }
}
