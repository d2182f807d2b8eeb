//! Bounded work: the largest legal form of every command of the table, against volumes of 64 TiB, a
//! host with all possible LUNs, and as many registrations. Each step of a command moves a bounded
//! number of bytes, there are a bounded number of steps, and stored state and responses are bounded
//! too, for any command.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::request::limits::{
    COMMAND_BYTES_MAX, COPY_SEGMENTS_MAX, EXTENTS_MAX, TRANSFER_BYTES_MAX, UNMAP_RANGES_MAX,
    VOLUME_BYTES_MAX,
};
use block::{
    DataIn, DataOut, FRAME_BYTES, Frame, LbaExtent, LbaState, LogicalBlockSize, LunMap,
    SECTOR_BYTES, SectorRange, SpaceUse, VolumeId, VolumeReply, VolumeRequest,
};
use target::rods::{RANGES_MAX, ROD_BYTES_MAX};
use target::{Kept, NexusId, Registrant};

use super::registering::{listing, port_id};
use super::world::{World, cdb_10, cdb_16, initiator, volume};
use crate::blocks::{long::STEP_BYTES_MAX, provisioning::DESCRIPTORS_MAX};
use crate::device::Entry;
use crate::nexus::InitiatorPort;
use crate::reservations::persistent::LIST_BYTES_MAX;
use crate::step::{Command, Response, Status, Step};
use crate::table::COMMANDS;
use crate::{Cdb, data_out_phase};

/// The most requests of one command: 32 MiB in steps of 1 MiB, each read and written, and one more
/// if they are not aligned.
const REQUESTS_MAX: usize = 66;
/// The longest response that is not read from a volume: READ FULL STATUS with the longest names,
/// before it is truncated.
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// The longest response to GET LBA STATUS.
const LBA_STATUS_BYTES_MAX: usize = 8 + 16 * DESCRIPTORS_MAX;
/// The number of 512-byte blocks of LUN 0.
const BLOCKS: u64 = VOLUME_BYTES_MAX / SECTOR_BYTES;

/// The work of a command.
#[derive(Debug, Default)]
pub(super) struct Work {
    requests: usize,
    read_bytes_max: u64,
    write_bytes_max: u64,
}

/// Returns a world with the maximum of everything.
pub(super) fn largest_world() -> World {
    let mut world = World::new();
    world.start_roomy();
    let mut luns = BTreeMap::new();
    for lun in 0..=16_383_u16 {
        let mut one = (*volume(1, LogicalBlockSize::B512)).clone();
        one.id = VolumeId(u64::from(lun) + 1_000);
        one.size.0 = BLOCKS;
        one.naa[8..10].copy_from_slice(&lun.to_be_bytes());
        one.serial = format!("HF{lun:08}");
        luns.insert(lun, Arc::new(one));
    }
    world.luns = Arc::new(LunMap { generation: 2, luns });
    let registration = |n: u16| {
        let name = format!("{:a<223}", "iqn.2026-01.example:");
        let host = InitiatorPort { name, isid: [0, 0, 0, 0, (n >> 8) as u8, n as u8] }.into();
        Registrant { nexus: NexusId { host, target_port: 1 }, key: 1 }
    };
    let registrants = (0..512).map(registration).collect();
    // LUN 1 has as many as possible; LUN 0 has space for a list.
    world.restore(VolumeId(1_001), Kept { registrants, ..Kept::default() });
    world.nexus = world.log_in(initiator("all"), 1);
    world
}

/// Replies as a volume without repetition would, at no cost.
fn serve(request: &VolumeRequest, work: &mut Work) -> VolumeReply {
    work.requests += 1;
    match request {
        VolumeRequest::Read { range, .. } => {
            let bytes = range.bytes().unwrap();
            work.read_bytes_max = work.read_bytes_max.max(bytes);
            let phase = range.start.offset_in_block_bytes();
            let frames = (phase + bytes as usize).div_ceil(FRAME_BYTES);
            let zeros = std::iter::repeat_with(Frame::zeros).take(frames);
            VolumeReply::Data(DataIn::from_frames(zeros, phase, bytes as usize))
        }
        VolumeRequest::Write { range, .. } | VolumeRequest::CompareAndWrite { range, .. } => {
            work.write_bytes_max = work.write_bytes_max.max(range.bytes().unwrap());
            VolumeReply::Done
        }
        VolumeRequest::Unmap { ranges, .. } => {
            assert!(ranges.len() <= UNMAP_RANGES_MAX);
            VolumeReply::Done
        }
        VolumeRequest::Copy { segments } => {
            assert!(segments.len() <= COPY_SEGMENTS_MAX);
            VolumeReply::Done
        }
        VolumeRequest::Extents { range, limit, .. } => {
            assert!(*limit > 0 && *limit <= EXTENTS_MAX);
            // Every second block is mapped, and few extents are returned at once.
            let extents = (0..(*limit).min(1000) as u64).map(|n| {
                let at = range.start.0 + 8 * n;
                let state = [LbaState::Mapped, LbaState::Deallocated][(at / 8 % 2) as usize];
                LbaExtent { range: SectorRange::new(at, 8), state }
            });
            VolumeReply::Extents(extents.collect())
        }
        VolumeRequest::Space { .. } => VolumeReply::Space(SpaceUse::default()),
        VolumeRequest::Zero { .. } | VolumeRequest::Fill { .. } | VolumeRequest::Flush { .. } => {
            VolumeReply::Done
        }
    }
}

pub(super) fn run(world: &mut World, lun: u16, cdb: &[u8], data: &[u8]) -> (Response, Work) {
    let (nexus, luns) = (world.nexus.clone(), world.luns.clone());
    let command = Command {
        lun: crate::lun::encode(lun),
        cdb: Cdb::new(cdb),
        data_out: DataOut::from_bytes(data, data_out_phase(cdb)),
        expected_in_bytes: u32::MAX.into(),
    };
    let mut work = Work::default();
    let mut step = world.server.execute(&nexus, &luns, command);
    loop {
        match step {
            Step::Done(response) => return (response, work),
            Step::Request { request, pending } => {
                assert!(work.requests < REQUESTS_MAX, "{cdb:02x?} goes on");
                let reply = serve(&request, &mut work);
                step = world.server.resume(&nexus, pending, Ok(reply));
            }
            Step::Persist { subject, pending } => {
                world.save_subject(subject);
                step = world.server.resume_saved(pending);
            }
        }
    }
}

/// Sets the length fields of a CDB to their maximum; all of them are allocation lengths.
fn full(entry: &Entry, at: std::ops::Range<usize>) -> Vec<u8> {
    let mut cdb = vec![0; entry.usage.len()];
    cdb[0] = entry.opcode;
    cdb[1] = entry.action.unwrap_or(0);
    cdb[at].fill(0xff);
    cdb
}

fn third_party(action: u8, list: &[u8]) -> Vec<u8> {
    let mut cdb = vec![0; 16];
    (cdb[0], cdb[1]) = (0x83, action);
    cdb[10..14].copy_from_slice(&(list.len() as u32).to_be_bytes());
    cdb
}

/// 64 descriptors, of volumes all over the map, and 64 segments of nearly 4 GiB between them.
fn copy_list(world: &World, lid4: bool) -> Vec<u8> {
    let (mut cscds, mut segments) = (Vec::new(), Vec::new());
    for n in 0..64_u16 {
        let name = world.luns.luns[&(n * 255 + 1)].naa;
        cscds.extend([0xe4, 0, 0, 0, 1, 3, 0, 16]);
        cscds.extend(name);
        cscds.extend([0; 4]);
        cscds.extend([0, 0, 2, 0]);
        let (from, to) = (n + u16::from(lid4), (n + 1) % 64 + u16::from(lid4));
        segments.extend([0x0a, 0, 0, 28]);
        segments.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
        segments.extend(0xffff_fe00_u32.to_be_bytes());
        segments.extend([3_u64.to_be_bytes(), 11_u64.to_be_bytes()].concat());
        segments.extend([0; 4]);
    }
    let (cscd, segment) = (cscds.len() as u16, segments.len() as u16);
    let mut list = vec![0; if lid4 { 48 } else { 16 }];
    if lid4 {
        (list[0], list[1], list[3], list[16]) = (1, 0x18, 0x20, 0xff);
        list[42..44].copy_from_slice(&cscd.to_be_bytes());
        list[44..46].copy_from_slice(&segment.to_be_bytes());
    } else {
        list[1] = 0x18;
        list[2..4].copy_from_slice(&cscd.to_be_bytes());
        list[10..12].copy_from_slice(&segment.to_be_bytes());
    }
    list.extend(cscds);
    list.extend(segments);
    list
}

/// Ranges of the most data that one token represents, all unaligned.
fn ranges(mut list: Vec<u8>) -> Vec<u8> {
    let blocks = (ROD_BYTES_MAX / SECTOR_BYTES / RANGES_MAX as u64) as u32;
    let at = list.len() - 2;
    list[at..].copy_from_slice(&(RANGES_MAX as u16 * 16).to_be_bytes());
    for n in 0..RANGES_MAX as u64 {
        list.extend((n * (1 << 32) + 5).to_be_bytes());
        list.extend(blocks.to_be_bytes());
        list.extend([0; 4]);
    }
    let length = (list.len() - 2) as u16;
    list[..2].copy_from_slice(&length.to_be_bytes());
    list
}

/// PERSISTENT RESERVE OUT; REGISTER with the longest accepted list, of one name of maximum length.
fn reserve_out(action: u8) -> (Vec<u8>, Vec<u8>) {
    let mut list = vec![0; 24];
    (list[7], list[15]) = (1, 1);
    match action {
        0 => {
            list = listing(0, 1, 0, &[]);
            while list.len() + port_id("x").len() <= LIST_BYTES_MAX {
                list.extend(port_id("x"));
            }
            let ids = (list.len() - 28) as u32;
            list[24..28].copy_from_slice(&ids.to_be_bytes());
        }
        3 => list[15] = 0,
        7 => {
            let id = port_id("y");
            (list[19], list[23]) = (1, id.len() as u8);
            list.extend(id);
        }
        _ => {}
    }
    let mut cdb = vec![0x5f, action, 1, 0, 0, 0, 0, 0, 0, 0];
    cdb[5..9].copy_from_slice(&(list.len() as u32).to_be_bytes());
    (cdb, list)
}

/// Returns the pages that MODE SENSE returns, repeated.
fn mode_list(world: &mut World, header: usize, most: usize) -> Vec<u8> {
    let page = world.good(&[0x1a, 0x08, 0x08, 0, 255, 0], &[])[4..].to_vec();
    let mut list = vec![0; header];
    while list.len() + page.len() <= most {
        list.extend(&page);
    }
    list
}

/// Returns the largest legal form of a command that addresses blocks: its CDB and its data.
fn largest_of_blocks(entry: &Entry) -> Option<(Vec<u8>, Vec<u8>)> {
    let most = (COMMAND_BYTES_MAX / SECTOR_BYTES) as u32;
    let all = || vec![0x5a; COMMAND_BYTES_MAX as usize];
    let (ten, none) = (|flags| cdb_10(entry.opcode, flags, 3, 65_535), Vec::new);
    let sixteen = |length| cdb_16(entry.opcode, 0, 3, length);
    let twelve = |flags: u8| {
        let length = most.to_be_bytes();
        [&[entry.opcode, flags, 0, 0, 0, 3][..], &length, &[0, 0]].concat()
    };
    Some(match entry.opcode {
        0x08 => (vec![8, 0, 0, 3, 0, 0], none()),
        0x0a => (vec![10, 0, 0, 3, 0, 0], vec![1; 256 * 512]),
        0x28 | 0x34 | 0x35 => (ten(0), none()),
        0x2a | 0x2e => (ten(0), vec![0x5a; 65_535 * 512]),
        0x2f => (ten(0x02), vec![0; 65_535 * 512]),
        0x41 => (cdb_10(0x41, 0, 3, 0), vec![0x5a; 512]),
        0x88 | 0x8f => (sixteen(most), none()),
        0x89 => {
            let mut cdb = sixteen(0);
            cdb[13] = 255;
            (cdb, vec![0; 2 * 255 * 512])
        }
        0x8a | 0x8b | 0x8e => (sixteen(most), all()),
        0x90 | 0x91 | 0x9e => {
            (cdb_16(entry.opcode, entry.action.unwrap_or(0), 0, u32::MAX), none())
        }
        0x93 => (sixteen(0), vec![0x5a; 512]),
        0x9c => {
            let mut cdb = sixteen(0);
            cdb[12..14].copy_from_slice(&8192_u16.to_be_bytes());
            (cdb, vec![0x5a; TRANSFER_BYTES_MAX as usize])
        }
        0xa8 => (twelve(0), none()),
        0xaa | 0xae => (twelve(0), all()),
        0xaf => (twelve(0x06), vec![0; 512]),
        _ => return None,
    })
}

/// UNMAP of the most ranges, each of maximum length.
fn unmap_list() -> Vec<u8> {
    let mut list = vec![0; 8];
    for n in 0..UNMAP_RANGES_MAX as u64 {
        list.extend((n * (1 << 24) + 3).to_be_bytes());
        list.extend(u32::MAX.to_be_bytes());
        list.extend([0; 4]);
    }
    let descriptors = (list.len() - 8) as u16;
    list[..2].copy_from_slice(&(descriptors + 6).to_be_bytes());
    list[2..4].copy_from_slice(&descriptors.to_be_bytes());
    list
}

/// The most descriptors that SET TARGET PORT GROUPS accepts.
fn group_list(ports: usize) -> Vec<u8> {
    let mut list = vec![0; 4 + 4 * ports];
    list[4..].chunks_mut(4).for_each(|descriptor| descriptor[3] = 1);
    list
}

/// Returns the largest legal form of a command: its LUN, its CDB and its data.
fn largest(world: &mut World, entry: &Entry) -> (u16, Vec<u8>, Vec<u8>) {
    if let Some((cdb, data)) = largest_of_blocks(entry) {
        return (0, cdb, data);
    }
    let none = Vec::new;
    let (cdb, data) = match (entry.opcode, entry.action.unwrap_or(0)) {
        (0x00 | 0x16 | 0x17 | 0x1b | 0x1d | 0x1e | 0x25, _) => (full(entry, 0..0), none()),
        (0x37 | 0x48 | 0x56 | 0x57, _) | (0x83, 0x1c) => (full(entry, 0..0), none()),
        (0x03, _) => (vec![3, 1, 0, 0, 255, 0], none()),
        (0x12, _) => (vec![0x12, 1, 0x83, 255, 255, 0], none()),
        (0x15, _) => (vec![0x15, 0x10, 0, 0, 244, 0], mode_list(world, 4, 244)),
        (0x1a, _) => (vec![0x1a, 0, 0x3f, 0xff, 255, 0], none()),
        (0x42, _) => {
            let list = unmap_list();
            (cdb_10(0x42, 0, 0, list.len() as u16), list)
        }
        (0x4d, _) => (vec![0x4d, 0, 0x4c, 0, 0, 0, 0, 255, 255, 0], none()),
        (0x55, _) => {
            let list = mode_list(world, 8, 65_535);
            let [high, low] = (list.len() as u16).to_be_bytes();
            (vec![0x55, 0x10, 0, 0, 0, 0, 0, high, low, 0], list)
        }
        (0x5a, _) => (vec![0x5a, 0x10, 0x3f, 0xff, 0, 0, 0, 255, 255, 0], none()),
        (0x5e, _) => return (1, full(entry, 7..9), none()),
        (0x5f, action) => reserve_out(action),
        (0x83, action) => {
            let mut token = vec![0; 536];
            token[16..24].copy_from_slice(&[0xff, 0xff, 0, 1, 0, 0, 1, 0xf8]);
            let list = match action {
                0x10 => ranges(vec![0; 16]),
                0x11 => ranges(token),
                _ => copy_list(world, action == 1),
            };
            (third_party(action, &list), list)
        }
        (0x84, _) => (full(entry, 10..14), none()),
        (0xa0, _) => {
            let mut cdb = full(entry, 6..10);
            cdb[2] = 2;
            (cdb, none())
        }
        (0xa3 | 0xb7, _) => (full(entry, 6..10), none()),
        (0xa4, _) => {
            let (mut cdb, list) =
                (full(entry, 0..0), group_list(world.server.target.ports().len()));
            cdb[6..10].copy_from_slice(&(list.len() as u32).to_be_bytes());
            (cdb, list)
        }
        (opcode, action) => panic!("add the largest form of {opcode:02x}/{action:02x}"),
    };
    (0, cdb, data)
}

#[test]
fn the_largest_form_of_every_command_is_bounded_work() {
    let mut world = largest_world();
    for entry in COMMANDS {
        let (lun, cdb, data) = largest(&mut world, entry);
        let (response, work) = run(&mut world, lun, &cdb, &data);
        let name = entry.name;
        // No copy's result was requested, no nexus is registered, or the list is too long to
        // register: all of that is detected at once.
        let may_fail = matches!(entry.opcode, 0x84 | 0x5f)
            || (entry.opcode, entry.action) == (0x83, Some(0x1c));
        assert!(may_fail || response.status == Status::Good, "{name}: {:?}", response.sense);
        let reads = matches!(entry.opcode, 0x08 | 0x28 | 0x88 | 0xa8);
        let read_max = if reads { TRANSFER_BYTES_MAX } else { STEP_BYTES_MAX };
        assert!(work.read_bytes_max <= read_max, "{name}: {work:?}");
        assert!(work.write_bytes_max <= TRANSFER_BYTES_MAX, "{name}: {work:?}");
        let answer_max = match (entry.opcode, entry.action) {
            (0x9e, Some(0x12)) => LBA_STATUS_BYTES_MAX,
            _ if reads => COMMAND_BYTES_MAX as usize,
            _ => ANSWER_BYTES_MAX,
        };
        assert!(response.data_in.len() <= answer_max, "{name}: {} bytes", response.data_in.len());
        // A command that only names its range is one request, however long that is.
        if matches!(entry.opcode, 0x41 | 0x42 | 0x48 | 0x83 | 0x93) {
            assert!(work.requests <= 1, "{name}: {work:?}");
        }
    }
}

#[test]
fn a_map_change_and_a_reset_cost_work_linear_in_the_units() {
    let mut world = largest_world();
    let nexuses: Vec<_> = (1..9).map(|port| world.log_in(initiator("many"), port)).collect();
    world.target_reset(&world.luns.clone());
    let mut luns = (*world.luns).clone();
    (luns.generation, _) = (3, luns.luns.remove(&16_383));
    world.luns = luns.into();
    for nexus in &nexuses {
        // The reset, the change of LUNs, and then nothing more.
        let told = [0, 0, 0].map(|_| world.run_as(nexus, 16_000, &[0; 6], &[]).sense);
        let told = told.map(|sense| sense.map(|sense| (sense.asc, sense.ascq)));
        assert_eq!(told, [Some((0x29, 0x02)), Some((0x3f, 0x0e)), None]);
    }
}
