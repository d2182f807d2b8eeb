//! The order of tasks (SAM-5, 8.7). Each I_T nexus has a task set of its own (TST 001b in the
//! control mode page), over all connections of its session: a task with the ORDERED attribute is
//! delivered when all tasks before it on its logical unit have ended, and until it has ended none
//! behind it is. SIMPLE tasks have no order, and HEAD OF QUEUE goes at once.
//!
//! Tasks are in the order of their CmdSN, and are entered as soon as their header has come: a later
//! one on another connection must see them, whatever they still wait for. An immediate command
//! comes behind all numbers that were received before it.

use crate::event::{ConnectionId, TaskAttribute};

/// The place of a task in the order: what it comes behind, and as which of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Turn(u64, u64);

impl Turn {
    /// Whether it comes before a request with this place in the order ([`TaskSet::order_of`]).
    pub(crate) fn is_before(self, order: u64) -> bool {
        self.0 <= order
    }

    /// Whether its number is before that, whenever it came: one that a failed connection has lost
    /// may come again behind it.
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
        // One form of a number that can be addressed by two methods (SAM-5, 4.7.7): flat space
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

/// The tasks of a session that have not ended: at most a window, and the immediate ones.
#[derive(Debug, Default)]
pub(crate) struct TaskSet {
    tasks: Vec<(Turn, Queued)>,
    /// How many of them are ORDERED.
    ordered: usize,
    /// Those that have all they need and wait for their turn, and on which connection.
    waiting: Vec<(Turn, ConnectionId)>,
    /// The number that is expected next, counted on so that it does not wrap around.
    expected: u64,
    /// Tasks that have come.
    arrivals: u64,
}

impl TaskSet {
    /// So many numbers more were received.
    pub(crate) fn advance(&mut self, numbers: u32) {
        self.expected += u64::from(numbers);
    }

    /// The place in the order of an immediate request whose number is so far before the one that is
    /// expected.
    pub(crate) fn order_of(&self, before: u32) -> u64 {
        2 * self.expected.saturating_sub(u64::from(before))
    }

    /// A task has come, so many numbers behind the one that is expected; `None`: an immediate one.
    pub(crate) fn enter(&mut self, task: Queued, behind: Option<u32>) -> Turn {
        self.arrivals += 1;
        // What has a number is odd.
        let number =
            behind.map_or(2 * self.expected, |behind| 2 * (self.expected + u64::from(behind)) + 1);
        let turn = Turn(number, self.arrivals);
        self.tasks.push((turn, task));
        self.ordered += usize::from(task.is_ordered());
        turn
    }

    /// A task has ended.
    pub(crate) fn leave(&mut self, turn: Turn) {
        if let Some(at) = self.tasks.iter().position(|(of, _)| *of == turn) {
            self.ordered -= usize::from(self.tasks.swap_remove(at).1.is_ordered());
        }
        self.waiting.retain(|(waiting, _)| *waiting != turn);
    }

    /// Whether a task may be delivered; else its connection will be woken when it may.
    pub(crate) fn may_go(&mut self, turn: Turn, connection: ConnectionId) -> bool {
        let is_free = self.is_free(turn);
        if !is_free && !self.waiting.contains(&(turn, connection)) {
            self.waiting.push((turn, connection));
        }
        is_free
    }

    /// The connections with tasks that wait and may go now.
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

    /// How many are ORDERED, and how many wait: while there are none, nobody need ask.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.ordered, self.waiting.len())
    }

    /// Whether nothing before a task stands in its way.
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
    fn tasks_go_in_the_order_of_their_numbers_and_immediate_ones_before_the_next() {
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
        assert_eq!(free(&set), [true, true, false, false], "what is gone waits for nothing");
        set.leave(second);
        assert_eq!(free(&set), [true, true, true, false]);
        set.leave(immediate);
        assert_eq!((free(&set), set.counts()), ([true; 4], (0, 0)));
    }

    #[test]
    fn whoever_waits_is_woken_once_and_who_left_is_not() {
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
