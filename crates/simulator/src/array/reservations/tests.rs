//! Handmade histories, and executions with and without faults.

mod executions;

use super::*;
use crate::array::search::Model;

const A: Nexus = Nexus(1);
const B: Nexus = Nexus(2);
const C: Nexus = Nexus(3);

fn monitor() -> Reservations {
    Reservations::new(10_000)
}

impl Reservations {
    /// Sends an operation and answers it at once.
    fn now(&mut self, op: Op, outcome: Outcome) -> bool {
        let id = self.invoke(op);
        self.answer(id, &outcome).is_ok()
    }

    fn good(&mut self, nexus: Nexus, action: Action) {
        assert!(self.now(Op::Out(nexus, action), Outcome::Good), "{nexus:?} {action:?}");
    }

    /// Returns the outcome of a command, which has to be certain.
    fn gets(&self, nexus: Nexus, access: Access) -> Outcome {
        self.certain(Op::Command(nexus, access))
    }

    fn certain(&self, op: Op) -> Outcome {
        let state = self.states().pop_first().expect("a state");
        assert_eq!(self.states().len(), 1);
        let (_, outcome) = Unit::apply(&state, &op).remove(0);
        outcome
    }

    /// Returns whether both outcomes are possible.
    fn is_open(&mut self, nexus: Nexus, access: Access) -> bool {
        let probe = |monitor: &mut Self, outcome: &Outcome| {
            let id = monitor.invoke(Op::Command(nexus, access));
            let mut copy = monitor.search.clone();
            monitor.refused(id).unwrap();
            copy.answer(id, outcome).is_ok()
        };
        probe(self, &Outcome::Good) && probe(self, &Outcome::Conflict)
    }
}

fn register(new_key: u64) -> Action {
    Action::Register { key: 0, new_key, ignores_key: true, is_kept: false }
}

/// A (key 10) holds the reservation with this type, B (key 20) is registered, C is not.
fn held(kind: Kind) -> Reservations {
    let mut monitor = monitor();
    monitor.good(A, register(10));
    monitor.good(B, register(20));
    monitor.good(A, Action::Reserve { key: 10, kind });
    monitor
}

/// SPC-4, table 67: which of A, B and C may read and write.
#[test]
fn each_reservation_type_excludes_the_right_hosts() {
    for (kind, reads, writes) in [
        (Kind::WriteExclusive, [true, true, true], [true, false, false]),
        (Kind::ExclusiveAccess, [true, false, false], [true, false, false]),
        (Kind::WriteExclusiveRegistrantsOnly, [true, true, true], [true, true, false]),
        (Kind::ExclusiveAccessRegistrantsOnly, [true, true, false], [true, true, false]),
        (Kind::WriteExclusiveAllRegistrants, [true, true, true], [true, true, false]),
        (Kind::ExclusiveAccessAllRegistrants, [true, true, false], [true, true, false]),
    ] {
        let monitor = held(kind);
        for (at, nexus) in [A, B, C].into_iter().enumerate() {
            let outcome = |is_let_in| if is_let_in { Outcome::Good } else { Outcome::Conflict };
            assert_eq!(monitor.gets(nexus, Access::Read), outcome(reads[at]), "{kind:?} {nexus:?}");
            assert_eq!(
                monitor.gets(nexus, Access::Write),
                outcome(writes[at]),
                "{kind:?} {nexus:?}"
            );
            assert_eq!(monitor.gets(nexus, Access::Status), Outcome::Good);
        }
    }
}

#[test]
fn an_impossible_response_is_an_error() {
    let write = |nexus| Op::Command(nexus, Access::Write);
    assert!(!held(Kind::WriteExclusive).now(write(B), Outcome::Good));
    assert!(!held(Kind::WriteExclusive).now(write(A), Outcome::Conflict));
    assert!(!monitor().now(write(A), Outcome::Conflict), "nothing is reserved");
    let mut monitor = held(Kind::WriteExclusive);
    let id = monitor.invoke(write(C));
    let error = monitor.answer(id, &Outcome::Good).unwrap_err().to_string();
    assert!(error.contains("WriteExclusive") && error.contains("Nexus(3)"), "{error}");
}

#[test]
fn keys_have_to_be_right() {
    let with = |key, new_key| Action::Register { key, new_key, ignores_key: false, is_kept: false };
    let mut monitor = monitor();
    assert!(monitor.now(Op::Out(A, with(1, 2)), Outcome::Conflict), "A is not registered");
    monitor.good(A, with(0, 10));
    assert!(monitor.now(Op::Out(A, with(0, 11)), Outcome::Conflict));
    monitor.good(A, with(10, 11));
    let kind = Kind::WriteExclusive;
    for action in [
        Action::Reserve { key: 10, kind },
        Action::Release { key: 10, kind },
        Action::Clear { key: 10 },
        Action::Preempt { key: 10, victim: 11, kind },
    ] {
        assert!(monitor.now(Op::Out(A, action), Outcome::Conflict), "{action:?}");
        assert!(monitor.now(Op::Out(B, action), Outcome::Conflict), "B is not registered");
    }
    assert!(monitor.now(Op::ReadKeys, Outcome::Keys(vec![11])));
    assert!(!monitor.now(Op::ReadKeys, Outcome::Keys(vec![10])));
}

#[test]
fn a_reservation_is_released_by_its_holder() {
    let kind = Kind::WriteExclusive;
    let mut monitor = held(kind);
    monitor.good(B, Action::Release { key: 20, kind });
    assert_eq!(monitor.gets(C, Access::Write), Outcome::Conflict, "B held nothing");
    let other = Action::Release { key: 10, kind: Kind::ExclusiveAccess };
    assert!(monitor.now(Op::Out(A, other), Outcome::Failed));
    assert!(monitor.now(Op::ReadReservation, Outcome::Held(Some((10, kind)))));
    monitor.good(A, Action::Release { key: 10, kind });
    assert_eq!(monitor.gets(C, Access::Write), Outcome::Good);
    assert!(monitor.now(Op::ReadReservation, Outcome::Held(None)));
}

#[test]
fn a_second_reservation_conflicts_unless_it_is_the_same() {
    let kind = Kind::WriteExclusiveRegistrantsOnly;
    let mut monitor = held(kind);
    monitor.good(A, Action::Reserve { key: 10, kind });
    for (nexus, key, kind) in [(B, 20, kind), (A, 10, Kind::WriteExclusive)] {
        let action = Action::Reserve { key, kind };
        assert!(monitor.now(Op::Out(nexus, action), Outcome::Conflict));
    }
    let kind = Kind::WriteExclusiveAllRegistrants;
    held(kind).good(B, Action::Reserve { key: 20, kind });
}

#[test]
fn a_reservation_ends_with_its_last_holder() {
    for kind in Kind::ALL {
        let mut monitor = held(kind);
        monitor.good(A, register(0));
        let by_all = matches!(kind as u8, 7 | 8);
        let expected = if by_all { Outcome::Conflict } else { Outcome::Good };
        assert_eq!(monitor.gets(C, Access::Write), expected, "{kind:?}");
        monitor.good(B, register(0));
        assert_eq!(monitor.gets(C, Access::Write), Outcome::Good);
    }
}

#[test]
fn clear_ends_all() {
    let mut monitor = held(Kind::ExclusiveAccess);
    monitor.good(B, Action::Clear { key: 20 });
    assert_eq!(monitor.gets(C, Access::Write), Outcome::Good);
    assert!(monitor.now(Op::ReadKeys, Outcome::Keys(vec![])));
}

#[test]
fn preempting_takes_over() {
    let kind = Kind::ExclusiveAccess;
    let mut monitor = held(Kind::WriteExclusive);
    monitor.good(B, Action::Preempt { key: 20, victim: 10, kind });
    assert!(monitor.now(Op::ReadKeys, Outcome::Keys(vec![20])));
    assert!(monitor.now(Op::ReadReservation, Outcome::Held(Some((20, kind)))));
    assert_eq!(monitor.gets(A, Access::Read), Outcome::Conflict);
    assert_eq!(monitor.gets(B, Access::Write), Outcome::Good);
    // A nexus that does not hold the reservation loses only its registration.
    let mut monitor = held(Kind::WriteExclusive);
    monitor.good(A, Action::Preempt { key: 10, victim: 20, kind });
    assert!(monitor.now(Op::ReadReservation, Outcome::Held(Some((10, Kind::WriteExclusive)))));
    assert!(monitor.now(Op::ReadKeys, Outcome::Keys(vec![10])));
    let nobody = Action::Preempt { key: 10, victim: 99, kind };
    assert!(monitor.now(Op::Out(A, nobody), Outcome::Conflict));
    let zero = Action::Preempt { key: 10, victim: 0, kind };
    assert!(monitor.now(Op::Out(A, zero), Outcome::Failed));
    // All registrants are preempted by 0.
    let mut monitor = held(Kind::WriteExclusiveAllRegistrants);
    monitor.good(B, Action::Preempt { key: 20, victim: 0, kind });
    assert!(monitor.now(Op::ReadKeys, Outcome::Keys(vec![20])));
    assert_eq!(monitor.gets(A, Access::Read), Outcome::Conflict);
}

#[test]
fn preempting_ones_own_key_may_keep_or_remove_the_registration() {
    let kind = Kind::WriteExclusive;
    let own = Action::Preempt { key: 20, victim: 20, kind };
    for keys in [vec![10], vec![10, 20]] {
        let mut monitor = held(kind);
        monitor.good(B, own);
        assert!(monitor.now(Op::ReadKeys, Outcome::Keys(keys.clone())));
        assert!(monitor.now(Op::ReadKeys, Outcome::Keys(keys)), "READ KEYS decided it");
    }
}

#[test]
fn a_reservation_moves() {
    let kind = Kind::WriteExclusive;
    let to_c = |key| Action::Move { key, new_key: 30, to: C, unregisters: true, is_kept: false };
    let mut monitor = held(kind);
    assert!(monitor.now(Op::Out(B, to_c(20)), Outcome::Conflict), "B does not hold it");
    monitor.good(A, to_c(10));
    assert!(monitor.now(Op::ReadKeys, Outcome::Keys(vec![20, 30])));
    assert_eq!(monitor.gets(C, Access::Write), Outcome::Good);
    assert_eq!(monitor.gets(A, Access::Write), Outcome::Conflict);
    monitor.good(C, Action::Release { key: 30, kind });
    assert!(monitor.now(Op::Out(C, to_c(30)), Outcome::Failed), "there is nothing to move");
}

#[test]
fn while_an_action_is_in_flight_both_responses_are_possible() {
    let kind = Kind::WriteExclusive;
    let mut monitor = held(kind);
    assert!(!monitor.is_open(B, Access::Write));
    let release = monitor.invoke(Op::Out(A, Action::Release { key: 10, kind }));
    assert!(monitor.is_open(B, Access::Write));
    assert!(!monitor.is_open(B, Access::Read) && !monitor.is_open(A, Access::Write));
    // Once it was let in, the reservation is released.
    assert!(monitor.now(Op::Command(B, Access::Write), Outcome::Good));
    assert!(!monitor.is_open(B, Access::Write));
    assert_eq!(monitor.answer(release, &Outcome::Good), Ok(()));
    assert_eq!(monitor.gets(C, Access::Write), Outcome::Good);
}

/// A write that was in flight all the time may have come before a reservation.
#[test]
fn a_command_in_flight_may_have_come_before() {
    for outcome in [Outcome::Good, Outcome::Conflict] {
        let mut monitor = monitor();
        let early = monitor.invoke(Op::Command(C, Access::Write));
        monitor.good(A, register(10));
        monitor.good(A, Action::Reserve { key: 10, kind: Kind::WriteExclusive });
        assert_eq!(monitor.answer(early, &outcome), Ok(()));
        assert!(!monitor.now(Op::Command(C, Access::Write), Outcome::Good));
    }
}

#[test]
fn a_lost_action_may_take_effect_until_its_end() {
    let kind = Kind::WriteExclusive;
    let mut monitor = monitor();
    monitor.good(A, register(10));
    let lost = monitor.invoke(Op::Out(A, Action::Reserve { key: 10, kind }));
    monitor.lost(lost);
    assert!(monitor.now(Op::Command(C, Access::Write), Outcome::Good));
    assert!(monitor.is_open(C, Access::Write));
    assert_eq!(monitor.never_again(lost), Ok(()));
    assert!(monitor.now(Op::Command(C, Access::Write), Outcome::Good));
    assert!(!monitor.is_open(C, Access::Write), "it never took effect");
}

#[test]
fn without_aptpl_a_power_loss_clears_everything() {
    for is_kept in [false, true] {
        let mut monitor = held(Kind::ExclusiveAccess);
        let again = Action::Register { key: 0, new_key: 10, ignores_key: true, is_kept };
        monitor.good(A, again);
        assert_eq!(monitor.restarted(), Ok(()));
        let expected = if is_kept { Outcome::Conflict } else { Outcome::Good };
        assert_eq!(monitor.gets(C, Access::Read), expected);
    }
}

/// The effect of an action without a response on others is no promise.
#[test]
fn a_restart_may_undo_unacknowledged_actions() {
    let kind = Kind::WriteExclusive;
    let mut monitor = monitor();
    let kept = Action::Register { key: 0, new_key: 10, ignores_key: true, is_kept: true };
    monitor.good(A, kept);
    monitor.invoke(Op::Out(A, Action::Reserve { key: 10, kind }));
    assert!(monitor.now(Op::Command(C, Access::Write), Outcome::Conflict));
    monitor.invoke(Op::ReadKeys);
    assert!(!monitor.is_open(C, Access::Write));
    assert_eq!(monitor.restarted(), Ok(()));
    assert!(monitor.is_open(C, Access::Write));
    assert_eq!(monitor.in_flight(), 0);
}

/// Neither is a conflict that it caused for others.
#[test]
fn a_restart_may_undo_an_action_that_caused_conflicts() {
    let mut monitor = monitor();
    let kept = Action::Register { key: 0, new_key: 10, ignores_key: true, is_kept: true };
    monitor.invoke(Op::Out(A, kept));
    assert!(monitor.now(Op::Reserve(B), Outcome::Conflict));
    assert_eq!(monitor.restarted(), Ok(()));
    assert!(monitor.now(Op::Reserve(B), Outcome::Good));
}

#[test]
fn reserve_6_excludes_all_other_hosts() {
    let mut monitor = monitor();
    assert!(monitor.now(Op::Reserve(A), Outcome::Good));
    for access in [Access::Status, Access::Read, Access::Write] {
        assert_eq!(monitor.gets(A, access), Outcome::Good);
        assert_eq!(monitor.gets(B, access), Outcome::Conflict);
    }
    assert!(monitor.now(Op::Reserve(B), Outcome::Conflict));
    assert!(monitor.now(Op::Release(B), Outcome::Good));
    for nexus in [A, B] {
        assert!(monitor.now(Op::Out(nexus, register(1)), Outcome::Conflict));
    }
    assert!(monitor.now(Op::ReadKeys, Outcome::Conflict));
    for end in [Op::Release(A), Op::Reset, Op::Loss(A)] {
        assert!(monitor.now(Op::Reserve(A), Outcome::Good));
        assert!(monitor.now(Op::Loss(B), Outcome::Good));
        assert_eq!(monitor.gets(B, Access::Read), Outcome::Conflict);
        assert!(monitor.now(end, Outcome::Good));
        assert_eq!(monitor.gets(B, Access::Read), Outcome::Good);
    }
}

#[test]
fn reserve_6_conflicts_with_registrations_except_for_admitted_hosts() {
    let mut monitor = held(Kind::WriteExclusiveRegistrantsOnly);
    assert!(monitor.now(Op::Reserve(B), Outcome::Good));
    assert_eq!(monitor.gets(A, Access::Write), Outcome::Good, "nothing was established");
    assert!(monitor.now(Op::Reserve(C), Outcome::Conflict));
    assert!(monitor.now(Op::Release(C), Outcome::Conflict));
    assert!(held(Kind::WriteExclusive).now(Op::Reserve(B), Outcome::Conflict));
}
