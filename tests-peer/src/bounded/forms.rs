//! The largest form of each command. Forms of the same opcode are near each other; those that
//! destroy the content of a volume come after those that read it.

use std::sync::Arc;

use libiscsi::{Cdb, Direction, Naa};

use super::full;
use super::lists::{self, KEY};
use super::volumes::{BLOCKS, On, repeated_block};
use crate::random::Random;

/// The number of concurrent commands: the window.
pub const DEPTH: usize = 128;
/// The longest transfer (Block Limits): 32 MiB.
pub const TRANSFER: u32 = 65_536;
/// The longest atomic write (Block Limits): 4 MiB.
const ATOMIC: u16 = 8192;
/// The longest segment of a copy in whole blocks: 4 GiB.
pub const LONGEST_SEGMENT: u32 = u32::MAX / 512 * 512;
/// The longest requested response.
const ANSWER: usize = 1 << 20;

/// A command, and its expected result.
pub struct Form {
    pub name: &'static str,
    pub on: On,
    pub cdb: Cdb,
    /// The data-out of each.
    pub data: Arc<[u8]>,
    /// The most bytes of data-in.
    pub bytes: usize,
    /// The most bytes that each moves within the array.
    pub moves: u64,
    /// Whether no two of them have the same data.
    pub is_stamped: bool,
    /// The first block of the data of a token that is created before, and that each of them uses.
    pub token_of: Option<u64>,
    /// Whether each must end with GOOD. Otherwise each must get some response: it depends on
    /// changes by others of the same form, or requests what does not exist.
    pub is_good: bool,
    /// Whether the CDB has a list identifier in bytes 6 to 9, unique to each.
    pub has_id: bool,
}

impl Form {
    pub fn new(name: &'static str, on: On, cdb: Cdb) -> Self {
        let data = Arc::default();
        Self {
            name,
            on,
            cdb,
            data,
            bytes: 0,
            moves: 0,
            is_stamped: false,
            token_of: None,
            is_good: true,
            has_id: false,
        }
    }

    pub fn brings(self, data: &[u8]) -> Self {
        Self { data: data.into(), ..self }
    }

    pub fn shares(self, data: &Arc<[u8]>) -> Self {
        Self { data: data.clone(), ..self }
    }

    fn takes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }

    pub fn moves(self, bytes: u64) -> Self {
        Self { moves: bytes, ..self }
    }

    pub fn any_end(self) -> Self {
        Self { is_good: false, ..self }
    }

    pub fn with_ids(self) -> Self {
        Self { has_id: true, ..self }
    }

    /// Returns the opcode, and the service action if it may have one.
    pub fn code(&self) -> (u8, u8) {
        (self.cdb.bytes()[0], self.cdb.bytes()[1] & 0x1f)
    }

    /// Returns the `n`th command to be issued.
    pub fn cdb_of(&self, n: usize) -> Cdb {
        if !self.has_id {
            return self.cdb;
        }
        let mut bytes = self.cdb.bytes().to_vec();
        bytes[6..10].copy_from_slice(&(n as u32 + 1).to_be_bytes());
        Cdb::raw(&bytes, self.cdb.direction())
    }
}

/// Returns the length of a CDB, by its opcode.
fn cdb_bytes(code: u8) -> usize {
    [6, 10, 10, 0, 16, 12, 0, 0][usize::from(code >> 5)]
}

/// Returns a CDB that addresses blocks: `flags` is byte 1.
pub fn blocks(code: u8, flags: u8, lba: u64, count: u32, direction: Direction) -> Cdb {
    let mut cdb = vec![0; cdb_bytes(code)];
    (cdb[0], cdb[1]) = (code, flags);
    match cdb.len() {
        16 => {
            cdb[2..10].copy_from_slice(&lba.to_be_bytes());
            cdb[10..14].copy_from_slice(&count.to_be_bytes());
        }
        12 => {
            cdb[2..6].copy_from_slice(&(lba as u32).to_be_bytes());
            cdb[6..10].copy_from_slice(&count.to_be_bytes());
        }
        _ => {
            cdb[2..6].copy_from_slice(&(lba as u32).to_be_bytes());
            cdb[7..9].copy_from_slice(&(count as u16).to_be_bytes());
        }
    }
    Cdb::raw(&cdb, direction)
}

/// Returns a CDB with a length at an offset, and a service action in byte 1.
pub fn with_length(code: u8, action: u8, at: usize, length: &[u8], direction: Direction) -> Cdb {
    let mut cdb = vec![0; cdb_bytes(code)];
    (cdb[0], cdb[1]) = (code, action);
    cdb[at..at + length.len()].copy_from_slice(length);
    Cdb::raw(&cdb, direction)
}

/// Returns a CDB with these first bytes, and zeros.
fn plain(first: &[u8]) -> Cdb {
    let mut cdb = first.to_vec();
    cdb.resize(cdb_bytes(first[0]), 0);
    Cdb::raw(&cdb, Direction::None)
}

/// Returns all forms.
pub fn forms(names: &[Naa]) -> Vec<Form> {
    let mut all = Vec::new();
    // Before an initiator's limit of tokens is reached.
    On::ALL.into_iter().for_each(|on| full::tokens(&mut all, on));
    for on in On::ALL {
        reads(&mut all, on);
        copies(&mut all, on, names);
        full::copies(&mut all, on, names);
        full::writes(&mut all, on);
        fills(&mut all, on);
    }
    writes(&mut all);
    answers(&mut all);
    reservations(&mut all);
    settings(&mut all);
    all
}

/// Adds reads.
fn reads(all: &mut Vec<Form>, on: On) {
    let (none, within, out) = (Direction::None, Direction::In, Direction::Out);
    let transfer = TRANSFER as usize * 512;
    let cdb = blocks(0x88, 0, 1, TRANSFER, within);
    all.push(Form::new("READ (16) of 32 MiB", on, cdb).takes(transfer));
    let cdb = blocks(0x8f, 0, 1, TRANSFER, none);
    all.push(Form::new("VERIFY (16) of 32 MiB", on, cdb));
    // With one block, which all blocks equal.
    let block = match on {
        On::Empty => Some(vec![0; 512]),
        On::Same => Some(repeated_block()),
        On::Cloned | On::Snapshots => None,
    };
    if let Some(block) = block {
        let cdb = blocks(0x8f, 6, 1, TRANSFER, out);
        let form = Form::new("VERIFY (16) of 32 MiB with one block", on, cdb);
        all.push(form.brings(&block));
    }
    all.push(Form::new("PRE-FETCH (16) of 2 TiB", on, blocks(0x90, 0, 0, u32::MAX, none)));
    all.push(Form::new("SYNCHRONIZE CACHE (16)", on, blocks(0x91, 0, 0, 0, none)));
    for (name, lba) in
        [("GET LBA STATUS of 1 MiB", 0), ("GET LBA STATUS from the middle", BLOCKS / 2 + 1)]
    {
        let cdb = blocks(0x9e, 0x12, lba, ANSWER as u32, within);
        all.push(Form::new(name, on, cdb).takes(ANSWER));
    }
}

/// Adds copies within the volume.
fn copies(all: &mut Vec<Form>, on: On, names: &[Naa]) {
    for (name, shift) in [
        ("EXTENDED COPY of 256 GiB", 0),
        ("EXTENDED COPY of 256 GiB at 4 KiB", 8),
        ("EXTENDED COPY of 256 GiB at 64 KiB", 128),
    ] {
        let list = lists::copy_list(names, &lists::segments(on, LONGEST_SEGMENT, shift));
        let cdb = Cdb::extended_copy(list.len() as u32);
        all.push(Form::new(name, on, cdb).brings(&list));
    }
    let list = lists::copy_list_lid4(names, &lists::segments(on, LONGEST_SEGMENT, 8));
    let length = (list.len() as u32).to_be_bytes();
    let cdb = with_length(0x83, 1, 10, &length, Direction::Out);
    let name = "EXTENDED COPY (LID4) of 256 GiB at 4 KiB";
    all.push(Form::new(name, on, cdb).brings(&list));
    for (name, action, list) in [
        ("POPULATE TOKEN of 16 GiB", 0x10, lists::populate_list(0)),
        ("POPULATE TOKEN of 16 GiB at 4 KiB", 0x10, lists::populate_list(8)),
        ("WRITE USING TOKEN of 16 GiB of zeros", 0x11, lists::zeros_list(BLOCKS / 2 + 3)),
    ] {
        let length = (list.len() as u32).to_be_bytes();
        let cdb = with_length(0x83, action, 10, &length, Direction::Out);
        // One initiator may have fewer tokens than all of these rows would create.
        let form = Form::new(name, on, cdb).brings(&list).with_ids();
        all.push(if action == 0x10 { form.any_end() } else { form });
    }
}

/// Adds unmaps and fills. At the end each volume is empty.
fn fills(all: &mut Vec<Form>, on: On) {
    let out = Direction::Out;
    if on == On::Cloned {
        all.push(Form::new("SANITIZE: BLOCK ERASE", on, plain(&[0x48, 2])));
        all.push(Form::new("SANITIZE: EXIT FAILURE MODE", on, plain(&[0x48, 0x1f])));
    }
    let list = lists::unmap_list();
    let cdb = with_length(0x42, 0, 7, &(list.len() as u16).to_be_bytes(), out);
    all.push(Form::new("UNMAP of 512 ranges", on, cdb).brings(&list));
    let block = Random::new(9).bytes(512);
    let cdb = blocks(0x93, 0, 1, 0, out);
    all.push(Form::new("WRITE SAME (16) to the end", on, cdb).brings(&block));
    let cdb = blocks(0x93, 1, 3, 0, Direction::None);
    all.push(Form::new("WRITE SAME (16) of zeros to the end", on, cdb));
    let cdb = blocks(0x93, 9, 5, 0, Direction::None);
    all.push(Form::new("WRITE SAME (16) that unmaps to the end", on, cdb));
}

/// Adds single commands that transfer data, to the empty volume.
fn writes(all: &mut Vec<Form>) {
    let (none, within, out) = (Direction::None, Direction::In, Direction::Out);
    let on = On::Empty;
    let long: Arc<[u8]> = Random::new(9).bytes(TRANSFER as usize * 512).into();
    let ten: Arc<[u8]> = long[..65_535 * 512].into();
    let six: Arc<[u8]> = long[..256 * 512].into();
    for (name, code, flags, count, data) in [
        ("WRITE (6)", 0x0a, 0, 0, &six),
        ("WRITE (10)", 0x2a, 0, 65_535, &ten),
        ("WRITE (12)", 0xaa, 0, TRANSFER, &long),
        ("WRITE (16)", 0x8a, 8, TRANSFER, &long),
        ("WRITE AND VERIFY (10)", 0x2e, 0, 65_535, &ten),
        ("WRITE AND VERIFY (12)", 0xae, 0, TRANSFER, &long),
        ("WRITE AND VERIFY (16)", 0x8e, 0, TRANSFER, &long),
        ("ORWRITE (16)", 0x8b, 0, TRANSFER, &long),
        ("VERIFY (16) with as many blocks", 0x8f, 2, TRANSFER, &long),
    ] {
        let cdb = match code {
            0x0a => Cdb::raw(plain(&[code]).bytes(), out),
            _ => blocks(code, flags, 1, count, out),
        };
        all.push(Form::new(name, on, cdb).shares(data));
    }
    let pair = [&long[..255 * 512], &long[..255 * 512]].concat();
    let mut compare = [0; 16];
    (compare[0], compare[9], compare[13]) = (0x89, 1, 255);
    let cdb = Cdb::raw(&compare, out);
    all.push(Form::new("COMPARE AND WRITE of 255 blocks", on, cdb).brings(&pair));
    let mut atomic = [0; 16];
    atomic[0] = 0x9c;
    atomic[12..14].copy_from_slice(&ATOMIC.to_be_bytes());
    let cdb = Cdb::raw(&atomic, out);
    let data = &long[..usize::from(ATOMIC) * 512];
    all.push(Form::new("WRITE ATOMIC (16)", on, cdb).brings(data));
    let cdb = Cdb::raw(&[0x08, 0, 0, 0, 0, 0], within);
    all.push(Form::new("READ (6)", on, cdb).takes(six.len()));
    let cdb = blocks(0x28, 0, 1, 65_535, within);
    all.push(Form::new("READ (10)", on, cdb).takes(ten.len()));
    let cdb = blocks(0xa8, 0, 1, TRANSFER, within);
    all.push(Form::new("READ (12)", on, cdb).takes(long.len()));
    all.push(Form::new("VERIFY (10)", on, blocks(0x2f, 0, 0, 65_535, none)));
    all.push(Form::new("VERIFY (12)", on, blocks(0xaf, 0, 0, TRANSFER, none)));
    all.push(Form::new("PRE-FETCH (10)", on, blocks(0x34, 0, 0, 65_535, none)));
    all.push(Form::new("SYNCHRONIZE CACHE (10)", on, blocks(0x35, 0, 0, 0, none)));
    let cdb = blocks(0x41, 0, 1, 0, out);
    let form = Form::new("WRITE SAME (10) to the end", on, cdb);
    all.push(form.brings(&long[..512]));
}

/// Adds commands that return parameter data, as long as their length field allows.
fn answers(all: &mut Vec<Form>) {
    for (name, code, action, at, width) in [
        ("INQUIRY", 0x12, 0, 3, 2),
        ("REQUEST SENSE", 0x03, 0, 4, 1),
        ("MODE SENSE (6)", 0x1a, 0, 4, 1),
        ("MODE SENSE (10)", 0x5a, 0, 7, 2),
        ("LOG SENSE", 0x4d, 0, 7, 2),
        ("READ KEYS", 0x5e, 0, 7, 2),
        ("READ RESERVATION", 0x5e, 1, 7, 2),
        ("REPORT CAPABILITIES", 0x5e, 2, 7, 2),
        ("READ FULL STATUS", 0x5e, 3, 7, 2),
        ("RECEIVE COPY OPERATING PARAMETERS", 0x84, 3, 10, 4),
        ("REPORT ALL ROD TOKENS", 0x84, 8, 10, 4),
        ("READ CAPACITY (10)", 0x25, 0, 9, 0),
        ("READ CAPACITY (16)", 0x9e, 0x10, 10, 4),
        ("REPORT LUNS", 0xa0, 0, 6, 4),
        ("REPORT TARGET PORT GROUPS", 0xa3, 0x0a, 6, 4),
        ("REPORT SUPPORTED OPERATION CODES", 0xa3, 0x0c, 6, 4),
        ("REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS", 0xa3, 0x0d, 6, 4),
        ("READ DEFECT DATA (10)", 0x37, 0, 7, 2),
        ("READ DEFECT DATA (12)", 0xb7, 0, 6, 4),
    ] {
        let cdb = with_length(code, action, at, &[0xff; 4][..width], Direction::In);
        let mut bytes = cdb.bytes().to_vec();
        match code {
            0x4d => bytes[2] = 0x0c,
            0x1a | 0x5a => bytes[2] = 0x3f,
            _ => {}
        }
        let cdb = Cdb::raw(&bytes, Direction::In);
        all.push(Form::new(name, On::Empty, cdb).takes(ANSWER));
    }
    // For copies whose identifiers have no stored result.
    for (name, action) in [
        ("RECEIVE COPY STATUS (LID1)", 0),
        ("RECEIVE COPY DATA (LID1)", 1),
        ("RECEIVE COPY FAILURE DETAILS (LID1)", 4),
        ("RECEIVE COPY STATUS (LID4)", 5),
        ("RECEIVE COPY DATA (LID4)", 6),
        ("RECEIVE ROD TOKEN INFORMATION", 7),
    ] {
        let cdb = with_length(0x84, action, 10, &[0xff; 4], Direction::In);
        all.push(Form::new(name, On::Empty, cdb).takes(ANSWER).any_end());
    }
    let name = "COPY OPERATION ABORT";
    all.push(Form::new(name, On::Empty, plain(&[0x83, 0x1c])).any_end());
}

/// Adds reservations by one initiator, and as many registrations as possible.
fn reservations(all: &mut Vec<Form>) {
    let on = On::Empty;
    for (name, code) in [
        ("RESERVE (6)", 0x16),
        ("RELEASE (6)", 0x17),
        ("RESERVE (10)", 0x56),
        ("RELEASE (10)", 0x57),
    ] {
        all.push(Form::new(name, on, plain(&[code])));
    }
    for (name, ids) in
        [("REGISTER with 32,768 TransportIDs", 32_768), ("REGISTER with 511 TransportIDs", 511)]
    {
        // Too many are refused; and a registrant can't list others a second time.
        let list = lists::register_list(ids);
        let cdb = with_length(0x5f, 0, 5, &(list.len() as u32).to_be_bytes(), Direction::Out);
        all.push(Form::new(name, on, cdb).brings(&list).any_end());
    }
    // Exclusive access, all registrants.
    for (name, action, key, action_key, is_good) in [
        ("REGISTER AND IGNORE EXISTING KEY", 6, 0, KEY, true),
        ("RESERVE", 1, KEY, 0, true),
        ("RELEASE", 2, KEY, 0, true),
        ("REGISTER AND MOVE", 7, KEY, KEY, false),
        ("PREEMPT", 4, KEY, KEY, false),
        ("PREEMPT AND ABORT", 5, KEY, KEY, false),
        ("CLEAR", 3, KEY, 0, false),
    ] {
        let list = lists::reserve_list(key, action_key);
        let mut cdb = [0x5f, action, 0x08, 0, 0, 0, 0, 0, 0, 0];
        cdb[5..9].copy_from_slice(&(list.len() as u32).to_be_bytes());
        let form = Form::new(name, on, Cdb::raw(&cdb, Direction::Out)).brings(&list);
        all.push(if is_good { form } else { form.any_end() });
    }
}

/// Adds commands with short data, or that refuse longer data.
fn settings(all: &mut Vec<Form>) {
    let on = On::Empty;
    for (name, first) in [
        ("TEST UNIT READY", &[0x00_u8][..]),
        ("START STOP UNIT", &[0x1b, 0, 0, 0, 1]),
        ("SEND DIAGNOSTIC", &[0x1d, 4]),
        ("PREVENT ALLOW MEDIUM REMOVAL", &[0x1e]),
    ] {
        all.push(Form::new(name, on, plain(first)));
    }
    full::settings(all);
}
