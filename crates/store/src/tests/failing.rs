//! Failed writes and records in flight, most of them found by the simulator.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use crate::{Durability, Outcome, Sink, Started, StoreError, Token};

/// A disk whose writes fail from some moment on.
struct FailingDisk(Arc<MemoryDisk>, AtomicBool, AtomicU64);

impl FailingDisk {
    fn check(&self) -> io::Result<()> {
        if self.1.load(Ordering::Relaxed) { Err(io::Error::other("broken")) } else { Ok(()) }
    }
}

impl sys::Disk for FailingDisk {
    fn len_bytes(&self) -> u64 {
        self.0.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.0.read(offset_bytes, frames)
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.check()?;
        self.0.write(offset_bytes, frames)
    }

    fn flush(&self) -> io::Result<()> {
        self.check().inspect_err(|_| {
            self.2.fetch_add(1, Ordering::Relaxed);
        })
    }

    fn flush_failures(&self) -> u64 {
        self.2.load(Ordering::Relaxed)
    }
}

#[derive(Default)]
pub(super) struct Answers(pub(super) Mutex<Vec<(u64, Outcome)>>);

impl Sink for Answers {
    fn complete(&self, id: u64, outcome: Outcome) {
        self.0.lock().push((id, outcome));
    }

    fn commit_wanted(&self) {}
}

struct Bench {
    disk: Arc<FailingDisk>,
    store: Store,
    answers: Arc<Answers>,
    token: Token,
    volume: VolumeId,
}

fn bench(durability: Durability) -> Bench {
    let disk = Arc::new(FailingDisk(
        MemoryDisk::new(256 << 20),
        AtomicBool::new(false),
        AtomicU64::new(0),
    ));
    Store::create(&*disk, &[7; 64]).unwrap();
    let options = OpenOptions { durability, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options).unwrap();
    let answers = Arc::<Answers>::default();
    let token = Token { sink: store.register_sink(answers.clone()), id: 1 };
    let volume = volume(&store, MIB);
    Bench { disk, store, answers, token, volume }
}

fn start_write(bench: &Bench, bytes: &[u8]) -> Started {
    let range = SectorRange::new(0, bytes.len() as u64 / 512);
    let data = DataOut::from_bytes(bytes, 0);
    let request = VolumeRequest::Write { volume: bench.volume, range, data, fua: false };
    bench.store.start(request, bench.token)
}

#[test]
fn a_block_is_read_from_memory_until_its_record_is_written() {
    let bench = bench(Durability::Flush);
    let bytes = distinct(8, 1);
    assert!(matches!(start_write(&bench, &bytes), Started::Done(Ok(_))));
    // Its chunk has a location now, but nothing was written there yet.
    let commit = bench.store.take_commit().unwrap();
    assert_eq!(read(&bench.store, bench.volume, 0, 8), bytes);
    bench.store.write_out(&commit).unwrap();
    bench.store.finish_commit(commit, Ok(()));
    assert_eq!(read(&bench.store, bench.volume, 0, 8), bytes);
}

#[test]
fn waiting_requests_are_answered_when_a_checkpoint_fails() {
    let bench = bench(Durability::Commit);
    assert!(matches!(start_write(&bench, &distinct(8, 1)), Started::Queued));
    bench.disk.1.store(true, Ordering::Relaxed);
    assert!(bench.store.checkpoint().is_err());
    assert!(bench.store.take_commit().is_none());
    let answers = bench.answers.0.lock();
    let [(1, Outcome::Reply(Err(VolumeError::WriteFailed)))] = answers[..] else {
        panic!("{answers:?}");
    };
}

#[test]
fn a_checkpoint_never_stores_data_of_a_failed_write() {
    let bench = bench(Durability::Flush);
    assert!(matches!(start_write(&bench, &distinct(8, 1)), Started::Done(Ok(_))));
    // No segment accepts it.
    while let Some(commit) = bench.store.take_commit() {
        bench.store.finish_commit(commit, Err(io::Error::other("broken")));
    }
    let refused = bench.store.checkpoint().unwrap_err();
    assert!(matches!(refused, StoreError::Volume(VolumeError::WriteFailed)), "{refused}");
    let Bench { disk, store, volume, .. } = bench;
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert_eq!(read(&store, volume, 0, 8), vec![0; 4096]);
    assert_sound(&store);
}

/// Two commits in flight: blocks 0 and 1.
fn two_commits(bench: &Bench, bytes: &[u8]) -> [crate::Commit; 2] {
    let commits = [0, 1].map(|index| {
        let range = SectorRange::new(index * 8, 8);
        let data = DataOut::from_bytes(&bytes[index as usize * 4096..][..4096], 0);
        let request = VolumeRequest::Write { volume: bench.volume, range, data, fua: false };
        let token = Token { id: index, ..bench.token };
        assert!(matches!(bench.store.start(request, token), Started::Queued));
        bench.store.take_commit().unwrap()
    });
    assert!(bench.store.take_commit().is_none());
    commits
}

#[test]
fn a_commit_written_first_waits_for_the_earlier_one() {
    let bench = bench(Durability::Commit);
    let bytes = distinct(16, 1);
    let [first, second] = two_commits(&bench, &bytes);
    for commit in [&first, &second] {
        bench.store.write_out(commit).unwrap();
    }
    bench.store.finish_commit(second, Ok(()));
    assert!(bench.answers.0.lock().is_empty());
    assert_eq!(read(&bench.store, bench.volume, 0, 16), vec![0; 8192]);
    bench.store.finish_commit(first, Ok(()));
    let ids: Vec<u64> = bench.answers.0.lock().iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, [0, 1]);
    assert_eq!(read(&bench.store, bench.volume, 0, 16), bytes);
}

#[test]
fn after_a_lost_commit_nothing_is_applied_or_recovered() {
    let bench = bench(Durability::Commit);
    let [first, second] = two_commits(&bench, &distinct(16, 1));
    bench.store.write_out(&second).unwrap();
    bench.store.finish_commit(second, Ok(()));
    bench.store.finish_commit(first, Err(io::Error::other("lost")));
    // No segment accepts them.
    while let Some(commit) = bench.store.take_commit() {
        bench.store.finish_commit(commit, Err(io::Error::other("lost")));
    }
    for (_, outcome) in bench.answers.0.lock().drain(..) {
        assert!(matches!(outcome, Outcome::Reply(Err(VolumeError::WriteFailed))), "{outcome:?}");
    }
    assert_eq!(read(&bench.store, bench.volume, 0, 16), vec![0; 8192]);
    let Bench { disk, store, volume, .. } = bench;
    drop(store);
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    assert_eq!(read(&store, volume, 0, 16), vec![0; 8192]);
    // The log continues where the lost record was, before the one that was written.
    let bytes = distinct(8, 3);
    write(&store, volume, 0, &bytes).unwrap();
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert_eq!(read(&store, volume, 0, 16), [bytes, vec![0; 4096]].concat());
    assert_sound(&store);
}

/// After the store has failed nothing is written elsewhere: a record written after a lost one must
/// not count then.
#[test]
fn after_a_lost_commit_nothing_counts_in_a_failed_store() {
    let bench = bench(Durability::Commit);
    let [first, second] = two_commits(&bench, &distinct(16, 1));
    bench.store.writer.lock().fail();
    bench.store.write_out(&second).unwrap();
    bench.store.finish_commit(second, Ok(()));
    bench.store.finish_commit(first, Err(io::Error::other("lost")));
    let answers = bench.answers.0.lock();
    let failed = |(id, outcome): &(u64, Outcome)| {
        assert!(matches!(outcome, Outcome::Reply(Err(VolumeError::WriteFailed))), "{outcome:?}");
        *id
    };
    assert_eq!(answers.iter().map(failed).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(read(&bench.store, bench.volume, 0, 16), vec![0; 8192]);
}

#[test]
fn a_corrupt_record_in_the_middle_of_the_log_is_damage_and_not_its_end() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    let begin = store.writer.lock().log.position();
    for at in 0..3 {
        write(&store, id, at * 8, &distinct(8, at + 1)).unwrap();
    }
    drop(store);
    let offset = u64::from(begin.segment) * (16 << 20) + u64::from(begin.block) * 4096;
    disk.flip(offset + 100, 0);
    let opened = Store::open(disk, OpenOptions::default());
    assert!(matches!(opened, Err(StoreError::Damaged(_))), "the loss of a record was not detected");
}

/// Recovery drops a torn record, and the log continues in the next segment, because its first
/// record does not fit after the last complete one. The torn record stays where it is; it must not
/// end the log.
#[test]
fn a_torn_record_does_not_hide_records_in_the_next_segment() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 4 * MIB);
    fill_segment(&store, id);
    let torn = store.writer.lock().log.position();
    write(&store, id, 0, &distinct(8, 1000)).unwrap();
    tear(&disk, store, torn.segment, torn.block);
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    assert_eq!(store.writer.lock().log.position().block, torn.block, "the torn record is dropped");
    let after = distinct(512, 2000);
    write(&store, id, 0, &after).unwrap();
    assert_ne!(store.writer.lock().log.position().segment, torn.segment, "it did not fit");
    for _ in 0..2 {
        let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
        assert!(read(&store, id, 0, 512) == after, "an acknowledged write is lost");
        // Nor is it damage.
        assert_sound(&store);
        store.scrub_start(1);
        while store.scrub_step(64, 6).unwrap() != crate::ScrubStep::Complete {}
        assert_eq!(store.damage().findings, []);
    }
}

/// A torn record was too long for its segment and began the next one; the first record after the
/// start was not. In the same epoch the torn one would count, because the log never goes back.
#[test]
fn a_torn_record_in_the_next_segment_does_not_hide_later_records() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 4 * MIB);
    fill_segment(&store, id);
    let before = store.writer.lock().log.position();
    write(&store, id, 0, &distinct(512, 1000)).unwrap();
    let next = store.writer.lock().log.position().segment;
    assert_ne!(next, before.segment, "it did not fit");
    tear(&disk, store, next, 0);
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    assert_eq!(store.writer.lock().log.position().segment, before.segment, "it is dropped");
    let after = distinct(8, 2000);
    write(&store, id, 0, &after).unwrap();
    assert_eq!(store.writer.lock().log.position().segment, before.segment, "this one fits");
    drop(store);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert!(read(&store, id, 0, 8) == after, "an acknowledged write is lost");
    assert_sound(&store);
}

/// Writes until the rest of the log's segment is too short for a record of 64 blocks.
fn fill_segment(store: &Store, volume: VolumeId) {
    let blocks = store.world.medium.geometry().blocks_per_segment();
    let room = || blocks - store.writer.lock().log.position().block;
    let mut seed = 0;
    while room() > 60 {
        let sectors = if room() > 200 { 512 } else { 8 };
        seed += 1;
        write(store, volume, MIB, &distinct(sectors, seed)).unwrap();
    }
}

/// Stops the store, and loses the first payload block of a record with one block of headers.
fn tear(disk: &MemoryDisk, store: Store, segment: u32, block: u32) {
    let offset_units = (block + 1) * format::geometry::UNITS_PER_BLOCK;
    let place = format::Place { segment, offset_units };
    let payload = store.world.medium.geometry().offset_bytes(place);
    drop(store);
    sys::Disk::write(disk, payload, &[FrameMut::zeroed().freeze()]).unwrap();
}

/// A checkpoint that waits for a record whose write takes long, as after retries, does not poll: it
/// checks once before it waits, and once after each record.
#[test]
fn a_checkpoint_sleeps_while_a_record_is_in_flight() {
    let bench = bench(Durability::Flush);
    assert!(matches!(start_write(&bench, &distinct(8, 1)), Started::Done(Ok(_))));
    let commit = bench.store.take_commit().unwrap();
    bench.store.write_out(&commit).unwrap();
    std::thread::scope(|scope| {
        let checkpoint = scope.spawn(|| bench.store.checkpoint());
        while !bench.store.writer.lock().has_barrier() {
            std::thread::yield_now();
        }
        // Far more turns of this thread than the other one may take.
        for _ in 0..100_000 {
            drop(bench.store.writer.lock());
            std::thread::yield_now();
        }
        bench.store.finish_commit(commit, Ok(()));
        checkpoint.join().unwrap().unwrap();
    });
    let turns = bench.store.barrier_turns.load(Ordering::Relaxed);
    assert!(turns <= 3, "it checked {turns} times");
}
