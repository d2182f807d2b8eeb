//! Random PDUs: whole sessions of them, some of which get as far as commands, and some of which are
//! meaningless.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{Count, Unit};
use crate::initiator::{Initiator, NO_TAG, Pdu, login_request};
use crate::random::Random;
use crate::target::Target;

/// The number of PDUs of a session.
const PDUS: usize = 200;
/// Initiator opcodes (RFC 7143, 11.2.1.2), and some invalid ones.
const CODES: [u8; 12] = [0, 1, 1, 1, 2, 2, 4, 5, 5, 6, 0x10, 0x1c];

/// Runs one session. Any reaction of the target is accepted, except that it no longer accepts
/// logins.
pub(super) fn session(
    target: &Target,
    units: &[Unit],
    isid: u32,
    random: &mut Random,
    count: &mut Count,
) -> Result<()> {
    count.sessions += 1;
    if random.below(4) == 0 {
        let mut initiator = Initiator::connect(target).context("a connection")?;
        let mut login = login_request(target, isid);
        damage(random, &mut login);
        let _ = initiator.send(&login);
        let _ = initiator.stream().write_all(&random.bytes(1000));
        let _ = initiator.receive_within(Duration::from_millis(20));
        count.pdus += 1;
        return Ok(());
    }
    let mut initiator = Initiator::login(target, isid).context("a login before PDUs")?;
    // A connection that does not read is slowed down; this one does not wait for that.
    initiator.stream().set_write_timeout(Some(Duration::from_millis(500)))?;
    let reads = random.below(4) != 0;
    let mut ttt = 0;
    for _ in 0..PDUS {
        let pdu = any(random, units, &mut initiator, ttt);
        count.pdus += 1;
        count.bytes += pdu.data.len() as u64;
        if send(&mut initiator, random, &pdu).is_err() {
            return Ok(());
        }
        if reads && random.below(4) == 0 {
            match initiator.receive_within(Duration::from_millis(1)) {
                Ok(Some(answer)) if answer.opcode() == 0x31 => ttt = answer.field(20),
                Ok(_) => {}
                Err(_) => return Ok(()), // the target has closed it
            }
        }
    }
    Ok(())
}

/// Returns a mostly plausible PDU.
fn any(random: &mut Random, units: &[Unit], initiator: &mut Initiator, ttt: u32) -> Pdu {
    let code = CODES[random.below(CODES.len() as u64) as usize];
    let immediate = if random.below(3) == 0 { 0x40 } else { 0 };
    let mut pdu = initiator.request(code | immediate, random.bits() as u8 | 0x80);
    let unit = units[random.below(units.len() as u64) as usize];
    let lun = match random.below(6) {
        0 => random.bits().to_be_bytes(),
        1 => [0; 8],
        2 => [0x40 | unit.lun[0], unit.lun[1], 0, 0, 0, 0, 0, 0],
        _ => unit.lun,
    };
    pdu = pdu.with_bytes(8, &lun);
    let tag = 1 + random.below(40) as u32;
    match code {
        1 => {
            let way = [0x81, 0xc1, 0xa1, 0x21, 0xe1][random.below(5) as usize];
            pdu.header[1] = way | random.below(8) as u8;
            let bytes = [0, 1, 512, 4096, 65_536, 1 << 20, u32::MAX][random.below(7) as usize];
            pdu = pdu.with(20, bytes).with_bytes(32, &cdb(random));
        }
        2 => {
            pdu.header[1] = 0x80 | random.below(10) as u8;
            pdu = pdu.with(20, if random.below(2) == 0 { tag } else { NO_TAG });
            pdu = pdu.with(32, random.below(64) as u32);
        }
        4 => {
            let keys = [
                "SendTargets=All\0",
                "SendTargets=\0",
                "X-a=b\0X-a=b\0",
                "=",
                "MaxRecvDataSegmentLength=512\0",
            ];
            pdu = pdu.with(20, NO_TAG).with_data(keys[random.below(5) as usize].as_bytes());
            pdu.header[1] = [0x80, 0x40, 0x00, 0xc0][random.below(4) as usize];
        }
        5 => {
            let bytes = [0, 512, 4096, 8192][random.below(4) as usize];
            let transfer = [ttt, NO_TAG, random.bits() as u32][random.below(3) as usize];
            pdu = pdu.with(16, tag).with(20, transfer).with(36, random.below(3) as u32);
            pdu = pdu.with(40, 512 * random.below(20) as u32).with_data(&random.bytes(bytes));
        }
        6 => {
            // Most sessions should last.
            pdu.header[1] = 0x80 | [1, 2, 3, 1, 2, 0][random.below(6) as usize];
            pdu = pdu.with(20, random.bits() as u32);
        }
        _ => {
            let bytes = random.below(5000) as usize;
            pdu = pdu.with(20, NO_TAG).with_data(&random.bytes(bytes));
        }
    }
    if random.below(12) == 0 {
        damage(random, &mut pdu);
    }
    pdu
}

fn cdb(random: &mut Random) -> [u8; 16] {
    let mut cdb = [0; 16];
    let codes = [0x00, 0x12, 0x28, 0x2a, 0x42, 0x5f, 0x83, 0x88, 0x89, 0x8a, 0x8f, 0x93, 0xa0];
    cdb[0] = codes[random.below(codes.len() as u64) as usize];
    for byte in &mut cdb[1..] {
        if random.below(4) == 0 {
            *byte = random.bits() as u8;
        }
    }
    cdb
}

/// Changes some bytes of the header, possibly the announced length of data.
fn damage(random: &mut Random, pdu: &mut Pdu) {
    for _ in 0..=random.below(3) {
        let at = random.below(48) as usize;
        pdu.header[at] = random.bits() as u8;
    }
}

/// Sends it, sometimes with additional headers, in pieces, or with a wrong length.
fn send(initiator: &mut Initiator, random: &mut Random, pdu: &Pdu) -> Result<()> {
    let mut bytes = pdu.bytes();
    match random.below(24) {
        0 => {
            let words = random.below(256) as u8;
            bytes[4] = words;
            let mut extra = random.bytes(usize::from(words) * 4);
            if let (Some(head), true) = (extra.first_chunk_mut::<3>(), random.below(2) == 0) {
                *head = [0, 17, 1];
            }
            bytes.splice(48..48, extra);
        }
        1 => bytes[5..8].copy_from_slice(&random.bytes(3)),
        2 => bytes[4] = random.bits() as u8,
        _ => bytes[4] = 0,
    }
    let cut = random.below(bytes.len() as u64) as usize;
    let (one, two) = bytes.split_at(cut);
    initiator.stream().write_all(one)?;
    Ok(initiator.stream().write_all(two)?)
}
