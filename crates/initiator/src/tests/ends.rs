//! Aborts, resets, pings, logouts.

use super::wire::*;
use super::*;

#[test]
fn an_aborted_command_is_never_answered() {
    let mut wire = Wire::logged_in(options(), 1);
    let stuck = wire.simple(NEVER_ANSWERED);
    assert_eq!(wire.pump(), []);
    let itt = wire.host.abort(stuck).unwrap();
    let ended = vec![stuck];
    assert_eq!(wire.pump(), [Event::TaskManagementAnswered { itt, response: 0, ended }]);
    assert_eq!(wire.host.outstanding().count(), 0);
    assert_eq!(wire.host.abort(stuck), Err(Busy::NoSuchTask));
}

/// The response and the abort cross: whichever arrives first, each arrives once.
#[test]
fn an_abort_races_with_the_response() {
    let (mut answered, mut aborted) = (0, 0);
    for seed in 0..60 {
        let mut wire = Wire::logged_in(Options { initial_r2t: true, ..options() }, seed);
        wire.piece_max = 300;
        let write = wire.write(0, &pattern(40 * BLOCK_BYTES, 1));
        let abort = wire.host.abort(write).unwrap();
        for event in wire.pump() {
            match event {
                Event::Answered(answer) => {
                    assert_eq!(answer.itt, write);
                    answered += 1;
                }
                Event::TaskManagementAnswered { itt, response, ended } => {
                    assert_eq!(itt, abort);
                    assert_eq!(ended.is_empty(), response == 1);
                    aborted += ended.len();
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(answered + aborted, seed as usize + 1);
    }
    assert!(aborted > 0);
}

#[test]
fn task_set_functions_end_the_tasks_of_their_logical_unit() {
    const OTHER: [u8; 8] = [0, 2, 0, 0, 0, 0, 0, 0];
    for (function, all) in [
        (Function::AbortTaskSet, false),
        (Function::ClearTaskSet, false),
        (Function::LogicalUnitReset, false),
        (Function::TargetWarmReset, true),
    ] {
        let mut wire = Wire::logged_in(options(), 2);
        let here = wire.simple(NEVER_ANSWERED);
        let cdb = [NEVER_ANSWERED, 0, 0, 0, 0, 0];
        let there = wire.host.command(OTHER, &cdb, Attribute::Simple, None, 0).unwrap();
        let itt = wire.host.task_management(function, LUN).unwrap();
        let late = wire.simple(NEVER_ANSWERED);
        let ended = if all { vec![here, there] } else { vec![here] };
        assert_eq!(wire.pump(), [Event::TaskManagementAnswered { itt, response: 0, ended }]);
        let left: Vec<Itt> = wire.host.outstanding().collect();
        assert_eq!(left, if all { vec![late] } else { vec![there, late] });
    }
}

#[test]
fn an_unsupported_function_ends_nothing() {
    let mut wire = Wire::logged_in(options(), 3);
    let stuck = wire.simple(NEVER_ANSWERED);
    for function in [Function::ClearAca, Function::TargetColdReset] {
        let itt = wire.host.task_management(function, LUN).unwrap();
        let ended = vec![];
        assert_eq!(wire.pump(), [Event::TaskManagementAnswered { itt, response: 5, ended }]);
    }
    assert!(wire.host.outstanding().eq([stuck]));
}

#[test]
fn pings_in_both_directions() {
    let mut wire = Wire::logged_in(options(), 4);
    let itt = wire.host.nop_out(b"how are you").unwrap();
    assert_eq!(wire.pump(), [Event::Nop(Nop::Answered { itt })]);
    let later = std::time::Duration::from_secs(100 + 31);
    wire.connection.tick(later);
    assert_eq!(wire.pump(), [Event::Nop(Nop::Asked)]);
    wire.connection.tick(later + std::time::Duration::from_secs(1));
    assert!(!wire.connection.is_closed(), "the ping was answered");
}

#[test]
fn a_target_closes_an_initiator_that_answers_no_ping() {
    let mut wire = Wire::logged_in(Options { answers_pings: false, ..options() }, 5);
    let later = std::time::Duration::from_secs(100 + 31);
    wire.connection.tick(later);
    assert_eq!(wire.pump(), [Event::Nop(Nop::Asked)]);
    wire.connection.tick(later + std::time::Duration::from_secs(31));
    assert!(wire.connection.is_closed());
}

#[test]
fn a_logout_ends_the_connection() {
    for reason in [LogoutReason::CloseSession, LogoutReason::CloseConnection(0)] {
        let mut wire = Wire::logged_in(options(), 6);
        wire.simple(NEVER_ANSWERED);
        wire.host.logout(reason).unwrap();
        assert_eq!(wire.host.nop_out(b""), Err(Busy::NotLoggedIn));
        assert_eq!(wire.pump(), [Event::LoggedOut { response: 0 }]);
        assert!(wire.host.is_over() && wire.connection.is_closed());
    }
    let mut wire = Wire::logged_in(options(), 7);
    wire.host.logout(LogoutReason::CloseConnection(9)).unwrap();
    assert_eq!(wire.pump(), [Event::LoggedOut { response: 1 }]);
    assert!(wire.host.is_logged_in(), "the logout was of another connection");
}

#[test]
fn a_requested_logout_and_a_reject_are_events() {
    let mut wire = Wire::logged_in(options(), 8);
    wire.connection.request_logout(5);
    let asked = Event::AsyncMessage { event: 1, parameters: [0, 0, 5], data: vec![] };
    assert_eq!(wire.pump(), [asked]);
    let limits = iscsi::Limits { immediate_commands_per_connection: 1, ..Default::default() };
    let mut wire = Wire::new(&target_with(limits), Initiator::new(options()), 9);
    wire.log_in();
    let cdb = [NEVER_ANSWERED, 0, 0, 0, 0, 0];
    let first = wire.host.immediate_command(LUN, &cdb, Attribute::Simple, None, 0).unwrap();
    wire.host.immediate_command(LUN, &cdb, Attribute::Simple, None, 0).unwrap();
    let events = wire.pump();
    assert!(matches!(events[..], [Event::Rejected { reason: 6, .. }]), "{events:?}");
    assert!(wire.host.outstanding().eq([first]));
}
