//! The order of requests, the window, several connections, reinstatement, logout.

use super::logouts::logout;
use super::*;

#[test]
fn numbers_outside_of_the_window_are_ignored() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    for wrong in [9, 18, 10u32.wrapping_sub(1 << 20), 1 << 30] {
        let mut bhs = peer.command(0xa1, wrong, 4, 0x2a);
        bhs.put_u32(24, wrong);
        peer.send(bhs, b"data");
    }
    assert!(peer.no_command());
    peer.expect_silence();
    peer.cmd_sn = 10;
    let bhs = peer.command(0xc1, 1, 4, 0x28);
    peer.send(bhs, b"");
    assert_eq!(peer.next_command().task.tag, 1);
}

#[test]
fn the_window_closes_with_each_command_and_opens_with_each_response() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let mut tasks = Vec::new();
    for tag in 0..9 {
        let bhs = peer.command(0xc1, tag, 4, 0x28);
        peer.send(bhs, b"");
    }
    for _ in 0..8 {
        tasks.push(peer.next_command().task);
    }
    assert!(peer.no_command(), "the ninth is outside of the window");
    peer.connection.respond(tasks[3], good(b"data"));
    let (bhs, _) = peer.expect(opcode::DATA_IN);
    assert_eq!((bhs.task_tag(), bhs.u32(28), bhs.u32(32)), (3, 18, 18));
    peer.cmd_sn = 18;
    let bhs = peer.command(0xc1, 20, 4, 0x28);
    peer.send(bhs, b"");
    assert_eq!(peer.next_command().task.tag, 20);
}

#[test]
fn stat_sn_counts_responses() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let mut before = None;
    for tag in 0..20 {
        let bhs = peer.command(0xc1, tag, 4, 0x28);
        peer.send(bhs, b"");
        let task = peer.next_command().task;
        let answer = if tag % 2 == 0 { good(b"data") } else { good(b"") };
        peer.connection.respond(task, answer);
        let (bhs, _) = peer.receive().unwrap();
        assert!(before.is_none_or(|before| bhs.u32(24) == before + 1));
        before = Some(bhs.u32(24));
    }
}

#[test]
fn immediate_commands_bypass_the_window_and_are_bounded() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    for tag in 0..5 {
        let mut bhs = peer.command(0xc1, tag, 4, 0x28);
        bhs.0[0] |= 0x40;
        peer.send(bhs, b"");
    }
    let tasks: Vec<TaskHandle> = (0..4).map(|_| peer.next_command().task).collect();
    assert!(peer.no_command());
    let (bhs, header) = peer.expect(opcode::REJECT);
    assert_eq!((bhs.0[2], header.len()), (6, 48));
    peer.connection.respond(tasks[0], good(b"data"));
    assert_eq!(peer.expect(opcode::DATA_IN).0.u32(32), 17);
}

/// Hosts may have many names, and one machine may use them all.
#[test]
fn sessions_of_one_address_are_limited_for_any_names() {
    let target = target_with(Limits {
        sessions: 16,
        sessions_per_initiator: 2,
        sessions_per_address: 4,
        ..limits()
    });
    let mut kept = Vec::new();
    let mut log_in = |name: &str, isid, address: &str| {
        let mut peer = Peer::new_at(&target, 0, address);
        peer.isid[5] = isid;
        let name = format!("{NAME}{name}");
        let keys = [("InitiatorName", name.as_str()), ("TargetName", TARGET)];
        let (bhs, _) = peer.login_step(0x87, &keys);
        kept.push(peer);
        bhs.array::<2>(36)
    };
    const NONE_LEFT: [u8; 2] = [3, 2];
    let near = ["192.0.2.1:5", "[::ffff:192.0.2.1]:6"];
    for (n, address) in near.iter().cycle().take(4).enumerate() {
        assert_eq!(log_in(&format!("n{n}"), 0, address), [0, 0], "{n}");
    }
    assert_eq!(log_in("n9", 0, near[0]), NONE_LEFT, "another name at the same address");
    assert_eq!(log_in("n1", 0, near[0]), [0, 0], "which replaces its own");
    // An IPv6 network counts as one.
    for n in 0..4 {
        assert_eq!(log_in(&format!("six{n}"), 0, &format!("[2001:db8::{n}]:7")), [0, 0], "{n}");
    }
    assert_eq!(log_in("six9", 0, "[2001:db8::9]:7"), NONE_LEFT);
    // Both limits apply together: the name is limited at other addresses, too.
    assert_eq!(log_in("n1", 1, "198.51.100.1:7"), [0, 0]);
    assert_eq!(log_in("n1", 2, "198.51.100.2:7"), NONE_LEFT);
    assert_eq!(log_in("other", 0, "198.51.100.2:7"), [0, 0]);
}

#[test]
fn a_tag_in_use_is_rejected() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    for _ in 0..2 {
        let bhs = peer.command(0xc1, 1, 4, 0x28);
        peer.send(bhs, b"");
    }
    peer.next_command();
    assert!(peer.no_command());
    assert_eq!(peer.expect(opcode::REJECT).0.0[2], 7);
}

pub(super) fn joined(target: &Arc<Target>, first: &Peer, cid: u16) -> Peer {
    let mut peer = Peer::new(target, 0);
    peer.tsih = first.tsih;
    peer.cid = cid;
    peer.log_in("Normal", &[]);
    peer
}

pub(super) fn second(target: &Arc<Target>, first: &Peer, cid: u16) -> Peer {
    let mut peer = joined(target, first, cid);
    assert!(matches!(peer.event(), Some(Event::ConnectionAdded { replaces: None, .. })));
    peer
}

#[test]
fn two_connections_share_one_order() {
    let target = target();
    let mut one = Peer::logged_in(&target, &[("MaxConnections", "2")]);
    one.event();
    let mut two = second(&target, &one, 1);
    assert_eq!(one.connection.nexus(), two.connection.nexus());
    one.cmd_sn = 12;
    let bhs = one.command(0xa1, 3, 4, 0x2a);
    one.send(bhs, b"data");
    one.cmd_sn = 11;
    let bhs = one.command(0xc1, 2, 4, 0x28);
    one.send(bhs, b"");
    assert!(one.event().is_none(), "both wait for the first");
    two.cmd_sn = 10;
    let bhs = two.command(0xc1, 1, 4, 0x28);
    two.send(bhs, b"");
    let Some(Event::Wake { connection }) = two.event() else { panic!() };
    assert_eq!(connection, one.connection.id());
    assert_eq!(two.next_command().task.tag, 1);
    assert_eq!(one.next_command().task.tag, 2);
    assert_eq!(one.next_command().data_out.to_vec(), b"data");
}

/// Otherwise an initiator would take the numbers of a login response for the session's, and lost
/// commands for received ones.
#[test]
fn login_responses_of_a_further_connection_carry_the_sessions_numbers() {
    let target = target();
    let mut one = Peer::logged_in(&target, &[("MaxConnections", "2")]);
    let bhs = one.command(0xc1, 1, 4, 0x28);
    one.send(bhs, b"");
    one.next_command();
    let mut two = Peer::new(&target, 0);
    (two.tsih, two.cid) = (one.tsih, 1);
    two.cmd_sn = 15; // four more are in transit
    let names = [("InitiatorName", NAME), ("TargetName", TARGET)];
    for (flags, keys) in [(0x81, &names[..]), (0x87, &[])] {
        let (bhs, _) = two.login_step(flags, keys);
        assert_eq!((bhs.u32(28), bhs.u32(32)), (11, 17), "{flags:02x}");
    }
}

#[test]
fn too_many_connections_are_refused() {
    let target = target();
    let one = Peer::logged_in(&target, &[]);
    let mut two = Peer::new(&target, 0);
    two.tsih = one.tsih;
    two.cid = 1;
    let (bhs, _) = two.login_step(0x87, &[("InitiatorName", NAME), ("TargetName", TARGET)]);
    assert_eq!(bhs.array::<2>(36), [2, 6]);
}

#[test]
fn a_lost_connection_ends_the_session_and_a_logged_out_one_does_not() {
    for orderly in [false, true] {
        let target = target();
        let mut one = Peer::logged_in(&target, &[("MaxConnections", "2")]);
        let mut two = second(&target, &one, 1);
        if orderly {
            logout(&mut two, 1, 1, 0);
        }
        let ended = two.connection.end();
        assert!(ended.session.is_none());
        assert_eq!(ended.wake.len(), usize::from(!orderly));
        one.event();
        assert!(one.event().is_none());
        assert_eq!(one.connection.is_closed(), !orderly);
        let session = one.connection.nexus().unwrap().session;
        assert_eq!(one.connection.end().session.unwrap().session, session);
        assert!(target.sessions().is_empty());
    }
}

#[test]
fn a_login_of_the_same_port_replaces_its_session() {
    let target = target();
    let mut old = Peer::logged_in(&target, &[]);
    old.event();
    let bhs = old.command(0xc1, 1, 4, 0x28);
    old.send(bhs, b"");
    let task = old.next_command().task;
    let session = old.connection.nexus().unwrap().session;
    let mut new = Peer::logged_in(&target, &[]);
    // The old connection is woken first: the layer above holds the new session, and what follows
    // its event, until the old one has ended.
    assert!(
        matches!(new.event(), Some(Event::Wake { connection }) if connection == old.connection.id())
    );
    let Some(Event::SessionStarted { replaces, .. }) = new.event() else { panic!() };
    assert_eq!(replaces, Some(session));
    assert!(old.event().is_none() && old.connection.is_closed());
    old.connection.respond(task, good(b"data"));
    old.expect_silence();
    old.connection.end();
    assert_eq!(target.sessions().len(), 1);
    let mut other = Peer::new(&target, 2);
    other.log_in("Normal", &[]);
    assert_eq!(target.sessions().len(), 2, "another portal group is another session");
}

#[test]
fn sessions_are_bounded_and_dropped_connections_leave() {
    let target = target_with(Limits { sessions: 2, ..limits() });
    let open = |isid: u8| {
        let mut peer = Peer::new(&target, 0);
        peer.isid[5] = isid;
        let keys = [("InitiatorName", NAME), ("TargetName", TARGET)];
        let (bhs, _) = peer.login_step(0x87, &keys);
        (peer, bhs.array::<2>(36))
    };
    let one = open(1);
    let two = open(2);
    assert_eq!(open(3).1, [3, 2]);
    drop(two);
    assert_eq!(open(3).1, [0, 0]);
    drop(one);
    assert!(target.sessions().is_empty());
}

#[test]
fn pings_in_both_directions() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let mut bhs = Bhs::answer(opcode::NOP_OUT | 0x40, 0x80);
    bhs.put_u32(16, 7);
    bhs.put_u32(20, NO_TAG);
    let data = pattern(5_001);
    peer.send(bhs, &data);
    let (answer, echo) = peer.expect(opcode::NOP_IN);
    assert_eq!((answer.task_tag(), answer.u32(20), echo), (7, NO_TAG, data));
    peer.connection.tick(Duration::from_secs(129));
    peer.expect_silence();
    peer.connection.tick(Duration::from_secs(130));
    let (ping, _) = peer.expect(opcode::NOP_IN);
    assert_eq!(ping.task_tag(), NO_TAG);
    peer.now = Duration::from_secs(140);
    bhs.put_u32(16, NO_TAG);
    bhs.put_u32(20, ping.u32(20));
    peer.send(bhs, b"");
    peer.expect_silence();
    assert_eq!(peer.connection.deadline(), Some(Duration::from_secs(170)));
    peer.connection.tick(Duration::from_secs(170));
    peer.connection.tick(Duration::from_secs(199));
    assert!(!peer.connection.is_closed());
    peer.connection.tick(Duration::from_secs(200));
    assert!(peer.connection.is_closed());
}

#[test]
fn unknown_opcodes_are_rejected() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    for (code, reason) in [(0x1c, 5), (opcode::SNACK, 3)] {
        peer.send(Bhs::answer(code, 0x80), b"some data");
        let (bhs, header) = peer.expect(opcode::REJECT);
        assert_eq!((bhs.0[2], header[0]), (reason, code));
    }
    assert!(!peer.connection.is_closed());
    peer.send(Bhs::answer(opcode::LOGIN | 0x40, 0x87), b"");
    assert_eq!(peer.expect(opcode::REJECT).0.0[2], 4);
    assert!(peer.connection.is_closed());
}

#[test]
fn a_peer_that_receives_nothing_is_not_read() {
    let target = target_with(Limits { output_bytes: 20_000, ..limits() });
    let mut peer = Peer::logged_in(&target, &[]);
    peer.pull();
    let mut bhs = Bhs::answer(opcode::NOP_OUT | 0x40, 0x80);
    bhs.put_u32(16, 7);
    let ping = peer.bytes(bhs, &pattern(4000));
    let all = ping.repeat(100);
    let taken = peer.push(&all);
    assert!(taken < 150_000, "{taken}");
    assert!(peer.connection.output_bytes() < 30_000);
    let mut count = 0;
    let mut at = taken;
    while peer.receive().is_some() {
        count += 1;
        at += peer.push(&all[at..]);
    }
    assert_eq!((count, at), (100, all.len()));
}

#[test]
fn a_login_with_the_same_cid_replaces_its_connection() {
    let target = target();
    let mut one = Peer::logged_in(&target, &[("MaxConnections", "2")]);
    one.event();
    let mut old = second(&target, &one, 1);
    let mut new = joined(&target, &one, 1);
    let old_id = old.connection.id();
    // First here, too: the session itself may have to wait, and the new connection with it.
    assert!(matches!(new.event(), Some(Event::Wake { connection }) if connection == old_id));
    let added = new.event();
    assert!(
        matches!(added, Some(Event::ConnectionAdded { replaces: Some(old), .. }) if old == old_id)
    );
    // Closed even before its events are polled: the layer above may hold the old one as well.
    assert!(old.connection.is_closed() && old.event().is_none());
    let ended = old.connection.end();
    assert!(ended.session.is_none() && ended.wake.is_empty());
    assert!(one.event().is_none() && !one.connection.is_closed());
    let bhs = new.command(0xc1, 1, 4, 0x28);
    new.send(bhs, b"");
    assert_eq!(new.next_command().task.tag, 1);
}

#[test]
fn a_damaged_ping_is_rejected_and_its_number_counts() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[("DataDigest", "CRC32C")]);
    let mut bhs = Bhs::answer(opcode::NOP_OUT, 0x80);
    bhs.put_u32(16, 7);
    bhs.put_u32(24, peer.cmd_sn);
    let mut bytes = peer.bytes(bhs, b"echo");
    bytes[49] ^= 1;
    peer.push(&bytes);
    let (bhs, _) = peer.expect(opcode::REJECT);
    assert_eq!((bhs.0[2], bhs.u32(28)), (2, 11));
    peer.cmd_sn += 1;
    let bhs = peer.command(0xc1, 1, 4, 0x28);
    peer.send(bhs, b"");
    let task = peer.next_command().task;
    peer.connection.respond(task, good(b"data"));
    assert_eq!(peer.expect(opcode::DATA_IN).0.u32(32), 19, "no place is lost");
}
