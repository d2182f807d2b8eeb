//! The writer's role: front ends, a blocking caller, and background work all take commits, write
//! them, and pass the role on. Each request completes once; an acknowledged write is visible, and
//! stays; no thread waits forever.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, OnceLock};

use block::{DataOut, SectorRange, VolumeError, VolumeId, VolumeReply, VolumeRequest};
use shuttle::thread;

use super::disk::ModelDisk;
use super::schedule::explore;
use super::{BLOCK, Pool, stamp};
use crate::sync::{Condvar, Mutex};
use crate::tests::{assert_sound, read, write};
use crate::{Commit, Durability, Next, Outcome, Sink, SinkId, Started, Store, Token};

/// Front ends; each has a block of its own, and so has the caller.
const FRONT_ENDS: u64 = 2;
/// The block that all increment.
const SHARED: u64 = FRONT_ENDS + 1;
/// How often each writes its own block, and increments the shared one.
const ROUNDS: u64 = 2;

#[test]
fn the_role_is_passed_on_and_every_request_is_answered() {
    explore("role, commit", 500, || run(Durability::Commit));
}

#[test]
fn the_role_is_passed_on_with_early_acknowledgement() {
    explore("role, flush", 500, || run(Durability::Flush));
}

fn pool() -> &'static Pool {
    static POOL: OnceLock<Pool> = OnceLock::new();
    POOL.get_or_init(|| Pool::new(|store, id| write(store, id, SHARED * BLOCK, &stamp(0)).unwrap()))
}

/// Where a thread waits for others, with a bell that also rings when all have ended.
#[derive(Default)]
struct Mailbox {
    posted: Mutex<Posted>,
    bell: Condvar,
}

#[derive(Default)]
struct Posted {
    outcomes: VecDeque<(u64, Outcome)>,
    rung: bool,
}

impl Mailbox {
    fn ring(&self) {
        self.posted.lock().rung = true;
        self.bell.notify_all();
    }

    /// Waits until the bell rings, or something has arrived.
    fn wait(&self) -> VecDeque<(u64, Outcome)> {
        let mut posted = self.posted.lock();
        while !posted.rung && posted.outcomes.is_empty() {
            self.bell.wait(&mut posted);
        }
        posted.rung = false;
        std::mem::take(&mut posted.outcomes)
    }
}

impl Sink for Mailbox {
    fn complete(&self, id: u64, outcome: Outcome) {
        self.posted.lock().outcomes.push_back((id, outcome));
        self.bell.notify_all();
    }

    fn commit_wanted(&self) {
        self.ring();
    }
}

/// What all threads of the model share.
struct Model {
    store: Arc<Store>,
    disk: Arc<ModelDisk>,
    volume: VolumeId,
    /// Those of the front ends, then that of the background thread.
    mailboxes: Vec<Arc<Mailbox>>,
    /// How many front ends and callers still have work.
    busy: Mutex<u64>,
}

impl Model {
    /// Decrements the number of threads that still have work.
    fn end_one(&self) {
        let mut busy = self.busy.lock();
        *busy -= 1;
        if *busy == 0 {
            drop(busy);
            self.mailboxes.iter().for_each(|mailbox| mailbox.ring());
        }
    }

    fn is_over(&self) -> bool {
        *self.busy.lock() == 0
    }

    fn ring_background(&self) {
        if self.store.maintenance_due() {
            self.mailboxes[FRONT_ENDS as usize].ring();
        }
    }

    fn write_of(&self, block: u64, number: u64) -> VolumeRequest {
        let (range, data) = (SectorRange::new(block * BLOCK, BLOCK), stamp(number));
        let data = DataOut::from_bytes(&data, 0);
        VolumeRequest::Write { volume: self.volume, range, data, fua: false }
    }

    fn count_up(&self, from: u64) -> VolumeRequest {
        let [expected, data] =
            [from, from + 1].map(|number| DataOut::from_bytes(&stamp(number), 0));
        let range = SectorRange::new(SHARED * BLOCK, BLOCK);
        let (volume, fua, sender) = (self.volume, false, None);
        VolumeRequest::CompareAndWrite { volume, range, expected, data, fua, sender }
    }

    /// Returns the number that a block holds, after checking all of the block.
    fn number_in(&self, block: u64) -> u64 {
        let held = read(&self.store, self.volume, block * BLOCK, BLOCK);
        let number = u64::from_le_bytes(held[..8].try_into().unwrap());
        assert!(held == stamp(number), "block {block} is torn");
        number
    }
}

fn run(durability: Durability) {
    let (disk, store, volume) = pool().open(durability);
    let store = Arc::new(store);
    let mailboxes = (0..=FRONT_ENDS).map(|_| Arc::default()).collect();
    let busy = Mutex::new(FRONT_ENDS + 1);
    let model = Arc::new(Model { store, disk, volume, mailboxes, busy });
    let mut threads = Vec::new();
    for index in 0..FRONT_ENDS {
        let model = model.clone();
        threads.push(thread::spawn(move || FrontEnd::new(&model, index).run()));
    }
    let caller = model.clone();
    threads.push(thread::spawn(move || call(&caller)));
    let background = model.clone();
    threads.push(thread::spawn(move || maintain(&background)));
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    verify(&model);
    if durability == Durability::Flush {
        model.store.execute(VolumeRequest::Flush { volume }).unwrap();
    }
    let (disk, store) = model.disk.reopen(durability);
    verify(&Model { store, disk, volume, mailboxes: Vec::new(), busy: Mutex::new(0) });
}

fn verify(model: &Model) {
    for block in 0..=FRONT_ENDS {
        assert_eq!(model.number_in(block), ROUNDS);
    }
    assert_eq!(model.number_in(SHARED), (FRONT_ENDS + 1) * ROUNDS);
    assert_sound(&model.store);
}

/// A blocking caller.
fn call(model: &Model) {
    for round in 1..=ROUNDS {
        model.store.execute(model.write_of(FRONT_ENDS, round)).unwrap();
        assert_eq!(model.number_in(FRONT_ENDS), round);
        loop {
            match model.store.execute(model.count_up(model.number_in(SHARED))) {
                Ok(_) => break,
                Err(VolumeError::Miscompare { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    model.end_one();
}

/// Background work: one checkpoint in any case, and what is due.
fn maintain(model: &Model) {
    model.store.checkpoint().unwrap();
    while !model.is_over() {
        while model.store.maintain().unwrap() != Next::Nothing {}
        model.mailboxes[FRONT_ENDS as usize].wait();
    }
}

/// What a front end has requested.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Own(u64),
    Count,
}

/// A front end: two requests at once, and commits that it writes one at a time.
struct FrontEnd<'a> {
    model: &'a Model,
    index: u64,
    sink: SinkId,
    next_id: u64,
    asked: HashMap<u64, Asked>,
    /// How often its block was written, and the shared one incremented.
    written: u64,
    counted: u64,
    writing: VecDeque<Commit>,
}

impl<'a> FrontEnd<'a> {
    fn new(model: &'a Model, index: u64) -> Self {
        let sink = model.store.register_sink(model.mailboxes[index as usize].clone());
        let (asked, writing) = Default::default();
        Self { model, index, sink, next_id: 0, asked, written: 0, counted: 0, writing }
    }

    fn run(mut self) {
        self.ask(Asked::Own(1));
        self.ask(Asked::Count);
        let mut is_busy = true;
        while !self.model.is_over() || !self.writing.is_empty() {
            while let Some(commit) = self.model.store.take_commit() {
                self.writing.push_back(commit);
            }
            if let Some(commit) = self.writing.pop_front() {
                self.write(commit);
            } else if is_busy && self.asked.is_empty() {
                is_busy = false;
                self.model.end_one();
            } else {
                for (id, outcome) in self.model.mailboxes[self.index as usize].wait() {
                    let started = match outcome {
                        Outcome::Reply(reply) => Started::Done(reply),
                        Outcome::Again(operation) => Started::Read(operation),
                    };
                    self.settle(id, started);
                }
            }
        }
        assert!(self.asked.is_empty());
    }

    fn write(&mut self, commit: Commit) {
        let disk = self.model.store.segments();
        let result = disk.append_as(commit.place, &commit.frames, commit.persist);
        self.writing.extend(self.model.store.hand_on_commit(commit, result));
        self.model.store.settle_commits();
        self.model.ring_background();
    }

    fn ask(&mut self, asked: Asked) {
        let request = match asked {
            Asked::Own(number) => self.model.write_of(self.index, number),
            Asked::Count => self.model.count_up(self.model.number_in(SHARED)),
        };
        let id = self.next_id;
        self.next_id += 1;
        self.asked.insert(id, asked);
        let started = self.model.store.start(request, Token { sink: self.sink, id });
        self.settle(id, started);
    }

    /// Performs reads until a request has completed or is queued.
    fn settle(&mut self, id: u64, mut started: Started) {
        loop {
            match started {
                Started::Queued => return,
                Started::Done(reply) => return self.answered(id, reply),
                Started::Read(mut operation) => {
                    let disk = self.model.store.segments();
                    for read in &mut operation.reads {
                        read.failed = disk.read(read.place, &mut read.frames).is_err();
                    }
                    started = self.model.store.resume(operation, Token { sink: self.sink, id });
                }
            }
        }
    }

    fn answered(&mut self, id: u64, reply: Result<VolumeReply, VolumeError>) {
        let asked = self.asked.remove(&id).expect("a request completes once");
        match (asked, reply) {
            (Asked::Own(number), Ok(_)) => {
                assert_eq!(self.model.number_in(self.index), number);
                self.written = number;
                if number < ROUNDS {
                    self.ask(Asked::Own(number + 1));
                }
            }
            (Asked::Count, Ok(_)) => {
                self.counted += 1;
                if self.counted < ROUNDS {
                    self.ask(Asked::Count);
                }
            }
            (Asked::Count, Err(VolumeError::Miscompare { .. })) => self.ask(Asked::Count),
            (asked, Err(error)) => panic!("{asked:?}: {error}"),
        }
    }
}
