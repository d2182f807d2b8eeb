//! Jobs that wait for space: each is admitted or refused after bounded work.

use format::geometry::SEGMENT_BYTES_MIN;
use format::{Place, SegmentState};

use super::*;
use crate::space::need::{Need, Wait};
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

/// A pool of small segments with a set number of free ones, in which reclaim can gain nothing.
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

    /// Starts a change of more metadata than there is room for.
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

    /// Frees the segments that were opened to use up space.
    fn free_all(&self) {
        let segments = &mut self.store.writer.lock().state.segments;
        for (segment, row) in segments.rows().collect::<Vec<_>>() {
            if row.state == SegmentState::Log && row.live_units == SEGMENT_UNITS {
                segments.sub_live(Place { segment, offset_units: 0 }, SEGMENT_UNITS).unwrap();
                segments.free_dead_one(segment);
            }
        }
    }

    fn waiting(&self) -> usize {
        self.store.writer.lock().queues.starved().len()
    }
}

/// Found by the simulator as turns of maintenance that admit nothing: a job that could not be
/// admitted kept those after it in the queue, where there seemed to be room for them each time.
#[test]
fn a_job_without_room_does_not_block_others() {
    let pool = Short::new(8);
    pool.store.writer.lock().pace.set(1000, 3, 1);
    pool.start_much(1);
    assert_eq!(pool.waiting(), 1);
    pool.start_little(2);
    assert_eq!(pool.waiting(), 2, "it waits in the queue");
    pool.store.moved(0);
    assert_eq!(pool.waiting(), 1);
    while pool.store.commit_here() {}
    assert_eq!(*pool.answers.0.lock(), [(2, Ok(()))]);
}

/// Each turn counts, regardless of its work: so a job that would wait forever is refused.
#[test]
fn a_waiting_job_is_refused_after_bounded_work() {
    let pool = Short::new(6);
    pool.start_much(1);
    let begin = pool.store.writer.lock().supply.work_bytes();
    // As if each turn found work that gains nothing.
    let mut turns = 0;
    while pool.waiting() > 0 {
        pool.store.refuse_overdue();
        turns += 1;
    }
    let work_bytes = pool.store.writer.lock().supply.work_bytes() - begin;
    assert!(work_bytes <= pool.store.work_bytes_max() + block::BLOCK_BYTES, "{turns} turns");
    assert_eq!(*pool.answers.0.lock(), [(1, Err(VolumeError::NoSpace))]);
}

/// Smaller jobs keep being admitted: the one they overtake is refused all the same, and they are
/// not.
#[test]
fn an_overtaken_job_is_refused_after_bounded_work() {
    let pool = Short::new(6);
    pool.start_much(1);
    let begin = pool.store.writer.lock().supply.work_bytes();
    let most = pool.store.work_bytes_max();
    let mut next = 2;
    while pool.answers.0.lock().iter().all(|(id, _)| *id != 1) {
        {
            let mut writer = pool.store.writer.lock();
            assert!(writer.supply.work_bytes() - begin <= 5 * most, "it waits for too long");
            writer.supply.count_work(most / 2);
            // Another one that has waited joins.
            let need = Need::Upkeep;
            writer.feed(&mut Some(Wait { from_work_bytes: begin, need }));
        }
        pool.store.refuse_overdue();
        next += 1;
    }
    assert!(next > 8, "it waits while others do not");
    assert_eq!(*pool.answers.0.lock(), [(1, Err(VolumeError::NoSpace))]);
    assert!(
        pool.store.writer.lock().supply.exhausted(Need::Upkeep).is_none(),
        "others are not refused for it"
    );
}

/// After each move, all blocks of all waiting jobs were looked up.
#[test]
fn blocks_of_a_waiting_job_are_examined_once() {
    const JOBS: u64 = 16;
    const BLOCKS: u64 = 8;
    let pool = Short::new(4);
    for id in 0..JOBS {
        let range = SectorRange::new(id * BLOCKS * 8, BLOCKS * 8);
        let data = DataOut::from_bytes(&distinct(BLOCKS * 8, id + 1), 0);
        let volume = pool.volume;
        pool.start(id, VolumeRequest::Write { volume, range, data, fua: false });
    }
    assert_eq!(pool.waiting() as u64, JOBS);
    for _ in 0..100 {
        assert!(pool.store.is_starving());
    }
    assert_eq!(pool.store.writer.lock().supply.needs_looked_at(), JOBS * BLOCKS);
    // One more lookup when there is room for overwrites, as they may be new data by then: not for
    // these.
    pool.free_all();
    for turn in 0.. {
        assert!(turn < 1000, "{} wait forever", pool.waiting());
        pool.store.maintain().unwrap();
        while pool.store.commit_here() {}
        if pool.answers.0.lock().len() as u64 == JOBS {
            break;
        }
    }
    assert_eq!(pool.store.writer.lock().supply.needs_looked_at(), JOBS * BLOCKS);
    assert_eq!(
        pool.answers.0.lock().iter().filter(|(_, reply)| reply.is_ok()).count() as u64,
        JOBS
    );
}

/// Jobs that waited for something else, such as a checkpoint, may all find no room at once.
#[test]
fn new_waiting_jobs_are_examined_in_turns() {
    const JOBS: u64 = 2048;
    const BLOCKS: u64 = 8;
    let pool = Short::new(4);
    let mut most = 0;
    pool.store.writer.lock().raise_barrier();
    for id in 0..JOBS {
        let range = SectorRange::new(id % 128 * BLOCKS * 8, BLOCKS * 8);
        let data = DataOut::from_bytes(&distinct(BLOCKS * 8, id + 1), 0);
        let volume = pool.volume;
        pool.start(id, VolumeRequest::Write { volume, range, data, fua: false });
    }
    pool.store.writer.lock().lower_barrier();
    while (pool.waiting() as u64) < JOBS {
        let mut writer = pool.store.writer.lock();
        let before = writer.supply.needs_looked_at();
        let mut answers = Vec::new();
        writer.revive_forgotten(&pool.store.world, &mut answers);
        assert!(answers.is_empty() && writer.supply.needs_looked_at() > before, "no progress");
        most = most.max(writer.supply.needs_looked_at() - before);
    }
    assert!(most <= 4096 + BLOCKS, "{most} blocks are looked at at once");
}

/// Found by an audit: all hosts' writes stopped until all that one of them had dropped was freed,
/// which took seconds. They wait for their pace then, and freeing gained nothing for them.
#[test]
fn paced_writes_continue_while_dropped_nodes_are_freed() {
    let pool = Short::new(40);
    let wide = volume(&pool.store, 64 * MIB);
    for block in 0..80 {
        write(&pool.store, wide, block * 160 * 8, &distinct(8, 1000 + block)).unwrap();
        pool.store.maintain().unwrap();
    }
    pool.store.checkpoint().unwrap();
    let change = Change { volumes: vec![VolumeChange::Destroy { id: wide }], ..Change::default() };
    pool.store.change(change).unwrap();
    {
        let mut writer = pool.store.writer.lock();
        writer.pace.set(1000, 100, 1);
        writer.pace.spend(u64::from(pool.store.options.tuning.pace_bytes_max) + 4096);
    }
    pool.start_little(1);
    assert_eq!(pool.waiting(), 1);
    let mut turns = 0;
    while pool.waiting() > 0 {
        pool.store.maintain().unwrap();
        turns += 1;
    }
    let left = pool.store.writer.lock().state.pending.len();
    assert!(left > 0, "all was freed first, in {turns} turns");
}
