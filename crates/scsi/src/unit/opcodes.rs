//! REPORT SUPPORTED OPERATION CODES and TASK MANAGEMENT FUNCTIONS (SPC-4, 6.34 and 6.35).

use block::Offloads;

use crate::device::{Context, Entry};
use crate::sense::Sense;
use crate::step::{Command, Outcome, Response, Step};

/// The recommended timeout of a command, in seconds: a path may stop for 30 s, twice.
const TIMEOUT_NOMINAL_S: u32 = 1;
const TIMEOUT_RECOMMENDED_S: u32 = 60;

fn timeouts() -> [u8; 12] {
    let mut out = [0; 12];
    out[1] = 0x0a;
    out[4..8].copy_from_slice(&TIMEOUT_NOMINAL_S.to_be_bytes());
    out[8..12].copy_from_slice(&TIMEOUT_RECOMMENDED_S.to_be_bytes());
    out
}

pub(crate) fn report_operation_codes(context: &Context<'_>, command: Command) -> Outcome {
    let (cdb, offloads) = (&command.cdb, context.offloads());
    let with_timeouts = cdb.bit(2, 7);
    let (opcode, action) = (cdb.u8(3), cdb.u16(4));
    let commands = context.server.commands;
    let found = || commands.iter().filter(|it| it.opcode == opcode && it.is_on(offloads));
    let has_actions = found().next().is_some_and(|entry| entry.action.is_some());
    let by_action = || found().find(|entry| entry.action.map(u16::from) == Some(action));
    let out = match cdb.u8(2) & 7 {
        0 => all(commands, offloads, with_timeouts),
        1 if has_actions => return Err(Sense::cdb_field(2, 2)),
        1 => one(found().next(), with_timeouts),
        2 if found().next().is_some() && !has_actions => return Err(Sense::cdb_field(2, 2)),
        2 => one(by_action(), with_timeouts),
        3 if has_actions => one(by_action(), with_timeouts),
        3 => one(found().next().filter(|_| action == 0), with_timeouts),
        _ => return Err(Sense::cdb_field(2, 2)),
    };
    Ok(Step::Done(Response::parameters(&out, cdb.u32(6) as usize)))
}

fn all(commands: &[Entry], offloads: Offloads, with_timeouts: bool) -> Vec<u8> {
    let mut out = vec![0; 4];
    for entry in commands.iter().filter(|entry| entry.is_on(offloads)) {
        let action = entry.action.unwrap_or(0);
        let flags = u8::from(with_timeouts) << 1 | u8::from(entry.action.is_some());
        out.extend([entry.opcode, 0, 0, action, 0, flags, 0, entry.usage.len() as u8]);
        if with_timeouts {
            out.extend(timeouts());
        }
    }
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}

fn one(entry: Option<&Entry>, with_timeouts: bool) -> Vec<u8> {
    let Some(entry) = entry else {
        return vec![0, 0x01, 0, 0]; // not supported
    };
    let mut out = vec![0, 0x03 | u8::from(with_timeouts) << 7, 0, entry.usage.len() as u8];
    out.extend(entry.usage);
    if with_timeouts {
        out.extend(timeouts());
    }
    out
}

/// ABORT TASK, ABORT TASK SET, CLEAR TASK SET, LOGICAL UNIT RESET.
const FUNCTIONS: u8 = 0x80 | 0x40 | 0x10 | 0x08;

pub(crate) fn report_task_management(_: &Context<'_>, command: Command) -> Outcome {
    let cdb = &command.cdb;
    let mut out = vec![FUNCTIONS, 0, 0, 0];
    if cdb.bit(2, 7) {
        // The extended format. Its timeouts are in units of 100 ms; 30 s here.
        out[3] = 0x0c;
        out.extend([0, 0, 0, 1]); // TMFTMOV
        out.extend(300_u32.to_be_bytes());
        out.extend(300_u32.to_be_bytes());
    }
    Ok(Step::Done(Response::parameters(&out, cdb.u32(6) as usize)))
}
