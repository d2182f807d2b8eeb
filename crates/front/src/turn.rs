//! Bounds the work of one turn, so that no command delays the others. Requests that the store
//! answers at once form a loop without a foreseeable end (a VERIFY of cached data, or a hundred of
//! them), and while it runs no socket is read, no abort is seen and no response is sent.
//!
//! A turn starts requests worth up to [`TURN_BYTES`] of work, and the one that exceeds it. A
//! request that continues after a commit (the next piece of a copy, an edit that waited for
//! another) counts too: a commit may let a hundred of them continue at once. The rest is parked
//! with its task and continues in later turns, one request of each connection after the other,
//! regardless of how many each has queued. Small requests are never parked.
//!
//! Larger reads are also parked while the thread has [`READS_BYTES_MAX`] of them in progress: a
//! window of VERIFYs takes no lasting memory from a host's share, but all it reads would be in
//! memory at once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use block::VolumeRequest;
use store::ReadOperation;

use super::command_set::Pending;

/// The work of a turn: a few milliseconds at the slowest rate of reading, verifying and packing.
const TURN_BYTES: u64 = 4 << 20;
/// Requests up to this cost start at once, however many there are.
const SMALL_BYTES: u64 = 64 << 10;
/// The most bytes of reads that a thread has in progress, apart from small ones and the one that
/// exceeds this.
const READS_BYTES_MAX: u64 = 16 << 20;

/// Work that waits for a later turn.
pub(super) enum Parked {
    /// A request that has not begun, with the rest of its command.
    Request(VolumeRequest, Pending),
    /// A request that continues after a commit.
    Again(Box<ReadOperation>),
}

/// The waiting tasks of a connection, by name. Those that have begun go first.
#[derive(Debug, Default)]
struct Queue {
    begun: VecDeque<u64>,
    fresh: VecDeque<u64>,
}

impl Queue {
    fn pop(&mut self) -> Option<u64> {
        self.begun.pop_front().or_else(|| self.fresh.pop_front())
    }

    fn is_empty(&self) -> bool {
        self.begun.is_empty() && self.fresh.is_empty()
    }
}

/// The rest of a turn's budget, and the tasks that wait for the next ones.
#[derive(Debug, Default)]
pub(super) struct Turn {
    left_bytes: u64,
    /// The work that the turn has started.
    spent_bytes: u64,
    /// The names of tasks, by the slots of their connections.
    parked: BTreeMap<usize, Queue>,
    /// The connection that was served last.
    last: usize,
    reads_bytes: Arc<AtomicU64>,
}

/// A read in progress, until this is dropped.
#[derive(Debug)]
pub(super) struct Reading {
    all_bytes: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.all_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Turn {
    /// Begins a new turn.
    pub(super) fn begin(&mut self) {
        self.left_bytes = TURN_BYTES;
        self.spent_bytes = 0;
    }

    /// Returns the work that the turn has started so far, apart from small requests.
    pub(super) fn spent_bytes(&self) -> u64 {
        self.spent_bytes
    }

    /// Returns whether a request of this cost may start now. `is_next`: it was parked and is the
    /// next one.
    pub(super) fn takes(&mut self, cost_bytes: u64, is_next: bool) -> bool {
        if cost_bytes <= SMALL_BYTES {
            return true;
        }
        if self.is_over() || !(is_next || self.parked.is_empty()) {
            return false;
        }
        self.spend(cost_bytes);
        true
    }

    /// Returns whether only small requests may start.
    fn is_over(&self) -> bool {
        self.left_bytes == 0 || self.has_all_reads()
    }

    /// Returns whether no more reads may start.
    fn has_all_reads(&self) -> bool {
        self.reads_bytes.load(Ordering::Relaxed) >= READS_BYTES_MAX
    }

    /// Counts a request among the reads in progress, if it is a read that is not small.
    pub(super) fn reading(&self, request: &VolumeRequest) -> Option<Reading> {
        let VolumeRequest::Read { range, .. } = request else { return None };
        let bytes = range.bytes().filter(|bytes| *bytes > SMALL_BYTES)?;
        self.reads_bytes.fetch_add(bytes, Ordering::Relaxed);
        Some(Reading { all_bytes: self.reads_bytes.clone(), bytes })
    }

    /// Charges a request that was parked and now continues.
    pub(super) fn spend(&mut self, cost_bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_sub(cost_bytes);
        self.spent_bytes += cost_bytes;
    }

    /// Parks a task; one that has begun goes before those of its connection that have not.
    pub(super) fn park(&mut self, connection: usize, task: u64, has_begun: bool) {
        let queue = self.parked.entry(connection).or_default();
        match has_begun {
            true => queue.begun.push_back(task),
            false => queue.fresh.push_back(task),
        }
    }

    /// Returns the next task that may continue in this turn.
    pub(super) fn next(&mut self) -> Option<u64> {
        if self.is_over() {
            return None;
        }
        let after = self.parked.range(self.last + 1..).next().or(self.parked.iter().next());
        let connection = *after?.0;
        let queue = self.parked.get_mut(&connection)?;
        let task = queue.pop();
        if queue.is_empty() {
            self.parked.remove(&connection);
        }
        self.last = connection;
        task
    }

    /// Returns whether there is work for the next turn. If only the end of a read allows that work,
    /// its completion wakes the thread.
    pub(super) fn has_parked(&self) -> bool {
        !self.parked.is_empty() && !self.has_all_reads()
    }
}

#[cfg(test)]
mod tests {
    use block::SectorRange;

    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_turn_has_a_limit_and_parks_the_rest_in_order() {
        let mut turn = Turn::default();
        turn.begin();
        let mut started = 0;
        for task in 0..100 {
            if turn.takes(MIB, false) {
                started += 1;
            } else {
                turn.park(7, task, false);
            }
        }
        assert_eq!(started, TURN_BYTES / MIB);
        assert!(turn.takes(4096, false), "a small request is not parked");
        assert!(turn.has_parked() && turn.next().is_none());
        let mut order = Vec::new();
        while turn.has_parked() {
            turn.begin();
            assert!(!turn.takes(MIB, false), "nothing overtakes");
            while let Some(task) = turn.next() {
                assert!(turn.takes(MIB, true));
                order.push(task);
            }
        }
        assert_eq!(order, (4..100).collect::<Vec<_>>());
    }

    #[test]
    fn connections_take_turns_with_any_parked_work() {
        let mut turn = Turn::default();
        for (connection, task) in [(3, 30), (3, 31), (3, 32), (3, 33), (5, 50), (9, 90), (9, 91)] {
            turn.park(connection, task, false);
        }
        turn.begin();
        let order: Vec<u64> = std::iter::from_fn(|| turn.next()).collect();
        assert_eq!(order, [30, 50, 90, 31, 91, 32, 33]);
        turn.park(3, 35, false);
        turn.park(3, 34, true);
        assert_eq!(
            [turn.next(), turn.next()],
            [Some(34), Some(35)],
            "tasks that have begun go first"
        );
    }

    #[test]
    fn requests_that_continue_after_a_commit_are_spread_over_turns() {
        let mut turn = Turn::default();
        turn.begin();
        // 30 copies continue after one commit, on two connections.
        for task in 0..30 {
            if !turn.takes(MIB, false) {
                turn.park(task as usize % 2, task, true);
            }
        }
        assert_eq!(turn.spent_bytes(), TURN_BYTES);
        let mut turns = 0;
        while turn.has_parked() {
            turn.begin();
            while turn.next().is_some() {
                turn.spend(MIB);
            }
            assert!(turn.spent_bytes() <= TURN_BYTES);
            turns += 1;
        }
        assert_eq!(turns, 7, "26 that are left, 4 each");
    }

    #[test]
    fn reads_in_progress_are_limited() {
        let mut turn = Turn::default();
        let read = |mib: u64| VolumeRequest::Read {
            volume: block::VolumeId(1),
            range: SectorRange::new(0, mib * MIB / block::SECTOR_BYTES),
        };
        let small = VolumeRequest::Read {
            volume: block::VolumeId(1),
            range: SectorRange::new(0, SMALL_BYTES / block::SECTOR_BYTES),
        };
        turn.begin();
        assert!(turn.reading(&small).is_none());
        let mut reads: Vec<Reading> = Vec::new();
        while turn.takes(4 * MIB, true) {
            reads.extend(turn.reading(&read(4)));
            turn.begin();
        }
        assert_eq!(reads.len() as u64 * 4 * MIB, READS_BYTES_MAX);
        assert!(turn.takes(SMALL_BYTES, false), "a small request continues");
        turn.park(1, 7, false);
        assert!(!turn.has_parked() && turn.next().is_none(), "the thread may sleep");
        drop(reads.pop());
        assert!(turn.has_parked() && turn.next() == Some(7));
        drop(reads);
        assert_eq!(turn.reads_bytes.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn one_request_of_any_size_goes_in_each_turn() {
        let mut turn = Turn::default();
        turn.begin();
        assert!(turn.takes(64 * MIB, false) && !turn.takes(MIB, false));
        turn.begin();
        assert!(turn.takes(64 * MIB, false));
    }
}
