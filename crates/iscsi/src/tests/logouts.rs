//! Logout (RFC 7143, 11.14 and 11.15).

use super::sessions::second;
use super::*;

/// Logs out, and reports at once that all tasks have ended.
pub(super) fn logout(peer: &mut Peer, reason: u8, cid: u16, expected: u8) {
    let mut bhs = Bhs::answer(opcode::LOGOUT | 0x40, 0x80 | reason);
    bhs.put_u32(16, 99);
    bhs.put(20, &cid.to_be_bytes());
    peer.send(bhs, b"");
    peer.end_logout();
    let (bhs, _) = peer.expect(opcode::LOGOUT_RESPONSE);
    assert_eq!((bhs.0[2], bhs.task_tag()), (expected, 99));
}

#[test]
fn each_logout_reason_has_its_response() {
    let target = target();
    let mut one = Peer::logged_in(&target, &[("MaxConnections", "2")]);
    let mut two = second(&target, &one, 1);
    logout(&mut one, 1, 7, 1);
    logout(&mut one, 2, 0, 2);
    assert!(!one.connection.is_closed());
    logout(&mut one, 0, 0, 0);
    assert!(one.connection.is_closed());
    assert!(two.event().is_none() && two.connection.is_closed());
}

/// RFC 7143, 7.5: a logout ends the tasks of what it closes.
#[test]
fn a_logout_completes_when_its_tasks_have_ended_and_no_input_is_taken_before() {
    for reason in [0, 1] {
        let target = target();
        let mut peer = Peer::logged_in(&target, &[]);
        let bhs = peer.command(0xc1, 1, 4, 0x28);
        peer.send(bhs, b"");
        let task = peer.next_command().task;
        let mut bhs = Bhs::answer(opcode::LOGOUT | 0x40, 0x80 | reason);
        bhs.put_u32(16, 99);
        peer.send(bhs, b"");
        // No initiator sends this after a logout.
        let bhs = peer.command(0xc1, 2, 4, 0x28);
        peer.send(bhs, b"");
        peer.expect_silence();
        let Some(Event::TaskManagement(request)) = peer.event() else { panic!() };
        let id = peer.connection.id();
        let expected = match reason {
            0 => ManagementFunction::LogoutSession,
            _ => ManagementFunction::LogoutConnection { connection: id },
        };
        assert_eq!((request.function, peer.event().is_none()), (expected, true));
        assert_eq!(peer.connection.abort_before(request.handle, |_, _| true), [task]);
        peer.connection.respond(task, good(b"data"));
        peer.expect_silence();
        assert!(!peer.connection.is_closed());
        peer.connection.respond_management(request.handle, ManagementOutcome::Complete);
        let (bhs, _) = peer.expect(opcode::LOGOUT_RESPONSE);
        assert_eq!((bhs.0[2], bhs.task_tag()), (0, 99));
        assert!(peer.connection.is_closed() && peer.event().is_none());
    }
}

#[test]
fn the_target_requests_a_logout() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    peer.connection.request_logout(10);
    let (bhs, _) = peer.expect(opcode::ASYNC);
    assert_eq!((bhs.0[36], bhs.u16(42), bhs.task_tag()), (1, 10, NO_TAG));
}

/// An ordered logout that is refused: its response reports that its place is free again.
#[test]
fn a_refused_logout_leaves_the_window_unchanged() {
    let limits = Limits { commands_per_session: 1, ..limits() };
    let mut peer = Peer::logged_in(&target_with(limits), &[]);
    for (reason, refusal) in [(1, 1), (2, 2)] {
        let mut bhs = Bhs::answer(opcode::LOGOUT, 0x80 | reason);
        bhs.put_u32(16, 99);
        bhs.put(20, &[0, 7]);
        bhs.put_u32(24, peer.cmd_sn);
        peer.cmd_sn += 1;
        peer.send(bhs, b"");
        let (bhs, _) = peer.expect(opcode::LOGOUT_RESPONSE);
        assert_eq!((bhs.0[2], bhs.u32(28)), (refusal, peer.cmd_sn));
        assert_eq!(bhs.u32(32), peer.cmd_sn, "one more command may come");
    }
}
