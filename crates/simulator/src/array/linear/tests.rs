//! Handmade histories, all histories of a few operations against an exhaustive oracle, and
//! executions of a simulated register with and without faults.

mod executions;
mod oracle;

use super::*;

const BLOCK: Block = Block(7);
const MOST: usize = 100_000;

fn monitor() -> Linear {
    Linear::new(MOST)
}

impl Linear {
    fn write(&mut self, value: u64) -> OpId {
        self.invoke(BLOCK, Op::Write(value))
    }

    fn done(&mut self, id: OpId) {
        assert_eq!(self.answer(id, Outcome::Done), Ok(()));
    }

    /// Returns whether a read that starts and ends now may get this value.
    fn reads(&mut self, value: u64) -> bool {
        let id = self.invoke(BLOCK, Op::Read);
        self.answer(id, Outcome::Read(value)).is_ok()
    }
}

fn written(values: &[u64]) -> Linear {
    let mut monitor = monitor();
    for value in values {
        let id = monitor.write(*value);
        monitor.done(id);
    }
    monitor
}

#[test]
fn a_block_is_zeros_and_then_the_last_write() {
    assert!(monitor().reads(0));
    assert!(!monitor().reads(1));
    assert!(written(&[1, 2]).reads(2));
    for stale in [0, 1, 3] {
        assert!(!written(&[1, 2]).reads(stale));
    }
    assert!(written(&[1, 0]).reads(0), "it was zeroed");
}

#[test]
fn writes_in_flight_may_have_taken_effect_or_not() {
    for value in [1, 2, 3] {
        let mut monitor = written(&[1]);
        monitor.write(2);
        monitor.write(3);
        assert!(monitor.reads(value));
    }
}

#[test]
fn a_read_value_cannot_be_unread() {
    let mut monitor = written(&[1]);
    let two = monitor.write(2);
    assert!(monitor.reads(2));
    assert!(!monitor.reads(1), "a later read went back");
    let mut monitor = written(&[1]);
    let three = monitor.write(2);
    assert!(monitor.reads(1) && monitor.reads(2));
    monitor.done(three);
    let _ = two;
}

#[test]
fn concurrent_reads_may_return_old_and_new() {
    let mut monitor = written(&[1]);
    let (one, two) = (monitor.invoke(BLOCK, Op::Read), monitor.invoke(BLOCK, Op::Read));
    let write = monitor.write(2);
    monitor.done(write);
    assert_eq!(monitor.answer(one, Outcome::Read(2)), Ok(()));
    assert_eq!(monitor.answer(two, Outcome::Read(1)), Ok(()));
}

#[test]
fn concurrent_writes_leave_the_value_of_one() {
    for (value, right) in [(1, true), (2, true), (0, false)] {
        let mut monitor = monitor();
        let (one, two) = (monitor.write(1), monitor.write(2));
        monitor.done(two);
        monitor.done(one);
        assert_eq!(monitor.reads(value), right);
        if right {
            assert_eq!(monitor.possible(BLOCK), BTreeSet::from([value]), "the read decided it");
        }
    }
}

/// A write of the value already there may also come after another write.
#[test]
fn a_write_that_could_have_changed_nothing_may_have_come_last() {
    let mut monitor = written(&[5]);
    let again = monitor.write(5);
    let other = monitor.write(7);
    monitor.done(other);
    monitor.done(again);
    assert_eq!(monitor.possible(BLOCK), BTreeSet::from([5, 7]));
}

#[test]
fn a_lost_write_takes_effect_at_any_time_but_only_once() {
    let mut monitor = written(&[1]);
    let lost = monitor.write(2);
    monitor.lost(lost);
    let three = monitor.write(3);
    monitor.done(three);
    assert!(monitor.reads(3) && monitor.reads(2));
    let four = monitor.write(4);
    monitor.done(four);
    assert!(!monitor.reads(2), "it took effect twice");
}

#[test]
fn nothing_takes_effect_after_its_end() {
    for seen in [1, 2] {
        let mut monitor = written(&[1]);
        let aborted = monitor.write(2);
        assert_eq!(monitor.never_again(aborted), Ok(()));
        assert_eq!(monitor.possible(BLOCK), BTreeSet::from([1, 2]));
        assert!(monitor.reads(seen));
        assert!(!monitor.reads(3 - seen));
    }
    let mut monitor = written(&[1]);
    let aborted = monitor.write(2);
    monitor.lost(aborted);
    assert_eq!(monitor.never_again(aborted), Ok(()));
    let write = monitor.write(3);
    monitor.done(write);
    assert!(!monitor.reads(2));
    assert_eq!(monitor.in_flight(), 0);
}

#[test]
fn a_refused_write_has_no_effect() {
    let mut monitor = written(&[1]);
    let refused = monitor.write(2);
    assert_eq!(monitor.refused(refused), Ok(()));
    assert!(!monitor.reads(2));
    let mut monitor = written(&[1]);
    let refused = monitor.write(2);
    assert!(monitor.reads(2));
    assert!(monitor.refused(refused).is_err(), "its effect was seen");
}

fn swap(expected: u64, new: u64) -> Op {
    Op::CompareAndWrite { expected, new, repeats: false }
}

#[test]
fn one_compare_and_write_wins() {
    let mut monitor = written(&[1]);
    let (one, two) = (monitor.invoke(BLOCK, swap(1, 2)), monitor.invoke(BLOCK, swap(1, 3)));
    assert_eq!(monitor.answer(one, Outcome::Matched), Ok(()));
    assert!(monitor.answer(two, Outcome::Matched).is_err(), "both can't have matched");
    for (first, second, last) in
        [(Outcome::Matched, Outcome::Miscompare, 2), (Outcome::Miscompare, Outcome::Matched, 3)]
    {
        let mut monitor = written(&[1]);
        let (one, two) = (monitor.invoke(BLOCK, swap(1, 2)), monitor.invoke(BLOCK, swap(1, 3)));
        assert_eq!(monitor.answer(one, first), Ok(()));
        assert_eq!(monitor.answer(two, second), Ok(()));
        assert_eq!(monitor.possible(BLOCK), BTreeSet::from([last]));
    }
    let mut monitor = written(&[1]);
    let alone = monitor.invoke(BLOCK, swap(1, 2));
    assert!(monitor.answer(alone, Outcome::Miscompare).is_err(), "nothing explains a miscompare");
}

#[test]
fn a_lost_compare_and_write_explains_a_miscompare() {
    let mut monitor = written(&[1]);
    let lost = monitor.invoke(BLOCK, swap(1, 2));
    monitor.lost(lost);
    let again = monitor.invoke(BLOCK, swap(1, 2));
    assert_eq!(monitor.answer(again, Outcome::Miscompare), Ok(()));
    assert!(monitor.reads(2));
    assert_eq!(monitor.never_again(lost), Ok(()));
}

/// A write of the value already there hides others, so that a compare-and-write may come last.
#[test]
fn a_write_that_changes_nothing_hides_others() {
    let mut monitor = monitor();
    let zero = monitor.write(0);
    let swap = monitor.invoke(BLOCK, swap(0, 1));
    let two = monitor.write(2);
    assert_eq!(monitor.never_again(swap), Ok(()));
    monitor.done(two);
    monitor.done(zero);
    assert_eq!(monitor.possible(BLOCK), BTreeSet::from([0, 1, 2]));
}

#[test]
fn a_copy_carries_a_value_its_source_held_since_it_began() {
    const TO: Block = Block(8);
    for (value, right) in [(0, false), (1, true), (2, true), (3, true), (4, false)] {
        let mut monitor = written(&[1]);
        monitor.write(2);
        let copy = monitor.invoke(TO, Op::CopyOf(BLOCK));
        let three = monitor.write(3);
        monitor.done(three);
        monitor.done(copy);
        monitor.write(4);
        let read = monitor.invoke(TO, Op::Read);
        assert_eq!(monitor.answer(read, Outcome::Read(value)).is_ok(), right, "{value}");
    }
}

#[test]
fn a_copy_into_the_source_may_be_copied_onwards() {
    let (to, beyond) = (Block(8), Block(9));
    let mut monitor = written(&[1]);
    let second = monitor.invoke(beyond, Op::CopyOf(to));
    let first = monitor.invoke(to, Op::CopyOf(BLOCK));
    monitor.write(2);
    assert_eq!(monitor.answer(second, Outcome::Done), Ok(()));
    assert_eq!(monitor.possible(beyond), BTreeSet::from([0, 1, 2]));
    assert_eq!(monitor.answer(first, Outcome::Done), Ok(()));
    let circle = monitor.invoke(BLOCK, Op::CopyOf(BLOCK));
    monitor.done(circle);
}

#[test]
fn too_many_configurations_are_reported() {
    let mut monitor = Linear::new(100);
    let ids: Vec<OpId> = (1..=20).map(|value| monitor.write(value)).collect();
    monitor.invoke(BLOCK, Op::Read);
    let result = monitor.answer(ids[0], Outcome::Done);
    assert_eq!(result, Err(Wrong::TooMany { block: BLOCK, most: 100, in_flight: 21 }));
    let mut monitor = Linear::new(100);
    let ids: Vec<OpId> = (1..=129).map(|value| monitor.write(value)).collect();
    let result = monitor.answer(ids[0], Outcome::Done);
    assert!(matches!(result, Err(Wrong::TooMany { .. })));
}

/// Any number of writes that are never read costs little.
#[test]
fn writes_alone_do_not_multiply_configurations() {
    let mut monitor = Linear::new(100);
    let ids: Vec<OpId> = (1..=60).map(|value| monitor.write(value)).collect();
    for id in &ids[..59] {
        monitor.done(*id);
    }
    let read = monitor.invoke(BLOCK, Op::Read);
    assert_eq!(monitor.answer(read, Outcome::Read(60)), Ok(()));
    monitor.done(ids[59]);
    assert_eq!(monitor.possible(BLOCK), BTreeSet::from([60]));
}

/// The maximum of lost writes costs little, as none of them has to take effect.
#[test]
fn lost_writes_do_not_multiply_configurations() {
    let mut monitor = Linear::new(1000);
    for value in 1..100 {
        let lost = monitor.write(value * 2);
        monitor.lost(lost);
        let write = monitor.write(value * 2 + 1);
        monitor.done(write);
        assert!(monitor.reads(value * 2 + 1));
    }
}

#[test]
fn an_error_names_block_request_and_possible_values() {
    let mut monitor = written(&[1]);
    monitor.write(2);
    let read = monitor.invoke(BLOCK, Op::Read);
    let error = monitor.answer(read, Outcome::Read(9)).unwrap_err().to_string();
    for part in ["Block(7)", "Read(9)", "OpId(2)", "[1, 2]"] {
        assert!(error.contains(part), "{error}");
    }
}
