//! ORWRITE, WRITE ATOMIC, SANITIZE, and the limit of UNMAP.

use super::data::{unmap, unmap_list};
use super::world::{World, cdb_16, initiator, pattern, triple};
use crate::step::{Command, Status, Step};
use crate::{Cdb, lun};
use block::request::limits::TRANSFER_BYTES_MAX;
use block::{DataOut, LogicalBlockSize, SectorCount, VolumeError, VolumeId, VolumeReply};
use std::sync::Arc;

fn or_write(lba: u64, blocks: u32) -> Vec<u8> {
    cdb_16(0x8b, 0, lba, blocks)
}

#[test]
fn orwrite_sets_bits_and_clears_none() {
    let mut world = World::new();
    world.good(&cdb_16(0x8a, 0, 3, 2), &[0x0f; 1024]);
    let bits: Vec<u8> = (0..1024).map(|at| at as u8).collect();
    world.good(&or_write(3, 2), &bits);
    let want: Vec<u8> = bits.iter().map(|bits| bits | 0x0f).collect();
    assert_eq!(world.good(&cdb_16(0x88, 0, 3, 2), &[]), want);
    assert_eq!(world.requests[1..3], ["read", "compare and write"]);
    world.good(&or_write(3, 0), &[]);
    assert_eq!(world.sense(&or_write(2047, 2), &[0; 1024]), (5, 0x21, 0));
    assert_eq!(world.sense(&cdb_16(0x8b, 0x20, 0, 1), &[0; 512]), (5, 0x24, 0));
    world.failure = Some(VolumeError::NoSpace);
    assert_eq!(world.sense(&or_write(3, 1), &[1; 512]), (7, 0x27, 7));
}

#[test]
fn orwrite_repeats_the_read_after_a_concurrent_change() {
    let mut world = World::new();
    let command = Command {
        lun: lun::encode(0),
        cdb: Cdb::new(&or_write(8, 1)),
        data_out: DataOut::from_bytes(&[0x01; 512], 0),
        expected_in_bytes: 0,
    };
    let (nexus, map) = (world.nexus.clone(), world.luns.clone());
    let Step::Request { request, pending } = world.server.execute(&nexus, &map, command) else {
        panic!("it has to read first");
    };
    let Ok(VolumeReply::Data(held)) = world.serve(request) else { panic!("no data") };
    // Another host sets another bit before the first has written.
    world.good(&cdb_16(0x8a, 0, 8, 1), &[0x80; 512]);
    let step = world.server.resume(&nexus, pending, Ok(VolumeReply::Data(held)));
    assert_eq!(world.finish(&nexus, step).status, Status::Good);
    assert_eq!(world.good(&cdb_16(0x88, 0, 8, 1), &[]), [0x81; 512], "neither bit is lost");
}

fn atomic(lba: u64, boundary: u16, blocks: u16) -> Vec<u8> {
    cdb_16(0x9c, 0, lba, u32::from(boundary) << 16 | u32::from(blocks))
}

#[test]
fn write_atomic_is_one_request_or_refused() {
    let mut world = World::new();
    let data = pattern(7 * 512, 9);
    world.good(&atomic(5, 0, 7), &data);
    assert_eq!(world.requests, ["write"]);
    assert_eq!(world.good(&cdb_16(0x88, 0, 5, 7), &[]), data);
    world.good(&atomic(5, 0, 0), &[]);
    assert_eq!(world.sense(&atomic(2047, 0, 2), &data), (5, 0x21, 0));
    assert_eq!(world.sense(&atomic(0, 1, 1), &data), (5, 0x24, 0), "no boundary is taken");
    // A part of it is not written, because a reader would then see a part of it.
    assert_eq!(world.sense(&atomic(5, 0, 7), &data[..1024]), (5, 0x0e, 3));
    assert_eq!(world.requests, ["write", "read"]);
}

#[test]
fn write_atomic_accepts_the_reported_limit_and_no_more() {
    let mut world = World::new();
    let mut luns = (*world.luns).clone();
    let big = Arc::make_mut(luns.luns.get_mut(&0).unwrap());
    big.size = SectorCount(1 << 20);
    world.luns = Arc::new(luns);
    let limits = world.good(&[0x12, 1, 0xb0, 0, 255, 0], &[]);
    let max = u32::from_be_bytes(limits[44..48].try_into().unwrap());
    assert_eq!(u64::from(max) * 512, TRANSFER_BYTES_MAX);
    assert_eq!(limits[48..64], [0; 16], "any alignment, any length, no boundary");
    let data = vec![1; (max as usize + 1) * 512];
    assert_eq!(world.sense(&atomic(0, 0, max as u16 + 1), &data), (5, 0x24, 0));
    let command = Command {
        lun: lun::encode(0),
        cdb: Cdb::new(&atomic(1, 0, max as u16)),
        data_out: DataOut::from_bytes(&data[512..], 512),
        expected_in_bytes: 0,
    };
    let step = world.server.execute(&world.nexus, &world.luns, command);
    let Step::Request { request: block::VolumeRequest::Write { range, .. }, .. } = step else {
        panic!("{step:?}");
    };
    assert_eq!((range.start.0, range.count.0), (1, max.into()));
}

fn sanitize(action: u8) -> Vec<u8> {
    vec![0x48, action, 0, 0, 0, 0, 0, 0, 0, 0]
}

#[test]
fn sanitize_unmaps_all_of_the_volume() {
    for action in [0x02, 0x82, 0xa2] {
        let mut world = World::new();
        for lba in [0, 2047] {
            world.good(&cdb_16(0x8a, 0, lba, 1), &[7; 512]);
        }
        world.good(&sanitize(action), &[]);
        let disk = &world.disks[&VolumeId(1)];
        assert!(disk.bytes.iter().all(|&byte| byte == 0) && !disk.mapped.contains(&true));
        assert_eq!(world.requests.last(), Some(&"unmap"));
        world.good(&sanitize(0x1f), &[]);
    }
    let mut world = World::new();
    let characteristics = world.good(&[0x12, 1, 0xb1, 0, 255, 0], &[]);
    assert_eq!(characteristics[7] & 0xf0, 0x40, "what was erased can be read");
    let response = world.run_on(2, &sanitize(0x02), &[]);
    assert_eq!((response.status, LogicalBlockSize::B4096.sectors()), (Status::Good, 8));
}

#[test]
fn sanitize_refuses_reserved_bits_and_unsupported_methods() {
    let mut world = World::new();
    // No key is discarded, and nothing is overwritten: neither is supported.
    for action in [0x01, 0x03, 0x83, 0x00, 0x04, 0x1e] {
        assert_eq!(world.sense(&sanitize(action), &[]), (5, 0x24, 0), "{action:02x}");
    }
    for action in [0x02, 0x1f] {
        assert_eq!(world.sense(&sanitize(action | 0x40), &[]), (5, 0x24, 0));
        for byte in 2..9 {
            let mut cdb = sanitize(action);
            cdb[byte] = 8;
            assert_eq!(world.sense(&cdb, &[0; 2048]), (5, 0x24, 0), "byte {byte}");
        }
    }
    assert!(world.requests.is_empty());
    let other = world.log_in(initiator("b"), 2);
    assert_eq!(world.run_as(&other, 0, &[0x16, 0, 0, 0, 0, 0], &[]).status, Status::Good);
    assert_eq!(world.run(&sanitize(0x02), &[]).status, Status::ReservationConflict);
}

#[test]
fn a_write_protected_unit_is_read_but_not_written() {
    let mut world = World::new();
    let other = world.log_in(initiator("b"), 2);
    world.run_as(&other, 0, &[0, 0, 0, 0, 0, 0], &[]);
    let mut list = vec![0, 0, 0, 0];
    list.extend(&world.good(&[0x1a, 0x08, 0x0a, 0, 255, 0], &[])[4..]);
    list[4 + 4] |= 0x08;
    world.good(&[0x15, 0x10, 0, 0, list.len() as u8, 0], &list);
    let header = world.good(&[0x1a, 0x08, 0x0a, 0, 255, 0], &[]);
    assert_eq!((header[2], header[4 + 4] & 8), (0x90, 8));
    let told = world.run_as(&other, 0, &cdb_16(0x8a, 0, 0, 1), &[1; 512]);
    assert_eq!(triple(&told), (6, 0x2a, 1), "the others get a unit attention");
    for opcode in [0x8a, 0x8b, 0x8e, 0x93, 0x9c] {
        let told = world.run_as(&other, 0, &cdb_16(opcode, 0, 0, 1), &[1; 512]);
        assert_eq!(triple(&told), (7, 0x27, 2), "{opcode:02x}");
    }
    assert_eq!(world.sense(&sanitize(0x02), &[]), (7, 0x27, 2));
    assert_eq!(world.sense(&[0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0], &[]), (7, 0x27, 2));
    world.good(&cdb_16(0x88, 0, 0, 1), &[]);
    world.good(&cdb_16(0x91, 0, 0, 0), &[]);
    list[4 + 4] &= !0x08;
    world.good(&[0x15, 0x10, 0, 0, list.len() as u8, 0], &list);
    world.good(&cdb_16(0x8a, 0, 0, 1), &[1; 512]);
}

#[test]
fn unmap_accepts_the_reported_number_of_descriptors_and_no_more() {
    let mut world = World::new();
    let limits = world.good(&[0x12, 1, 0xb0, 0, 64, 0], &[]);
    let most = u32::from_be_bytes([limits[24], limits[25], limits[26], limits[27]]);
    let ranges = |count: u32| (0..count).map(|n| (u64::from(n % 8), 1)).collect::<Vec<_>>();
    assert_eq!(unmap(&mut world, &unmap_list(&ranges(most))).status, Status::Good);
    world.requests.clear();
    let refused = unmap(&mut world, &unmap_list(&ranges(most + 1)));
    assert_eq!(triple(&refused), (5, 0x26, 0));
    assert!(world.requests.is_empty());
}
