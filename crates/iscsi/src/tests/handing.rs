//! Connections that are handed over to another process, at any moment.

use std::collections::VecDeque;

use super::*;
use crate::session::before;

const COMMANDS: u32 = 14;

/// A host that sends commands as the window allows, and checks all responses.
struct Host {
    peer: Peer,
    to_send: VecDeque<u8>,
    sent_bytes: usize,
    /// The number of commands it sends.
    commands: u32,
    /// Whether the data of all commands is solicited, and sent only after the next command has
    /// begun, as long as the window allows that.
    is_late: bool,
    late: VecDeque<Vec<u8>>,
    next_tag: u32,
    max_cmd_sn: u32,
    stat_sn: u32,
    delivered: Vec<u32>,
    answered: Vec<u32>,
    /// Commands without a response.
    held: VecDeque<TaskHandle>,
}

impl Host {
    fn new(target: &Arc<Target>, digests: bool) -> Self {
        let digest = if digests { "CRC32C" } else { "None" };
        let keys = [("ImmediateData", "Yes"), ("InitialR2T", "Yes"), ("FirstBurstLength", "512")];
        let digests = [("HeaderDigest", digest), ("DataDigest", digest)];
        let mut peer = Peer::new(target, 0);
        let login = peer.log_in("Normal", &[&keys[..], &digests].concat());
        let (max_cmd_sn, stat_sn) = (login.u32(32), login.u32(24).wrapping_add(1));
        let (to_send, held) = Default::default();
        let (delivered, answered) = Default::default();
        let (sent_bytes, next_tag) = (0, 1);
        let (commands, is_late, late) = (COMMANDS, false, VecDeque::new());
        Self {
            peer,
            to_send,
            sent_bytes,
            commands,
            is_late,
            late,
            next_tag,
            max_cmd_sn,
            stat_sn,
            delivered,
            answered,
            held,
        }
    }

    /// Queues the next command, if the window allows it: a read, a write with all of its data, or
    /// one whose data is solicited.
    fn queue(&mut self) {
        if self.next_tag > self.commands || before(self.max_cmd_sn, self.peer.cmd_sn) {
            return;
        }
        let tag = self.next_tag;
        self.next_tag += 1;
        let (flags, bytes, cdb) = match if self.is_late { 2 } else { tag % 3 } {
            0 => (0xc1, 8, 0x28),
            1 => (0xa1, 12, 0x2a),
            _ => (0xa1, 700, 0x2a),
        };
        let bhs = self.peer.command(flags, tag, bytes, cdb);
        let immediate = if cdb == 0x2a { (bytes as usize).min(512) } else { 0 };
        self.to_send.extend(self.peer.bytes(bhs, &pattern(700)[..immediate]));
    }

    fn take_answers(&mut self) {
        while let Some((bhs, _)) = self.peer.receive() {
            assert!(!before(bhs.u32(32), self.max_cmd_sn), "the window never gets smaller");
            self.max_cmd_sn = bhs.u32(32);
            match bhs.opcode() {
                opcode::R2T => {
                    let (tag, ttt, at) = (bhs.task_tag(), bhs.u32(20), bhs.u32(40));
                    let last = self.peer.data_out(tag, ttt, 0, at, true);
                    let data = &pattern(700)[at as usize..][..bhs.u32(44) as usize];
                    self.late.push_back(self.peer.bytes(last, data));
                }
                opcode::DATA_IN | opcode::RESPONSE => {
                    assert_eq!((bhs.u32(24), bhs.0[3]), (self.stat_sn, 0));
                    self.stat_sn = self.stat_sn.wrapping_add(1);
                    self.answered.push(bhs.task_tag());
                }
                opcode::NOP_IN => {
                    assert_eq!(
                        (bhs.task_tag(), bhs.u32(20), bhs.u32(24)),
                        (NO_TAG, NO_TAG, self.stat_sn)
                    );
                }
                other => panic!("{other:02x}"),
            }
        }
    }

    /// Runs one turn of both ends, with this many bytes. Returns whether anything has happened.
    fn turn(&mut self, bytes: usize) -> bool {
        self.queue();
        let can_begin = self.is_late && !before(self.max_cmd_sn, self.peer.cmd_sn);
        while self.late.len() > usize::from(can_begin) {
            self.to_send.extend(self.late.pop_front().unwrap_or_default());
        }
        let some: Vec<u8> = self.to_send.iter().copied().take(bytes).collect();
        let taken = self.peer.push(&some);
        self.to_send.drain(..taken);
        self.sent_bytes += taken;
        self.peer.connection.go_on();
        let mut is_busy = taken > 0;
        while let Some(event) = self.peer.event() {
            is_busy = true;
            let Event::Command(command) = event else { continue };
            let is_write = command.cdb.bytes()[0] == 0x2a;
            let data = command.data_out.to_vec();
            assert!(!is_write || data == pattern(700)[..data.len()] && !data.is_empty());
            self.delivered.push(command.task.tag);
            self.held.push_back(command.task);
        }
        // Some wait longer than others.
        if self.held.len() > 2 || !is_busy {
            let answer = |task: TaskHandle| {
                if task.tag.is_multiple_of(3) { good(b"answered") } else { good(b"") }
            };
            if let Some(task) = self.held.pop_front() {
                self.peer.connection.respond(task, answer(task));
                is_busy = true;
            }
        }
        self.take_answers();
        is_busy
    }

    /// Hands the connection over, and continues it at another target.
    fn move_on(&mut self) {
        assert!(self.peer.connection.begin_to_hand_over());
        while !self.peer.connection.is_settled() {
            assert!(self.turn(100), "there is no progress");
        }
        let handed = self.peer.connection.hand_over().expect("nothing is in progress");
        let other = target();
        other.expect([handed.tsih].into_iter());
        let opening = Opening {
            portal_index: 0,
            local: "192.0.2.1:3260".parse().unwrap(),
            peer: "192.0.2.9:40000".parse().unwrap(),
            entropy: [8; 32],
            now: self.peer.now,
        };
        let mut stranger = Peer::new(&other, 0);
        stranger.isid[5] = 9;
        stranger.log_in("Normal", &[]);
        assert_ne!(stranger.tsih, handed.tsih, "a new session takes no TSIH of another one");
        drop(stranger);
        let connection = Connection::go_on_with(other, opening, handed);
        self.peer.connection = connection.expect("the connection continues");
        assert!(self.held.is_empty());
    }
}

fn run(digests: bool, moves_at: usize) -> usize {
    let target = target();
    let mut host = Host::new(&target, digests);
    let mut has_moved = false;
    for _ in 0..10_000 {
        if !has_moved && host.sent_bytes >= moves_at {
            has_moved = true;
            host.move_on();
        }
        let bytes = if has_moved { 100 } else { (moves_at - host.sent_bytes).min(100) };
        if !host.turn(bytes) && host.answered.len() == COMMANDS as usize {
            break;
        }
    }
    let all: Vec<u32> = (1..=COMMANDS).collect();
    host.delivered.sort_unstable();
    host.answered.sort_unstable();
    assert_eq!((&host.delivered, &host.answered), (&all, &all), "moved at byte {moves_at}");
    host.sent_bytes
}

#[test]
fn each_command_runs_once_in_order_if_handed_over_at_any_byte() {
    for digests in [false, true] {
        let bytes = run(digests, usize::MAX / 2);
        assert!(bytes > 4000);
        for at in 0..bytes {
            run(digests, at);
        }
    }
}

/// The data of its commands is always in transit, and new ones always begin.
#[test]
fn a_host_that_keeps_sending_does_not_prevent_the_handover() {
    let target = target();
    let mut host = Host::new(&target, false);
    (host.commands, host.is_late) = (u32::MAX, true);
    for _ in 0..50 {
        host.turn(1000);
    }
    assert!(host.peer.connection.begin_to_hand_over());
    let turns = (0..1000).take_while(|_| {
        host.turn(1000);
        !host.peer.connection.is_settled()
    });
    let turns = turns.count();
    assert!((1..1000).contains(&turns), "{turns} turns");
    assert!(host.peer.connection.hand_over().is_some());
}

#[test]
fn a_connection_that_can_not_be_handed_over_stays() {
    let target = target();
    // A connection that is not logged in.
    assert!(!Peer::new(&target, 0).connection.begin_to_hand_over());
    // A discovery session.
    let mut discovery = Peer::new(&target, 0);
    discovery.log_in("Discovery", &[]);
    assert!(!discovery.connection.begin_to_hand_over());
    // One of two connections.
    let mut first = Peer::logged_in(&target, &[("MaxConnections", "2")]);
    let mut second = Peer::new(&target, 0);
    (second.tsih, second.cid, second.cmd_sn) = (first.tsih, 1, first.cmd_sn);
    second.log_in("Normal", &[]);
    assert!(!first.connection.begin_to_hand_over());
    assert!(!second.connection.begin_to_hand_over());
    assert!(first.connection.hand_over().is_none());
}

#[test]
fn an_invalid_handover_is_refused() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    while peer.event().is_some() {}
    assert!(peer.connection.hand_over().is_none(), "no handover was requested");
    assert!(peer.connection.begin_to_hand_over());
    peer.pull();
    let handed = peer.connection.hand_over().unwrap();
    let opening = |portal_index| Opening {
        portal_index,
        local: "192.0.2.1:3260".parse().unwrap(),
        peer: "192.0.2.9:40000".parse().unwrap(),
        entropy: [8; 32],
        now: peer.now,
    };
    let goes_on =
        |portal, handed| Connection::go_on_with(super::target(), opening(portal), handed).is_some();
    assert!(goes_on(0, handed.clone()));
    assert!(!goes_on(9, handed.clone()) && !goes_on(2, handed.clone()), "another portal");
    assert!(!goes_on(0, Handed { tsih: 0, ..handed.clone() }));
    assert!(!goes_on(0, Handed { received: vec![0; 1 << 20], ..handed.clone() }));
    // Its initiator has logged in again in the meantime.
    let other = super::target();
    let _anew = Peer::logged_in(&other, &[]);
    let tsih = handed.tsih + 1;
    assert!(Connection::go_on_with(other, opening(0), Handed { tsih, ..handed }).is_none());
}
