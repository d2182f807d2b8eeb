//! How much a thread does in one turn, so that no command holds up the others: what the store
//! answers at once is a loop without an end in sight (a VERIFY of cached data, a hundred of them),
//! and while it runs no socket is read, no abort seen and no answer sent.
//!
//! A turn starts requests that are worth up to [`TURN_BYTES`] of work, and the one that passes it.
//! What goes on behind a commit (the next piece of a copy, an edit that had to wait for another)
//! is such a request, too: a commit may let a hundred of them go on at once. What is left is parked
//! with its task and goes on in later turns: one request of a connection after one of the next,
//! whatever each of them has queued. Small requests are never parked.
//!
//! Reads of more than a little are parked, too, while the thread has [`READS_BYTES_MAX`] of them
//! under way: a window of VERIFYs needs no memory of a host's share for long, but would have all it
//! reads in memory at once.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use block::VolumeRequest;
use store::ReadOperation;

use super::command_set::Pending;

/// Work of a turn: at the slowest that data is read, checked and packed, a few milliseconds.
const TURN_BYTES: u64 = 4 << 20;
/// Requests that cost no more go on at once, as many as come.
const SMALL_BYTES: u64 = 64 << 10;
/// Reads that a thread has under way at once, but for small ones, and the one that passes it.
const READS_BYTES_MAX: u64 = 16 << 20;

/// What waits for a later turn.
pub(super) enum Parked {
    /// A request that has not begun, with the rest of its command.
    Request(VolumeRequest, Pending),
    /// One that goes on behind a commit.
    Again(Box<ReadOperation>),
}

/// The tasks of a connection that wait, by their names. Those that have begun go first.
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

/// What a turn may still do, and the tasks that wait for the next ones.
#[derive(Debug, Default)]
pub(super) struct Turn {
    left_bytes: u64,
    /// What it has begun, together.
    spent_bytes: u64,
    /// The names of tasks, by the places of their connections.
    parked: BTreeMap<usize, Queue>,
    /// The connection that had its turn last.
    last: usize,
    reads_bytes: Arc<AtomicU64>,
}

/// A read under way, until this is dropped.
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
    /// A new turn begins.
    pub(super) fn begin(&mut self) {
        self.left_bytes = TURN_BYTES;
        self.spent_bytes = 0;
    }

    /// What the turn has begun so far, but for what is small.
    pub(super) fn spent_bytes(&self) -> u64 {
        self.spent_bytes
    }

    /// Whether a request of this cost may start now. `is_next`: it was parked, and is the next one.
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

    /// Whether nothing that is not small may start.
    fn is_over(&self) -> bool {
        self.left_bytes == 0 || self.has_all_reads()
    }

    /// Whether no more may be read at once.
    fn has_all_reads(&self) -> bool {
        self.reads_bytes.load(Ordering::Relaxed) >= READS_BYTES_MAX
    }

    /// Counts a request among the reads that are under way, if it is one that is not small.
    pub(super) fn reading(&self, request: &VolumeRequest) -> Option<Reading> {
        let VolumeRequest::Read { range, .. } = request else { return None };
        let bytes = range.bytes().filter(|bytes| *bytes > SMALL_BYTES)?;
        self.reads_bytes.fetch_add(bytes, Ordering::Relaxed);
        Some(Reading { all_bytes: self.reads_bytes.clone(), bytes })
    }

    /// Something that was parked goes on.
    pub(super) fn spend(&mut self, cost_bytes: u64) {
        self.left_bytes = self.left_bytes.saturating_sub(cost_bytes);
        self.spent_bytes += cost_bytes;
    }

    /// One that has begun goes on before those of its connection that have not.
    pub(super) fn park(&mut self, connection: usize, task: u64, has_begun: bool) {
        let queue = self.parked.entry(connection).or_default();
        match has_begun {
            true => queue.begun.push_back(task),
            false => queue.fresh.push_back(task),
        }
    }

    /// The next task that may go on in this turn.
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

    /// Whether there is work for the next turn. Where only the end of a read can let it go on, the
    /// thread hears of that.
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
    fn a_turn_does_so_much_and_parks_the_rest_in_order() {
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
        assert!(turn.takes(4096, false), "what is small is not held up");
        assert!(turn.has_parked() && turn.next().is_none());
        let mut order = Vec::new();
        while turn.has_parked() {
            turn.begin();
            assert!(!turn.takes(MIB, false), "nobody overtakes");
            while let Some(task) = turn.next() {
                assert!(turn.takes(MIB, true));
                order.push(task);
            }
        }
        assert_eq!(order, (4..100).collect::<Vec<_>>());
    }

    #[test]
    fn connections_take_turns_whatever_each_has_parked() {
        let mut turn = Turn::default();
        for (connection, task) in [(3, 30), (3, 31), (3, 32), (3, 33), (5, 50), (9, 90), (9, 91)] {
            turn.park(connection, task, false);
        }
        turn.begin();
        let order: Vec<u64> = std::iter::from_fn(|| turn.next()).collect();
        assert_eq!(order, [30, 50, 90, 31, 91, 32, 33]);
        turn.park(3, 35, false);
        turn.park(3, 34, true);
        assert_eq!([turn.next(), turn.next()], [Some(34), Some(35)], "what has begun is finished");
    }

    #[test]
    fn what_a_commit_lets_go_on_is_spread_over_turns() {
        let mut turn = Turn::default();
        turn.begin();
        // 30 copies go on behind one commit, on two connections.
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
    fn no_more_is_read_at_once_than_it_may_be() {
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
        assert!(turn.takes(SMALL_BYTES, false), "what is small goes on");
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
