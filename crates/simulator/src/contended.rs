//! Requests that race on the same sectors.
//!
//! The first block's even sectors are locks, which hosts take with COMPARE AND WRITE, as ESXi does;
//! its odd sectors and the other blocks are written, zeroed, unmapped and copied over each other,
//! in overlapping ranges. Every value is written only once, so that for each sector the requests
//! can be judged as operations on a register (`judge`). The power fails sometimes, with requests in
//! every state; what was acknowledged and is durable stays, and a lock that was taken durably is
//! not taken again.

use std::sync::Arc;

use block::{
    CopySegment, DataOut, Sector, SectorCount, SectorRange, VolumeError, VolumeId, VolumeReply,
    VolumeRequest,
};
use store::{Change, Durability, OpenOptions, Outcome, ReadOperation};
use store::{Started, Store, Token, Tuning, VolumeChange};

use crate::commits::Commits;
use crate::content::{Tag, bytes_of, tags_of, unique_tag};
use crate::desk::Mailbox;
use crate::disk::{SimDisk, Survival};
use crate::rng::Rng;

mod judge;

use judge::{Answer, Event, Kind, judge};

/// The number of sectors of the volume: enough blocks for copies that are staged.
const SECTORS: u64 = 20 * 8;
/// Bytes of a pool of 40 small segments.
const POOL_BYTES: u64 = (16 << 20) + (40 << 16);

/// The results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contest {
    /// Locks taken.
    pub won: u64,
    /// Locks not taken, because they held something else.
    pub lost: u64,
    /// How often the power failed.
    pub crashes: u64,
    /// A hash of every I/O and answer.
    pub trace: u64,
}

struct Contenders {
    disk: Arc<SimDisk>,
    options: OpenOptions,
    store: Option<Store>,
    crashes: u64,
    mailbox: Arc<Mailbox>,
    rng: Rng,
    volume: VolumeId,
    sink: store::SinkId,
    events: Vec<Event>,
    /// The requests that wait for device reads.
    reading: Vec<(usize, Box<ReadOperation>)>,
    commits: Commits,
    under_way: usize,
    time: u64,
}

/// Lets hosts race for `steps` steps, while the power fails sometimes, and at the end.
pub fn contend(seed: u64, durability: Durability, steps: u64) -> Result<Contest, String> {
    let mut rng = Rng::new(seed);
    let disk = Arc::new(SimDisk::new(POOL_BYTES, seed));
    let error = |error: store::StoreError| error.to_string();
    Store::create_with_segments(&*disk, &[seed as u8; 64], 64 << 10).map_err(error)?;
    let options = OpenOptions {
        durability,
        memory_bytes: 1 << 20,
        checkpoint_log_bytes: 256 << 10,
        tuning: Tuning::SMALL,
        upgrade: true,
        discard: seed.is_multiple_of(2),
        takes_over: None,
        log_end: None,
    };
    let store = Store::open(disk.clone(), options.clone()).map_err(error)?;
    let volume = store.allocate_volume_id();
    let create = VolumeChange::Create { id: volume, size: SectorCount(SECTORS) };
    store.change(Change { volumes: vec![create], ..Change::default() }).map_err(error)?;
    let mailbox = Arc::<Mailbox>::default();
    let sink = store.register_sink(mailbox.clone());
    let mut world = Contenders {
        disk: disk.clone(),
        options,
        store: Some(store),
        crashes: 0,
        mailbox,
        rng: Rng::new(rng.draw()),
        volume,
        sink,
        events: Vec::new(),
        reading: Vec::new(),
        commits: Commits::default(),
        under_way: 0,
        time: 0,
    };
    for _ in 0..steps {
        world.step()?;
    }
    world.crash()?;
    world.read_all()?;
    let Contenders { events, crashes, .. } = world;
    judge(&events)?;
    let takes = |wanted: Answer| {
        let taken = |event: &&Event| matches!(event.kind, Kind::Take { .. });
        events.iter().filter(taken).filter(|event| event.answer == wanted).count() as u64
    };
    let (won, lost) = (takes(Answer::Done), takes(Answer::Miscompare));
    Ok(Contest { won, lost, crashes, trace: disk.trace() })
}

impl Contenders {
    fn step(&mut self) -> Result<(), String> {
        let room = if self.under_way < 8 { 80 } else { 0 };
        let reading = if self.reading.is_empty() { 0 } else { 80 };
        match self.rng.weighted(&[room, reading, 60, 1, 4]) {
            0 => self.start()?,
            1 => self.read_one()?,
            2 => self.commit_one()?,
            3 => {
                self.crash()?;
                self.read_all()?;
            }
            // It may wait for commits in flight, which nothing else would finish.
            _ if self.commits.is_empty() => drop(self.store()?.maintain()),
            _ => {}
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

    fn store(&self) -> Result<&Store, String> {
        self.store.as_ref().ok_or_else(|| "the store is not open".to_string())
    }

    /// Makes the power fail, and opens the pool again.
    fn crash(&mut self) -> Result<(), String> {
        const ANY: [Survival; 5] =
            [Survival::Nothing, Survival::All, Survival::Writes, Survival::Sectors, Survival::Torn];
        self.crashes += 1;
        self.time += 1;
        self.commits.clear();
        self.reading.clear();
        self.under_way = 0;
        self.store = None;
        for event in self.events.iter_mut().filter(|event| event.end == u64::MAX) {
            event.end = self.time;
        }
        let survival = ANY[self.rng.below(5) as usize];
        self.disk.note(&format!("crash, survival {survival:?}"));
        self.disk.crash(survival, &mut self.rng);
        let store = Store::open(self.disk.clone(), self.options.clone());
        let store = store.map_err(|error| format!("recovery: {error}"))?;
        self.mailbox = Arc::default();
        self.sink = store.register_sink(self.mailbox.clone());
        self.store = Some(store);
        Ok(())
    }

    /// Reads everything at once.
    fn read_all(&mut self) -> Result<(), String> {
        let (volume, range) = (self.volume, SectorRange::new(0, SECTORS));
        let left = match self.store()?.execute(VolumeRequest::Read { volume, range }) {
            Ok(VolumeReply::Data(data)) => tags_of(&data.to_vec()),
            other => return Err(format!("reading after a crash: {other:?}")),
        };
        let answer = Answer::Data(left.map_err(|at| format!("sector {at} is torn"))?);
        let (start, end) = (self.time + 1, self.time + 2);
        self.time = end;
        let mut event = Event::new(range, Kind::Read, start, self.crashes);
        (event.end, event.answer) = (end, answer);
        self.events.push(event);
        Ok(())
    }

    fn start(&mut self) -> Result<(), String> {
        self.time += 1;
        let fresh = unique_tag(self.time);
        let plain = |rng: &mut Rng, count_max: u64| {
            let start = rng.between(8, SECTORS - 1);
            SectorRange::new(start, rng.between(1, count_max).min(SECTORS - start))
        };
        let (range, kind) = match self.rng.below(11) {
            0 => (SectorRange::new(self.rng.below(8), self.rng.between(1, 8)), Kind::Read),
            1 => (plain(&mut self.rng, SECTORS), Kind::Read),
            2 => (SectorRange::new(1 + 2 * self.rng.below(4), 1), Kind::Write(vec![fresh])),
            3 | 4 => {
                let range = plain(&mut self.rng, 60);
                let tags = (0..range.count.0).map(|at| unique_tag(self.time << 8 | 1 << 60 | at));
                (range, Kind::Write(tags.collect()))
            }
            5 => {
                let range = plain(&mut self.rng, 40);
                (range, Kind::Zero { unmap: self.rng.chance(50) })
            }
            6 | 7 => {
                let from = plain(&mut self.rng, 120);
                let to = plain(&mut self.rng, from.count.0);
                let count = from.count.0.min(to.count.0);
                (SectorRange::new(to.start.0, count), Kind::Copy { from: from.start.0 })
            }
            8 => (SectorRange::new(0, 0), Kind::Flush),
            _ => {
                let sector = 2 * self.rng.below(2);
                let expected = self.guess(sector);
                (SectorRange::new(sector, 1), Kind::Take { expected, new: fresh })
            }
        };
        let phase = range.start.offset_in_block_bytes();
        let data = |tags: &[Tag]| DataOut::from_bytes(&bytes_of(tags), phase);
        let volume = self.volume;
        let has_fua =
            matches!(kind, Kind::Write(_) | Kind::Take { .. } | Kind::Zero { unmap: false });
        let fua = has_fua && self.rng.chance(10);
        let request = match &kind {
            Kind::Read => VolumeRequest::Read { volume, range },
            Kind::Flush => VolumeRequest::Flush { volume },
            Kind::Zero { unmap: true } => VolumeRequest::Unmap { volume, ranges: vec![range] },
            Kind::Zero { unmap: false } => VolumeRequest::Zero { volume, range, fua },
            Kind::Copy { from } => VolumeRequest::Copy {
                segments: vec![CopySegment {
                    source: volume,
                    source_start: Sector(*from),
                    destination: volume,
                    destination_start: range.start,
                    count: range.count,
                }],
            },
            Kind::Write(tags) => VolumeRequest::Write { volume, range, data: data(tags), fua },
            Kind::Take { expected, new } => VolumeRequest::CompareAndWrite {
                volume,
                range,
                expected: data(&[*expected]),
                data: data(&[*new]),
                fua,
                sender: None,
            },
        };
        let by_itself = self.options.durability == Durability::Commit;
        let flushes = fua || by_itself || matches!(kind, Kind::Flush);
        self.events.push(Event { flushes, ..Event::new(range, kind, self.time, self.crashes) });
        self.under_way += 1;
        let id = self.events.len() - 1;
        let started = self.store()?.start(request, Token { sink: self.sink, id: id as u64 });
        self.started(id, started);
        Ok(())
    }

    /// Returns the content of a lock that a host expects: usually the last value with which it was
    /// taken.
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
                // In the same way as all others, so that it is judged in one place.
                let outcome = Outcome::Reply(reply);
                store::Sink::complete(&*self.mailbox, id as u64, outcome);
            }
            Started::Read(operation) => self.reading.push((id, operation)),
            Started::Queued => {}
        }
    }

    fn read_one(&mut self) -> Result<(), String> {
        let index = self.rng.below(self.reading.len() as u64) as usize;
        let (id, mut operation) = self.reading.swap_remove(index);
        for read in &mut operation.reads {
            let segments = self.store()?.segments();
            read.failed = segments.read_patiently(read.place, &mut read.frames).is_err();
        }
        let token = Token { sink: self.sink, id: id as u64 };
        let started = self.store()?.resume(operation, token);
        self.started(id, started);
        Ok(())
    }

    /// Takes a commit, or does a step of one in hand: they end in any order.
    fn commit_one(&mut self) -> Result<(), String> {
        let take = self.commits.is_empty() || self.rng.below(2) == 0;
        let store = self.store.as_ref().ok_or("the store is not open")?;
        if take && let Some(commit) = store.take_commit() {
            self.commits.begin(&*self.disk, store, commit);
        } else if let Some((commit, result)) = self.commits.step(&*self.disk, store, &mut self.rng)
        {
            store.finish_commit(commit, result);
        }
        Ok(())
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
        if event.flushes && reply.is_ok() {
            // Everything acknowledged before this began is durable.
            let (began, era) = (event.start, event.era);
            event.durable = true;
            let before = |earlier: &&mut Event| earlier.era == era && earlier.end < began;
            for earlier in self.events.iter_mut().filter(before) {
                earlier.durable = earlier.durable || earlier.answer != Answer::None;
            }
        }
        let event = &mut self.events[index];
        event.answer = match (reply, &event.kind) {
            (Ok(VolumeReply::Data(data)), Kind::Read) => {
                let tags = tags_of(&data.to_vec());
                Answer::Data(tags.map_err(|at| format!("sector {at} of {event:?} is torn"))?)
            }
            (Ok(VolumeReply::Done), kind) if *kind != Kind::Read => Answer::Done,
            (Err(VolumeError::Miscompare { .. }), Kind::Take { .. }) => Answer::Miscompare,
            (reply, _) => return Err(format!("{event:?} got {reply:?}")),
        };
        self.disk.note(&format!("answer {index}: {:?}", event.answer));
        Ok(())
    }
}
