//! Task attributes: ORDERED is a barrier on its logical unit, over all connections of a session.

use super::*;

const SIMPLE: u8 = 1;
const ORDERED: u8 = 2;
const HEAD: u8 = 3;

/// Sends a read with a task attribute, to a LUN in either addressing method.
fn read(peer: &mut Peer, tag: u32, attribute: u8, lun: [u8; 2]) {
    let mut bhs = peer.command(0xc0 | attribute, tag, 4, 0x28);
    bhs.put(8, &lun);
    peer.send(bhs, b"");
}

/// Returns the tags of the commands that are delivered now.
fn delivered(peer: &mut Peer, tasks: &mut Vec<TaskHandle>) -> Vec<u32> {
    let mut tags = Vec::new();
    while let Some(event) = peer.event() {
        match event {
            Event::Command(command) => {
                tags.push(command.task.tag);
                tasks.push(command.task);
            }
            Event::SessionStarted { .. } | Event::ConnectionAdded { .. } => {}
            Event::Wake { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    tags
}

fn end(peer: &mut Peer, tasks: &[TaskHandle], tag: u32) {
    let task = tasks.iter().find(|task| task.tag == tag).unwrap();
    peer.connection.respond(*task, good(b"data"));
}

#[test]
fn an_ordered_task_waits_for_earlier_ones_and_later_ones_wait_for_it() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let mut tasks = Vec::new();
    for (tag, attribute) in [(1, SIMPLE), (2, SIMPLE), (3, ORDERED), (4, SIMPLE), (5, ORDERED)] {
        // By both addressing methods: it is the same unit.
        read(&mut peer, tag, attribute, [if tag % 2 == 0 { 0x40 } else { 0 }, 5]);
    }
    assert_eq!(delivered(&mut peer, &mut tasks), [1, 2]);
    // Another unit has its own order, and HEAD OF QUEUE has none.
    read(&mut peer, 6, SIMPLE, [0, 6]);
    read(&mut peer, 7, HEAD, [0, 5]);
    assert_eq!(delivered(&mut peer, &mut tasks), [6, 7]);
    end(&mut peer, &tasks, 2);
    assert_eq!(delivered(&mut peer, &mut tasks), []);
    end(&mut peer, &tasks, 1);
    assert_eq!(delivered(&mut peer, &mut tasks), [3]);
    end(&mut peer, &tasks, 3);
    assert_eq!(delivered(&mut peer, &mut tasks), [4]);
    end(&mut peer, &tasks, 4);
    assert_eq!(delivered(&mut peer, &mut tasks), [5], "HEAD OF QUEUE came after it");
    end(&mut peer, &tasks, 5);
    end(&mut peer, &tasks, 6);
    end(&mut peer, &tasks, 7);
    // No ORDERED task is left.
    read(&mut peer, 8, SIMPLE, [0, 5]);
    read(&mut peer, 9, SIMPLE, [0, 5]);
    assert_eq!(delivered(&mut peer, &mut tasks), [8, 9]);
}

#[test]
fn an_ordered_task_waits_for_data_of_an_earlier_one() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let mut tasks = Vec::new();
    let bhs = peer.command(0xa0 | SIMPLE, 1, 1024, 0x2a);
    let lun = [bhs.0[8], bhs.0[9]];
    peer.send(bhs, b"");
    let (r2t, _) = peer.expect(opcode::R2T);
    read(&mut peer, 2, ORDERED, lun);
    read(&mut peer, 3, SIMPLE, lun);
    assert_eq!(delivered(&mut peer, &mut tasks), []);
    peer.send(peer.data_out(1, r2t.u32(20), 0, 0, true), &pattern(1024));
    assert_eq!(delivered(&mut peer, &mut tasks), [1]);
    end(&mut peer, &tasks, 1);
    assert_eq!(delivered(&mut peer, &mut tasks), [2]);
}

#[test]
fn aborted_waiting_tasks_block_no_others() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let mut tasks = Vec::new();
    let lun = [LUN[0], LUN[1]];
    for (tag, attribute) in [(1, SIMPLE), (2, ORDERED), (3, SIMPLE)] {
        read(&mut peer, tag, attribute, lun);
    }
    assert_eq!(delivered(&mut peer, &mut tasks), [1]);
    let mut bhs = Bhs::answer(opcode::MANAGEMENT | 0x40, 0x81); // ABORT TASK
    bhs.put(8, &LUN);
    bhs.put_u32(16, 500);
    bhs.put_u32(20, 2);
    bhs.put_u32(24, peer.cmd_sn);
    bhs.put_u32(32, 11);
    peer.send(bhs, b"");
    peer.expect(opcode::MANAGEMENT_RESPONSE);
    assert_eq!(delivered(&mut peer, &mut tasks), [3], "the blocked task continues");
    end(&mut peer, &tasks, 1);
    end(&mut peer, &tasks, 3);
    assert_eq!(peer.connection.outstanding(), 0);
}

/// Returns two connections of a session.
fn pair(target: &Arc<Target>) -> [Peer; 2] {
    let mut one = Peer::logged_in(target, &[("MaxConnections", "2")]);
    let mut two = Peer::new(target, 0);
    (two.tsih, two.cid) = (one.tsih, 1);
    two.log_in("Normal", &[]);
    assert!(one.event().is_some() && two.event().is_some());
    [one, two]
}

/// The same as [`read`], with this CmdSN.
fn read_at(peer: &mut Peer, cmd_sn: u32, attribute: u8) {
    peer.cmd_sn = cmd_sn;
    read(peer, cmd_sn, attribute, [0, 1]);
}

/// Returns whether a connection wakes the other one.
fn wakes(peer: &mut Peer, other: &Peer) -> bool {
    let id = other.connection.id();
    std::iter::from_fn(|| peer.event())
        .any(|event| matches!(event, Event::Wake { connection } if connection == id))
}

#[test]
fn the_order_spans_all_connections_of_a_session() {
    let target = target();
    let [mut one, mut two] = pair(&target);
    let (mut of_one, mut of_two) = (Vec::new(), Vec::new());
    read_at(&mut one, 10, SIMPLE);
    assert_eq!(delivered(&mut one, &mut of_one), [10]);
    read_at(&mut two, 11, ORDERED);
    read_at(&mut one, 12, SIMPLE);
    assert_eq!(delivered(&mut two, &mut of_two), [], "10 is in progress on the other connection");
    assert_eq!(delivered(&mut one, &mut of_one), [], "after 11");
    end(&mut one, &of_one, 10);
    assert!(wakes(&mut one, &two));
    assert_eq!(delivered(&mut two, &mut of_two), [11]);
    assert_eq!(delivered(&mut one, &mut of_one), []);
    end(&mut two, &of_two, 11);
    assert!(wakes(&mut two, &one));
    assert_eq!(delivered(&mut one, &mut of_one), [12]);
}

#[test]
fn the_order_follows_cmd_sn_and_not_arrival() {
    let target = target();
    let [mut one, mut two] = pair(&target);
    let (mut of_one, mut of_two) = (Vec::new(), Vec::new());
    read_at(&mut two, 12, SIMPLE);
    read_at(&mut two, 11, ORDERED);
    // Its data is still in transit when its number's turn has come.
    one.cmd_sn = 10;
    let bhs = one.command(0xa0 | SIMPLE, 10, 1024, 0x2a);
    let bytes = one.bytes(bhs, &pattern(1024));
    one.push(&bytes[..500]);
    assert!(wakes(&mut one, &two));
    assert_eq!(delivered(&mut two, &mut of_two), []);
    one.push(&bytes[500..]);
    assert_eq!(delivered(&mut one, &mut of_one), [10]);
    assert_eq!(delivered(&mut two, &mut of_two), []);
    end(&mut one, &of_one, 10);
    assert!(wakes(&mut one, &two));
    assert_eq!(delivered(&mut two, &mut of_two), [11]);
    end(&mut two, &of_two, 11);
    assert_eq!(delivered(&mut two, &mut of_two), [12]);
}

#[test]
fn a_task_does_not_wait_for_tasks_of_an_ended_connection() {
    let target = target();
    for cut in [true, false] {
        let [mut one, mut two] = pair(&target);
        let mut of_two = Vec::new();
        let bhs = one.command(0xa0 | SIMPLE, 10, 1024, 0x2a);
        let bytes = one.bytes(bhs, &pattern(1024));
        one.push(&bytes[..if cut { 500 } else { bytes.len() }]);
        read_at(&mut two, 11, ORDERED);
        assert_eq!(delivered(&mut two, &mut of_two), []);
        // The other connection logs it out, so that the session continues.
        let mut logout = Bhs::answer(opcode::LOGOUT | 0x40, 0x81);
        logout.put(20, &[0, 0]);
        two.send(logout, b"");
        two.end_logout();
        assert_eq!(delivered(&mut two, &mut of_two), []);
        let ended = one.connection.end();
        assert_eq!(ended.wake, [two.connection.id()], "cut: {cut}");
        assert_eq!(delivered(&mut two, &mut of_two), [11]);
        two.connection.end();
    }
}
