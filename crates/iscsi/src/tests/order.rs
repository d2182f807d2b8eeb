//! Task attributes: ORDERED is a barrier on its logical unit.

use super::*;

const SIMPLE: u8 = 1;
const ORDERED: u8 = 2;
const HEAD: u8 = 3;

/// Sends a read with a task attribute, to LUN 0 or, with another method of addressing, the same.
fn read(peer: &mut Peer, tag: u32, attribute: u8, lun: [u8; 2]) {
    let mut bhs = peer.command(0xc0 | attribute, tag, 4, 0x28);
    bhs.put(8, &lun);
    peer.send(bhs, b"");
}

/// The tags of the commands that are delivered now.
fn delivered(peer: &mut Peer, tasks: &mut Vec<TaskHandle>) -> Vec<u32> {
    let mut tags = Vec::new();
    while let Some(event) = peer.event() {
        match event {
            Event::Command(command) => {
                tags.push(command.task.initiator_task_tag);
                tasks.push(command.task);
            }
            Event::SessionStarted { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    tags
}

fn end(peer: &mut Peer, tasks: &[TaskHandle], tag: u32) {
    let task = tasks.iter().find(|task| task.initiator_task_tag == tag).unwrap();
    peer.connection.respond(*task, good(b"data"));
}

#[test]
fn an_ordered_task_waits_for_all_before_it_and_all_after_it_wait() {
    let target = target();
    let mut peer = Peer::logged_in(&target, &[]);
    let mut tasks = Vec::new();
    for (tag, attribute) in [(1, SIMPLE), (2, SIMPLE), (3, ORDERED), (4, SIMPLE), (5, ORDERED)] {
        // By both methods of addressing: it is one unit.
        read(&mut peer, tag, attribute, [if tag % 2 == 0 { 0x40 } else { 0 }, 5]);
    }
    assert_eq!(delivered(&mut peer, &mut tasks), [1, 2]);
    // Another unit has an order of its own, and HEAD OF QUEUE has none.
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
    // Nothing is ordered any more.
    read(&mut peer, 8, SIMPLE, [0, 5]);
    read(&mut peer, 9, SIMPLE, [0, 5]);
    assert_eq!(delivered(&mut peer, &mut tasks), [8, 9]);
}

#[test]
fn an_ordered_task_waits_for_data_of_one_before_it() {
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
fn tasks_that_wait_for_their_turn_are_aborted_and_hold_nobody_up_then() {
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
    assert_eq!(delivered(&mut peer, &mut tasks), [3], "what it held up goes on");
    end(&mut peer, &tasks, 1);
    end(&mut peer, &tasks, 3);
    assert_eq!(peer.connection.outstanding(), 0);
}
