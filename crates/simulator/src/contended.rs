//! Requests that race on the same sectors.
//!
//! The first block's even sectors are locks, which hosts take with COMPARE AND WRITE, as ESXi
//! does; its odd sectors and the second block are written plainly, in ranges that overlap. Every
//! value is written once only, so that for each sector the requests can be judged as operations
//! on a register:
//! - a read may return a value unless another write was started after that value's write was
//!   answered, and was answered before the read started;
//! - of the requests that expect one value of a lock, at most one succeeds;
//! - a miscompare is wrong if the expected value was there all the while.

use std::sync::Arc;

use block::{DataOut, SectorCount, SectorRange, VolumeError, VolumeId, VolumeReply, VolumeRequest};
use store::{Change, Commit, Durability, OpenOptions, Outcome, ReadOperation};
use store::{Started, Store, Token, VolumeChange};
use sys::Disk as _;

use crate::content::{Tag, bytes_of, tags_of, unique_tag};
use crate::desk::Mailbox;
use crate::disk::{SimDisk, Survival};
use crate::rng::Rng;

const SECTORS: u64 = 16;

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contest {
    /// Locks taken.
    pub won: u64,
    /// Locks not taken, because they held something else.
    pub lost: u64,
    /// A hash of every I/O and answer.
    pub trace: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Read,
    Write(Vec<Tag>),
    Take { expected: Tag, new: Tag },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Answer {
    None,
    Done,
    Miscompare,
    Data(Vec<Tag>),
}

#[derive(Clone, Debug)]
struct Event {
    range: SectorRange,
    kind: Kind,
    start: u64,
    end: u64,
    answer: Answer,
}

/// A value that a sector got, and when.
struct Put {
    value: Tag,
    start: u64,
    end: u64,
}

struct Contenders {
    disk: Arc<SimDisk>,
    store: Store,
    mailbox: Arc<Mailbox>,
    rng: Rng,
    volume: VolumeId,
    sink: store::SinkId,
    events: Vec<Event>,
    /// Which requests wait for device reads.
    reading: Vec<(usize, Box<ReadOperation>)>,
    /// The commits in hand, and whether they are written.
    commits: Vec<(Commit, bool)>,
    under_way: usize,
    time: u64,
}

/// Lets hosts race for `steps` steps; with answers from the medium the power fails at the end.
pub fn contend(seed: u64, durability: Durability, steps: u64) -> Result<Contest, String> {
    let mut rng = Rng::new(seed);
    let disk = Arc::new(SimDisk::new(256 << 20, seed));
    let error = |error: store::StoreError| error.to_string();
    Store::create(&*disk, &[seed as u8; 64]).map_err(error)?;
    let options = OpenOptions { durability, memory_bytes: 1 << 20, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options.clone()).map_err(error)?;
    let volume = store.allocate_volume_id();
    let create = VolumeChange::Create { id: volume, size: SectorCount(SECTORS) };
    store.change(Change { volumes: vec![create], ..Change::default() }).map_err(error)?;
    let mailbox = Arc::<Mailbox>::default();
    let sink = store.register_sink(mailbox.clone());
    let mut world = Contenders {
        disk: disk.clone(),
        store,
        mailbox,
        rng: Rng::new(rng.draw()),
        volume,
        sink,
        events: Vec::new(),
        reading: Vec::new(),
        commits: Vec::new(),
        under_way: 0,
        time: 0,
    };
    for _ in 0..steps {
        world.step()?;
    }
    let Contenders { mut events, store, time, .. } = world;
    let store = if durability == Durability::Commit {
        drop(store);
        disk.crash(Survival::Sectors, &mut rng);
        Store::open(disk.clone(), options).map_err(error)?
    } else {
        store
    };
    let range = SectorRange::new(0, SECTORS);
    let left = match store.execute(VolumeRequest::Read { volume, range }) {
        Ok(VolumeReply::Data(data)) => tags_of(&data.to_vec()),
        other => return Err(format!("the last read: {other:?}")),
    };
    let answer = Answer::Data(left.map_err(|at| format!("sector {at} is torn"))?);
    events.push(Event { range, kind: Kind::Read, start: time + 1, end: time + 2, answer });
    judge(&events)?;
    let takes = |wanted: Answer| {
        let taken = |event: &&Event| matches!(event.kind, Kind::Take { .. });
        events.iter().filter(taken).filter(|event| event.answer == wanted).count() as u64
    };
    Ok(Contest { won: takes(Answer::Done), lost: takes(Answer::Miscompare), trace: disk.trace() })
}

impl Contenders {
    fn step(&mut self) -> Result<(), String> {
        let room = if self.under_way < 8 { 4 } else { 0 };
        let reading = if self.reading.is_empty() { 0 } else { 4 };
        match self.rng.weighted(&[room, reading, 3]) {
            0 => self.start(),
            1 => self.read_one(),
            _ => self.commit_one(),
        }
        for (id, outcome) in self.mailbox.take() {
            let index = id as usize;
            match outcome {
                Outcome::Reply(reply) => self.answered(index, reply)?,
                Outcome::Again(operation) => self.reading.push((index, operation)),
            }
        }
        Ok(())
    }

    fn start(&mut self) {
        self.time += 1;
        let fresh = unique_tag(self.time);
        let (range, kind) = match self.rng.below(6) {
            0 => (SectorRange::new(self.rng.below(8), self.rng.between(1, 8)), Kind::Read),
            1 => (SectorRange::new(1 + 2 * self.rng.below(4), 1), Kind::Write(vec![fresh])),
            2 => {
                let start = self.rng.between(8, SECTORS - 1);
                let count = self.rng.between(1, SECTORS - start);
                let tags = (0..count).map(|at| unique_tag(self.time << 8 | 1 << 60 | at));
                (SectorRange::new(start, count), Kind::Write(tags.collect()))
            }
            _ => {
                let sector = 2 * self.rng.below(2);
                let expected = self.guess(sector);
                (SectorRange::new(sector, 1), Kind::Take { expected, new: fresh })
            }
        };
        let phase = range.start.offset_in_block_bytes();
        let data = |tags: &[Tag]| DataOut::from_bytes(&bytes_of(tags), phase);
        let (volume, fua) = (self.volume, false);
        let request = match &kind {
            Kind::Read => VolumeRequest::Read { volume, range },
            Kind::Write(tags) => VolumeRequest::Write { volume, range, data: data(tags), fua },
            Kind::Take { expected, new } => VolumeRequest::CompareAndWrite {
                volume,
                range,
                expected: data(&[*expected]),
                data: data(&[*new]),
                fua,
            },
        };
        let (start, end, answer) = (self.time, u64::MAX, Answer::None);
        self.events.push(Event { range, kind, start, end, answer });
        self.under_way += 1;
        let id = self.events.len() - 1;
        let started = self.store.start(request, Token { sink: self.sink, id: id as u64 });
        self.started(id, started);
    }

    /// What a host believes a lock to hold: mostly the last value that somebody took it with.
    fn guess(&mut self, sector: u64) -> Tag {
        let back = self.rng.weighted(&[6, 1, 1]);
        let mut taken = self.events.iter().rev().filter_map(|event| match event.kind {
            Kind::Take { new, .. }
                if event.range.start.0 == sector && event.answer == Answer::Done =>
            {
                Some(new)
            }
            _ => None,
        });
        taken.nth(back).unwrap_or(0)
    }

    fn started(&mut self, id: usize, started: Started) {
        match started {
            Started::Done(reply) => {
                // Through the same way as all others, so that it is judged in one place.
                let outcome = Outcome::Reply(reply);
                store::Sink::complete(&*self.mailbox, id as u64, outcome);
            }
            Started::Read(operation) => self.reading.push((id, operation)),
            Started::Queued => {}
        }
    }

    fn read_one(&mut self) {
        let index = self.rng.below(self.reading.len() as u64) as usize;
        let (id, mut operation) = self.reading.swap_remove(index);
        for read in &mut operation.reads {
            read.failed = self.disk.read(read.offset_bytes, &mut read.frames).is_err();
        }
        let token = Token { sink: self.sink, id: id as u64 };
        let started = self.store.resume(operation, token);
        self.started(id, started);
    }

    fn commit_one(&mut self) {
        let take = self.commits.is_empty() || self.rng.below(2) == 0;
        if take && let Some(commit) = self.store.take_commit() {
            self.commits.push((commit, false));
            return;
        }
        if self.commits.is_empty() {
            return;
        }
        let index = self.rng.below(self.commits.len() as u64) as usize;
        let (commit, written) = self.commits.swap_remove(index);
        let result = if !written && !commit.frames.is_empty() {
            self.disk.write(commit.offset_bytes, &commit.frames)
        } else {
            let result = if commit.flush { self.disk.flush() } else { Ok(()) };
            self.store.finish_commit(commit, result);
            return;
        };
        match result {
            Ok(()) => self.commits.push((commit, true)),
            Err(error) => self.store.finish_commit(commit, Err(error)),
        }
    }

    fn answered(
        &mut self,
        index: usize,
        reply: Result<VolumeReply, VolumeError>,
    ) -> Result<(), String> {
        self.time += 1;
        self.under_way -= 1;
        let event = &mut self.events[index];
        event.end = self.time;
        event.answer = match (reply, &event.kind) {
            (Ok(VolumeReply::Data(data)), Kind::Read) => {
                let tags = tags_of(&data.to_vec());
                Answer::Data(tags.map_err(|at| format!("sector {at} of {event:?} is torn"))?)
            }
            (Ok(VolumeReply::Done), Kind::Write(_) | Kind::Take { .. }) => Answer::Done,
            (Err(VolumeError::Miscompare { .. }), Kind::Take { .. }) => Answer::Miscompare,
            (reply, _) => return Err(format!("{event:?} was answered with {reply:?}")),
        };
        self.disk.note(&format!("answer {index}: {:?}", event.answer));
        Ok(())
    }
}

/// All values that a sector may have got: written, or with a fate that is not known.
fn puts(events: &[Event], sector: u64) -> Vec<Put> {
    let mut found = vec![Put { value: 0, start: 0, end: 0 }];
    for event in events {
        let at = sector.wrapping_sub(event.range.start.0);
        if at >= event.range.count.0 || event.answer == Answer::Miscompare {
            continue;
        }
        let value = match &event.kind {
            Kind::Read => continue,
            Kind::Write(tags) => tags[at as usize],
            Kind::Take { new, .. } => *new,
        };
        found.push(Put { value, start: event.start, end: event.end });
    }
    found
}

/// Whether a read from `start` to `end` may see `value`.
fn may_be_seen(puts: &[Put], value: Tag, start: u64, end: u64) -> bool {
    puts.iter().filter(|put| put.value == value).any(|put| {
        let overwritten = |other: &Put| put.end < other.start && other.end < start;
        put.start < end && !puts.iter().any(overwritten)
    })
}

/// Whether nothing but `value` can have been there from `start` to `end`.
fn was_there_throughout(puts: &[Put], value: Tag, start: u64, end: u64) -> bool {
    let Some(put) = puts.iter().find(|put| put.value == value) else { return false };
    let apart = |other: &Put| other.end < put.start || other.start > end;
    put.end < start && puts.iter().all(|other| other.value == value || apart(other))
}

fn judge(events: &[Event]) -> Result<(), String> {
    let registers: Vec<Vec<Put>> = (0..SECTORS).map(|sector| puts(events, sector)).collect();
    let mut consumed = std::collections::BTreeSet::new();
    for event in events {
        let Event { range, kind, start, end, answer } = event;
        let sector = range.start.0 as usize;
        match (answer, kind) {
            (Answer::Data(tags), _) => {
                for (puts, tag) in registers[sector..].iter().zip(tags) {
                    if !may_be_seen(puts, *tag, *start, *end) {
                        return Err(format!("a value that no order allows: {event:?}"));
                    }
                }
            }
            (Answer::Done, Kind::Take { expected, .. }) => {
                if !may_be_seen(&registers[sector], *expected, *start, *end) {
                    return Err(format!("it won with what was not there: {event:?}"));
                }
                if !consumed.insert((sector, *expected)) {
                    return Err(format!("a second winner: {event:?}"));
                }
            }
            (Answer::Miscompare, Kind::Take { expected, .. })
                if was_there_throughout(&registers[sector], *expected, *start, *end) =>
            {
                return Err(format!("it lost, though it was right: {event:?}"));
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(expected: Tag, new: Tag, start: u64, end: u64, answer: Answer) -> Event {
        let kind = Kind::Take { expected, new };
        Event { range: SectorRange::new(0, 1), kind, start, end, answer }
    }

    #[test]
    fn two_winners_a_stale_read_and_a_wrong_miscompare_are_seen() {
        let first = take(0, 5, 1, 4, Answer::Done);
        assert!(judge(&[first.clone(), take(0, 6, 2, 3, Answer::Done)]).is_err());
        assert!(judge(&[first.clone(), take(0, 6, 2, 3, Answer::Miscompare)]).is_ok());
        assert!(judge(&[first.clone(), take(5, 6, 5, 6, Answer::Miscompare)]).is_err());
        let range = SectorRange::new(0, 1);
        let answer = Answer::Data(vec![0]);
        let stale = Event { range, kind: Kind::Read, start: 5, end: 6, answer };
        assert!(judge(&[first, stale]).is_err());
    }
}
