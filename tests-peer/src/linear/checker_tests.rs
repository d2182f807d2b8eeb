use super::checker::{Verdict, check};
use super::history::{Action, Step, Swap, Value, bytes_of, first_difference, steps, values_of};

const TURNS: usize = 100_000;
/// Two volumes of 16 cells.
const EMPTY: [Value; 32] = [0; 32];

/// A history under construction: each command with its times.
#[derive(Default)]
struct History(Vec<Step>);

impl History {
    fn add(mut self, action: Action, start: u64, end: u64) -> Self {
        let command = self.0.len();
        self.0.extend(steps(action, (start, end), true, command));
        self
    }

    /// Adds a command that was aborted: the response to the abort came at `end`.
    fn perhaps(mut self, action: Action, start: u64, end: u64) -> Self {
        let command = self.0.len();
        self.0.extend(steps(action, (start, end), false, command));
        self
    }

    fn verdict(&self) -> Verdict {
        check(&EMPTY, &self.0, TURNS)
    }

    fn is_right(&self) -> bool {
        match self.verdict() {
            Verdict::Linearizable => true,
            Verdict::Wrong(_) => false,
            Verdict::Undecided => panic!("undecided"),
        }
    }
}

fn read(at: usize, values: &[Value]) -> Action {
    Action::Read { at, values: values.to_vec() }
}

fn write(at: usize, values: &[Value]) -> Action {
    Action::Write { at, values: values.to_vec() }
}

fn swap(at: usize, expected: &[Value], values: &[Value], swap: Swap) -> Action {
    Action::Compare { at, expected: expected.to_vec(), values: values.to_vec(), swap }
}

#[test]
fn sequential_commands_are_accepted() {
    let history = History::default()
        .add(write(0, &[1, 2]), 0, 1)
        .add(read(0, &[1, 2]), 2, 3)
        .add(swap(1, &[2], &[3], Swap::Done), 4, 5)
        .add(Action::Copy { from: 0, to: 16, count: 2 }, 6, 7)
        .add(read(16, &[1, 3]), 8, 9)
        .add(write(16, &[0]), 10, 11)
        .add(read(16, &[0, 3]), 12, 13);
    assert!(history.is_right());
}

#[test]
fn overlapping_commands_may_have_either_order_but_only_one() {
    let both = |second: Value, third: Value| {
        History::default()
            .add(write(0, &[1]), 0, 10)
            .add(write(0, &[2]), 0, 10)
            .add(read(0, &[second]), 11, 12)
            .add(read(0, &[third]), 13, 14)
    };
    assert!(both(1, 1).is_right());
    assert!(both(2, 2).is_right());
    assert!(!both(1, 2).is_right());
    assert!(!both(0, 0).is_right());
}

#[test]
fn a_lost_update_is_found() {
    // Two hosts take the same lock.
    let history = History::default().add(swap(0, &[0], &[1], Swap::Done), 0, 10).add(
        swap(0, &[0], &[2], Swap::Done),
        5,
        15,
    );
    assert!(!history.is_right());
    // A write that no read sees.
    let history = History::default().add(write(0, &[1]), 0, 1).add(read(0, &[0]), 2, 3);
    assert!(!history.is_right());
}

#[test]
fn a_stale_read_is_found() {
    let history = History::default()
        .add(write(0, &[1]), 0, 1)
        .add(write(0, &[2]), 2, 9)
        .add(read(0, &[2]), 3, 4)
        .add(read(0, &[1]), 5, 6);
    assert!(!history.is_right());
}

#[test]
fn a_torn_compare_and_write_is_found() {
    let torn =
        |values: &[Value]| {
            History::default()
                .add(swap(4, &[0; 8], &[1, 2, 3, 4, 5, 6, 7, 8], Swap::Done), 0, 10)
                .add(read(4, values), 2, 8)
        };
    assert!(torn(&[0; 8]).is_right());
    assert!(torn(&[1, 2, 3, 4, 5, 6, 7, 8]).is_right());
    assert!(!torn(&[1, 2, 3, 4, 0, 0, 0, 0]).is_right());
    assert!(!torn(&[0, 0, 0, 0, 5, 6, 7, 8]).is_right());
}

#[test]
fn a_write_is_atomic_only_within_4_kib() {
    let half = |values: &[Value]| {
        History::default().add(write(4, &[1, 2, 3, 4, 5, 6, 7, 8]), 0, 10).add(
            read(4, values),
            2,
            8,
        )
    };
    assert!(half(&[1, 2, 3, 4, 0, 0, 0, 0]).is_right());
    assert!(half(&[0, 0, 0, 0, 5, 6, 7, 8]).is_right());
    assert!(!half(&[1, 2, 0, 0, 0, 0, 0, 0]).is_right());
    // Once it has its response, all of it is visible.
    let history = History::default().add(write(4, &[1, 2, 3, 4, 5, 6, 7, 8]), 0, 10).add(
        read(4, &[1, 2, 3, 4, 0, 0, 0, 0]),
        11,
        12,
    );
    assert!(!history.is_right());
}

#[test]
fn a_miscompare_reports_the_first_byte() {
    let told = |place| {
        History::default()
            .add(write(0, &[1, 0x0101, 3]), 0, 1)
            .add(swap(0, &[1, 0x0201, 4], &[7, 7, 7], Swap::Miscompare(place)), 2, 3)
            .add(read(0, &[1, 0x0101, 3]), 4, 5)
    };
    assert!(told(513).is_right());
    assert!(!told(512).is_right());
    assert!(!told(1024).is_right());
    // There is no miscompare if everything was equal.
    let history = History::default().add(swap(0, &[0], &[1], Swap::Miscompare(0)), 0, 1);
    assert!(!history.is_right());
}

#[test]
fn an_aborted_command_takes_effect_before_the_response_or_never() {
    let seen = |first: Value, second: Value| {
        History::default().perhaps(write(0, &[1]), 0, 10).add(read(0, &[first]), 2, 4).add(
            read(0, &[second]),
            11,
            12,
        )
    };
    assert!(seen(0, 0).is_right());
    assert!(seen(0, 1).is_right());
    assert!(seen(1, 1).is_right());
    assert!(!seen(1, 0).is_right());
    // Invisible after the response to its abort, and then visible.
    let late = History::default().perhaps(write(0, &[1]), 0, 10).add(read(0, &[0]), 11, 12).add(
        read(0, &[1]),
        13,
        14,
    );
    assert!(!late.is_right());
    // The same for a lock, and for one that was never free.
    let locked = History::default().perhaps(swap(0, &[0], &[1], Swap::Unknown), 0, 10).add(
        swap(0, &[1], &[2], Swap::Done),
        20,
        21,
    );
    assert!(locked.is_right());
    let never = History::default().perhaps(swap(0, &[9], &[1], Swap::Unknown), 0, 10).add(
        read(0, &[1]),
        20,
        21,
    );
    assert!(!never.is_right());
}

/// Activity in unrelated cells does not use up its search.
#[test]
fn an_aborted_command_is_remembered_across_others() {
    let history = History::default()
        .perhaps(write(0, &[0, 1]), 0, 10)
        .perhaps(write(0, &[0, 0]), 11, 12)
        .add(write(8, &[2]), 13, 14)
        .add(write(0, &[0, 3]), 5, 6)
        .add(read(0, &[0, 0]), 15, 16);
    assert!(history.is_right());
}

#[test]
fn a_copy_reads_one_point_in_time() {
    let copied = |values: &[Value]| {
        History::default()
            .add(write(0, &[1]), 0, 1)
            .add(Action::Copy { from: 0, to: 16, count: 1 }, 2, 20)
            .add(write(0, &[2]), 3, 4)
            .add(write(0, &[3]), 5, 6)
            .add(read(16, values), 21, 22)
    };
    assert!(copied(&[1]).is_right());
    assert!(copied(&[2]).is_right());
    assert!(copied(&[3]).is_right());
    assert!(!copied(&[0]).is_right());
    // It does not restore a value that was overwritten before it was sent.
    let stale = History::default()
        .add(write(0, &[1]), 0, 1)
        .add(write(0, &[2]), 2, 3)
        .add(Action::Copy { from: 0, to: 16, count: 1 }, 4, 5)
        .add(read(16, &[1]), 6, 7);
    assert!(!stale.is_right());
}

/// A value that a copy overwrites is written again by another copy, from the target of an earlier
/// one.
#[test]
fn a_copy_of_a_copy_restores_an_earlier_value() {
    let history = History::default()
        .add(write(0, &[5]), 0, 1)
        .add(write(6, &[7]), 0, 1)
        .add(write(22, &[5]), 0, 1)
        .add(Action::Copy { from: 0, to: 16, count: 8 }, 2, 10)
        .add(Action::Copy { from: 16, to: 22, count: 1 }, 2, 10)
        .add(read(16, &[5]), 11, 12)
        .add(read(22, &[5]), 11, 12);
    assert!(history.is_right());
}

/// A value that a later step overwrites must be seen before: the order of taking matters.
#[test]
fn the_search_backtracks() {
    let mut history = History::default();
    for number in 0..12 {
        history = history.add(write(0, &[number + 1]), 0, 100);
    }
    // They are seen in an order unrelated to the order of sending.
    for (index, number) in [3, 9, 1, 12, 7, 5].into_iter().enumerate() {
        let start = index as u64 * 10 + 1;
        history = history.add(read(0, &[number]), start, start + 1);
    }
    assert!(history.is_right());
    let history = history.add(read(0, &[3]), 90, 91);
    assert!(!history.is_right());
}

#[test]
fn a_search_over_its_limit_is_undecided() {
    let mut history = History::default();
    for number in 0..8 {
        history = history.add(write(number as usize, &[number + 1]), 0, 100);
    }
    let history = history.add(read(0, &[1, 2, 3, 4, 5, 6, 7, 8, 0, 9]), 0, 100);
    assert_eq!(check(&EMPTY, &history.0, 3), Verdict::Undecided);
    assert!(matches!(history.verdict(), Verdict::Wrong(_)));
}

#[test]
fn blocks_round_trip_their_values() {
    let values = [0, 1, 0x0102_0304];
    let bytes = bytes_of(&values);
    assert_eq!(values_of(&bytes).ok(), Some(values.to_vec()));
    let mut torn = bytes;
    torn[600] ^= 1;
    assert!(values_of(&torn).is_err());
    assert_eq!(first_difference(&[1, 2], &[1, 2]), None);
    assert_eq!(first_difference(&[1, 0x0100], &[1, 0x0200]), Some(513));
}

#[test]
fn a_repeated_compare_and_write_gets_the_true_result() {
    // Its first response was lost with the connection, at 5; it is sent again at 6.
    let lost = || History::default().perhaps(swap(0, &[0], &[7], Swap::Unknown), 0, 5);
    let again = |answer| lost().add(swap(0, &[0], &[7], answer), 6, 9);
    assert!(!again(Swap::Miscompare(0)).is_right(), "it holds what it wrote itself");
    let other = |answer| lost().add(swap(0, &[7], &[8], Swap::Done), 3, 4).add(answer, 6, 9);
    assert!(other(swap(0, &[0], &[7], Swap::Miscompare(0))).is_right(), "another one was there");
    // GOOD is the response to the first attempt, or to the second.
    let told = || lost().add(swap(0, &[0], &[7], Swap::Done), 0, 9);
    assert!(told().add(read(0, &[7]), 10, 11).is_right());
    assert!(!told().add(read(0, &[0]), 10, 11).is_right());
}
