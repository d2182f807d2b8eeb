//! EXTENDED COPY and the commands that describe it.

use super::world::{World, cdb_10, naa, pattern, triple};
use crate::step::{Response, Status};
use crate::unit::vpd::{CscdName, designators};
use block::{VolumeError, VolumeId};

/// Returns an identification descriptor with an NAA name.
pub(super) fn cscd(naa: [u8; 16]) -> Vec<u8> {
    named(1, 3, &naa)
}

fn named(code_set: u8, kind: u8, name: &[u8]) -> Vec<u8> {
    let mut out = vec![0xe4, 0, 0, 0, code_set, kind, 0, name.len() as u8];
    out.extend(name);
    out.resize(29, 0);
    out.extend([0, 2, 0]);
    out
}

pub(super) fn segment(source: (u16, u64), destination: (u16, u64), blocks: u16) -> Vec<u8> {
    let mut out = vec![0x02, 0, 0, 0x18];
    out.extend(source.0.to_be_bytes());
    out.extend(destination.0.to_be_bytes());
    out.extend([0, 0]);
    out.extend(blocks.to_be_bytes());
    out.extend(source.1.to_be_bytes());
    out.extend(destination.1.to_be_bytes());
    out
}

pub(super) fn list(id: u8, usage: u8, cscds: &[Vec<u8>], segments: &[Vec<u8>]) -> Vec<u8> {
    let (cscds, segments) = (cscds.concat(), segments.concat());
    let mut out = vec![id, usage << 3];
    out.extend((cscds.len() as u16).to_be_bytes());
    out.extend([0; 4]);
    out.extend((segments.len() as u32).to_be_bytes());
    out.extend([0; 4]);
    out.extend(cscds);
    out.extend(segments);
    out
}

fn list_lid4(id: u32, cscds: &[Vec<u8>], segments: &[Vec<u8>]) -> Vec<u8> {
    let (cscds, segments) = (cscds.concat(), segments.concat());
    let mut out = vec![0; 48];
    out[0] = 1;
    out[3] = 0x20;
    out[16] = 0xff;
    out[20..24].copy_from_slice(&id.to_be_bytes());
    out[42..44].copy_from_slice(&(cscds.len() as u16).to_be_bytes());
    out[44..46].copy_from_slice(&(segments.len() as u16).to_be_bytes());
    out.extend(cscds);
    out.extend(segments);
    out
}

fn cdb(action: u8, length: usize) -> Vec<u8> {
    let mut out = vec![0x83, action, 0, 0, 0, 0, 0, 0, 0, 0];
    out.extend((length as u32).to_be_bytes());
    out.extend([0, 0]);
    out
}

fn xcopy(world: &mut World, list: &[u8]) -> Response {
    world.run(&cdb(0, list.len()), list)
}

fn results(action: u8, id: u8) -> Vec<u8> {
    vec![0x84, action, id, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0]
}

fn filled() -> World {
    let mut world = World::new();
    world.good(&cdb_10(0x2a, 0, 0, 64), &pattern(64 * 512, 1));
    world.requests.clear();
    world
}

#[test]
fn all_segments_are_one_request() {
    let mut world = filled();
    let cscds = [cscd(naa(1)), cscd(naa(2))];
    let segments = [
        segment((0, 0), (1, 100), 32),
        segment((0, 32), (1, 200), 32),
        segment((1, 100), (0, 500), 3),
    ];
    let response = xcopy(&mut world, &list(0, 3, &cscds, &segments));
    assert_eq!(response.status, crate::Status::Good, "{:?}", response.sense);
    assert_eq!(world.requests, ["copy"]);
    let data = pattern(64 * 512, 1);
    let copied = &world.disks[&VolumeId(2)].bytes;
    assert_eq!(copied[100 * 512..132 * 512], data[..32 * 512]);
    assert_eq!(copied[200 * 512..232 * 512], data[32 * 512..]);
    assert_eq!(world.disks[&VolumeId(1)].bytes[500 * 512..503 * 512], data[..3 * 512]);
    assert_eq!(xcopy(&mut world, &[]).status, crate::Status::Good);
}

#[test]
fn an_overlapping_segment_copies_the_earlier_content() {
    let mut world = filled();
    let own = [segment((0xffff, 0), (0xffff, 1), 60)];
    assert_eq!(xcopy(&mut world, &list(0, 3, &[], &own)).status, crate::Status::Good);
    assert_eq!(world.disks[&VolumeId(1)].bytes[512..61 * 512], pattern(64 * 512, 1)[..60 * 512]);
}

#[test]
fn every_designator_of_the_volume_page_is_accepted() {
    let mut world = filled();
    let mut eui = [0; 16];
    eui[..8].copy_from_slice(&naa(1)[8..]);
    eui[8..]
        .copy_from_slice(&(u64::from_be_bytes(naa(1)[..8].try_into().unwrap()) << 4).to_be_bytes());
    let cscds = [named(1, 2, &eui), named(2, 1, b"HOLDFASTHF00000002")];
    let response = xcopy(&mut world, &list(0, 3, &cscds, &[segment((0, 0), (1, 0), 8)]));
    assert_eq!(response.status, crate::Status::Good, "{:?}", response.sense);
    assert_eq!(world.disks[&VolumeId(2)].bytes[..4096], pattern(64 * 512, 1)[..4096]);
}

#[test]
fn blocks_are_counted_where_dc_says() {
    let mut world = filled();
    let native = |lba| {
        let mut name = cscd(naa(3));
        name[30] = 0x10;
        (name, lba)
    };
    let cscds = [cscd(naa(1)), native(0).0];
    let good = list(0, 3, &cscds, &[segment((0, 3), (1, 2), 16)]);
    assert_eq!(xcopy(&mut world, &good).status, crate::Status::Good);
    let data = pattern(64 * 512, 1);
    assert_eq!(world.disks[&VolumeId(3)].bytes[8192..16384], data[3 * 512..19 * 512]);
    let mut counted = segment((0, 0), (1, 0), 2);
    counted[1] = 0x02;
    assert_eq!(xcopy(&mut world, &list(0, 3, &cscds, &[counted])).status, crate::Status::Good);
    assert_eq!(world.disks[&VolumeId(3)].bytes[..8192], data[..8192]);
    let inexact = list(0, 3, &cscds, &[segment((0, 0), (1, 0), 7)]);
    assert_eq!(triple(&xcopy(&mut world, &inexact)), (0xa, 0x26, 0x0a));
    let wrong_length = list(0, 3, &[cscd(naa(3))], &[segment((0, 0), (0, 8), 1)]);
    assert_eq!(triple(&xcopy(&mut world, &wrong_length)), (0xa, 0x26, 0));
}

/// Returns a segment with offsets.
fn offset_segment(source: (u16, u64, u16), destination: (u16, u64, u16), bytes: u32) -> Vec<u8> {
    let mut out = vec![0x0a, 0, 0, 0x1c];
    out.extend(source.0.to_be_bytes());
    out.extend(destination.0.to_be_bytes());
    out.extend(bytes.to_be_bytes());
    out.extend(source.1.to_be_bytes());
    out.extend(destination.1.to_be_bytes());
    out.extend(source.2.to_be_bytes());
    out.extend(destination.2.to_be_bytes());
    out
}

#[test]
fn segments_with_offsets_count_bytes_from_within_a_block() {
    let mut world = filled();
    let names = [cscd(naa(1)), {
        let mut name = cscd(naa(3));
        name[29..32].copy_from_slice(&[0, 0x10, 0]); // blocks of 4096
        name
    }];
    let copy = |segment| list(0, 3, &names, &[segment]);
    // From block 5 of 512 bytes to the third sector of the seventh block of 4096.
    let good = copy(offset_segment((0, 5, 0), (1, 7, 1024), 3 * 512));
    assert_eq!(xcopy(&mut world, &good).status, Status::Good);
    let from = world.disks[&VolumeId(1)].bytes[5 * 512..8 * 512].to_vec();
    let to = 7 * 4096 + 1024;
    assert_eq!(world.disks[&VolumeId(3)].bytes[to..to + 3 * 512], from);
    let nothing = copy(offset_segment((0, 5, 0), (1, 7, 0), 0));
    assert_eq!(xcopy(&mut world, &nothing).status, Status::Good);
    for (segment, want) in [
        (offset_segment((0, 5, 0), (1, 7, 0), 100), (0xa, 0x26, 0x0a)),
        (offset_segment((0, 5, 512), (1, 7, 0), 512), (0xa, 0x26, 0x0a)),
        (offset_segment((0, 5, 0), (1, 7, 100), 512), (0xa, 0x26, 0x0a)),
        (offset_segment((0, 2047, 0), (1, 7, 0), 1024), (0xa, 0, 0)),
        (offset_segment((0, 0, 0), (1, u64::MAX, 0), 512), (0xa, 0, 0)),
        (offset_segment((0, 0, 0), (1, 0, 0), u32::MAX - 511), (0xa, 0, 0)),
    ] {
        assert_eq!(triple(&xcopy(&mut world, &copy(segment))), want);
    }
}

#[test]
fn another_hosts_volume_is_not_reachable() {
    let mut world = filled();
    let before = world.disks[&VolumeId(4)].bytes.clone();
    for (source, destination) in [(0, 1), (1, 0)] {
        let list =
            list(0, 3, &[cscd(naa(1)), cscd(naa(4))], &[segment((source, 0), (destination, 0), 8)]);
        let response = xcopy(&mut world, &list);
        assert_eq!(triple(&response), (0xa, 0x0d, 0x02));
        assert_eq!(response.sense.unwrap().bytes()[15..18], [0x80, 0, 48]);
    }
    let response = xcopy(
        &mut world,
        &list(0, 3, &[named(2, 1, b"HOLDFASTHF00000004")], &[segment((0, 0), (0xffff, 0), 8)]),
    );
    assert_eq!(triple(&response), (0xa, 0x0d, 0x02));
    assert!(world.requests.is_empty());
    assert_eq!(world.disks[&VolumeId(4)].bytes, before);
}

#[test]
fn lists_are_refused_before_any_effect() {
    let mut world = filled();
    let (name, seg) = (cscd(naa(1)), segment((0, 0), (0, 100), 8));
    let with = |at: usize, byte: u8, from: &[u8]| {
        let mut out = from.to_vec();
        out[at] = byte;
        out
    };
    let good = list(1, 0, std::slice::from_ref(&name), std::slice::from_ref(&seg));
    let cases: Vec<(Vec<u8>, (u8, u8, u8))> = vec![
        (good[..47].to_vec(), (5, 0x1a, 0)),
        (good[..75].to_vec(), (5, 0x1a, 0)),
        (good[..15].to_vec(), (5, 0x1a, 0)),
        (with(16, 0xe0, &good), (5, 0x26, 0x07)),
        (with(48, 0x03, &good), (5, 0x26, 0x09)),
        (with(51, 0x17, &good), (5, 0x26, 0)),
        (with(23, 21, &good), (5, 0x26, 0)),
        (with(1, 0x08, &good), (5, 0x26, 0)),
        (with(1, 0x18, &good), (5, 0x26, 0)), // an identifier where none is allowed
        (list(0, 3, &vec![name.clone(); 65], std::slice::from_ref(&seg)), (5, 0x26, 0x06)),
        (list(0, 3, std::slice::from_ref(&name), &vec![seg.clone(); 65]), (5, 0x26, 0x08)),
        (list(0, 3, &vec![name.clone(); 65], &vec![seg.clone(); 80]), (5, 0x1a, 0)),
        ([with(15, 4, &good), vec![0; 4]].concat(), (5, 0x26, 0x0b)),
        (with(15, 4, &good), (5, 0x1a, 0)),
        (with(17, 0x20, &good), (0xa, 0x0d, 0x02)), // NUL
        (with(17, 0x01, &good), (0xa, 0x0d, 0x03)), // a tape
        (list(0, 3, std::slice::from_ref(&name), &[segment((0, 0), (1, 0), 8)]), (0xa, 0x08, 0x04)),
        (list(0, 3, std::slice::from_ref(&name), &[segment((0, 0), (0, 2047), 8)]), (0xa, 0, 0)),
        (list(0, 3, &[name], &[segment((0, u64::MAX), (0, 0), 8)]), (0xa, 0, 0)),
    ];
    for (index, (list, want)) in cases.iter().enumerate() {
        assert_eq!(triple(&xcopy(&mut world, list)), *want, "case {index}");
    }
    assert!(world.requests.is_empty());
    // LU ID TYPE concerns a field that this descriptor does not have.
    assert_eq!(xcopy(&mut world, &with(17, 0xc0, &good)).status, Status::Good);
    assert_eq!(world.requests, ["copy"]);
    assert_eq!(world.sense(&cdb(0, 1 << 20), &vec![0; 1 << 20]), (5, 0x1a, 0));
    assert_eq!(world.sense(&cdb(0, 76), &good[..40]), (5, 0x1a, 0));
}

#[test]
fn segments_before_a_bad_one_are_copied_and_its_number_is_reported() {
    let mut world = filled();
    let segments = [segment((0, 0), (0, 1000), 8), segment((0, 0), (0, 2047), 8)];
    let response = xcopy(&mut world, &list(9, 0, &[cscd(naa(1))], &segments));
    assert_eq!(triple(&response), (0xa, 0, 0));
    assert_eq!(response.sense.unwrap().bytes()[8..12], [0, 0, 0, 1]);
    assert_eq!(
        world.disks[&VolumeId(1)].bytes[1000 * 512..1008 * 512],
        pattern(64 * 512, 1)[..4096]
    );
    let status = world.good(&results(0, 9), &[]);
    assert_eq!(status, [0, 0, 0, 8, 2, 0, 1, 0, 0, 0, 0x10, 0]);
    let details = world.good(&results(4, 9), &[]);
    assert_eq!((details.len(), details[56], details[59]), (78, 2, 18));
    assert_eq!(details[62] & 0xf, 0xa);
    assert_eq!(world.sense(&results(4, 9), &[]), (5, 0x24, 0), "read once");
}

#[test]
fn a_full_pool_is_reported_and_nothing_is_copied() {
    let mut world = filled();
    world.failure = Some(VolumeError::NoSpace);
    let copy = list(2, 0, &[cscd(naa(1))], &[segment((0, 0), (0, 100), 8)]);
    assert_eq!(triple(&xcopy(&mut world, &copy)), (7, 0x27, 0x07));
    assert_eq!(world.good(&results(0, 2), &[])[4..7], [2, 0, 0]);
    world.failure = Some(VolumeError::NoSuchVolume(VolumeId(1)));
    assert_eq!(triple(&xcopy(&mut world, &copy)), (0xa, 0x0d, 0x01));
}

/// An edge of the copy is in an unreadable block: no segment was processed, not even earlier ones,
/// as the segment's number shows.
#[test]
fn an_unreadable_block_ends_a_copy_before_any_segment() {
    let mut world = filled();
    let sector = block::Sector(103);
    world.failure = Some(VolumeError::Medium { sector });
    let segments = [segment((0, 0), (0, 200), 8), segment((0, 0), (0, 103), 8)];
    let response = xcopy(&mut world, &list(3, 0, &[cscd(naa(1))], &segments));
    assert_eq!(triple(&response), (0xa, 0x0d, 0x01));
    let sense = response.sense.unwrap();
    assert_eq!((sense.command_specific, sense.information), (Some(0), None));
    assert_eq!(world.good(&results(0, 3), &[])[4..7], [2, 0, 0], "no segment was copied");
}

#[test]
fn results_are_held_only_on_request_and_only_for_the_nexus() {
    let mut world = filled();
    let copy = |id, usage| list(id, usage, &[cscd(naa(1))], &[segment((0, 0), (0, 100), 8)]);
    xcopy(&mut world, &copy(5, 0));
    xcopy(&mut world, &copy(6, 2));
    assert_eq!(world.good(&results(0, 5), &[]), [0, 0, 0, 8, 1, 0, 1, 0, 0, 0, 0x10, 0]);
    assert_eq!(world.good(&results(1, 5), &[]), [0, 0, 0, 0]);
    assert_eq!(world.sense(&results(0, 6), &[]), (5, 0x24, 0));
    let other = world.log_in(super::world::initiator("b"), 1);
    assert_eq!(triple(&world.run_as(&other, 0, &results(0, 5), &[])), (5, 0x24, 0));
    for id in 10..200 {
        xcopy(&mut world, &copy(id, 0));
    }
    assert_eq!(world.sense(&results(0, 10), &[]), (5, 0x24, 0), "the oldest went");
    world.good(&results(0, 199), &[]);
}

#[test]
fn a_list_identifier_is_in_use_until_the_copy_ended_or_was_dropped() {
    let mut world = filled();
    let bytes = list(5, 0, &[cscd(naa(1))], &[segment((0, 0), (0, 100), 8)]);
    let command = || crate::Command {
        lun: [0; 8],
        cdb: crate::Cdb::new(&cdb(0, bytes.len())),
        data_out: block::DataOut::from_bytes(&bytes, 0),
        expected_in_bytes: 0,
    };
    let step = world.server.execute(&world.nexus, &world.luns, command());
    assert_eq!(triple(&xcopy(&mut world, &bytes)), (5, 0x00, 0x16));
    assert_eq!(world.good(&results(0, 5), &[])[4], 0, "in progress");
    let lid4 = list_lid4(5, &[cscd(naa(1))], &[segment((1, 0), (1, 100), 8)]);
    assert_eq!(world.sense(&cdb(1, lid4.len()), &lid4), (5, 0x26, 0));
    drop(step);
    assert_eq!(xcopy(&mut world, &bytes).status, crate::Status::Good);
}

#[test]
fn lid4_counts_descriptors_from_one_and_has_its_own_status() {
    let mut world = filled();
    let copy = |segment| list_lid4(0x1234_5678, &[cscd(naa(1)), cscd(naa(2))], &[segment]);
    let good = copy(segment((1, 0), (2, 8), 8));
    world.good(&cdb(1, good.len()), &good);
    assert_eq!(world.disks[&VolumeId(2)].bytes[4096..8192], pattern(64 * 512, 1)[..4096]);
    let ask = |action| {
        let mut cdb = results(action, 0);
        cdb[2..6].copy_from_slice(&0x1234_5678_u32.to_be_bytes());
        cdb
    };
    let status = world.good(&ask(5), &[]);
    assert_eq!((status.len(), status[3], status[4], status[5]), (32, 28, 1, 1));
    assert_eq!((status[22..24].to_vec(), status[25]), (vec![0x10, 0], 1));
    assert_eq!(world.good(&ask(6), &[]).len(), 36);
    let bad = copy(segment((0, 0), (2, 8), 8));
    assert_eq!(world.sense(&cdb(1, bad.len()), &bad), (0xa, 0x08, 0x04));
    let status = world.good(&ask(5), &[]);
    assert_eq!((status[5], status[12], status[14], status.len()), (2, 2, 18, 50));
    for (at, byte) in [(0, 0), (3, 0), (15, 2), (16, 0)] {
        let mut wrong = good.clone();
        wrong[at] = byte;
        assert_eq!(world.sense(&cdb(1, wrong.len()), &wrong), (5, 0x26, 0), "byte {at}");
    }
}

#[test]
fn operating_parameters_and_the_vpd_page_report_the_limits() {
    let mut world = World::new();
    let data = world.good(&results(3, 0), &[]);
    assert_eq!(usize::from(data[3]), data.len() - 4);
    assert_eq!(data[8..20], [0, 64, 0, 64, 0, 0, 0x10, 0, 0xff, 0xff, 0xfe, 0]);
    assert_eq!(data[43..], [3, 0x02, 0x0a, 0xe4]);
    let page = world.good(&[0x12, 1, 0x8f, 4, 0, 0], &[]);
    let (mut at, mut codes) = (4, Vec::new());
    while at < page.len() {
        codes.push(u16::from_be_bytes([page[at], page[at + 1]]));
        at += 4 + usize::from(u16::from_be_bytes([page[at + 2], page[at + 3]]));
    }
    assert_eq!(at, page.len());
    assert_eq!(codes, [0x0000, 0x0001, 0x0004, 0x0008, 0x000c, 0x0106, 0x0108, 0x8001]);
    let limits = &page[4..40];
    assert_eq!(limits[2..20], [0, 32, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0x0e, 0x10, 0, 0, 1, 0x2c]);
    assert_eq!(limits[20..28], (16_u64 << 30 >> 9).to_be_bytes());
    assert_eq!(page[44..62], [17, 0x83, 5, 0, 1, 16, 17, 28, 0x84, 8, 0, 1, 3, 4, 5, 6, 7, 8]);
}

#[test]
fn each_designator_that_fits_a_descriptor_is_recognized() {
    let world = World::new();
    let mut names = 0;
    for (lun, volume) in &world.luns.luns {
        for own in designators("HOLDFAST", volume).iter().filter(|own| own.bytes.len() <= 20) {
            names += 1;
            for (other, volume) in &world.luns.luns {
                let kind = (own.code_set, own.kind);
                let name = CscdName::of("HOLDFAST", volume, kind);
                assert_eq!(name == CscdName::new(kind, &own.bytes), other == lun);
                assert!(name.is_some());
            }
        }
    }
    assert_eq!(names, 9);
}
