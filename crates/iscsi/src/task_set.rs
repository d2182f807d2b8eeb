//! The order of tasks (SAM-5, 8.7). Each I_T nexus has its own task set (TST 001b in the control
//! mode page), over all connections of its session: a task with the ORDERED attribute is delivered
//! when all earlier tasks on its logical unit have ended, and no later one is delivered until it
//! has ended. SIMPLE tasks have no order, and HEAD OF QUEUE tasks are delivered at once.
//!
//! Tasks are ordered by CmdSN, and are entered as soon as their header has arrived: a later one on
//! another connection must see them, regardless of what they still wait for. An immediate command
//! follows all numbers that were received before it.

use crate::event::{ConnectionId, TaskAttribute};

/// The place of a task in the order: the number it follows, and its rank among those that follow
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn(u64, u64);

impl Turn {
    /// Returns whether it precedes a request with this place in the order ([`TaskSet::order_of`]).
    pub(crate) fn is_before(self, order: u64) -> bool {
        self.0 <= order
    }

    /// Returns whether its number precedes that place, whenever it arrived: a request that a failed
    /// connection has lost may be sent again later.
    pub(crate) fn is_numbered_before(self, order: u64) -> bool {
        self.0 % 2 == 1 && self.is_before(order)
    }
}

/// What the order of a task depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    unit: [u8; 8],
    attribute: TaskAttribute,
}

impl Queued {
    pub(crate) fn new(mut lun: [u8; 8], attribute: TaskAttribute) -> Self {
        // Two addressing methods can encode the same number (SAM-5, 4.7.7); normalise flat space
        // addressing of one below 256.
        if lun[0] == 0x40 {
            lun[0] = 0;
        }
        Self { unit: lun, attribute }
    }

    fn is_ordered(&self) -> bool {
        self.attribute == TaskAttribute::Ordered
    }
}

/// The tasks of a session that have not ended: at most a window, and immediate ones.
#[derive(Debug, Default)]
pub(crate) struct TaskSet {
    tasks: Vec<(Turn, Queued)>,
    /// The number of ORDERED tasks.
    ordered: usize,
    /// Tasks that have all their data and wait for their turn, with their connections.
    waiting: Vec<(Turn, ConnectionId)>,
    /// The next expected number, extended so that it does not wrap around.
    expected: u64,
    /// The number of tasks that have arrived.
    arrivals: u64,
}

impl TaskSet {
    /// Notes that this many more numbers were received.
    pub(crate) fn advance(&mut self, numbers: u32) {
        self.expected += u64::from(numbers);
    }

    /// Returns the place in the order of an immediate request whose number is this far before the
    /// expected one.
    pub(crate) fn order_of(&self, before: u32) -> u64 {
        2 * self.expected.saturating_sub(u64::from(before))
    }

    /// Enters a task whose number is this far after the expected one; `None` for an immediate one.
    pub(crate) fn enter(&mut self, task: Queued, behind: Option<u32>) -> Turn {
        self.arrivals += 1;
        // Places of numbered tasks are odd.
        let number =
            behind.map_or(2 * self.expected, |behind| 2 * (self.expected + u64::from(behind)) + 1);
        let turn = Turn(number, self.arrivals);
        self.tasks.push((turn, task));
        self.ordered += usize::from(task.is_ordered());
        turn
    }

    /// Removes an ended task.
    pub(crate) fn leave(&mut self, turn: Turn) {
        if let Some(at) = self.tasks.iter().position(|(of, _)| *of == turn) {
            self.ordered -= usize::from(self.tasks.swap_remove(at).1.is_ordered());
        }
        self.waiting.retain(|(waiting, _)| *waiting != turn);
    }

    /// Returns whether a task may be delivered; otherwise its connection will be woken when it may.
    pub(crate) fn may_go(&mut self, turn: Turn, connection: ConnectionId) -> bool {
        let is_free = self.is_free(turn);
        if !is_free && !self.waiting.contains(&(turn, connection)) {
            self.waiting.push((turn, connection));
        }
        is_free
    }

    /// Adds to `wake` the connections with waiting tasks that may now be delivered.
    pub(crate) fn take_ready(&mut self, wake: &mut Vec<ConnectionId>) {
        let waiting = std::mem::take(&mut self.waiting);
        for (turn, connection) in waiting {
            if !self.is_free(turn) {
                self.waiting.push((turn, connection));
            } else if !wake.contains(&connection) {
                wake.push(connection);
            }
        }
    }

    /// Returns the numbers of ORDERED and of waiting tasks: while they are zero, no check is
    /// needed.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.ordered, self.waiting.len())
    }

    /// Returns whether no earlier task blocks a task.
    fn is_free(&self, turn: Turn) -> bool {
        let Some((_, task)) = self.tasks.iter().find(|(of, _)| *of == turn) else { return true };
        let bars = |(before, other): &(Turn, Queued)| {
            *before < turn && (task.is_ordered() || other.is_ordered()) && other.unit == task.unit
        };
        task.attribute == TaskAttribute::HeadOfQueue || !self.tasks.iter().any(bars)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIMPLE: TaskAttribute = TaskAttribute::Simple;
    const ORDERED: TaskAttribute = TaskAttribute::Ordered;

    fn queued(attribute: TaskAttribute) -> Queued {
        Queued::new([0x40, 5, 0, 0, 0, 0, 0, 0], attribute)
    }

    fn id(n: u64) -> ConnectionId {
        ConnectionId(n)
    }

    #[test]
    fn tasks_are_ordered_by_number_and_immediate_ones_precede_the_next() {
        let mut set = TaskSet::default();
        set.advance(u32::MAX);
        let third = set.enter(queued(SIMPLE), Some(2));
        let second = set.enter(queued(ORDERED), Some(1));
        let first = set.enter(queued(SIMPLE), Some(0));
        set.advance(2);
        let immediate = set.enter(queued(ORDERED), None);
        let mut turns = [first, second, third, immediate];
        turns.sort();
        assert_eq!(turns, [first, second, immediate, third]);
        let free = |set: &TaskSet| turns.map(|turn| set.is_free(turn));
        assert_eq!(free(&set), [true, false, false, false]);
        set.leave(first);
        assert_eq!(free(&set), [true, true, false, false], "an ended task waits for nothing");
        set.leave(second);
        assert_eq!(free(&set), [true, true, true, false]);
        set.leave(immediate);
        assert_eq!((free(&set), set.counts()), ([true; 4], (0, 0)));
    }

    #[test]
    fn a_waiting_connection_is_woken_once_and_a_closed_one_is_not() {
        let mut set = TaskSet::default();
        let turns = [0, 1, 2, 3].map(|n| {
            let attribute = if n == 0 { ORDERED } else { SIMPLE };
            set.enter(queued(attribute), Some(n))
        });
        let other = set.enter(Queued::new([0, 6, 0, 0, 0, 0, 0, 0], SIMPLE), Some(4));
        assert!(set.may_go(turns[0], id(9)) && set.may_go(other, id(9)));
        for (turn, connection) in [(1, 1), (2, 2), (3, 2), (3, 2)] {
            assert!(!set.may_go(turns[turn], id(connection)));
        }
        let woken = |set: &mut TaskSet| {
            let mut wake = Vec::new();
            set.take_ready(&mut wake);
            wake
        };
        assert_eq!((woken(&mut set), set.counts()), (vec![], (1, 3)));
        set.leave(turns[1]);
        set.leave(turns[0]);
        assert_eq!((woken(&mut set), set.counts()), (vec![id(2)], (0, 0)));
        assert_eq!(woken(&mut set), []);
    }
}
