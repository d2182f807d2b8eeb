//! The memory for data, over all connections, and peers that send or receive slowly.

use super::*;

pub(super) const MIB: usize = 1 << 20;

/// Returns limits with little memory: 16 MiB, of which a command may use 1 MiB.
pub(super) fn small() -> Limits {
    Limits {
        commands_per_session: 128,
        data_bytes: 16 * MIB,
        data_out_bytes_per_command: MIB as u32,
        first_burst_bytes: 65_536,
        ..limits()
    }
}

/// Logs in session number `n` of an initiator.
pub(super) fn session(target: &Arc<Target>, name: &str, n: u8, keys: &[(&str, &str)]) -> Peer {
    let mut peer = Peer::new(target, 0);
    peer.isid[5] = n;
    let name = format!("{NAME}{name}");
    let mut all = vec![("InitiatorName", name.as_str()), ("TargetName", TARGET)];
    all.extend_from_slice(keys);
    let (answer, _) = peer.login_step(0x87, &all);
    assert_eq!((answer.0[36], answer.0[37]), (0, 0), "{name} {n}");
    peer
}

/// Announces writes of 1 MiB. Returns those whose data was solicited.
fn announce(peer: &mut Peer, count: u32) -> Vec<u32> {
    for tag in 0..count {
        let bhs = peer.command(0xa1, tag, MIB as u32, 0x2a);
        peer.send(bhs, b"");
    }
    asked(peer)
}

fn asked(peer: &mut Peer) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some((bhs, _)) = peer.receive() {
        assert_eq!(bhs.opcode(), opcode::R2T, "{bhs:?}");
        if !all.contains(&bhs.task_tag()) {
            all.push(bhs.task_tag());
        }
    }
    all
}

#[test]
fn headers_of_writes_take_a_share_of_the_memory_and_no_more() {
    let target = target_with(small());
    let keys = [("MaxBurstLength", "1048576")];
    let mut hogs: Vec<Peer> = (0..20).map(|n| session(&target, "hog", n, &keys)).collect();
    for hog in &mut hogs {
        announce(hog, 100);
        assert!(target.data_bytes() <= 8 * MIB, "{}", target.data_bytes());
    }
    // Others find memory, each at least for one command.
    let mut others = Vec::new();
    for n in 0..40 {
        let mut other = session(&target, &format!("other{n}"), 0, &keys);
        assert!(!announce(&mut other, 1).is_empty(), "{n}");
        others.push(other);
    }
    // What one returns lets those that wait continue.
    for hog in hogs.drain(..) {
        hog.connection.end();
    }
    for other in others.drain(..) {
        other.connection.end();
    }
    assert_eq!(target.data_bytes(), 0);
}

#[test]
fn every_session_makes_progress_and_waiting_ones_are_woken() {
    let target = target_with(small());
    let keys = [("MaxBurstLength", "1048576"), ("MaxOutstandingR2T", "1")];
    let mut peers: Vec<Peer> = (0..30).map(|n| session(&target, "one", n, &keys)).collect();
    let data = pattern(MIB);
    let mut left: Vec<u32> = vec![4; peers.len()];
    let mut ready: Vec<(usize, u32, u32)> = Vec::new();
    for (at, peer) in peers.iter_mut().enumerate() {
        for tag in 0..4 {
            let bhs = peer.command(0xa1, tag, MIB as u32, 0x2a);
            peer.send(bhs, b"");
        }
        while let Some((r2t, _)) = peer.receive() {
            ready.push((at, r2t.task_tag(), r2t.u32(20)));
        }
        while peer.event().is_some() {}
    }
    while let Some((at, tag, ttt)) = ready.pop() {
        let peer = &mut peers[at];
        for (sn, part) in data.chunks(262_144).enumerate() {
            let offset = sn * 262_144;
            let last = offset + part.len() == MIB;
            peer.send(peer.data_out(tag, ttt, sn as u32, offset as u32, last), part);
        }
        let command = peer.next_command();
        assert_eq!(command.data_out.len(), MIB);
        peer.connection.respond(command.task, TaskResponse::default());
        left[at] -= 1;
        let mut looks: Vec<usize> = vec![at];
        while let Some(event) = peers[at].event() {
            let Event::Wake { connection } = event else { panic!("{event:?}") };
            looks.extend(peers.iter().position(|peer| peer.connection.id() == connection));
        }
        for at in looks {
            assert!(peers[at].event().is_none_or(|event| matches!(event, Event::Wake { .. })));
            while let Some((bhs, _)) = peers[at].receive() {
                if bhs.opcode() == opcode::R2T {
                    ready.push((at, bhs.task_tag(), bhs.u32(20)));
                }
            }
        }
        assert!(target.data_bytes() <= 9 * MIB, "{}", target.data_bytes());
    }
    assert!(left.iter().all(|left| *left == 0), "{left:?}");
    assert_eq!(target.data_bytes(), 0);
}

#[test]
fn unsolicited_data_without_memory_gets_task_set_full() {
    let target = target_with(small());
    let keys = [("InitialR2T", "No"), ("FirstBurstLength", "65536")];
    let mut peer = session(&target, "", 0, &keys);
    let mut tasks = Vec::new();
    let mut refused = 0;
    for tag in 0..128 {
        let bhs = peer.command(0x21, tag, 65_536, 0x2a);
        peer.send(bhs, &pattern(32_768));
        peer.send(peer.data_out(tag, NO_TAG, 0, 32_768, true), &pattern(32_768));
        match peer.receive() {
            Some((bhs, _)) => {
                assert_eq!((bhs.opcode(), bhs.0[3]), (opcode::RESPONSE, 0x28));
                refused += 1;
            }
            None => tasks.push(peer.next_command().task),
        }
        assert!(target.data_bytes() <= 8 * MIB);
    }
    assert!(refused == 0, "128 of 64 KiB are 8 MiB");
    let bhs = peer.command(0xe1, 500, 65_536, 0x2a);
    let mut immediate = bhs;
    immediate.0[0] |= 0x40;
    peer.send(immediate, &pattern(65_536));
    let (bhs, _) = peer.expect(opcode::RESPONSE);
    assert_eq!((bhs.0[3], bhs.task_tag()), (0x28, 500));
    assert!(peer.no_command() && !peer.connection.is_closed());
    for task in tasks {
        peer.connection.respond(task, TaskResponse::default());
    }
    assert_eq!(target.data_bytes(), 0);
}

#[test]
fn a_connection_that_receives_nothing_is_not_read_beyond_its_share() {
    let target = target_with(small());
    let mut deaf = session(&target, "deaf", 0, &[("MaxRecvDataSegmentLength", "262144")]);
    for tag in 0..7 {
        let bhs = deaf.command(0xc1, tag, MIB as u32, 0x28);
        deaf.send(bhs, b"");
        let task = deaf.next_command().task;
        assert!(deaf.connection.reserve(task, MIB));
        deaf.connection.respond(task, good(&pattern(MIB)));
    }
    assert!(target.data_bytes() >= 7 * MIB);
    let bhs = deaf.command(0xc1, 100, MIB as u32, 0x28);
    let ping = deaf.bytes(bhs, b"");
    assert_eq!(deaf.push(&ping), 48, "it is not above its share yet");
    let task = deaf.next_command().task;
    assert!(!deaf.connection.reserve(task, 3 * MIB));
    let mut other = session(&target, "other", 0, &[]);
    let bhs = other.command(0xc1, 1, MIB as u32, 0x28);
    other.send(bhs, b"");
    let own = other.next_command().task;
    assert!(other.connection.reserve(own, 3 * MIB));
    assert_eq!(deaf.push(&ping), 0, "it exceeds its share");
    deaf.pull();
    let woken =
        std::iter::from_fn(|| deaf.event()).any(|event| matches!(event, Event::Wake { .. }));
    assert!(!woken, "no other task waits");
    assert!(deaf.connection.reserve(task, MIB));
    deaf.connection.respond(task, good(&pattern(MIB)));
    deaf.pull();
    other.connection.respond(own, good(b""));
    assert!(target.data_bytes() < 100_000, "{}", target.data_bytes());
}

/// Advances the time by this many seconds.
pub(super) fn later(peer: &mut Peer, seconds: u64) -> Option<&'static str> {
    peer.now += Duration::from_secs(seconds);
    let now = peer.now;
    if peer.connection.deadline().is_some_and(|at| at <= now) {
        peer.connection.tick(now);
    }
    peer.connection.take_complaint()
}

/// Answers the target's pings, as an initiator that only withholds its data does.
fn pong(peer: &mut Peer) {
    while let Some((bhs, _)) = peer.receive() {
        if bhs.opcode() == opcode::NOP_IN {
            let mut answer = Bhs::answer(opcode::NOP_OUT | 0x40, 0x80);
            answer.put_u32(16, NO_TAG);
            answer.put_u32(20, bhs.u32(20));
            answer.put_u32(24, peer.cmd_sn);
            peer.send(answer, b"");
        }
    }
}

#[test]
fn a_host_that_sends_no_data_is_closed_and_a_slow_one_is_not() {
    for unsolicited in [false, true] {
        let target = target();
        let mut peer = session(&target, "", 0, &[("InitialR2T", "No")]);
        let bhs = peer.command(if unsolicited { 0x21 } else { 0xa1 }, 1, 65_536, 0x2a);
        peer.send(bhs, b"");
        let told: Vec<_> = (0..7)
            .filter_map(|_| {
                pong(&mut peer);
                later(&mut peer, 5)
            })
            .collect();
        assert_eq!(told, ["it does not send the data of its commands"], "{unsolicited}");
        assert!(peer.connection.is_closed());
        peer.connection.end();
        assert_eq!(target.data_bytes(), 0);
    }
    // 8 KiB in 3 seconds is slow, but progress.
    let target = target();
    let mut peer = session(&target, "", 0, &[("MaxBurstLength", "262144")]);
    let data = pattern(262_144);
    let bhs = peer.command(0xa1, 1, 262_144, 0x2a);
    peer.send(bhs, b"");
    let waiting = peer.command(0xa1, 2, 65_536, 0x2a);
    peer.send(waiting, b"");
    let (r2t, _) = peer.expect(opcode::R2T);
    for (sn, part) in data.chunks(8192).enumerate() {
        let last = sn == 31;
        peer.send(peer.data_out(1, r2t.u32(20), sn as u32, sn as u32 * 8192, last), part);
        assert_eq!(later(&mut peer, 3), None, "{sn}");
        peer.pull();
    }
    assert_eq!(peer.next_command().data_out.len(), 262_144);
    assert!(!peer.connection.is_closed());
}

#[test]
fn a_connection_with_one_command_open_forever_is_closed() {
    let target = target();
    let mut peer = session(&target, "", 0, &[]);
    let bhs = peer.command(0xa1, 1, 65_536, 0x2a);
    peer.send(bhs, b"");
    let mut tag = 1;
    let mut seconds = 0;
    while !peer.connection.is_closed() {
        for _ in 0..4 {
            tag += 1;
            let bhs = peer.command(0xa1, tag, 65_536, 0x2a);
            peer.send(bhs, b"");
            let (r2t, _) = loop {
                let (bhs, data) = peer.receive().unwrap();
                if bhs.opcode() == opcode::R2T && bhs.task_tag() == tag {
                    break (bhs, data);
                }
            };
            peer.send(peer.data_out(tag, r2t.u32(20), 0, 0, true), &pattern(65_536));
            let task = peer.next_command().task;
            peer.connection.respond(task, TaskResponse::default());
            peer.pull();
        }
        later(&mut peer, 10);
        seconds += 10;
        assert!(seconds < 1000, "it is never closed");
    }
    assert!(seconds >= 300, "{seconds}");
}

#[test]
fn a_connection_that_receives_nothing_is_closed_although_it_sends() {
    let target = target();
    let mut peer = session(&target, "", 0, &[]);
    let mut told = None;
    for _ in 0..20 {
        let mut ping = Bhs::answer(opcode::NOP_OUT | 0x40, 0x80);
        ping.put_u32(20, NO_TAG);
        ping.put_u32(24, peer.cmd_sn);
        peer.send(ping, b"");
        told = told.or(later(&mut peer, 5));
    }
    assert_eq!(told, Some("it does not receive the responses to its commands"));
    assert!(peer.connection.is_closed() && !peer.connection.has_output());
}

#[test]
fn one_call_processes_some_pdus_and_the_rest_waits() {
    let target = target_with(Limits { pdus_per_call: 10, ..limits() });
    let mut peer = session(&target, "", 0, &[]);
    let mut ping = Bhs::answer(opcode::NOP_OUT | 0x40, 0x80);
    ping.put_u32(20, NO_TAG);
    ping.put_u32(24, peer.cmd_sn);
    let one = peer.bytes(ping, b"");
    let all: Vec<u8> = std::iter::repeat_n(one, 25).flatten().collect();
    assert_eq!(peer.push(&all), all.len());
    let answers = |peer: &mut Peer| {
        let before = peer.connection.output_bytes() / 48;
        peer.connection.go_on();
        (before, peer.connection.output_bytes() / 48)
    };
    assert!(peer.connection.has_input());
    assert_eq!(peer.push(b"more"), 0, "nothing is received meanwhile");
    assert_eq!(answers(&mut peer), (10, 20));
    assert_eq!(answers(&mut peer), (20, 25));
    assert!(!peer.connection.has_input());
    assert_eq!(peer.push(b"more"), 4);
}

#[test]
fn sessions_of_one_initiator_leave_room_for_others() {
    let target = target_with(Limits { sessions: 10, sessions_per_initiator: 4, ..limits() });
    let _own: Vec<Peer> = (0..4).map(|n| session(&target, "", n, &[])).collect();
    let mut fifth = Peer::new(&target, 0);
    fifth.isid[5] = 4;
    let (bhs, _) = fifth.login_step(0x87, &[("InitiatorName", NAME), ("TargetName", TARGET)]);
    assert_eq!(bhs.array::<2>(36), [3, 2]);
    // Reinstatement replaces an initiator's own session, and others find space for theirs.
    let _again = session(&target, "", 3, &[]);
    let _other = session(&target, "other", 4, &[]);
}

#[test]
fn requests_out_of_order_are_held_up_to_a_bound() {
    let target = target();
    let mut peer = session(&target, "", 0, &[]);
    for n in 1..8 {
        let mut text = Bhs::answer(opcode::NOP_OUT, 0x80);
        text.put_u32(16, n);
        text.put_u32(20, NO_TAG);
        text.put_u32(24, 10 + n);
        peer.send(text, &pattern(20_000));
        assert_eq!(peer.connection.is_closed(), n > 3, "{n}");
        if peer.connection.is_closed() {
            break;
        }
    }
    assert_eq!(peer.expect(opcode::REJECT).0.0[2], 4);
}

#[test]
fn guesses_of_a_secret_are_limited_per_address() {
    let target = target();
    let name = "iqn.2026-01.example:chap";
    let guess = |second: u64| {
        let mut peer = Peer::new(&target, 0);
        peer.now = Duration::from_secs(second);
        peer.connection.set_time(peer.now);
        let first = [("InitiatorName", name), ("TargetName", TARGET), ("AuthMethod", "CHAP")];
        let (bhs, _) = peer.login_step(0, &first);
        if bhs.0[36] != 0 {
            return (bhs.0[36], bhs.0[37], peer.connection.take_complaint());
        }
        peer.login_step(0, &[("CHAP_A", "7")]);
        let (bhs, _) = peer.login_step(0x81, &[("CHAP_N", "anna"), ("CHAP_R", "0x00")]);
        (bhs.0[36], bhs.0[37], peer.connection.take_complaint())
    };
    for n in 1..=10 {
        let (class, detail, told) = guess(100);
        assert_eq!((class, detail, told.is_some()), (2, 1, n == 10), "{n}");
    }
    for second in [100, 104] {
        assert_eq!(guess(second), (3, 1, None));
    }
    assert_eq!(guess(105).0, 2, "one more");
    assert_eq!(guess(106).0, 3);
}

/// An older write waits for memory, and newer ones that hold it wait for the older one.
#[test]
fn requests_without_memory_are_refused_and_the_rest_continue() {
    let target = target_with(small());
    let keys = [("InitialR2T", "No"), ("FirstBurstLength", "65536"), ("MaxBurstLength", "1048576")];
    let mut peer = session(&target, "", 0, &keys);
    let mut hog = session(&target, "hog", 0, &keys);
    announce(&mut hog, 100);
    let tags: Vec<u32> = (0..127).collect();
    for tag in &tags {
        let first = *tag == 0;
        let bytes = if first { MIB as u32 } else { 65_536 };
        let bhs = peer.command(if first { 0xa1 } else { 0xa2 }, *tag, bytes, 0x2a);
        peer.send(bhs, &pattern(65_536));
    }
    let mut ended = Vec::new();
    for _ in 0..100 {
        later(&mut peer, 1);
        while let Some(event) = peer.event() {
            if let Event::Command(command) = event {
                peer.connection.respond(command.task, TaskResponse::default());
            }
        }
        while let Some((bhs, _)) = peer.receive() {
            if bhs.opcode() == opcode::RESPONSE {
                ended.push(bhs.task_tag());
            }
        }
        later(&mut hog, 0);
    }
    ended.sort();
    // The data of the first one is solicited, or it is refused; either way no other waits forever.
    let others: Vec<u32> = ended.into_iter().filter(|tag| *tag > 0).collect();
    assert!(others == tags[1..] || peer.connection.is_closed(), "{}", others.len());
}
