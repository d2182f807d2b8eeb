//! The single table of commands. It determines dispatch, reservation checks and the data of REPORT
//! SUPPORTED OPERATION CODES, so that the three can't differ.

use block::{Offload, Offloads};
use target::Access;

use crate::blocks::{
    atomic, compare_write, or_write, provisioning, read_write, sanitize, unmap, verify, write_same,
};
use crate::device::{Context, Entry};
use crate::sense::Sense;
use crate::step::{Command, Outcome};
use crate::unit::{alua, capacity, inquiry, log, luns, mode, opcodes, small};
use crate::{copy, reservations};

/// The index of the first entry of each opcode, plus one; 0 if there is none.
static FIRST: [u8; 256] = first_entries();

const fn first_entries() -> [u8; 256] {
    let mut first = [0; 256];
    let mut index = COMMANDS.len();
    while index > 0 {
        first[COMMANDS[index - 1].opcode as usize] = index as u8;
        index -= 1;
    }
    first
}

/// Returns the entries of an opcode; empty if it is not supported.
pub(crate) fn entries(opcode: u8) -> &'static [Entry] {
    let first = usize::from(FIRST[usize::from(opcode)]);
    if first == 0 {
        return &[];
    }
    let rest = &COMMANDS[first - 1..];
    let count = rest.iter().take_while(|entry| entry.opcode == opcode).count();
    &rest[..count]
}

/// Returns the entry for a CDB with this opcode and these low bits of byte 1.
#[inline]
pub(crate) fn find(opcode: u8, service_action: u8) -> Result<&'static Entry, Sense> {
    let first = usize::from(FIRST[usize::from(opcode)]);
    if first == 0 {
        return Err(Sense::INVALID_OPCODE);
    }
    let entry = &COMMANDS[first - 1];
    if entry.action.is_none() {
        return Ok(entry);
    }
    entries(opcode)
        .iter()
        .find(|entry| entry.action == Some(service_action))
        .ok_or(Sense::cdb_field(1, 4))
}

/// As [`find`], without commands whose offload is off. They are refused by opcode, even if other
/// service actions of the same opcode remain (tokens, without Full Copy): to hosts a primitive is
/// the opcode, and INVALID COMMAND OPERATION CODE makes them do the work themselves.
#[inline]
pub(crate) fn offered(
    opcode: u8,
    service_action: u8,
    offloads: Offloads,
) -> Result<&'static Entry, Sense> {
    match find(opcode, service_action) {
        Ok(entry) if !entry.is_on(offloads) => Err(Sense::INVALID_OPCODE),
        found => found,
    }
}

/// Returns the offload of a command, by its opcode and service action. Of the third-party copy
/// commands, 83h/10h and 11h (POPULATE TOKEN, WRITE USING TOKEN) and 84h/07h and 08h (RECEIVE ROD
/// TOKEN INFORMATION, REPORT ALL ROD TOKENS) belong to tokens.
const fn offload_of(opcode: u8, action: Option<u8>) -> Option<Offload> {
    Some(match (opcode, action) {
        (0x89, _) => Offload::CompareAndWrite,
        (0x41 | 0x93, _) => Offload::WriteSame,
        (0x42, _) => Offload::Unmap,
        (0x83, Some(0x10 | 0x11)) | (0x84, Some(0x07 | 0x08)) => Offload::TokenCopy,
        (0x83 | 0x84, _) => Offload::ExtendedCopy,
        _ => return None,
    })
}

/// Returns every supported command and service action: name, opcode, service action. Documents are
/// checked against it.
pub fn commands() -> impl Iterator<Item = (&'static str, u8, Option<u8>)> {
    COMMANDS.iter().map(|entry| (entry.name, entry.opcode, entry.action))
}

/// Shorthand for an entry without service action.
const fn plain(
    name: &'static str,
    access: Access,
    usage: &'static [u8],
    run: fn(&Context<'_>, Command) -> Outcome,
) -> Entry {
    let (opcode, action) = (usage[0], None);
    let offload = offload_of(opcode, action);
    Entry { name, opcode, action, usage, access, offload, without_volume: false, run }
}

/// Shorthand for an entry with a service action: the low bits of usage byte 1.
const fn action(
    name: &'static str,
    access: Access,
    usage: &'static [u8],
    run: fn(&Context<'_>, Command) -> Outcome,
) -> Entry {
    let (opcode, action) = (usage[0], Some(usage[1] & 0x1f));
    let offload = offload_of(opcode, action);
    Entry { name, opcode, action, usage, access, offload, without_volume: false, run }
}

/// Shorthand for an entry that needs no volume.
const fn anywhere(
    name: &'static str,
    usage: &'static [u8],
    run: fn(&Context<'_>, Command) -> Outcome,
) -> Entry {
    Entry { without_volume: true, ..plain(name, Access::Free, usage, run) }
}

use Access::{Alter, Free, Persistent, Read, Reserve, Status, Write};

const F: u8 = 0xff;
/// The CONTROL byte: NACA is refused, nothing else is evaluated.
const C: u8 = 0x04;

/// All supported commands; the entries of one opcode are consecutive.
#[rustfmt::skip]
pub(crate) static COMMANDS: &[Entry] = &[
    Entry { access: Status, ..anywhere("TEST UNIT READY", &[0x00, 0, 0, 0, 0, C],
        small::test_unit_ready) },
    anywhere("REQUEST SENSE", &[0x03, 0x01, 0, 0, F, C], small::request_sense),
    plain("READ (6)", Read, &[0x08, 0x1f, F, F, F, C], read_write::read),
    plain("WRITE (6)", Write, &[0x0a, 0x1f, F, F, F, C], read_write::write),
    anywhere("INQUIRY", &[0x12, 0x01, F, F, F, C], inquiry::inquiry),
    plain("MODE SELECT (6)", Alter, &[0x15, 0x11, 0, 0, F, C], mode::select_6),
    plain("RESERVE (6)", Reserve, &[0x16, 0, 0, 0, 0, C], reservations::spc2::reserve),
    plain("RELEASE (6)", Reserve, &[0x17, 0, 0, 0, 0, C], reservations::spc2::release),
    plain("MODE SENSE (6)", Read, &[0x1a, 0x08, F, F, F, C], mode::sense_6),
    plain("START STOP UNIT", Alter, &[0x1b, 0x01, 0, 0x0f, 0xf7, C], small::start_stop_unit),
    plain("SEND DIAGNOSTIC", Alter, &[0x1d, 0xf7, 0, F, F, C], small::send_diagnostic),
    plain("PREVENT ALLOW MEDIUM REMOVAL", Alter, &[0x1e, 0, 0, 0, 0x03, C],
        small::prevent_allow),
    plain("READ CAPACITY (10)", Status, &[0x25, 0, F, F, F, F, 0, 0, 0x01, C],
        capacity::read_capacity_10),
    plain("READ (10)", Read, &[0x28, 0xf8, F, F, F, F, 0x1f, F, F, C], read_write::read),
    plain("WRITE (10)", Write, &[0x2a, 0xf8, F, F, F, F, 0x1f, F, F, C], read_write::write),
    plain("WRITE AND VERIFY (10)", Write, &[0x2e, 0xf6, F, F, F, F, 0x1f, F, F, C],
        verify::write_and_verify),
    plain("VERIFY (10)", Read, &[0x2f, 0xf6, F, F, F, F, 0x1f, F, F, C], verify::verify),
    plain("PRE-FETCH (10)", Read, &[0x34, 0x02, F, F, F, F, 0x1f, F, F, C],
        read_write::prefetch),
    plain("SYNCHRONIZE CACHE (10)", Alter, &[0x35, 0x02, F, F, F, F, 0x1f, F, F, C],
        read_write::synchronize),
    plain("READ DEFECT DATA (10)", Read, &[0x37, 0, 0x1f, 0, 0, 0, 0, F, F, C],
        small::read_defect_data_10),
    plain("WRITE SAME (10)", Write, &[0x41, 0xf8, F, F, F, F, 0x1f, F, F, C],
        write_same::write_same),
    plain("UNMAP", Write, &[0x42, 0x01, 0, 0, 0, 0, 0x1f, F, F, C], unmap::unmap),
    action("SANITIZE: BLOCK ERASE", Write, &[0x48, 0xa2, 0, 0, 0, 0, 0, F, F, C],
        sanitize::block_erase),
    action("SANITIZE: EXIT FAILURE MODE", Write, &[0x48, 0x1f, 0, 0, 0, 0, 0, F, F, C],
        sanitize::exit_failure_mode),
    plain("LOG SENSE", Free, &[0x4d, 0x01, F, F, 0, F, F, F, F, C], log::sense),
    plain("MODE SELECT (10)", Alter, &[0x55, 0x11, 0, 0, 0, 0, 0, F, F, C], mode::select_10),
    plain("RESERVE (10)", Reserve, &[0x56, 0x12, 0, 0, 0, 0, 0, F, F, C],
        reservations::spc2::reserve_10),
    plain("RELEASE (10)", Reserve, &[0x57, 0x12, 0, 0, 0, 0, 0, F, F, C],
        reservations::spc2::release_10),
    plain("MODE SENSE (10)", Read, &[0x5a, 0x18, F, F, 0, 0, 0, F, F, C], mode::sense_10),
    action("READ KEYS", Persistent, &[0x5e, 0x00, 0, 0, 0, 0, 0, F, F, C],
        reservations::report::read_keys),
    action("READ RESERVATION", Persistent, &[0x5e, 0x01, 0, 0, 0, 0, 0, F, F, C],
        reservations::report::read_reservation),
    action("REPORT CAPABILITIES", Persistent, &[0x5e, 0x02, 0, 0, 0, 0, 0, F, F, C],
        reservations::report::report_capabilities),
    action("READ FULL STATUS", Persistent, &[0x5e, 0x03, 0, 0, 0, 0, 0, F, F, C],
        reservations::report::read_full_status),
    action("REGISTER", Persistent, &[0x5f, 0x00, 0, 0, 0, F, F, F, F, C],
        reservations::persistent::out),
    action("RESERVE", Persistent, &[0x5f, 0x01, F, 0, 0, F, F, F, F, C],
        reservations::persistent::out),
    action("RELEASE", Persistent, &[0x5f, 0x02, F, 0, 0, F, F, F, F, C],
        reservations::persistent::out),
    action("CLEAR", Persistent, &[0x5f, 0x03, 0, 0, 0, F, F, F, F, C],
        reservations::persistent::out),
    action("PREEMPT", Persistent, &[0x5f, 0x04, F, 0, 0, F, F, F, F, C],
        reservations::persistent::out),
    action("PREEMPT AND ABORT", Persistent, &[0x5f, 0x05, F, 0, 0, F, F, F, F, C],
        reservations::persistent::out),
    action("REGISTER AND IGNORE EXISTING KEY", Persistent, &[0x5f, 0x06, 0, 0, 0, F, F, F, F, C],
        reservations::persistent::out),
    action("REGISTER AND MOVE", Persistent, &[0x5f, 0x07, 0, 0, 0, F, F, F, F, C],
        reservations::persistent::out),
    action("EXTENDED COPY (LID1)", Alter, &[0x83, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, F, F, F, F, 0, C],
        copy::extended::extended_copy_lid1),
    action("EXTENDED COPY (LID4)", Alter, &[0x83, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, F, F, F, F, 0, C],
        copy::extended::extended_copy_lid4),
    action("POPULATE TOKEN", Read, &[0x83, 0x10, 0, 0, 0, 0, F, F, F, F, F, F, F, F, 0x1f, C],
        copy::odx::populate),
    action("WRITE USING TOKEN", Write, &[0x83, 0x11, 0, 0, 0, 0, F, F, F, F, F, F, F, F, 0x1f, C],
        copy::odx::write_using),
    action("COPY OPERATION ABORT", Status, &[0x83, 0x1c, F, F, F, F, 0, 0, 0, 0, 0, 0, 0, 0, 0, C],
        copy::results::abort),
    action("RECEIVE COPY STATUS (LID1)", Status,
        &[0x84, 0x00, F, 0, 0, 0, 0, 0, 0, 0, F, F, F, F, 0, C], copy::results::status_lid1),
    action("RECEIVE COPY DATA (LID1)", Status,
        &[0x84, 0x01, F, 0, 0, 0, 0, 0, 0, 0, F, F, F, F, 0, C], copy::results::data_lid1),
    action("RECEIVE COPY OPERATING PARAMETERS", Status,
        &[0x84, 0x03, 0, 0, 0, 0, 0, 0, 0, 0, F, F, F, F, 0, C],
        copy::results::operating_parameters),
    action("RECEIVE COPY FAILURE DETAILS (LID1)", Status,
        &[0x84, 0x04, F, 0, 0, 0, 0, 0, 0, 0, F, F, F, F, 0, C], copy::results::failure_lid1),
    action("RECEIVE COPY STATUS (LID4)", Status,
        &[0x84, 0x05, F, F, F, F, 0, 0, 0, 0, F, F, F, F, 0, C], copy::results::status_lid4),
    action("RECEIVE COPY DATA (LID4)", Status,
        &[0x84, 0x06, F, F, F, F, 0, 0, 0, 0, F, F, F, F, 0, C], copy::results::data_lid4),
    action("RECEIVE ROD TOKEN INFORMATION", Status,
        &[0x84, 0x07, F, F, F, F, 0, 0, 0, 0, F, F, F, F, 0, C],
        copy::results::rod_token_information),
    action("REPORT ALL ROD TOKENS", Status,
        &[0x84, 0x08, 0, 0, 0, 0, 0, 0, 0, 0, F, F, F, F, 0, C], copy::results::all_rod_tokens),
    plain("READ (16)", Read, &[0x88, 0xf8, F, F, F, F, F, F, F, F, F, F, F, F, 0x1f, C],
        read_write::read),
    plain("COMPARE AND WRITE", Write, &[0x89, 0xf8, F, F, F, F, F, F, F, F, 0, 0, 0, F, 0x1f, C],
        compare_write::compare_and_write),
    plain("WRITE (16)", Write, &[0x8a, 0xf8, F, F, F, F, F, F, F, F, F, F, F, F, 0x1f, C],
        read_write::write),
    plain("ORWRITE (16)", Write, &[0x8b, 0xf8, F, F, F, F, F, F, F, F, F, F, F, F, 0x1f, C],
        or_write::or_write),
    plain("WRITE AND VERIFY (16)", Write,
        &[0x8e, 0xf6, F, F, F, F, F, F, F, F, F, F, F, F, 0x1f, C], verify::write_and_verify),
    plain("VERIFY (16)", Read, &[0x8f, 0xf6, F, F, F, F, F, F, F, F, F, F, F, F, 0x1f, C],
        verify::verify),
    plain("PRE-FETCH (16)", Read, &[0x90, 0x02, F, F, F, F, F, F, F, F, F, F, F, F, 0x1f, C],
        read_write::prefetch),
    plain("SYNCHRONIZE CACHE (16)", Alter,
        &[0x91, 0x02, F, F, F, F, F, F, F, F, F, F, F, F, 0x1f, C], read_write::synchronize),
    plain("WRITE SAME (16)", Write, &[0x93, 0xf9, F, F, F, F, F, F, F, F, F, F, F, F, 0x1f, C],
        write_same::write_same),
    plain("WRITE ATOMIC (16)", Write,
        &[0x9c, 0xf8, F, F, F, F, F, F, F, F, F, F, F, F, 0x1f, C], atomic::write_atomic),
    action("READ CAPACITY (16)", Status, &[0x9e, 0x10, F, F, F, F, F, F, F, F, F, F, F, F, 1, C],
        capacity::read_capacity_16),
    action("GET LBA STATUS", Read, &[0x9e, 0x12, F, F, F, F, F, F, F, F, F, F, F, F, 0, C],
        provisioning::get_lba_status),
    anywhere("REPORT LUNS", &[0xa0, 0, F, 0, 0, 0, F, F, F, F, 0, C], luns::report_luns),
    action("REPORT TARGET PORT GROUPS", Free, &[0xa3, 0xea, 0, 0, 0, 0, F, F, F, F, 0, C],
        alua::report),
    action("REPORT SUPPORTED OPERATION CODES", Read, &[0xa3, 0x0c, 0x87, F, F, F, F, F, F, F, 0, C],
        opcodes::report_operation_codes),
    action("REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", Read,
        &[0xa3, 0x0d, 0x80, 0, 0, 0, F, F, F, F, 0, C], opcodes::report_task_management),
    action("SET TARGET PORT GROUPS", Write, &[0xa4, 0x0a, 0, 0, 0, 0, F, F, F, F, 0, C],
        alua::set),
    plain("READ (12)", Read, &[0xa8, 0xf8, F, F, F, F, F, F, F, F, 0x1f, C], read_write::read),
    plain("WRITE (12)", Write, &[0xaa, 0xf8, F, F, F, F, F, F, F, F, 0x1f, C],
        read_write::write),
    plain("WRITE AND VERIFY (12)", Write, &[0xae, 0xf6, F, F, F, F, F, F, F, F, 0x1f, C],
        verify::write_and_verify),
    plain("VERIFY (12)", Read, &[0xaf, 0xf6, F, F, F, F, F, F, F, F, 0x1f, C], verify::verify),
    plain("READ DEFECT DATA (12)", Read, &[0xb7, 0x1f, 0, 0, 0, 0, F, F, F, F, 0, C],
        small::read_defect_data_12),
];
