//! ODX: POPULATE TOKEN, WRITE USING TOKEN, and the lifetime of tokens.

use super::world::{ROD_VOLUME, World, cdb_16, initiator, pattern, triple};
use crate::nexus::Nexus;
use crate::step::{AnswerAfter, Command, Response, Status, Step};
use crate::{Cdb, lun};
use block::{DataOut, VolumeError, VolumeId, VolumeRequest};

const SECTOR: usize = 512;

pub(super) fn cdb(action: u8, id: u32, length: usize) -> Vec<u8> {
    let mut cdb = vec![0x83, action, 0, 0, 0, 0];
    cdb.extend(id.to_be_bytes());
    cdb.extend((length as u32).to_be_bytes());
    cdb.extend([0, 0]);
    cdb
}

fn with_ranges(mut list: Vec<u8>, ranges: &[(u64, u32)]) -> Vec<u8> {
    let at = list.len() - 2;
    list[at..].copy_from_slice(&(ranges.len() as u16 * 16).to_be_bytes());
    for (lba, blocks) in ranges {
        list.extend(lba.to_be_bytes());
        list.extend(blocks.to_be_bytes());
        list.extend([0; 4]);
    }
    let length = (list.len() - 2) as u16;
    list[..2].copy_from_slice(&length.to_be_bytes());
    list
}

pub(super) fn populate_list(inactivity_s: u32, ranges: &[(u64, u32)]) -> Vec<u8> {
    let mut list = vec![0; 16];
    list[4..8].copy_from_slice(&inactivity_s.to_be_bytes());
    with_ranges(list, ranges)
}

pub(super) fn write_list(token: &[u8], flags: u8, offset: u64, ranges: &[(u64, u32)]) -> Vec<u8> {
    let mut list = vec![0; 536];
    list[2] = flags;
    list[8..16].copy_from_slice(&offset.to_be_bytes());
    list[16..528].copy_from_slice(token);
    with_ranges(list, ranges)
}

pub(super) fn information(id: u32) -> Vec<u8> {
    let mut cdb = vec![0x84, 0x07];
    cdb.extend(id.to_be_bytes());
    cdb.extend([0, 0, 0, 0, 0, 0, 4, 0, 0, 0]);
    cdb
}

impl World {
    pub(super) fn send(&mut self, nexus: &Nexus, lun: u16, action: u8, list: &[u8]) -> Response {
        self.run_as(nexus, lun, &cdb(action, 7, list.len()), list)
    }

    /// Creates a token of LUN 0, as the first nexus.
    pub(super) fn populate(&mut self, ranges: &[(u64, u32)]) -> Vec<u8> {
        let list = populate_list(0, ranges);
        self.good(&cdb(0x10, 7, list.len()), &list);
        let answer = self.good(&information(7), &[]);
        assert_eq!(answer.len(), 32 + 4 + 2 + 512);
        assert_eq!(answer[..4], (answer.len() as u32 - 4).to_be_bytes());
        assert_eq!((answer[4], answer[5], answer[15]), (0x10, 0x01, 0xf1));
        assert_eq!(answer[32..38], [0, 0, 2, 2, 0, 0]);
        answer[38..].to_vec()
    }

    pub(super) fn write(&mut self, lun: u16, list: &[u8]) -> Response {
        let nexus = self.nexus.clone();
        self.send(&nexus, lun, 0x11, list)
    }

    pub(super) fn bytes(&self, volume: u64, lba: usize, blocks: usize) -> Vec<u8> {
        self.disks[&VolumeId(volume)].bytes[lba * SECTOR..(lba + blocks) * SECTOR].to_vec()
    }

    /// Makes the ends of tokens durable, and sweeps. Returns whether space was freed.
    pub(super) fn sweep(&mut self) -> bool {
        let _ = self.server.sweep_tokens(|_| false);
        self.save_tokens();
        let mut asked = None;
        let more = self.server.sweep_tokens(|request| {
            asked = Some(request);
            true
        });
        if let Some(request) = asked {
            self.serve(request).unwrap();
        }
        more
    }
}

pub(super) fn filled() -> World {
    let mut world = World::new();
    world.good(&cdb_16(0x8a, 0, 0, 2048), &pattern(2048 * SECTOR, 3));
    world
}

#[test]
fn a_token_represents_the_earlier_data_of_its_ranges() {
    let mut world = filled();
    let want = [world.bytes(1, 100, 5), world.bytes(1, 40, 3)].concat();
    let token = world.populate(&[(100, 5), (90, 0), (40, 3)]);
    assert_eq!(token[..8], [0, 0x80, 0, 0, 0, 0, 1, 0xf8]);
    assert_eq!(token[48..64], (8_u128 * 512).to_be_bytes());
    assert_eq!(world.requests.last(), Some(&"copy"), "and nothing was moved");
    // The source changes: the token does not.
    world.good(&cdb_16(0x8a, 0, 0, 2048), &vec![0xee; 2048 * SECTOR]);
    let response = world.write(300, &write_list(&token, 0, 0, &[(2000, 2), (7, 6)]));
    assert_eq!(response.status, Status::Good);
    assert_eq!([world.bytes(2, 2000, 2), world.bytes(2, 7, 6)].concat(), want);
    let answer = world.run_on(300, &information(7), &[]).data_in.to_vec();
    assert_eq!((answer[4], answer[5], &answer[16..24]), (0x11, 1, &8_u64.to_be_bytes()[..]));
    assert_eq!(answer[32..], [0; 4], "it creates no token");
    // From the middle of it, on the volume itself.
    assert_eq!(world.write(0, &write_list(&token, 0, 4, &[(0, 3)])).status, Status::Good);
    assert_eq!(world.bytes(1, 0, 3), want[4 * SECTOR..7 * SECTOR]);
}

#[test]
fn blocks_are_counted_as_the_addressed_unit_counts_them() {
    let mut world = filled();
    let token = world.populate(&[(16, 24)]);
    let response = world.write(2, &write_list(&token, 0, 1, &[(5, 2)]));
    assert_eq!(response.status, Status::Good);
    assert_eq!(world.bytes(3, 40, 16), world.bytes(1, 24, 16));
    assert_eq!(triple(&world.write(2, &write_list(&token, 0, 2, &[(5, 2)]))), (5, 0x26, 0));
}

#[test]
fn another_initiator_may_use_a_token_but_gets_no_information_about_it() {
    let mut world = filled();
    let token = world.populate(&[(0, 8)]);
    let other = world.log_in(initiator("b"), 2);
    let all = |length: u8| vec![0x84, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, length, 0, 0, 0];
    let told = world.good(&all(255), &[]);
    assert_eq!((told.len(), &told[8..]), (8 + 96, &token[..96]));
    assert_eq!(world.run_as(&other, 0, &all(255), &[]).data_in.to_vec(), [0, 0, 0, 4, 0, 0, 0, 0]);
    let list = write_list(&token, 0, 0, &[(64, 8)]);
    assert_eq!(world.send(&other, 300, 0x11, &list).status, Status::Good);
    assert_eq!(world.bytes(2, 64, 8), world.bytes(1, 0, 8));
}

#[test]
fn the_zero_token_zeroes() {
    let mut world = filled();
    let mut token = vec![0; 512];
    token[..8].copy_from_slice(&[0xff, 0xff, 0, 1, 0, 0, 1, 0xf8]);
    let response = world.write(0, &write_list(&token, 0, 0, &[(3, 2), (10, 1)]));
    assert_eq!(response.status, Status::Good);
    assert_eq!(world.bytes(1, 3, 2), [0; 1024]);
    assert_ne!(world.bytes(1, 5, 1), [0; 512]);
    assert_eq!(world.bytes(1, 10, 1), [0; 512]);
    world.failure = Some(VolumeError::WriteFailed);
    let failed = world.write(0, &write_list(&token, 0, 0, &[(3, 2)]));
    assert_eq!(triple(&failed), (3, 0x0c, 0), "its own unit's failure, not a third party's");
}

#[test]
fn forged_or_modified_tokens_are_refused() {
    let mut world = filled();
    let token = world.populate(&[(0, 8)]);
    for byte in [8, 15, 30, 63, 300, 511] {
        let mut bent = token.clone();
        bent[byte] ^= 1;
        let response = world.write(0, &write_list(&bent, 0, 0, &[(64, 8)]));
        assert_eq!(triple(&response), (5, 0x23, 5), "byte {byte}");
    }
    let mut other = token.clone();
    other[1] = 0x81;
    assert_eq!(triple(&world.write(0, &write_list(&other, 0, 0, &[(64, 8)]))), (5, 0x23, 1));
    let mut short = token.clone();
    short[7] = 0xf7;
    assert_eq!(triple(&world.write(0, &write_list(&short, 0, 0, &[(64, 8)]))), (5, 0x23, 10));
    // The array restarts: it has another key, and knows no earlier token.
    world.start(Vec::new(), [6; 32]);
    assert_eq!(triple(&world.write(0, &write_list(&token, 0, 0, &[(64, 8)]))), (5, 0x23, 5));
}

#[test]
fn a_token_expires_after_a_time_without_use() {
    let mut world = filled();
    world.server.set_time(1_000);
    let token = world.populate(&[(0, 8)]);
    let list = write_list(&token, 0, 0, &[(64, 8)]);
    // Each use restarts its timeout.
    for now_s in [300, 600, 900] {
        world.server.set_time(now_s * 1000);
        world.sweep();
        assert_eq!(world.write(300, &list).status, Status::Good, "after {now_s} s");
    }
    world.server.set_time(1_200_001);
    assert_eq!(triple(&world.write(300, &list)), (5, 0x23, 7), "before it was swept");
    assert!(world.disks[&ROD_VOLUME].mapped.contains(&true));
    assert!(world.sweep());
    assert!(!world.disks[&ROD_VOLUME].mapped.contains(&true), "its space is free again");
    assert!(!world.sweep(), "once");
    assert_eq!(triple(&world.write(300, &list)), (5, 0x23, 7), "and after");
    // A longer timeout is granted on request.
    let list = populate_list(3600, &[(0, 8)]);
    world.good(&cdb(0x10, 7, list.len()), &list);
    world.server.set_time(1_200_001 + 3_600_000);
    world.sweep();
    assert_eq!(world.good(&[0x84, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0, 0], &[]).len(), 104);
}

#[test]
fn a_deleted_token_is_invalid_but_a_copy_in_progress_keeps_its_data() {
    let mut world = filled();
    let want = world.bytes(1, 0, 8);
    let token = world.populate(&[(0, 8)]);
    // A write with it is in progress while another host deletes it, and it is swept.
    let list = write_list(&token, 0, 0, &[(64, 8)]);
    let command = Command {
        lun: lun::encode(300),
        cdb: Cdb::new(&cdb(0x11, 1, list.len())),
        data_out: DataOut::from_bytes(&list, 0),
        expected_in_bytes: 0,
    };
    let (nexus, map) = (world.nexus.clone(), world.luns.clone());
    let Step::Request { request, pending } = world.server.execute(&nexus, &map, command) else {
        panic!("it copies");
    };
    assert_eq!(world.write(300, &write_list(&token, 2, 0, &[(0, 8)])).status, Status::Good);
    assert_eq!(triple(&world.write(300, &list)), (5, 0x23, 9));
    assert!(!world.sweep(), "it is still copied from");
    let result = world.serve(request);
    assert!(matches!(world.server.resume(&nexus, pending, result), Step::Done(_)));
    assert_eq!(world.bytes(2, 64, 8), want);
    assert!(world.sweep());
    assert!(!world.disks[&ROD_VOLUME].mapped.contains(&true));
}

#[test]
fn space_reserved_for_a_failed_token_is_freed() {
    let mut world = filled();
    world.failure = Some(VolumeError::NoSpace);
    let list = populate_list(0, &[(0, 1000)]);
    assert_eq!(world.sense(&cdb(0x10, 7, list.len()), &list), (7, 0x27, 7));
    let answer = world.good(&information(7), &[]);
    assert_eq!((answer[5], answer[12], answer[13]), (2, 2, 18), "it failed, and here is why");
    assert!(world.sweep());
    // Sixteen times the available space can be used sequentially.
    for _ in 0..64 {
        let token = world.populate(&[(0, 2048)]);
        assert_eq!(world.write(300, &write_list(&token, 2, 0, &[(0, 2048)])).status, Status::Good);
        assert!(world.sweep());
    }
    let mut tokens = 0;
    let list = populate_list(0, &[(0, 2048)]);
    let refused = loop {
        let response = world.run(&cdb(0x10, 7, list.len()), &list);
        match response.status {
            Status::Good => tokens += 1,
            _ => break triple(&response),
        }
    };
    assert_eq!((tokens, refused), (8, (5, 0x55, 0x0d)), "there is no more room");
    let failed = world.server.sweep_tokens(|_| false);
    assert!(!failed);
}

#[test]
fn wrong_lists_are_refused_before_anything_happens() {
    let mut world = filled();
    let token = world.populate(&[(0, 8)]);
    let before = world.requests.len();
    let mut check = |action: u8, list: &[u8], want| {
        let nexus = world.nexus.clone();
        let response = world.send(&nexus, 0, action, list);
        assert_eq!(triple(&response), want, "{:02x?}", &list[..list.len().min(32)]);
    };
    let invalid = (5, 0x26, 0);
    check(0x10, &populate_list(3601, &[(0, 8)]), invalid);
    check(0x10, &populate_list(0, &[]), invalid);
    check(0x10, &populate_list(0, &[(0, 8), (7, 1)]), invalid);
    check(0x10, &populate_list(0, &[(0, 8); 33]), (5, 0x26, 8));
    check(0x10, &populate_list(0, &[(2047, 2)]), (5, 0x21, 0));
    check(0x10, &[0; 15], (5, 0x1a, 0));
    let mut typed = populate_list(0, &[(0, 8)]);
    (typed[2], typed[9]) = (2, 1);
    check(0x10, &typed, invalid);
    let mut long = populate_list(0, &[(0, 8)]);
    long[1] += 1;
    check(0x10, &long, invalid);
    check(0x11, &write_list(&token, 0, 8, &[(0, 1)]), invalid);
    check(0x11, &write_list(&token, 0, u64::MAX, &[(0, 1)]), invalid);
    check(0x11, &write_list(&token, 0, 1, &[(0, 8)]), invalid);
    check(0x11, &write_list(&token, 0, 0, &[(0, 2), (1, 2)]), invalid);
    check(0x11, &write_list(&token, 0, 0, &[(2048, 1)]), (5, 0x21, 0));
    check(0x11, &[0; 535], (5, 0x1a, 0));
    assert_eq!(world.requests.len(), before);
    world.good(&cdb(0x10, 0, 0), &[]);
    world.good(&cdb(0x11, 0, 0), &[]);
    assert_eq!(world.sense(&information(99), &[]), (5, 0x24, 0));
}

#[test]
fn reservations_of_others_apply_to_tokens() {
    let mut world = filled();
    let token = world.populate(&[(0, 8)]);
    let other = world.log_in(initiator("b"), 2);
    assert_eq!(world.run_as(&other, 0, &[0x16, 0, 0, 0, 0, 0], &[]).status, Status::Good);
    let conflict = Status::ReservationConflict;
    let list = populate_list(0, &[(0, 8)]);
    assert_eq!(world.run(&cdb(0x10, 7, list.len()), &list).status, conflict);
    assert_eq!(world.write(0, &write_list(&token, 0, 0, &[(0, 8)])).status, conflict);
    assert_eq!(world.write(300, &write_list(&token, 0, 0, &[(0, 8)])).status, Status::Good);
}

#[test]
fn an_aborted_copy_ends_before_its_next_piece_and_before_the_abort_completes() {
    let mut world = filled();
    let abort = |id: u8| vec![0x83, 0x1c, 0, 0, 0, id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(world.sense(&abort(1), &[]), (5, 0x24, 0), "nothing runs");
    let list = populate_list(0, &[(0, 8)]);
    let command = Command {
        lun: lun::encode(0),
        cdb: Cdb::new(&cdb(0x10, 1, list.len())),
        data_out: DataOut::from_bytes(&list, 0),
        expected_in_bytes: 0,
    };
    let (nexus, map) = (world.nexus.clone(), world.luns.clone());
    let step = world.server.execute(&nexus, &map, command);
    let Step::Request { request: VolumeRequest::Copy { .. }, pending } = step else {
        panic!("{step:?}");
    };
    assert_eq!(world.good(&information(1), &[])[4..6], [0x10, 0x11], "in progress");
    assert_eq!(world.sense(&abort(2), &[]), (5, 0x24, 0), "another one");
    assert!(!pending.is_called_off(&nexus));
    let answer = world.run(&abort(1), &[]);
    assert_eq!((answer.status, answer.after), (Status::Good, AnswerAfter::CalledOff));
    assert!(pending.is_called_off(&nexus), "its runner begins no other piece");
    let Step::Done(ended) = world.server.end_early(&nexus, pending) else { panic!() };
    assert_eq!(triple(&ended), (0x0a, 0x00, 0x06));
    assert_eq!(world.good(&information(1), &[])[4..6], [0x10, 0x60], "terminated");
    assert_eq!(world.sense(&abort(1), &[]), (5, 0x24, 0), "nothing runs any longer");
}

#[test]
fn the_rest_of_a_copy_ends_with_preempt_and_abort_of_its_nexus() {
    let mut world = filled();
    let command = Command {
        lun: lun::encode(0),
        cdb: Cdb::new(&cdb(0x10, 1, 32)),
        data_out: DataOut::from_bytes(&populate_list(0, &[(0, 8)]), 0),
        expected_in_bytes: 0,
    };
    let (nexus, map) = (world.nexus.clone(), world.luns.clone());
    let step = world.server.execute(&nexus, &map, command);
    let Step::Request { pending, .. } = step else { panic!("{step:?}") };
    nexus.preempt(VolumeId(2));
    assert!(!pending.is_called_off(&nexus), "on another unit");
    nexus.preempt(VolumeId(1));
    assert!(pending.is_called_off(&nexus));
    let Step::Done(ended) = world.server.end_early(&nexus, pending) else { panic!() };
    assert_eq!(ended.status, Status::TaskAborted, "for which no response is sent");
    assert_eq!(world.good(&information(1), &[])[4..6], [0x10, 0x60]);
}

#[test]
fn a_token_of_nothing_ends_without_a_request() {
    let mut world = filled();
    let token = world.populate(&[(7, 0)]);
    assert_eq!(triple(&world.write(0, &write_list(&token, 0, 0, &[(0, 1)]))), (5, 0x26, 0));
    world.server.set_time(u64::MAX);
    let sweep = |world: &World| world.server.sweep_tokens(|request| panic!("{request:?}"));
    assert!(!sweep(&world), "it is freed when its end is durable");
    world.save_tokens();
    assert!(sweep(&world));
    assert_eq!(triple(&world.write(0, &write_list(&token, 0, 0, &[(0, 1)]))), (5, 0x23, 7));
}
