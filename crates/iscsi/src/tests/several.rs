//! Sessions of several connections: task management (RFC 7143, 4.2.3.3 and 11.5.1), and the window.

use super::sessions::{joined, second};
use super::*;

const CLEAR_TASK_SET: u8 = 4;

fn pair() -> (Peer, Peer) {
    let target = target();
    let mut one = Peer::logged_in(&target, &[("MaxConnections", "2")]);
    one.event();
    let two = second(&target, &one, 1);
    (one, two)
}

/// Sends an immediate request that aborts several tasks, with this number.
fn request(peer: &mut Peer, number: u32) {
    let mut bhs = Bhs::answer(opcode::MANAGEMENT | 0x40, 0x80 | CLEAR_TASK_SET);
    bhs.put(8, &LUN);
    bhs.put_u32(16, 500);
    bhs.put_u32(20, NO_TAG);
    bhs.put_u32(24, number);
    peer.send(bhs, b"");
}

fn asked(peer: &mut Peer) -> Option<TaskManagement> {
    std::iter::from_fn(|| peer.event()).find_map(|event| match event {
        Event::TaskManagement(request) => Some(request),
        _ => None,
    })
}

/// Acknowledges everything that was sent: the last status, and the pings.
fn acknowledge(peer: &mut Peer, stat_sn: u32) {
    peer.event();
    let (ping, _) = peer.expect(opcode::NOP_IN);
    let mut bhs = Bhs::answer(opcode::NOP_OUT | 0x40, 0x80);
    bhs.put_u32(16, NO_TAG);
    bhs.put_u32(20, ping.u32(20));
    bhs.put_u32(24, peer.cmd_sn);
    bhs.put_u32(28, stat_sn);
    peer.send(bhs, b"");
}

#[test]
fn an_abort_of_a_task_set_waits_for_earlier_requests_on_other_connections() {
    let (mut one, mut two) = pair();
    request(&mut two, 11);
    assert!(asked(&mut two).is_none(), "number 10 is in transit");
    let bhs = one.command(0xc1, 1, 4, 0x28);
    one.send(bhs, b"");
    assert!(matches!(one.event(), Some(Event::Wake { .. })));
    let task = one.next_command().task;
    let request = asked(&mut two).expect("all before it have come");
    assert_eq!(one.connection.abort_before(request.handle, |_, _| true), [task]);
}

#[test]
fn an_abort_of_a_task_set_ends_an_earlier_task_that_was_resent_later() {
    let (_one, mut two) = pair();
    request(&mut two, 11);
    assert!(asked(&mut two).is_none(), "number 10 was lost with a connection");
    two.cmd_sn = 10;
    let again = two.command(0xc1, 1, 4, 0x28);
    two.send(again, b"");
    let mut events = std::iter::from_fn(|| two.event());
    let command = events.find_map(|event| match event {
        Event::Command(command) => Some(command.task),
        _ => None,
    });
    let task = command.expect("the command");
    let request = asked(&mut two).expect("all before it have come");
    let after = two.command(0xc1, 2, 4, 0x28);
    two.send(after, b"");
    assert_eq!(two.connection.abort_before(request.handle, |_, _| true), [task]);
}

#[test]
fn an_abort_of_a_task_set_ends_no_later_task_on_other_connections() {
    let (mut one, mut two) = pair();
    let early = one.command(0xc1, 1, 4, 0x28);
    one.send(early, b"");
    request(&mut two, 11);
    let late = one.command(0xc1, 2, 4, 0x28);
    one.send(late, b"");
    let (early, _late) = (one.next_command().task, one.next_command().task);
    let request = asked(&mut two).expect("the request");
    assert_eq!(one.connection.abort_before(request.handle, |_, _| true), [early]);
}

#[test]
fn an_abort_of_a_task_set_ends_a_command_whose_data_is_in_transit() {
    let (mut one, mut two) = pair();
    let bhs = one.command(0xa1, 1, 4, 0x2a);
    let bytes = one.bytes(bhs, b"data");
    one.push(&bytes[..50]);
    request(&mut two, 11);
    let request = asked(&mut two).expect("the request");
    assert_eq!(one.connection.abort_before(request.handle, |_, _| true), []);
    one.push(&bytes[50..]);
    assert!(one.no_command(), "it was aborted");
    assert_eq!(one.connection.outstanding(), 0);
}

#[test]
fn an_abort_of_a_task_set_completes_when_earlier_responses_were_received() {
    let (mut one, mut two) = pair();
    let bhs = one.command(0xc1, 1, 4, 0x28);
    one.send(bhs, b"");
    let task = one.next_command().task;
    one.connection.respond(task, good(b"data"));
    let (answer, _) = one.expect(opcode::DATA_IN);
    request(&mut two, 11);
    let request = asked(&mut two).expect("the request");
    two.connection.respond_management(request.handle, ManagementOutcome::Complete);
    two.expect_silence();
    acknowledge(&mut one, answer.u32(24) + 1);
    while two.event().is_some() {}
    two.expect(opcode::MANAGEMENT_RESPONSE);
}

/// Returns MaxCmdSN from the response to a ping.
fn window_end(peer: &mut Peer) -> u32 {
    let mut bhs = Bhs::answer(opcode::NOP_OUT | 0x40, 0x80);
    bhs.put_u32(16, 700);
    bhs.put_u32(20, NO_TAG);
    bhs.put_u32(24, peer.cmd_sn);
    peer.send(bhs, b"");
    while peer.event().is_some() {}
    peer.expect(opcode::NOP_IN).0.u32(32)
}

#[test]
fn requests_that_end_beyond_a_gap_open_the_window_when_it_is_filled() {
    let target = target();
    let mut one = Peer::logged_in(&target, &[("MaxConnections", "2")]);
    one.event();
    let mut two = second(&target, &one, 1);
    let end = window_end(&mut one);
    two.cmd_sn = 11;
    let beyond = two.command(0xc1, 2, 4, 0x28);
    two.send(beyond, b"");
    let mut three = joined(&target, &one, 1);
    let added = std::iter::from_fn(|| three.event()).last();
    assert!(matches!(added, Some(Event::ConnectionAdded { replaces: Some(_), .. })));
    drop(two.connection.end());
    assert_eq!(window_end(&mut one), end, "otherwise it could be widened repeatedly");
    one.cmd_sn = 10;
    let plug = one.command(0xc1, 1, 4, 0x28);
    one.send(plug, b"");
    let task = one.next_command().task;
    assert_eq!(window_end(&mut one), end + 1, "that of the lost one");
    one.connection.respond(task, good(b"data"));
    one.expect(opcode::DATA_IN);
    assert_eq!(window_end(&mut one), end + 2);
}
