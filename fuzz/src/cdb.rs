//! Commands of several hosts to several logical units, in any order.
//!
//! An input is a list of actions. The first byte of each selects the host (lowest 3 bits) and the
//! action (other bits).

use block::{VolumeError, VolumeId};

use crate::hosts::{Hosts, LUNS};
use crate::input::{Input, Script};

/// The maximum number of actions of an input; more take time without new coverage.
const ACTIONS_MAX: usize = 32;

/// Bytes in a CDB by its group code (SPC-4, 4.3.2).
fn cdb_bytes(opcode: u8) -> usize {
    match opcode >> 5 {
        0 => 6,
        1 | 2 => 10,
        4 => 16,
        5 => 12,
        _ => 32,
    }
}

fn lun(input: &mut Input<'_>) -> [u8; 8] {
    match input.below(8) {
        6 | 7 => input.array(),
        known => LUNS[known],
    }
}

fn failure(input: &mut Input<'_>) -> VolumeError {
    match input.below(7) {
        0 => VolumeError::NoSuchVolume(VolumeId(1)),
        1 => VolumeError::OutOfRange,
        2 => VolumeError::Miscompare { offset_bytes: input.u16().into() },
        3 => VolumeError::NoSpace,
        4 => VolumeError::Medium { sector: block::Sector(input.number()) },
        5 => VolumeError::WriteFailed,
        _ => VolumeError::TooLong,
    }
}

/// Returns any CDB, or one with a supported operation code.
fn cdb(input: &mut Input<'_>) -> Vec<u8> {
    let served: Vec<(u8, Option<u8>)> =
        scsi::commands().map(|(_, opcode, action)| (opcode, action)).collect();
    let at = input.u8();
    if at == 0xff {
        let len = input.below(33);
        return input.bytes(len).to_vec();
    }
    let (opcode, action) = served[usize::from(at) % served.len()];
    let mut cdb = vec![opcode];
    cdb.extend(input.bytes(cdb_bytes(opcode) - 1));
    cdb.resize(cdb_bytes(opcode), 0);
    if let Some(action) = action {
        cdb[1] = cdb[1] & 0xe0 | action;
    }
    cdb
}

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut hosts = Hosts::new();
    for _ in 0..ACTIONS_MAX {
        if input.is_empty() {
            break;
        }
        let what = input.u8();
        let who = usize::from(what & 7);
        match what >> 3 {
            0 => {
                let lun = lun(&mut input);
                hosts.reset_unit(who, lun);
            }
            1 => hosts.reset_target(who),
            2 => hosts.reconnect(who),
            3 => hosts.change_map(input.u8().into()),
            4 => hosts.destroy(),
            5 => hosts.failure = Some(failure(&mut input)),
            6 => {
                // More data than one request to a volume, so the command becomes several requests.
                let (lun, cdb) = (lun(&mut input), cdb(&mut input));
                let data = vec![input.u8(); (4 << 20) + 512 * input.below(64)];
                hosts.run(who, lun, &cdb, &data);
            }
            _ => {
                let (lun, cdb, data) = (lun(&mut input), cdb(&mut input), input.content());
                hosts.run(who, lun, &cdb, &data);
            }
        }
    }
}

/// Returns the index of a command among the supported ones.
fn index(opcode: u8, action: u8) -> u8 {
    let at = scsi::commands().position(|(_, code, served)| {
        code == opcode && served.is_none_or(|served| served == action & 0x1f)
    });
    at.expect("the command is served") as u8
}

/// Appends a command of the first host.
pub fn command(script: Script, lun: u8, cdb: &[u8], data: &[u8]) -> Script {
    script.u8(0xf8).u8(lun).u8(index(cdb[0], cdb[1])).raw(&cdb[1..]).content(data)
}

/// Returns each supported command once, with meaningful fields, and some sequences.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (_, opcode, action) in scsi::commands() {
        let mut cdb = vec![0; cdb_bytes(opcode)];
        cdb[0] = opcode;
        cdb[1] = action.unwrap_or(0);
        // In all CDBs, the last byte but one is the low byte of a length.
        let length_at = cdb.len() - if matches!(opcode >> 5, 4 | 5) { 3 } else { 2 };
        cdb[length_at] = 8;
        for lun in [0, 1] {
            seeds.push(command(Script::new(), lun, &cdb, &[0; 24]).done());
            seeds.push(command(Script::new(), lun, &cdb, &[0; 4096]).done());
        }
    }
    let register = [0x5f, 0, 0, 0, 0, 0, 0, 0, 24, 0];
    let reserve = [0x5f, 1, 5, 0, 0, 0, 0, 0, 24, 0];
    let mut key = [0; 24];
    key[15] = 1;
    let mut own = [0; 24];
    own[7] = 1;
    let script = command(Script::new(), 0, &register, &key);
    let script = command(script, 0, &reserve, &own).u8(2 << 3).u8(1 << 3);
    seeds.push(command(script, 0, &[0x5e, 3, 0, 0, 0, 0, 0, 1, 0, 0], &[]).done());
    let mut lock = vec![0; 1024];
    lock[512] = 1;
    let compare = [0x89, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0];
    let script = command(Script::new(), 0, &compare, &lock);
    seeds.push(command(script, 0, &compare, &lock).done());
    // The largest answer to GET LBA STATUS.
    let status = [0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0, 0];
    seeds.push(command(Script::new(), 2, &status, &[]).done());
    // A long read of the large volume.
    let read = [0x88, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0, 0x30, 0, 0, 0];
    seeds.push(command(Script::new(), 2, &read, &[]).done());
    seeds
}
