//! Task management.

use super::*;

fn request(peer: &mut Peer, function: u8, tag: u32, ref_cmd_sn: u32) {
    let mut bhs = Bhs::answer(opcode::MANAGEMENT | 0x40, 0x80 | function);
    bhs.put(8, &LUN);
    bhs.put_u32(16, 500);
    bhs.put_u32(20, tag);
    bhs.put_u32(24, peer.cmd_sn);
    bhs.put_u32(32, ref_cmd_sn);
    peer.send(bhs, b"");
}

fn answer(peer: &mut Peer) -> u8 {
    peer.expect(opcode::MANAGEMENT_RESPONSE).0.0[2]
}

fn asked(peer: &mut Peer) -> TaskManagement {
    match peer.event() {
        Some(Event::TaskManagement(request)) => request,
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_aborted_task_sends_no_status_and_the_answer_waits_for_its_end() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let bhs = peer.command(0xc1, 1, 4, 0x28);
    peer.send(bhs, b"");
    let task = peer.next_command().task;
    for _ in 0..2 {
        request(&mut peer, 1, 1, 10);
        peer.expect_silence();
    }
    let first = asked(&mut peer);
    assert_eq!(first.function, ManagementFunction::AbortTask { task });
    assert_eq!(first.lun, LUN);
    let again = asked(&mut peer);
    assert_eq!(again.function, first.function, "it has not ended yet");
    peer.connection.respond(task, good(b"data"));
    peer.expect_silence();
    peer.connection.respond_management(first.handle, ManagementOutcome::Complete);
    assert_eq!(answer(&mut peer), 0);
    request(&mut peer, 1, 1, 10);
    assert_eq!(answer(&mut peer), 1, "it no longer exists");
}

#[test]
fn an_abort_ends_only_the_named_task() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let tasks: Vec<_> = (1..=3)
        .map(|tag| {
            let bhs = peer.command(0xc1, tag, 4, 0x28);
            peer.send(bhs, b"");
            peer.next_command().task
        })
        .collect();
    request(&mut peer, 1, 2, 11);
    let asked = asked(&mut peer);
    assert_eq!(asked.function, ManagementFunction::AbortTask { task: tasks[1] });
    for task in tasks {
        peer.connection.respond(task, good(b"data"));
    }
    for tag in [1, 3] {
        assert_eq!(peer.expect(opcode::DATA_IN).0.task_tag(), tag);
    }
    peer.expect_silence();
}

#[test]
fn a_task_waiting_for_data_is_aborted_without_the_layer_above() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let bhs = peer.command(0xa1, 1, 1024, 0x2a);
    peer.send(bhs, b"");
    let (r2t, _) = peer.expect(opcode::R2T);
    request(&mut peer, 1, 1, 10);
    let (bhs, _) = peer.expect(opcode::MANAGEMENT_RESPONSE);
    assert_eq!((bhs.0[2], bhs.u32(32)), (0, 18));
    peer.send(peer.data_out(1, r2t.u32(20), 0, 0, true), &pattern(1024));
    peer.expect_silence();
    assert!(peer.no_command() && !peer.connection.is_closed());
}

#[test]
fn a_task_aborted_before_it_arrives_never_runs() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    request(&mut peer, 1, 1, 10);
    assert_eq!(answer(&mut peer), 0);
    let bhs = peer.command(0xc1, 1, 4, 0x28);
    peer.send(bhs, b"");
    assert!(peer.no_command());
    let bhs = peer.command(0xc1, 2, 4, 0x28);
    peer.send(bhs, b"");
    assert_eq!(peer.next_command().task.tag, 2);
}

/// Requests after a gap are aborted repeatedly: the window must not move.
#[test]
fn aborts_beyond_a_gap_do_not_widen_the_window() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    for round in 0..20 {
        peer.cmd_sn = 11 + round;
        let bhs = peer.command(0xa1, 100 + round, 4, 0x2a);
        peer.send(bhs, b"data");
        request(&mut peer, 1, 100 + round, 11 + round);
        let (bhs, _) = peer.expect(opcode::MANAGEMENT_RESPONSE);
        assert_eq!((bhs.u32(28), bhs.u32(32)), (10, 17));
        request(&mut peer, 1, 900, 17 - round % 7);
        peer.expect(opcode::MANAGEMENT_RESPONSE);
    }
    assert!(peer.connection.outstanding() <= 8);
    peer.cmd_sn = 10;
    let bhs = peer.command(0xc1, 1, 4, 0x28);
    peer.send(bhs, b"");
    let task = peer.next_command().task;
    assert!(peer.no_command());
    assert_eq!(peer.connection.outstanding(), 1);
    peer.connection.respond(task, good(b"data"));
    let (bhs, _) = peer.expect(opcode::DATA_IN);
    assert_eq!(bhs.u32(32) - bhs.u32(28), 7, "the window is whole");
}

#[test]
fn task_sets_and_resets_select_their_tasks() {
    let target = target();
    for (function, expected) in [
        (2, ManagementFunction::AbortTaskSet),
        (4, ManagementFunction::ClearTaskSet),
        (5, ManagementFunction::LogicalUnitReset),
        (6, ManagementFunction::TargetWarmReset),
    ] {
        let mut peer = Peer::logged_in(&target, &[]);
        let here = peer.command(0xc1, 1, 4, 0x28);
        let mut elsewhere = peer.command(0xc1, 2, 4, 0x28);
        elsewhere.0[9] = 9;
        let collecting = peer.command(0xa1, 3, 1024, 0x2a);
        for bhs in [here, elsewhere, collecting] {
            peer.send(bhs, b"");
        }
        peer.expect(opcode::R2T);
        let one = peer.next_command().task;
        let two = peer.next_command().task;
        request(&mut peer, function, NO_TAG, 0);
        let late = peer.command(0xc1, 4, 4, 0x28);
        peer.send(late, b"");
        let request = asked(&mut peer);
        assert_eq!(request.function, expected);
        let all = function >= 6;
        let ends = |_: TaskHandle, lun: [u8; 8]| all || lun == LUN;
        let mut affected = peer.connection.abort_before(request.handle, ends);
        affected.sort_by_key(|task| task.tag);
        assert_eq!(affected, if all { vec![one, two] } else { vec![one] });
        let late = peer.next_command().task;
        peer.connection.respond(late, good(b""));
        peer.expect(opcode::RESPONSE);
        peer.connection.forget(one);
        peer.connection.respond(two, good(b"data"));
        peer.connection.respond_management(request.handle, ManagementOutcome::Complete);
        if !all {
            peer.expect(opcode::DATA_IN);
        }
        assert_eq!(answer(&mut peer), 0);
        peer.connection.respond_management(request.handle, ManagementOutcome::Complete);
        peer.expect_silence();
        assert_eq!(peer.connection.outstanding(), 0);
    }
}

#[test]
fn unsupported_functions_are_reported() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    for (function, response) in [(3, 5), (7, 5), (8, 4), (9, 5), (0x7f, 5)] {
        request(&mut peer, function, NO_TAG, 0);
        assert_eq!(answer(&mut peer), response);
    }
}

#[test]
fn another_connection_can_end_tasks() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    for tag in 1..=2 {
        let mut bhs = peer.command(0xc1, tag, 4, 0x28);
        bhs.0[9] = tag as u8;
        peer.send(bhs, b"");
    }
    let one = peer.next_command().task;
    let two = peer.next_command().task;
    let first = |_: TaskHandle, lun: [u8; 8]| lun == [0, 1, 0, 0, 0, 0, 0, 0];
    assert_eq!(peer.connection.abort(first), [one]);
    assert_eq!(peer.connection.abort(first), [one], "it has not ended yet");
    peer.connection.respond(one, good(b"data"));
    peer.expect_silence();
    peer.connection.respond(two, good(b"data"));
    peer.expect(opcode::DATA_IN);
}

#[test]
fn the_end_reports_outstanding_commands() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let bhs = peer.command(0xc1, 1, 4, 0x28);
    peer.send(bhs, b"");
    let task = peer.next_command().task;
    let bhs = peer.command(0xa1, 2, 4, 0x2a);
    peer.send(bhs, b"");
    assert_eq!(peer.connection.end().tasks, [task]);
}

/// A command is aborted by another connection before its event was taken: it has no event.
#[test]
fn a_command_aborted_before_its_event_was_taken_never_runs() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    while peer.event().is_some() {}
    let bhs = peer.command(0xc1, 1, 4, 0x28);
    peer.send(bhs, b"");
    assert_eq!(peer.connection.abort(|_, _| true).len(), 1);
    assert!(peer.no_command());
    assert_eq!(peer.connection.outstanding(), 0);
    peer.expect_silence();
}

#[test]
fn functions_have_the_names_of_the_standard() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    while peer.event().is_some() {}
    let names = [(2, "ABORT TASK SET"), (4, "CLEAR TASK SET"), (5, "LOGICAL UNIT RESET")];
    for (function, name) in names {
        request(&mut peer, function, NO_TAG, 0);
        assert_eq!(asked(&mut peer).function.name(), name);
    }
}
