//! Jobs that wait for space: each is fed or refused after bounded work.

use format::geometry::SEGMENT_BYTES_MIN;
use format::{Place, SegmentState};

use super::*;
use crate::{Outcome, Sink, SinkId, Started, Token, Tuning};

const SEGMENT_BYTES: u64 = 64 << 10;
const SEGMENT_UNITS: u32 = (SEGMENT_BYTES / format::PLACE_UNIT_BYTES) as u32;

/// Answers, by their tokens.
#[derive(Default)]
struct Answers(Mutex<Vec<(u64, Result<(), VolumeError>)>>);

impl Sink for Answers {
    fn complete(&self, id: u64, outcome: Outcome) {
        match outcome {
            Outcome::Reply(reply) => self.0.lock().push((id, reply.map(drop))),
            Outcome::Again(_) => panic!("nothing needs to be read"),
        }
    }

    fn commit_wanted(&self) {}
}

/// A pool of small segments in which so many are free, and nothing can be won.
struct Short {
    store: Store,
    answers: Arc<Answers>,
    sink: SinkId,
    volume: VolumeId,
}

impl Short {
    fn new(free: u32) -> Self {
        let disk = MemoryDisk::new(SEGMENT_BYTES_MIN + 48 * SEGMENT_BYTES);
        Store::create_with_segments(&*disk, &[5; 64], SEGMENT_BYTES).unwrap();
        let options = OpenOptions { tuning: Tuning::SMALL, ..OpenOptions::default() };
        let store = Store::open(disk, options).unwrap();
        let volume = volume(&store, 8 * MIB);
        store.checkpoint().unwrap();
        {
            let segments = &mut store.writer.lock().state.segments;
            while segments.free_count() > free {
                let segment = segments.open(SegmentState::Log, 1).unwrap();
                segments.add_live(Place { segment, offset_units: 0 }, SEGMENT_UNITS).unwrap();
            }
        }
        let answers = Arc::<Answers>::default();
        let sink = store.register_sink(answers.clone());
        Self { store, answers, sink, volume }
    }

    fn start(&self, id: u64, request: VolumeRequest) {
        let started = self.store.start(request, Token { sink: self.sink, id });
        assert!(matches!(started, Started::Queued), "{started:?}");
    }

    /// Changes more metadata than there is room for.
    fn start_much(&self, id: u64) {
        let range = |at: u64| SectorRange::new(at * 3000 + 3, 300);
        let ranges = (0..4).map(range).collect();
        self.start(id, VolumeRequest::Unmap { volume: self.volume, ranges });
    }

    fn start_little(&self, id: u64) {
        let range = SectorRange::new(id * 8, 8);
        let data = DataOut::from_bytes(&distinct(8, id), 0);
        self.start(id, VolumeRequest::Write { volume: self.volume, range, data, fua: false });
    }

    fn waiting(&self) -> usize {
        self.store.writer.lock().starved.len()
    }
}

/// Found by the simulator as turns of maintenance that answer nothing: a job that could not get in
/// kept those behind it in the queue, where it seemed that there was room for them each time.
#[test]
fn a_job_that_can_not_get_in_keeps_no_other_out() {
    let pool = Short::new(6);
    pool.store.writer.lock().set_pace(1000, 3, 1);
    pool.start_much(1);
    assert_eq!(pool.waiting(), 1);
    pool.start_little(2);
    assert_eq!(pool.waiting(), 2, "it waits behind");
    pool.store.worked(0);
    assert_eq!(pool.waiting(), 1);
    while pool.store.commit_here() {}
    assert_eq!(*pool.answers.0.lock(), [(2, Ok(()))]);
}

/// Whatever a turn does, it counts: so what waits for ever without that is refused.
#[test]
fn what_waits_is_refused_after_bounded_work() {
    let pool = Short::new(6);
    pool.start_much(1);
    let begin = pool.store.writer.lock().work_bytes;
    // As if each turn found something to do that wins nothing.
    let mut turns = 0;
    while pool.waiting() > 0 {
        pool.store.refuse_overdue();
        turns += 1;
    }
    let work_bytes = pool.store.writer.lock().work_bytes - begin;
    assert!(work_bytes <= pool.store.work_bytes_max() + block::BLOCK_BYTES, "{turns} turns");
    assert_eq!(*pool.answers.0.lock(), [(1, Err(VolumeError::NoSpace))]);
}

/// Others that need less go on getting in: who is overtaken is refused all the same, and they not.
#[test]
fn what_others_overtake_is_refused_after_bounded_work() {
    let pool = Short::new(6);
    pool.start_much(1);
    let begin = pool.store.writer.lock().work_bytes;
    let most = pool.store.work_bytes_max();
    let mut next = 2;
    while pool.answers.0.lock().iter().all(|(id, _)| *id != 1) {
        {
            let mut writer = pool.store.writer.lock();
            assert!(writer.work_bytes - begin <= 5 * most, "it waits for too long");
            writer.work_bytes += most / 2;
            // Another one that has waited joins.
            let mut waits_from = Some(begin);
            writer.feed(&mut waits_from);
        }
        pool.store.refuse_overdue();
        next += 1;
    }
    assert!(next > 8, "it waits while others do not");
    assert_eq!(*pool.answers.0.lock(), [(1, Err(VolumeError::NoSpace))]);
    assert!(pool.store.writer.lock().exhausted_at.is_none(), "others are not refused for it");
}
