//! Acknowledgement of statuses by the initiator (ExpStatSN).

use super::*;

/// Sends a read, and returns the StatSN of its response.
fn answered(peer: &mut Peer, tag: u32, acknowledge: Option<u64>, data: &[u8]) -> u32 {
    let bhs = peer.command(0xc1, tag, data.len() as u32, 0x28);
    peer.send(bhs, b"");
    let command = peer.next_command();
    peer.connection.respond(command.task, TaskResponse { acknowledge, ..good(data) });
    peer.receive().unwrap().0.u32(24)
}

/// Sends an immediate ping with this ExpStatSN. Returns the names acknowledged by it.
fn ping(peer: &mut Peer, exp_stat_sn: u32) -> Vec<u64> {
    let mut bhs = Bhs::answer(opcode::NOP_OUT | 0x40, FINAL);
    bhs.put_u32(16, 900);
    bhs.put_u32(20, NO_TAG);
    bhs.put_u32(24, peer.cmd_sn);
    bhs.put_u32(28, exp_stat_sn);
    peer.send(bhs, b"");
    peer.expect(opcode::NOP_IN);
    told(peer)
}

fn told(peer: &mut Peer) -> Vec<u64> {
    std::iter::from_fn(|| peer.event())
        .filter_map(|event| match event {
            Event::Acknowledged { name } => Some(name),
            _ => None,
        })
        .collect()
}

#[test]
fn a_status_is_acknowledged_by_the_next_exp_stat_sn() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    // With its data, and separately.
    let first = answered(&mut peer, 1, Some(71), b"data");
    let second = answered(&mut peer, 2, Some(72), b"");
    assert_eq!(ping(&mut peer, first), []);
    assert_eq!(ping(&mut peer, second), [71]);
    assert_eq!(ping(&mut peer, second), []);
    assert_eq!(ping(&mut peer, second.wrapping_add(1)), [72]);
    let third = answered(&mut peer, 3, None, b"");
    assert_eq!(ping(&mut peer, third.wrapping_add(1)), []);
}

#[test]
fn any_pdu_acknowledges_and_this_is_reported_before_its_request() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let first = answered(&mut peer, 1, Some(71), b"");
    let mut bhs = peer.command(0xa1, 2, 1024, 0x2a);
    bhs.put_u32(28, first.wrapping_add(1));
    peer.send(bhs, b"");
    assert_eq!(told(&mut peer), [71]);
    let (r2t, _) = peer.expect(opcode::R2T);
    let second = answered(&mut peer, 3, Some(72), b"");
    let mut bhs = peer.data_out(2, r2t.u32(20), 0, 0, true);
    bhs.put_u32(28, second.wrapping_add(1));
    peer.send(bhs, &[0; 1024]);
    assert!(matches!(peer.event(), Some(Event::Acknowledged { name: 72 })));
    assert!(matches!(peer.event(), Some(Event::Command(_))));
}

#[test]
fn an_unsent_status_is_never_acknowledged() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let first = answered(&mut peer, 1, Some(71), b"");
    assert_eq!(ping(&mut peer, first.wrapping_add(1_000)), []);
    // An aborted command has no status.
    let bhs = peer.command(0xc1, 2, 4, 0x28);
    peer.send(bhs, b"");
    let task = peer.next_command().task;
    peer.connection.abort(|_, _| true);
    let aborted = TaskResponse { acknowledge: Some(72), ..good(b"data") };
    peer.connection.respond(task, aborted);
    peer.expect_silence();
    let third = answered(&mut peer, 3, Some(73), b"");
    assert_eq!(ping(&mut peer, third.wrapping_add(1)), [71, 73]);
}

#[test]
fn a_host_that_acknowledges_nothing_takes_bounded_memory() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let mut last = 0;
    for name in 0..1030 {
        last = answered(&mut peer, 1, Some(name), b"");
    }
    assert_eq!(ping(&mut peer, last.wrapping_add(1)), (6..1030).collect::<Vec<_>>());
}
