//! Limits of a volume, over the wire. One byte per second is a limit that no test outlasts: a
//! waiting command continues only when the test changes the limit.

use block::VolumeLimits;

use super::wire::{Initiator, on_arrays};

const SLOW: VolumeLimits = VolumeLimits { bandwidth_bytes_per_s: Some(1), iops: None };
const READ_10: [u8; 10] = [0x28, 0, 0, 0, 0, 0, 0, 0, 8, 0];
const TEST_UNIT_READY: [u8; 10] = [0; 10];
/// The flags of a read, and its length.
const READ: (u8, u32) = (0x40, 4096);
const SCSI_RESPONSE: u8 = 0x21;
const DATA_IN: u8 = 0x25;

fn read(initiator: &mut Initiator, lun: u8) -> u32 {
    initiator.command_to(lun, READ_10, READ.0, READ.1)
}

/// Returns the task tag of the next response, which must be that of a successful read.
fn answered(initiator: &mut Initiator) -> u32 {
    // The status is sent with the data.
    let (bhs, data) = initiator.receive(DATA_IN);
    assert_eq!((bhs[1] & 0x01, bhs[3], data.len()), (1, 0, 4096));
    u32::from_be_bytes(bhs[16..20].try_into().unwrap())
}

#[test]
fn only_commands_over_a_limit_wait() {
    on_arrays(&[1, 2], |array| {
        let portal = array.running.portals[0];
        array.open.limit(SLOW);
        let (mut one, mut two) = (Initiator::login(portal, "one"), Initiator::login(portal, "two"));
        let first = read(&mut one, 1);
        assert_eq!(answered(&mut one), first, "the first one owes, and goes");
        let waiting = [read(&mut one, 1), read(&mut one, 1)];
        // Another volume, and commands that transfer nothing, on this connection and on another
        // one.
        let other = read(&mut one, 2);
        assert_eq!(answered(&mut one), other);
        let ready = one.command_to(1, TEST_UNIT_READY, 0, 0);
        let (bhs, _) = one.receive(SCSI_RESPONSE);
        assert_eq!((bhs[3], &bhs[16..20]), (0, &ready.to_be_bytes()[..]));
        let late = read(&mut two, 1);
        let other = read(&mut two, 2);
        assert_eq!(answered(&mut two), other);
        // Waiting commands are released with the limit, in order.
        array.open.limit(VolumeLimits::NONE);
        assert_eq!([answered(&mut one), answered(&mut one)], waiting);
        assert_eq!(answered(&mut two), late);
        drop((one, two));
    });
}

#[test]
fn waiting_commands_can_be_aborted_and_do_not_delay_shutdown() {
    on_arrays(&[1, 2], |array| {
        let portal = array.running.portals[0];
        array.open.limit(SLOW);
        let (mut one, mut two) = (Initiator::login(portal, "one"), Initiator::login(portal, "two"));
        let first = read(&mut one, 1);
        assert_eq!(answered(&mut one), first);
        read(&mut one, 1);
        read(&mut two, 1);
        read(&mut one, 1);
        assert_eq!(one.manage(2), 0, "ABORT TASK SET");
        let other = read(&mut one, 2);
        assert_eq!(answered(&mut one), other, "what was aborted is not answered");
        // A closed connection drops its waiting commands: the session that replaces it begins.
        read(&mut one, 1);
        drop(one);
        let mut again = Initiator::login(portal, "one");
        let other = read(&mut again, 2);
        assert_eq!(answered(&mut again), other);
        assert_eq!(again.manage(5), 0, "LOGICAL UNIT RESET");
        drop(again);
        read(&mut two, 1);
        // Waiting commands are finished at shutdown, or the connection is lost: shutdown completes.
        two
    });
}

#[test]
fn the_limit_of_a_group_applies_to_its_volumes_together_in_addition_to_their_own() {
    on_arrays(&[1, 2], |array| {
        let portal = array.running.portals[0];
        array.open.limit_group(SLOW);
        let (mut one, mut two) = (Initiator::login(portal, "one"), Initiator::login(portal, "two"));
        let first = read(&mut one, 1);
        assert_eq!(answered(&mut one), first, "the first one owes, and goes");
        // Another volume, on this connection and on another one.
        let (here, there) = (read(&mut one, 2), read(&mut two, 2));
        for initiator in [&mut one, &mut two] {
            let ready = initiator.command_to(2, TEST_UNIT_READY, 0, 0);
            let (bhs, _) = initiator.receive(SCSI_RESPONSE);
            assert_eq!((bhs[3], &bhs[16..20]), (0, &ready.to_be_bytes()[..]));
        }
        array.open.limit_group(VolumeLimits::NONE);
        assert_eq!((answered(&mut one), answered(&mut two)), (here, there));
        // A volume with its own limits in a group: a command that passes one waits for the other.
        array.open.limit(SLOW);
        let first = read(&mut one, 1);
        assert_eq!(answered(&mut one), first);
        let waiting = read(&mut one, 1);
        let other = read(&mut one, 2);
        assert_eq!(answered(&mut one), other, "it has no limits");
        array.open.limit_group(SLOW);
        let other = read(&mut two, 2);
        assert_eq!(answered(&mut two), other, "the first one of the group");
        array.open.limit(VolumeLimits::NONE);
        let late = read(&mut two, 2);
        let ready = two.command_to(1, TEST_UNIT_READY, 0, 0);
        let (bhs, _) = two.receive(SCSI_RESPONSE);
        assert_eq!(&bhs[16..20], &ready.to_be_bytes()[..], "all reads still wait");
        array.open.limit_group(VolumeLimits::NONE);
        assert_eq!((answered(&mut one), answered(&mut two)), (waiting, late));
        drop((one, two));
    });
}
