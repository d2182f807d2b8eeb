//! Requests too large for one commit: the maximum cost of a commit, what happens between two of
//! them, and the result of a crash there.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::{Outcome, Sink, SinkId, Started, Token, Tuning};

/// Takes the answers, for tests that do each step by hand.
#[derive(Default)]
pub(super) struct Desk(pub(super) Mutex<VecDeque<(u64, Outcome)>>);

impl Sink for Desk {
    fn complete(&self, id: u64, outcome: Outcome) {
        self.0.lock().push_back((id, outcome));
    }

    fn commit_wanted(&self) {}
}

/// A store whose commits are written one by one.
pub(super) struct Hand {
    pub(super) disk: Arc<MemoryDisk>,
    pub(super) store: Store,
    pub(super) desk: Arc<Desk>,
    sink: SinkId,
}

impl Hand {
    pub(super) fn new(disk: Arc<MemoryDisk>, store: Store) -> Self {
        let desk = Arc::new(Desk::default());
        let sink = store.register_sink(desk.clone());
        Self { disk, store, desk, sink }
    }

    pub(super) fn token(&self, id: u64) -> Token {
        Token { sink: self.sink, id }
    }

    /// Performs reads until a request has completed or is queued.
    pub(super) fn settle(
        &self,
        id: u64,
        mut started: Started,
    ) -> Option<Result<VolumeReply, VolumeError>> {
        loop {
            match started {
                Started::Done(reply) => return Some(reply),
                Started::Queued => return None,
                Started::Read(mut operation) => {
                    for read in &mut operation.reads {
                        let (at, frames) = (read.place, &mut read.frames);
                        read.failed = self.store.segments().read(at, frames).is_err();
                    }
                    started = self.store.resume(operation, self.token(id));
                }
            }
        }
    }

    /// Runs a request to its end, and calls `between` after each of its commits but the last.
    fn run(&self, request: VolumeRequest, mut between: impl FnMut()) -> (VolumeReply, u64) {
        let started = self.store.start(request, self.token(1));
        let mut reply = self.settle(1, started);
        let mut commits = 0;
        loop {
            if let Some(reply) = reply {
                return (reply.unwrap(), commits);
            }
            let commit = self.store.take_commit().expect("a commit is queued");
            self.store.write_out(&commit).unwrap();
            self.store.finish_commit(commit, Ok(()));
            commits += 1;
            let outcome = self.desk.0.lock().pop_front();
            reply = match outcome {
                None => None,
                Some((_, Outcome::Reply(reply))) => Some(reply),
                Some((_, Outcome::Again(operation))) => {
                    between();
                    self.settle(1, Started::Read(operation))
                }
            };
        }
    }
}

fn open_tuned(disk: &Arc<MemoryDisk>, tuning: Tuning) -> Store {
    Store::open(disk.clone(), OpenOptions { tuning, ..OpenOptions::default() }).unwrap()
}

pub(super) const GIB: u64 = (1 << 30) / 512;

/// A volume full of data, in a small pool: the same 16 MiB repeatedly.
fn dense(store: &Store, sectors: u64) -> VolumeId {
    let id = volume(store, sectors);
    for mib in 0..16 {
        write(store, id, mib * MIB, &distinct(MIB, mib + 1)).unwrap();
    }
    let mut held = 16 * MIB;
    while held < sectors {
        let count = held.min(sectors - held);
        let segments = vec![segment(id, 0, id, held, count)];
        store.execute(VolumeRequest::Copy { segments }).unwrap();
        held += count;
    }
    id
}

fn mapped_blocks(store: &Store, id: VolumeId) -> u64 {
    store.volume_status(id).unwrap().mapped_bytes / 4096
}

#[test]
fn no_commit_of_a_copy_at_an_offset_costs_more_than_the_budget() {
    let (disk, store) = pool(2 << 30);
    let sectors = 16 * GIB;
    let source = dense(&store, sectors);
    let target = volume(&store, sectors);
    let hand = Hand::new(disk, store);
    let next_node = || hand.store.writer.lock().state.next_node;
    let seen = std::cell::Cell::new((next_node(), 0));
    let budget = Tuning::DEFAULT.commit_work;
    let look = || {
        let now = (next_node(), mapped_blocks(&hand.store, target));
        let before = seen.replace(now);
        assert!(now.0 - before.0 <= budget / 16, "{} nodes", now.0 - before.0);
        assert!(now.1 - before.1 <= budget, "{} blocks", now.1 - before.1);
    };
    let copy = vec![segment(source, 8, target, 0, sectors - 8)];
    let (_, commits) = hand.run(VolumeRequest::Copy { segments: copy }, look);
    look();
    assert!(commits >= sectors / 8 / budget, "{commits} commits");
    assert_eq!(mapped_blocks(&hand.store, target), sectors / 8 - 1);
    for at in [0, 5 * GIB, sectors - 16] {
        assert!(read(&hand.store, target, at, 8) == read(&hand.store, source, at + 8, 8));
    }
    // Nodes of 1 MiB can be referenced as they are, but none of 256 MiB.
    let target = volume(&hand.store, sectors);
    seen.set((next_node(), 0));
    let copy = vec![segment(source, MIB, target, 0, sectors - MIB)];
    let (_, commits) = hand.run(VolumeRequest::Copy { segments: copy }, || {
        let now = next_node();
        assert!(now - seen.replace((now, 0)).0 <= budget / 16);
    });
    assert!(commits >= sectors / MIB * 2 / budget, "{commits} commits");
    assert_eq!(mapped_blocks(&hand.store, target), (sectors - MIB) / 8);
    assert!(
        read(&hand.store, target, 9 * GIB + 3, 8)
            == read(&hand.store, source, 9 * GIB + MIB + 3, 8)
    );
}

#[test]
fn a_copy_without_cost_is_one_commit_at_any_offset_and_length() {
    let (disk, store) = pool(1 << 30);
    let sectors = (64 << 40) / 512;
    let (source, target) = (volume(&store, sectors), volume(&store, sectors));
    let range = SectorRange::new(GIB, sectors / 2);
    let zero = VolumeRequest::Zero { volume: source, range, fua: false };
    store.execute(zero).unwrap();
    write(&store, source, 5, &distinct(64, 1)).unwrap();
    let hand = Hand::new(disk, store);
    let segments = vec![segment(source, 0, target, 24, sectors - 24)];
    let (_, commits) = hand.run(VolumeRequest::Copy { segments }, || panic!("a second commit"));
    assert_eq!(commits, 1);
    assert_eq!(mapped_blocks(&hand.store, target), mapped_blocks(&hand.store, source));
    assert_eq!(read(&hand.store, target, 29, 64), distinct(64, 1));
    assert_sound(&hand.store);
}

#[test]
fn other_requests_run_between_the_pieces_of_a_copy() {
    let (disk, store) = pool(1 << 30);
    let source = dense(&store, GIB);
    let (target, other) = (volume(&store, GIB), volume(&store, MIB));
    let hand = Hand::new(disk, store);
    let mut writes = 0;
    let copy = vec![segment(source, 8, target, 0, GIB - 8)];
    hand.run(VolumeRequest::Copy { segments: copy }, || {
        write(&hand.store, other, 0, &distinct(8, writes + 1)).unwrap();
        writes += 1;
        assert_eq!(read(&hand.store, other, 0, 8), distinct(8, writes));
    });
    assert!(writes >= 16, "{writes}");
    assert!(read(&hand.store, target, GIB - 16, 8) == read(&hand.store, source, GIB - 8, 8));
    assert_sound(&hand.store);
}

#[test]
fn an_abandoned_copy_ends_between_two_pieces() {
    let (disk, store) = pool(1 << 30);
    let source = dense(&store, GIB);
    let target = volume(&store, GIB);
    let hand = Hand::new(disk, store);
    let segments = vec![segment(source, 8, target, 0, GIB - 8)];
    let started = hand.store.start(VolumeRequest::Copy { segments }, hand.token(1));
    assert!(hand.settle(1, started).is_none());
    let commit = hand.store.take_commit().unwrap();
    hand.store.write_out(&commit).unwrap();
    hand.store.finish_commit(commit, Ok(()));
    let Some((1, Outcome::Again(operation))) = hand.desk.0.lock().pop_front() else { panic!() };
    hand.store.abandon(operation);
    let done = mapped_blocks(&hand.store, target);
    assert!(done > 0 && done < GIB / 8);
    assert!(hand.store.take_commit().is_none());
    assert!(read(&hand.store, target, 0, 8) == read(&hand.store, source, 8, 8));
    assert_sound(&hand.store);
}

#[test]
fn an_unmap_of_many_ranges_is_several_commits() {
    let (disk, store) = pool(1 << 30);
    let id = dense(&store, 512 * MIB);
    let ranges: Vec<_> = (0..512).map(|n| SectorRange::new(n * MIB + 3, n % 40 + 1)).collect();
    let hand = Hand::new(disk, store);
    let unmap = VolumeRequest::Unmap { volume: id, ranges: ranges.clone() };
    let (_, commits) = hand.run(unmap, || {});
    assert_eq!(commits, 512 / crate::edits::rest::UNMAP_PIECE_RANGES as u64);
    for (n, range) in (0..512).zip(ranges) {
        let mut expected = distinct(MIB, n % 16 + 1)[..64 * 512].to_vec();
        expected[3 * 512..][..range.count.0 as usize * 512].fill(0);
        assert!(read(&hand.store, id, n * MIB, 64) == expected, "{n}");
    }
    assert_sound(&hand.store);
}

/// Each write has to copy a leaf, and to reference all its chunks once more.
#[test]
fn a_commit_takes_as_many_writes_to_a_snapshotted_volume_as_its_budget_allows() {
    const WRITES: u64 = 128;
    let (disk, store) = pool(1 << 30);
    let id = dense(&store, 512 * MIB);
    snapshots::clone_of(&store, id, true);
    let hand = Hand::new(disk, store);
    for n in 0..WRITES {
        let data = DataOut::from_bytes(&distinct(8, n + 1), 0);
        let range = SectorRange::new(n * MIB, 8);
        let write = VolumeRequest::Write { volume: id, range, data, fua: false };
        let started = hand.store.start(write, hand.token(n));
        assert!(hand.settle(n, started).is_none());
    }
    let (budget, entries) = (Tuning::DEFAULT.commit_work, Tuning::DEFAULT.fanout.entries() as u64);
    let mut left = WRITES;
    while left > 0 {
        let commit = hand.store.take_commit().unwrap();
        hand.store.write_out(&commit).unwrap();
        hand.store.finish_commit(commit, Ok(()));
        let answered = hand.desk.0.lock().drain(..).count() as u64;
        assert!((1..=budget / entries).contains(&answered), "{answered} writes in one commit");
        left -= answered;
    }
    assert_sound(&hand.store);
}

/// A copy between phases may be of any length: nothing is staged, and memory does not grow.
#[test]
fn a_very_long_copy_between_alignments_is_done_in_pieces() {
    let (disk, store) = pool(2 << 30);
    let sectors = 100 * MIB;
    let id = volume(&store, 2 * sectors);
    let mut expected = Vec::new();
    for mib in 0..100 {
        let part = distinct(MIB, mib + 1);
        write(&store, id, mib * MIB, &part).unwrap();
        expected.extend(part);
    }
    expected.resize(2 * expected.len(), 0);
    let hand = Hand::new(disk, store);
    for (from, to, count) in [(3, MIB + 4, sectors - 5), (MIB + 9, 2, sectors - 7)] {
        let segments = vec![segment(id, from, id, to, count)];
        let (_, commits) = hand.run(VolumeRequest::Copy { segments }, || {
            assert!(hand.store.writer.lock().state.staged.is_empty());
        });
        assert!(commits >= 100, "{commits}");
        let (from, to, count) = (from as usize * 512, to as usize * 512, count as usize * 512);
        expected.copy_within(from..from + count, to);
    }
    for mib in 0..110 {
        let at = (mib << 20) as usize;
        assert!(read(&hand.store, id, mib * MIB, MIB) == expected[at..at + (1 << 20)], "{mib}");
    }
    assert_sound(&hand.store);
}

const SECTORS: u64 = MIB / 2;

/// Ranges to copy, with overlaps of all kinds.
fn moves() -> impl Strategy<Value = Vec<(u64, u64, u64)>> {
    let one =
        (0..SECTORS, 0..SECTORS, 1..SECTORS, any::<bool>()).prop_map(|(from, to, n, phase)| {
            let to = if phase { to / 8 * 8 + from % 8 } else { to };
            let to = to.min(SECTORS - 1);
            (from, to, n.min(SECTORS - from).min(SECTORS - to))
        });
    proptest::collection::vec(one, 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 64,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The naive model, with few entries a node, so that small volumes have maps of many levels,
    /// and little work a commit, so that copies take many.
    #[test]
    fn copies_in_pieces_and_deep_maps_behave_like_a_naive_model(
        actions in proptest::collection::vec(super::model::action(), 1..40),
        early in any::<bool>(),
    ) {
        let durability = if early { crate::Durability::Flush } else { crate::Durability::Commit };
        let small = Tuning { fanout: crate::Fanout::SMALL, commit_work: 64, ..Tuning::DEFAULT };
        super::model::run_all(&actions, durability, small);
    }

    /// A crash between two pieces leaves each block old or new; in the end the result is as if the
    /// copy had been done at once.
    #[test]
    fn a_crash_between_pieces_leaves_each_block_old_or_new(
        moves in moves(),
        repeated in (0..SECTORS / 8, 1..SECTORS / 8),
        commit_work in 1..200u64,
    ) {
        let tuning = Tuning {
            fanout: crate::Fanout::SMALL,
            commit_work,
            ..Tuning::DEFAULT
        };
        let disk = MemoryDisk::new(512 << 20);
        Store::create(&*disk, &[3; 64]).unwrap();
        let store = open_tuned(&disk, tuning);
        let id = volume(&store, SECTORS);
        let mut expected = distinct(SECTORS, 1);
        write(&store, id, 0, &expected).unwrap();
        let pattern = FrameMut::from_bytes(&distinct(8, 9)).freeze();
        let (start, count) = (repeated.0 * 8, (repeated.1 * 8).min(SECTORS - repeated.0 * 8));
        let range = SectorRange::new(start, count);
        let fill = VolumeRequest::Fill { volume: id, range, pattern: pattern.clone(), fua: false };
        store.execute(fill).unwrap();
        let filled = start as usize * 512..(start + count) as usize * 512;
        expected[filled].copy_from_slice(&pattern.repeat(count as usize / 8));
        let hand = Hand::new(disk.clone(), store);
        for (from, to, count) in moves {
            let old = expected.clone();
            let (from_at, to_at, len) =
                (from as usize * 512, to as usize * 512, count as usize * 512);
            expected.copy_within(from_at..from_at + len, to_at);
            let mut crashes = 0;
            let segments = vec![segment(id, from, id, to, count)];
            hand.run(VolumeRequest::Copy { segments }, || {
                crashes += 1;
                if crashes > 3 && crashes % 16 != 0 {
                    return;
                }
                let store = open_tuned(&disk.copy(), tuning);
                let found = read(&store, id, 0, SECTORS);
                let blocks = found.chunks(4096).zip(old.chunks(4096).zip(expected.chunks(4096)));
                for (at, (found, (old, new))) in blocks.enumerate() {
                    assert!(found == old || found == new, "block {at}");
                }
                assert_sound(&store);
            });
            assert!(read(&hand.store, id, 0, SECTORS) == expected, "{from} {to} {count}");
        }
        assert_sound(&hand.store);
    }
}
