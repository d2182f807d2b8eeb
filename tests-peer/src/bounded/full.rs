//! Forms that need more than a CDB: data over existing content, copies that are staged, tokens, and
//! lists that are legal at their longest.

use std::sync::Arc;

use libiscsi::{Cdb, Direction, Naa};

use super::forms::{Form, TRANSFER, blocks, with_length};
use super::lists;
use super::volumes::{BLOCKS, On};
use crate::random::Random;

/// The longest segment that counts blocks: 32 MiB less a block.
const SEGMENT: u32 = 65_535 * 512;
/// The segments of a copy that moves data block by block, longer than what is staged.
const MOVED_SEGMENTS: usize = 16;
/// The length of a staged copy: more than one record contains (4 MiB), and little enough that all
/// of them together fit the pool.
const STAGED: u32 = 16 << 20;

/// Adds copies whose ends have different alignment within 4 KiB: data moves.
pub fn copies(all: &mut Vec<Form>, on: On, names: &[Naa]) {
    for (name, bytes, count) in [
        ("EXTENDED COPY of 16 MiB at 512 bytes", STAGED, 1),
        ("EXTENDED COPY of 512 MiB at 512 bytes", SEGMENT, MOVED_SEGMENTS),
    ] {
        let mut segments = lists::segments(on, bytes, 1);
        segments.truncate(count);
        let list = lists::copy_list(names, &segments);
        let cdb = Cdb::extended_copy(list.len() as u32);
        let moves = u64::from(bytes) * count as u64;
        all.push(Form::new(name, on, cdb).brings(&list).moves(moves));
    }
}

/// Adds the longest writes over existing content: zeros, one repeated 4 KiB block, the same data
/// each time, and different data each time. None begins at a block boundary.
pub fn writes(all: &mut Vec<Form>, on: On) {
    let bytes = TRANSFER as usize * 512;
    let zeros: Arc<[u8]> = vec![0; bytes].into();
    let repeated: Arc<[u8]> = Random::new(5).bytes(4096).repeat(bytes / 4096).into();
    let random: Arc<[u8]> = Random::new(6).bytes(bytes).into();
    for (name, lba, data, is_stamped) in [
        ("WRITE (16) of zeros", 1, &zeros, false),
        ("WRITE (16) of a repeated block", 8, &repeated, false),
        ("WRITE (16) of known data", 3, &random, false),
        ("WRITE (16) of new data", 1, &random, true),
    ] {
        let cdb = blocks(0x8a, 0, lba, TRANSFER, Direction::Out);
        all.push(Form { is_stamped, ..Form::new(name, on, cdb).shares(data) });
    }
}

/// Adds WRITE USING TOKEN of the volume's content.
pub fn tokens(all: &mut Vec<Form>, on: On) {
    for (name, shift) in
        [("WRITE USING TOKEN of 16 GiB", 0), ("WRITE USING TOKEN of 16 GiB at 4 KiB", 8)]
    {
        let list = lists::token_list(BLOCKS / 2 + shift);
        let length = (list.len() as u32).to_be_bytes();
        let cdb = with_length(0x83, 0x11, 10, &length, Direction::Out);
        let form = Form::new(name, on, cdb).brings(&list).with_ids();
        all.push(Form { token_of: Some(0), ..form });
    }
}

/// Adds parameter lists that change nothing, as long as their length field allows.
pub fn settings(all: &mut Vec<Form>) {
    let on = On::Empty;
    // The control page, repeated.
    let page = [0x0a, 0x0a, 0x22, 0x10, 0, 0, 0, 0, 0xff, 0xff, 0, 0];
    let pages = |header: usize, most: usize| {
        [vec![0; header], page.repeat((most - header) / page.len())].concat()
    };
    // One descriptor for each port: each refers to the group of both.
    let groups = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1];
    for (name, code, action, at, width, list) in [
        ("MODE SELECT (6)", 0x15, 0x10, 4, 1, pages(4, 0xff)),
        ("MODE SELECT (10)", 0x55, 0x10, 7, 2, pages(8, 0xffff)),
        ("SET TARGET PORT GROUPS", 0xa4, 0x0a, 6, 4, groups),
    ] {
        let length = (list.len() as u32).to_be_bytes();
        let cdb = with_length(code, action, at, &length[4 - width..], Direction::Out);
        all.push(Form::new(name, on, cdb).brings(&list));
    }
}
