//! Random commands: mostly plausible ones, with fields at their extremes.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use libiscsi::{CopySegment, Direction, copy_parameters, unmap_parameters};

use super::{Count, Unit};
use crate::initiator::{Initiator, opcode};
use crate::random::Random;
use crate::target::Target;

/// The number of commands of a session.
const COMMANDS: usize = 64;
/// The most commands sent at once.
const DEPTH: u64 = 32;
/// How long a response may take: a watchdog, not a measurement.
const ANSWER: Duration = Duration::from_secs(60);
/// The time without input after which open commands count as aborted, if a unit attention said so.
const QUIET: Duration = Duration::from_secs(5);
/// The most data that a session sends; it ends when more is solicited.
const SEND_BYTES_MAX: u64 = 8 << 20;

/// Commands that address blocks; the weight determines how often each is chosen.
const OPCODES: [(u8, u64); 48] = [
    (0x00, 1),
    (0x03, 1),
    (0x08, 1),
    (0x0a, 2),
    (0x12, 2),
    (0x15, 1),
    (0x16, 1),
    (0x17, 1),
    (0x1a, 1),
    (0x1b, 1),
    (0x1d, 1),
    (0x1e, 1),
    (0x25, 1),
    (0x28, 3),
    (0x2a, 4),
    (0x2e, 2),
    (0x2f, 3),
    (0x34, 1),
    (0x35, 1),
    (0x37, 1),
    (0x41, 5),
    (0x42, 6),
    (0x48, 1),
    (0x4d, 1),
    (0x55, 1),
    (0x56, 1),
    (0x57, 1),
    (0x5a, 1),
    (0x5e, 2),
    (0x5f, 4),
    (0x83, 9),
    (0x84, 3),
    (0x88, 4),
    (0x89, 4),
    (0x8a, 4),
    (0x8b, 2),
    (0x8e, 2),
    (0x8f, 4),
    (0x90, 1),
    (0x91, 1),
    (0x93, 8),
    (0x9c, 2),
    (0x9e, 3),
    (0xa0, 1),
    (0xa3, 2),
    (0xa4, 1),
    (0xa8, 1),
    (0xaf, 1),
];

/// A command to be sent.
struct Wanted {
    cdb: Vec<u8>,
    direction: Direction,
    /// Expected Data Transfer Length.
    bytes: u32,
    /// The parameter list, or the beginning of the data, which repeats.
    data: Vec<u8>,
}

/// Runs one session.
pub(super) fn session(
    target: &Target,
    units: &[Unit],
    isid: u32,
    random: &mut Random,
    count: &mut Count,
) -> Result<()> {
    let mut initiator = Initiator::login(target, isid).context("a login before commands")?;
    count.sessions += 1;
    let mut open: HashMap<u32, Wanted> = HashMap::new();
    let (mut sent, mut bytes) = (0, 0);
    let mut told = false;
    let mut heard = Instant::now();
    let depth = 1 + random.below(DEPTH) as usize;
    while sent < COMMANDS || !open.is_empty() {
        while sent < COMMANDS && open.len() < depth {
            let unit = units[random.below(units.len() as u64) as usize];
            let wanted = command(random, unit, units);
            let cdb = libiscsi::Cdb::raw(&wanted.cdb, wanted.direction);
            let (pdu, one) = initiator.command_pdu(&cdb, wanted.bytes as usize);
            initiator.send(&pdu.with_bytes(8, &unit.lun)).context("sending a command")?;
            open.insert(one.tag, wanted);
            sent += 1;
            count.commands += 1;
        }
        ensure!(heard.elapsed() < ANSWER, "no response to any of {:02x?}", cdbs(&open));
        if initiator.receive_peek(QUIET).context("waiting for a response")?.is_none() {
            // Another session may have aborted them, which a unit attention reports (TAS is 0).
            told |= asks(&mut initiator, units, &mut open).context("asking units")?;
            if told {
                return Ok(());
            }
            continue;
        }
        let pdu = initiator.receive().context("a session with commands")?;
        heard = Instant::now();
        let tag = pdu.tag();
        match pdu.opcode() {
            opcode::R2T => {
                let wanted = open.get(&tag).context("an R2T that matches no command")?;
                let length = pdu.field(44);
                bytes += u64::from(length);
                count.bytes += u64::from(length);
                if bytes > SEND_BYTES_MAX {
                    return Ok(()); // gone, with all open commands
                }
                let end = pdu.field(40) as usize + length as usize;
                ensure!(end <= wanted.bytes as usize, "an R2T beyond the transfer length");
                let data: Vec<u8> = wanted.data.iter().copied().cycle().take(end).collect();
                initiator.answer(&pdu, &data).context("answering an R2T")?;
            }
            opcode::SCSI_RESPONSE => {
                open.remove(&tag).context("a response that matches no command")?;
                count.good += u64::from(pdu.header[3] == 0);
                told |= tells_of_an_end(&pdu.data);
            }
            opcode::DATA_IN if pdu.header[1] & 1 != 0 => {
                open.remove(&tag).context("data that matches no command")?;
                count.good += u64::from(pdu.header[3] == 0);
            }
            _ => {}
        }
    }
    Ok(())
}

fn cdbs(open: &HashMap<u32, Wanted>) -> Vec<&[u8]> {
    open.values().map(|wanted| &wanted.cdb[..]).collect()
}

/// Sends each unit TEST UNIT READY, which must get a response. Returns whether one reports that
/// commands were aborted.
fn asks(
    initiator: &mut Initiator,
    units: &[Unit],
    open: &mut HashMap<u32, Wanted>,
) -> Result<bool> {
    let mut told = false;
    for unit in units {
        let (pdu, one) = initiator.command_pdu(&libiscsi::Cdb::test_unit_ready(), 0);
        initiator.send(&pdu.with_bytes(8, &unit.lun))?;
        loop {
            let pdu = initiator.receive().context("TEST UNIT READY")?;
            open.remove(&pdu.tag());
            told |= tells_of_an_end(&pdu.data);
            if pdu.tag() == one.tag {
                break;
            }
        }
    }
    Ok(told)
}

/// Returns whether a unit attention reports that commands of this session may have been aborted:
/// resets, CLEAR TASK SET, PREEMPT AND ABORT. Either format, after a length of two bytes.
fn tells_of_an_end(data: &[u8]) -> bool {
    let sense = data.get(2..).unwrap_or_default();
    let at = |index: usize| sense.get(index).copied().unwrap_or(0);
    let (key, asc, ascq) = match at(0) & 0x7f {
        0x72 => (at(1), at(2), at(3)),
        _ => (at(2), at(12), at(13)),
    };
    key & 0x0f == 6 && (asc == 0x29 || asc == 0x2f || (asc, ascq) == (0x2a, 0x05))
}

/// Returns a number of blocks, or of bytes of a list.
fn length(random: &mut Random, most: u64) -> u64 {
    let some =
        [0, 1, 2, 7, 8, 9, 64, 127, 128, 2047, 2048, 2049, 8192, 65_535, 65_536, most, most - 1];
    match random.below(4) {
        0 => random.below(most.max(1)),
        1 => random.below(64),
        _ => some[random.below(some.len() as u64) as usize],
    }
}

/// Returns a first block: near a boundary, or anywhere.
fn place(random: &mut Random, unit: Unit) -> u64 {
    let near = random.below(17).wrapping_sub(8);
    match random.below(8) {
        0 => random.below(16),
        1 => (2048 * random.below(unit.blocks / 2048)).wrapping_add(near),
        2 => ((1 << 19) * random.below(unit.blocks / (1 << 19))).wrapping_add(near),
        3 => unit.blocks.wrapping_add(near),
        4 => (unit.blocks / 2).wrapping_add(near),
        5 => random.below(unit.blocks),
        6 => 8 * random.below(unit.blocks / 8),
        _ => [u64::MAX, u64::from(u32::MAX), 1 << 63, unit.blocks - 1][random.below(4) as usize],
    }
}

fn put(cdb: &mut [u8], at: usize, bytes: usize, value: u64) {
    cdb[at..at + bytes].copy_from_slice(&value.to_be_bytes()[8 - bytes..]);
}

fn command(random: &mut Random, unit: Unit, units: &[Unit]) -> Wanted {
    let total: u64 = OPCODES.iter().map(|(_, weight)| weight).sum();
    let mut choice = random.below(total);
    let mut code = 0;
    for (opcode, weight) in OPCODES {
        code = opcode;
        match choice.checked_sub(weight) {
            Some(rest) => choice = rest,
            None => break,
        }
    }
    let size = match code >> 5 {
        0 => 6,
        1 | 2 => 10,
        5 => 12,
        _ => 16,
    };
    let mut cdb = vec![0; size];
    cdb[0] = code;
    let mut data = some_data(random);
    let (lba, blocks) = (place(random, unit), length(random, unit.blocks));
    let mut direction = Direction::In;
    let mut bytes = random.below(65_536);
    match code {
        0x08 | 0x0a => {
            put(&mut cdb, 1, 3, lba & 0x1f_ffff);
            cdb[4] = blocks as u8;
            bytes = if cdb[4] == 0 { 256 } else { u64::from(cdb[4]) } * 512;
        }
        0x28 | 0x2a | 0x2e | 0x2f | 0x34 | 0x35 | 0x41 => {
            put(&mut cdb, 2, 4, lba & 0xffff_ffff);
            put(&mut cdb, 7, 2, blocks & 0xffff);
            bytes = (blocks & 0xffff) * 512;
        }
        0xa8 | 0xaf => {
            put(&mut cdb, 2, 4, lba & 0xffff_ffff);
            put(&mut cdb, 6, 4, blocks & 0xffff_ffff);
            bytes = (blocks & 0xffff_ffff) * 512;
        }
        0x88 | 0x8a | 0x8b | 0x8e | 0x8f | 0x90 | 0x91 | 0x93 => {
            put(&mut cdb, 2, 8, lba);
            put(&mut cdb, 10, 4, blocks & 0xffff_ffff);
            bytes = (blocks & 0xffff_ffff) * 512;
        }
        0x89 => {
            put(&mut cdb, 2, 8, lba);
            cdb[13] = blocks as u8;
            bytes = 1024 * u64::from(cdb[13]);
        }
        0x9c => {
            put(&mut cdb, 2, 8, lba);
            put(&mut cdb, 12, 2, blocks & 0xffff);
            bytes = 512 * (blocks & 0xffff);
        }
        0x9e => {
            cdb[1] = if random.below(2) == 0 { 0x10 } else { 0x12 };
            put(&mut cdb, 2, 8, lba);
            put(&mut cdb, 10, 4, length(random, 1 << 20));
        }
        0x42 => {
            let ranges = length(random, 600).min(600);
            let ranges: Vec<(u64, u32)> = (0..ranges)
                .map(|_| (place(random, unit), length(random, 1 << 32) as u32))
                .collect();
            data = unmap_parameters(&ranges);
            bytes = data.len() as u64;
            put(&mut cdb, 7, 2, bytes);
        }
        0x5f => {
            cdb[1] = random.below(9) as u8;
            cdb[2] = random.below(16) as u8;
            data = registration(random);
            bytes = data.len() as u64;
            put(&mut cdb, 5, 4, bytes);
        }
        0x83 => {
            (cdb[1], data) = third_party(random, unit, units);
            bytes = data.len() as u64;
            put(&mut cdb, 10, 4, bytes);
            put(&mut cdb, 6, 4, random.below(4));
        }
        0x84 => {
            cdb[1] = random.below(9) as u8;
            put(&mut cdb, 2, 4, random.below(4));
            put(&mut cdb, 10, 4, length(random, 1 << 20));
        }
        0x15 | 0x48 | 0x55 | 0xa4 | 0x1d => {
            cdb[1] = random.bits() as u8;
            bytes = random.below(64);
            let at = [(0x15, 4, 1), (0x48, 7, 2), (0x55, 7, 2), (0xa4, 6, 4), (0x1d, 3, 2)];
            for (of, at, width) in at {
                if of == code {
                    put(&mut cdb, at, width, bytes);
                }
            }
        }
        _ => {
            for byte in &mut cdb[1..size - 1] {
                if random.below(3) == 0 {
                    *byte = random.bits() as u8;
                }
            }
        }
    }
    let sends = [
        0x0a, 0x15, 0x1d, 0x2a, 0x2e, 0x41, 0x42, 0x48, 0x55, 0x5f, 0x83, 0x89, 0x8a, 0x8b, 0x8e,
        0x93, 0x9c, 0xa4,
    ];
    if sends.contains(&code) {
        direction = Direction::Out;
    }
    if matches!(code, 0x2f | 0x8f | 0xaf) {
        // Compares nothing, everything, or one block.
        cdb[1] = [0, 2, 6][random.below(3) as usize];
        direction = if cdb[1] == 0 { Direction::None } else { Direction::Out };
        bytes = if cdb[1] == 6 { 512 } else { bytes };
    }
    if matches!(code, 0x41 | 0x93) {
        cdb[1] = [0, 0, 0, 8][random.below(4) as usize];
        bytes = 512;
        if code == 0x93 && random.below(4) == 0 {
            cdb[1] |= 1;
            (direction, bytes) = (Direction::None, 0);
        }
    }
    spoil(random, &mut cdb, &mut bytes, &mut data);
    // A target solicits at most 32 MiB per command.
    Wanted { cdb, direction, bytes: bytes.min(u64::from(u32::MAX)) as u32, data }
}

/// One in five has a wrong byte or two, a wrong announced length, or a damaged list.
fn spoil(random: &mut Random, cdb: &mut [u8], bytes: &mut u64, data: &mut [u8]) {
    match random.below(15) {
        0 => {
            let at = 1 + random.below(cdb.len() as u64 - 1) as usize;
            cdb[at] ^= 1 << random.below(8);
        }
        1 => *bytes = length(random, 1 << 32),
        2 => {
            for _ in 0..=random.below(4) {
                let at = random.below(data.len().max(1) as u64) as usize;
                if let Some(byte) = data.get_mut(at) {
                    *byte = random.bits() as u8;
                }
            }
        }
        _ => {}
    }
}

/// Returns zeros, one repeated block, or noise.
fn some_data(random: &mut Random) -> Vec<u8> {
    match random.below(4) {
        0 => vec![0; 4096],
        1 => random.bytes(512),
        2 => vec![random.bits() as u8; 512],
        _ => random.bytes(65_536),
    }
}

/// Returns a list of PERSISTENT RESERVE OUT, with few different keys, so that some match.
fn registration(random: &mut Random) -> Vec<u8> {
    let mut list = vec![0; 24];
    list[7] = random.below(3) as u8;
    list[15] = random.below(3) as u8;
    list[20] = [0, 0, 1, 4, 8, 9][random.below(6) as usize];
    if list[20] & 8 != 0 {
        let ids = random.below(200) as usize;
        let mut all = Vec::new();
        for _ in 0..ids {
            let name = format!("iqn.2026-01.com.example:{}\0", random.below(1000));
            let mut id = vec![0x05, 0, 0, 0];
            id.extend(name.into_bytes());
            id.resize(id.len().next_multiple_of(4), 0);
            let length = id.len() as u16 - 4;
            id[2..4].copy_from_slice(&length.to_be_bytes());
            all.extend(id);
        }
        list.extend((all.len() as u32).to_be_bytes());
        list.extend(all);
    }
    list
}

/// Returns the service action and list of EXTENDED COPY, POPULATE TOKEN or WRITE USING TOKEN.
fn third_party(random: &mut Random, unit: Unit, units: &[Unit]) -> (u8, Vec<u8>) {
    if random.below(3) == 0 {
        let writes = random.below(2) == 1;
        let mut list = vec![0; if writes { 536 } else { 16 }];
        if writes {
            // The well-known token of zeros (SBC-3, 4.7.6.3), or noise.
            if random.below(2) == 0 {
                list[16..20].copy_from_slice(&[0xff, 0xff, 0x00, 0x01]);
                list[22..24].copy_from_slice(&[0x01, 0xf8]);
            } else {
                let noise = random.bytes(512);
                list[16..528].copy_from_slice(&noise);
            }
        }
        let ranges = 1 + random.below(8);
        for _ in 0..ranges {
            list.extend(place(random, unit).to_be_bytes());
            list.extend((length(random, 1 << 32) as u32).to_be_bytes());
            list.extend([0; 4]);
        }
        let head = list.len() - 16 * ranges as usize;
        put(&mut list, head - 2, 2, 16 * ranges);
        let length = list.len() as u64 - 2;
        put(&mut list, 0, 2, length);
        return (if writes { 0x11 } else { 0x10 }, list);
    }
    let names: Vec<libiscsi::Naa> = units.iter().map(|unit| unit.naa).collect();
    let count = 1 + random.below(66);
    let step = length(random, 65_536) & 0xffff;
    let (from, to) = (random.below(units.len() as u64), random.below(units.len() as u64));
    let (source, destination) =
        (place(random, units[from as usize]), place(random, units[to as usize]));
    let segments: Vec<CopySegment> = (0..count)
        .map(|n| CopySegment {
            source: from as u16,
            destination: to as u16,
            blocks: step as u16,
            source_lba: source.wrapping_add(n * step),
            destination_lba: destination.wrapping_add(n * step),
        })
        .collect();
    (0, copy_parameters(&names, &segments, 512))
}
