//! Commands that transfer or change data.

use super::world::{World, cdb_10, cdb_16, pattern, triple};
use crate::step::{Status, Step};
use block::{
    LbaExtent, LbaState, Sector, SectorRange, VolumeError, VolumeId, VolumeReply, VolumeRequest,
};

#[test]
fn written_data_is_read_with_every_cdb_length() {
    let mut world = World::new();
    let data = pattern(3 * 512, 7);
    world.good(&[0x0a, 0, 0, 5, 3, 0], &data);
    assert_eq!(world.good(&[0x08, 0, 0, 5, 3, 0], &[]), data);
    world.good(&cdb_10(0x2a, 0, 11, 3), &data);
    assert_eq!(world.good(&cdb_10(0x28, 0, 11, 3), &[]), data);
    world.good(&[0xaa, 0, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0], &data);
    assert_eq!(world.good(&[0xa8, 0x18, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0], &[]), data);
    world.good(&cdb_16(0x8a, 0, 2045, 3), &data);
    assert_eq!(world.good(&cdb_16(0x88, 0, 2045, 3), &[]), data);
    let zeros = world.good(&[0x08, 0, 0, 40, 0, 0], &[]); // 0 means 256
    assert_eq!(zeros, vec![0; 256 * 512]);
}

#[test]
fn a_4kn_volume_counts_blocks_of_4096() {
    let mut world = World::new();
    let data = pattern(2 * 4096, 1);
    let response = world.run_on(2, &cdb_10(0x2a, 0, 3, 2), &data);
    assert_eq!((response.status, response.transfer_bytes_wanted), (Status::Good, Some(8192)));
    assert_eq!(world.disks[&VolumeId(3)].bytes[3 * 4096..5 * 4096], data);
    assert_eq!(world.run_on(2, &cdb_16(0x88, 0, 3, 2), &[]).data_in.to_vec(), data);
    assert_eq!(triple(&world.run_on(2, &cdb_16(0x88, 0, 256, 1), &[])), (5, 0x21, 0));
}

#[test]
fn ranges_are_checked_against_the_volume() {
    let mut world = World::new();
    for cdb in [cdb_10(0x28, 0, 2048, 1), cdb_10(0x2a, 0, 2047, 2), cdb_10(0x34, 0, 2049, 0)] {
        assert_eq!(world.sense(&cdb, &[0; 1024]), (5, 0x21, 0), "{cdb:02x?}");
    }
    for opcode in [0x88, 0x8a, 0x8e, 0x8f, 0x90, 0x91, 0x93] {
        let cdb = cdb_16(opcode, 0, u64::MAX, 1);
        assert_eq!(world.sense(&cdb, &[0; 512]), (5, 0x21, 0), "{cdb:02x?}");
        let cdb = cdb_16(opcode, 0, 2049, 0);
        assert_eq!(world.sense(&cdb, &[0; 512]), (5, 0x21, 0), "{cdb:02x?}");
    }
    assert!(world.requests.is_empty());
    world.good(&cdb_10(0x28, 0, 0, 0), &[]);
}

#[test]
fn protection_and_naca_are_refused_with_a_pointer_to_the_field() {
    let mut world = World::new();
    let response = world.run(&cdb_10(0x28, 0x20, 0, 1), &[]);
    assert_eq!(triple(&response), (5, 0x24, 0));
    assert_eq!(response.sense.unwrap().bytes()[15..18], [0xcf, 0, 1]);
    let mut naca = cdb_10(0x28, 0, 0, 1);
    naca[9] = 0x04;
    let response = world.run(&naca, &[]);
    assert_eq!(response.sense.unwrap().bytes()[12..18], [0x24, 0, 0, 0xca, 0, 9]);
}

#[test]
fn writes_use_the_whole_blocks_that_arrived() {
    let mut world = World::new();
    let response = world.run(&cdb_10(0x2a, 0, 0, 2), &[1; 512]);
    assert_eq!((response.status, response.transfer_bytes_wanted), (Status::Good, Some(1024)));
    assert_eq!(world.disks[&VolumeId(1)].bytes[..513], [&[1; 512][..], &[0]].concat());
    let response = world.run(&cdb_10(0x2a, 0, 0, 1), &[2; 1024]);
    assert_eq!((response.status, response.transfer_bytes_wanted), (Status::Good, Some(512)));
    assert_eq!(world.disks[&VolumeId(1)].bytes[511..513], [2, 0]);
    let response = world.run(&cdb_10(0x2a, 0, 0, 1), &[3; 200]);
    assert_eq!((triple(&response), response.transfer_bytes_wanted), ((5, 0x0e, 3), Some(512)));
    assert_eq!(world.disks[&VolumeId(1)].bytes[0], 2);
    let response = world.run(&cdb_10(0x2a, 0, 0, 1), &[]);
    assert_eq!((response.status, response.transfer_bytes_wanted), (Status::Good, Some(512)));
}

#[test]
fn fua_is_passed_on_and_a_transfer_has_a_limit() {
    let mut world = World::new();
    world.good(&cdb_10(0x2a, 0x08, 0, 1), &[1; 512]);
    world.good(&cdb_10(0x35, 0x02, 0, 0), &[]);
    assert_eq!(world.requests, ["write fua", "flush"]);
    let mut luns = (*world.luns).clone();
    let mut big = (**luns.luns.get(&0).unwrap()).clone();
    big.size.0 = 1 << 30;
    luns.luns.insert(0, big.into());
    luns.generation += 1;
    world.luns = luns.into();
    assert_eq!(world.sense(&[0; 6], &[]), (6, 0x2a, 0x09));
    assert_eq!(world.sense(&cdb_16(0x88, 0, 0, 65_537), &[]), (5, 0x24, 0));
}

#[test]
fn compare_and_write_swaps_or_reports_the_first_difference() {
    let mut world = World::new();
    let caw = |lba: u64, blocks: u8| {
        let mut cdb = cdb_16(0x89, 0, lba, 0);
        cdb[13] = blocks;
        cdb
    };
    let data = [vec![0; 1024], pattern(1024, 9)].concat();
    world.good(&caw(7, 2), &data);
    assert_eq!(world.disks[&VolumeId(1)].bytes[7 * 512..9 * 512], pattern(1024, 9));
    let response = world.run(&caw(7, 2), &data);
    assert_eq!(triple(&response), (0xe, 0x1d, 0));
    assert_eq!(response.sense.unwrap().bytes()[..7], [0xf0, 0, 0xe, 0, 0, 0, 0]);
    let mut wrong = [pattern(1024, 9), vec![5; 1024]].concat();
    wrong[700] ^= 1;
    let response = world.run(&caw(7, 2), &wrong);
    assert_eq!(response.sense.unwrap().information, Some(700));
    for (blocks, bytes) in [(1, 2048), (3, 2048), (1, 512)] {
        let response = world.run(&caw(7, blocks), &vec![0; bytes]);
        assert_eq!(triple(&response), (5, 0x0e, 3));
        assert_eq!(response.transfer_bytes_wanted, Some(1024 * u64::from(blocks)));
    }
    world.good(&caw(7, 0), &[]);
    assert_eq!(world.sense(&caw(7, 0), &vec![0; 512 * 512]), (5, 0x24, 0), "256 blocks");
    let response = world.run_on(2, &caw(0, 32), &vec![0; 64 * 4096]);
    assert_eq!(triple(&response), (5, 0x24, 0));
    assert_eq!(world.run_on(2, &caw(1, 31), &vec![0; 62 * 4096]).status, Status::Good);
}

#[test]
fn write_same_zeroes_unmaps_or_repeats() {
    let mut world = World::new();
    world.good(&cdb_10(0x2a, 0, 0, 64), &pattern(64 * 512, 1));
    world.good(&cdb_10(0x41, 0, 3, 5), &[0; 512]);
    world.good(&cdb_16(0x93, 0x08, 10, 5), &[0; 512]);
    world.good(&cdb_16(0x93, 0x09, 20, 5), &[]);
    world.good(&cdb_16(0x93, 0x01, 30, 5), &[]);
    let block = pattern(512, 77);
    world.good(&cdb_16(0x93, 0x08, 41, 3), &block);
    assert_eq!(world.requests[1..], ["zero", "unmap", "unmap", "zero", "fill"]);
    let disk = &world.disks[&VolumeId(1)];
    assert_eq!(disk.bytes[41 * 512..44 * 512], block.repeat(3));
    assert_eq!(disk.bytes[..3 * 512], pattern(64 * 512, 1)[..3 * 512]);
    assert!(disk.bytes[3 * 512..8 * 512].iter().all(|&byte| byte == 0) && disk.mapped[3]);
    assert!(!disk.mapped[10] && !disk.mapped[24] && disk.mapped[25] && disk.mapped[30]);
    // A length of 0: up to the end.
    world.good(&cdb_16(0x93, 0x08, 2000, 0), &[0; 512]);
    for (cdb, field) in [
        (cdb_16(0x93, 0x10, 0, 1), 0xcc), // ANCHOR
        (cdb_16(0x93, 0x04, 0, 1), 0xca), // PBDATA
        (cdb_10(0x41, 0x01, 0, 1), 0xc8), // the 10-byte command has no NDOB
        (cdb_10(0x41, 0x40, 0, 1), 0xcf), // WRPROTECT
    ] {
        let response = world.run(&cdb, &[0; 512]);
        assert_eq!(response.sense.unwrap().bytes()[12..18], [0x24, 0, 0, field, 0, 1]);
    }
    for bytes in [256, 1024] {
        assert_eq!(world.sense(&cdb_10(0x41, 0x08, 0, 1), &vec![0; bytes]), (5, 0x0e, 3));
    }
    let response = world.run_on(2, &cdb_10(0x41, 0, 1, 2), &pattern(4096, 3));
    assert_eq!(response.status, Status::Good);
    assert_eq!(world.disks[&VolumeId(3)].bytes[4096..12288], pattern(4096, 3).repeat(2));
}

pub(super) fn unmap_list(ranges: &[(u64, u32)]) -> Vec<u8> {
    let descriptors = ranges.len() as u16 * 16;
    let mut out = (descriptors + 6).to_be_bytes().to_vec();
    out.extend(descriptors.to_be_bytes());
    out.extend([0; 4]);
    for (lba, blocks) in ranges {
        out.extend(lba.to_be_bytes());
        out.extend(blocks.to_be_bytes());
        out.extend([0; 4]);
    }
    out
}

pub(super) fn unmap(world: &mut World, list: &[u8]) -> crate::Response {
    world.run(&cdb_10(0x42, 0, 0, list.len() as u16), list)
}

#[test]
fn unmap_applies_all_ranges_or_none_and_get_lba_status_shows_it() {
    let mut world = World::new();
    world.good(&cdb_10(0x2a, 0, 0, 64), &pattern(64 * 512, 1));
    assert_eq!(unmap(&mut world, &unmap_list(&[(1, 2), (8, 8), (63, 0)])).status, Status::Good);
    let status = world.good(&cdb_16(0x9e, 0x12, 0, 4096), &[]);
    let mut want = vec![0, 0, 0, 84, 0, 0, 0, 0];
    for (lba, blocks, state) in
        [(0_u64, 1_u32, 0), (1, 2, 1), (3, 5, 0), (8, 8, 1), (16, 48, 0), (64, 1984, 1)]
    {
        want.extend(lba.to_be_bytes());
        want.extend(blocks.to_be_bytes());
        want.extend([state, 0, 0, 0]);
    }
    want[3] = (want.len() - 4) as u8;
    assert_eq!(status, want);
    assert_eq!(
        world.good(&cdb_16(0x9e, 0x12, 9, 24), &[])[8..24],
        want[8 + 48..8 + 64][..0]
            .iter()
            .copied()
            .chain(9_u64.to_be_bytes())
            .chain(7_u32.to_be_bytes())
            .chain([1, 0, 0, 0])
            .collect::<Vec<_>>()
    );
    assert_eq!(world.sense(&cdb_16(0x9e, 0x12, 2048, 24), &[]), (5, 0x21, 0));
    // The second range is invalid, so the first stays.
    let before = world.disks[&VolumeId(1)].bytes.clone();
    assert_eq!(triple(&unmap(&mut world, &unmap_list(&[(30, 2), (2047, 2)]))), (5, 0x21, 0));
    assert_eq!(world.disks[&VolumeId(1)].bytes, before);
    assert_eq!(triple(&unmap(&mut world, &[0; 7])), (5, 0x1a, 0));
    assert_eq!(triple(&unmap(&mut world, &unmap_list(&[(1, 1)])[..20])), (5, 0x1a, 0));
    assert_eq!(triple(&unmap(&mut world, &unmap_list(&[(0, 1); 1025]))), (5, 0x26, 0));
    assert_eq!(world.sense(&cdb_10(0x42, 1, 0, 8), &[0; 8]), (5, 0x24, 0));
    world.good(&cdb_10(0x42, 0, 0, 0), &[]);
}

#[test]
fn verify_compares_as_bytchk_says() {
    let mut world = World::new();
    let data = pattern(16 * 512, 5);
    world.good(&cdb_10(0x2e, 0x02, 3, 16), &data);
    assert_eq!(world.requests, ["write fua", "read"]);
    world.good(&cdb_10(0x2f, 0, 0, 2048), &[]);
    world.good(&cdb_10(0x2f, 0x02, 3, 16), &data);
    let mut wrong = data.clone();
    wrong[5000] ^= 1;
    let response = world.run(&cdb_16(0x8f, 0x02, 3, 16), &wrong);
    assert_eq!(triple(&response), (0xe, 0x1d, 0));
    assert_eq!(response.sense.unwrap().information, Some(5000));
    world.good(&cdb_10(0x2f, 0, 3, 16), &wrong); // no comparison
    world.good(&[0xaf, 0x06, 0, 0, 0, 100, 0, 0, 0, 9, 0, 0], &[0; 512]);
    let response = world.run(&[0xaf, 0x06, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0], &[0; 512]);
    assert_eq!(response.sense.unwrap().information, Some(3 * 512));
    assert_eq!(world.sense(&cdb_10(0x2f, 0x04, 3, 1), &data), (5, 0x24, 0));
    assert_eq!(world.sense(&cdb_10(0x2f, 0x02, 3, 16), &data[..512]), (5, 0x0e, 3));
    assert_eq!(world.sense(&cdb_10(0x2f, 0x80, 3, 1), &data), (5, 0x24, 0));
}

#[test]
fn errors_of_volumes_become_their_sense_data() {
    let cases = [
        (VolumeError::NoSpace, (7, 0x27, 0x07), None),
        (VolumeError::Medium { sector: Sector(17) }, (3, 0x11, 0), Some(17)),
        (VolumeError::OutOfRange, (5, 0x21, 0), None),
        (VolumeError::WriteFailed, (3, 0x0c, 0), None),
        (VolumeError::NoSuchVolume(VolumeId(1)), (5, 0x25, 0), None),
        (VolumeError::TooLong, (5, 0x24, 0), None),
    ];
    for (failure, want, information) in cases {
        let mut world = World::new();
        world.failure = Some(failure);
        let response = world.run(&cdb_10(0x2a, 0, 16, 2), &[1; 1024]);
        assert_eq!(triple(&response), want);
        assert_eq!(response.sense.unwrap().information, information);
        assert_eq!(response.transfer_bytes_wanted, Some(1024));
    }
    let mut world = World::new();
    world.failure = Some(VolumeError::Medium { sector: Sector(16) });
    let response = world.run_on(2, &cdb_10(0x28, 0, 0, 4), &[]);
    assert_eq!(response.sense.unwrap().information, Some(2), "in blocks of 4096");
}

#[test]
fn every_command_that_needs_a_lost_block_reports_its_lba() {
    let data = pattern(16 * 512, 1);
    let twice = [&data[..], &data[..]].concat();
    let compare = [0x89, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 16, 0, 0];
    let commands: [(&str, &[u8], &[u8]); 9] = [
        ("READ (10)", &cdb_10(0x28, 0, 16, 16), &[]),
        ("READ (16)", &cdb_16(0x88, 0, 16, 16), &[]),
        ("VERIFY (10)", &cdb_10(0x2f, 0, 16, 16), &[]),
        ("VERIFY (16) of data", &cdb_16(0x8f, 0x02, 16, 16), &data),
        ("WRITE (10)", &cdb_10(0x2a, 0, 16, 16), &data),
        ("WRITE AND VERIFY (10)", &cdb_10(0x2e, 0x02, 16, 16), &data),
        ("COMPARE AND WRITE", &compare, &twice),
        ("ORWRITE (16)", &cdb_16(0x8b, 0, 16, 16), &data),
        ("WRITE SAME (10)", &cdb_10(0x41, 0, 16, 16), &data[..512]),
    ];
    for (name, cdb, out) in commands {
        let mut world = World::new();
        world.failure = Some(VolumeError::Medium { sector: Sector(21) });
        let response = world.run(cdb, out);
        assert_eq!(triple(&response), (3, 0x11, 0), "{name}");
        let bytes = response.sense_bytes();
        // Fixed format: VALID, and the LBA in INFORMATION (SPC-4, 4.5.3).
        assert_eq!((bytes[0], &bytes[3..7]), (0xf0, &[0, 0, 0, 21][..]), "{name}");
        assert!(response.data_in.to_vec().is_empty(), "{name} sends no data");
    }
    let mut world = World::new();
    world.failure = Some(VolumeError::Medium { sector: Sector(8 * 3 + 5) });
    let response = world.run_on(2, &cdb_10(0x28, 0, 2, 4), &[]);
    assert_eq!(response.sense.unwrap().information, Some(3), "in blocks of 4096");
}

/// Returns the content of GET LBA STATUS: LBA, blocks and status.
fn status_of(data: &[u8]) -> Vec<(u64, u32, u8)> {
    let length = u32::from_be_bytes(data[..4].try_into().unwrap()) as usize;
    assert_eq!(length + 4, data.len());
    let of = |d: &[u8]| {
        let lba = u64::from_be_bytes(d[..8].try_into().unwrap());
        (lba, u32::from_be_bytes(d[8..12].try_into().unwrap()), d[12])
    };
    data[8..].chunks(16).map(of).collect()
}

/// Requests the status of all of LUN 0 as qemu does, one descriptor per command; `next` replies to
/// the volume's requests. Returns the descriptors, and the numbers of commands and requests.
fn map_all(
    sectors: u64,
    room: u32,
    mut next: impl FnMut(SectorRange, usize) -> Vec<LbaExtent>,
) -> (Vec<(u64, u32, u8)>, usize, usize) {
    let mut world = World::new();
    let mut luns = (*world.luns).clone();
    let mut volume = (*luns.luns[&0]).clone();
    volume.size.0 = sectors;
    luns.luns.insert(0, volume.into());
    world.luns = luns.into();
    let (mut all, mut commands, mut requests) = (Vec::new(), 0, 0);
    let mut lba = 0;
    while lba < sectors {
        commands += 1;
        let nexus = world.nexus.clone();
        let mut step = world.start_as(&nexus, 0, &cdb_16(0x9e, 0x12, lba, room), &[]);
        let response = loop {
            match step {
                Step::Done(response) => break response,
                Step::Request { request: VolumeRequest::Extents { range, limit, .. }, pending } => {
                    requests += 1;
                    let extents = VolumeReply::Extents(next(range, limit));
                    step = world.server.resume(&nexus, pending, Ok(extents));
                }
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(response.status, Status::Good);
        let told = status_of(&response.data_in.to_vec());
        let (last, blocks, _) = *told.last().expect("each command returns a descriptor");
        lba = last + u64::from(blocks);
        all.extend(told);
    }
    (all, commands, requests)
}

#[test]
fn an_empty_volume_of_64_tib_is_mapped_by_a_handful_of_commands() {
    let sectors = 64 << 31;
    let hole = |range, _| vec![LbaExtent { range, state: LbaState::Deallocated }];
    let (all, commands, requests) = map_all(sectors, 24, hole);
    assert_eq!((all.len(), commands, requests), (33, 33, 33), "2 TiB is what a descriptor holds");
    assert!(all.iter().all(|(lba, _, state)| lba % 2048 == 0 && *state == 1));
    let (all, commands, requests) = map_all(sectors, 1 << 16, hole);
    assert_eq!((all.len(), commands, requests), (33, 1, 1), "as many as there is room for");
}

#[test]
fn an_extent_is_reported_as_one_even_if_the_volume_returns_parts() {
    // A volume that returns 1 MiB per request: mapped up to 16 MiB, then a hole of 1 TiB.
    let mapped = 16 << 11;
    let parts = |range: SectorRange, _| {
        let state = if range.start.0 < mapped { LbaState::Mapped } else { LbaState::Deallocated };
        vec![LbaExtent { range: SectorRange::new(range.start.0, range.count.0.min(2048)), state }]
    };
    let (all, commands, requests) = map_all(48 << 11, 24, parts);
    assert_eq!(all, [(0, mapped as u32, 0), (mapped, 32 << 11, 1)]);
    assert_eq!((commands, requests), (2, 17 + 32), "the second extent shows that the first ended");
    // However little a request returns, the command ends.
    let (all, commands, requests) = map_all(256 << 11, 24, |range, _| {
        let range = SectorRange::new(range.start.0, range.count.0.min(2048));
        vec![LbaExtent { range, state: LbaState::Mapped }]
    });
    assert_eq!((all.len(), commands, requests), (4, 4, 256));
}

#[test]
fn no_more_extents_are_requested_than_fit_the_response() {
    let mut most = 0;
    let (all, commands, _) = map_all(1 << 20, 8 + 16 * 5, |range, limit| {
        most = most.max(limit);
        let blocks = (0..limit as u64).map_while(|n| {
            let at = range.start.0 + 8 * n;
            let state = if at / 8 % 2 == 0 { LbaState::Mapped } else { LbaState::Deallocated };
            (at < 1 << 20).then_some(LbaExtent { range: SectorRange::new(at, 8), state })
        });
        blocks.collect()
    });
    assert_eq!((all.len(), most), (1 << 17, 7));
    assert_eq!(commands, (1_usize << 17).div_ceil(5));
}

#[test]
fn the_default_self_test_passes_and_others_are_refused() {
    let mut world = World::new();
    world.good(&[0x1d, 0x04, 0, 0, 0, 0], &[]);
    world.good(&[0x1d, 0x00, 0, 0, 0, 0], &[]);
    assert_eq!(world.sense(&[0x1d, 0x20, 0, 0, 0, 0], &[]), (5, 0x24, 0));
    assert_eq!(world.sense(&[0x1d, 0x10, 0, 0, 8, 0], &[0; 8]), (5, 0x24, 0));
}
