//! Parameter lists that are nearly valid, so that they pass the first checks: EXTENDED COPY in both
//! forms, UNMAP, MODE SELECT, PERSISTENT RESERVE OUT.
//!
//! An input is a list of commands. Each parameter list is built from its fields; then the input may
//! change single bytes of it, or truncate it.

use crate::hosts::{Hosts, LUNS, naa};
use crate::input::{Input, Script};

/// The maximum number of commands of an input.
const COMMANDS_MAX: usize = 24;

/// Returns a CSCD descriptor (SPC-4, 6.4.5.1): a volume's, or one with any kind of designator.
fn cscd(input: &mut Input<'_>) -> Vec<u8> {
    let kind = input.u8();
    let mut out = vec![0xe4, 0, 0, 0, 1, 3, 0, 16];
    match kind & 0x0f {
        0..=11 => out.extend(naa(kind & 3 | u8::from(kind & 3 == 0))),
        12 => {
            // A T10 vendor designator, truncated to the input's length.
            out = vec![0xe4, kind >> 4, 0, 0, 2, 1, 0, 20];
            out.extend(b"HOLDFASTHF0000000100");
        }
        13 => {
            out = vec![0xe4, 0, 0, 0, kind >> 4, input.u8(), 0, input.u8()];
            out.extend(input.array::<20>());
        }
        14 => out = input.array::<32>().to_vec(),
        _ => out[1] = 0x20,
    }
    out.resize(29, 0);
    // DISK BLOCK LENGTH: open, 512 or 4096.
    out.extend(input.pick(&[[0, 0, 0], [0, 2, 0], [0, 0x10, 0], [0xff, 0xff, 0xff]]));
    out
}

/// Returns a block-to-block segment descriptor (SPC-4, 6.4.6.2).
fn segment(input: &mut Input<'_>) -> Vec<u8> {
    let flags = input.u8();
    let mut out = vec![2, flags & 3, 0, 0x18];
    for _ in 0..2 {
        let id = match input.u8() {
            0xff => 0xffff,
            0xfe => 0xf800,
            id => u16::from(id & 7),
        };
        out.extend(id.to_be_bytes());
    }
    out.extend([0, 0]);
    out.extend((input.number() as u16).to_be_bytes());
    for _ in 0..2 {
        out.extend(input.number().to_be_bytes());
    }
    out
}

fn copy_list(input: &mut Input<'_>, lid4: bool) -> Vec<u8> {
    let (cscds, segments) = (input.below(5), input.below(6));
    // Sometimes more than the limit.
    let times = input.pick(&[1, 1, 1, 1, 1, 1, 14, 30]);
    let cscds: Vec<u8> = (0..cscds).flat_map(|_| cscd(input)).collect();
    let segments: Vec<u8> = (0..segments).flat_map(|_| segment(input)).collect();
    let segments = segments.repeat(times);
    let (id, usage) = (input.u8() & 7, input.u8() & 0x18);
    let mut out = if lid4 { vec![0; 48] } else { vec![0; 16] };
    if lid4 {
        (out[0], out[1], out[3], out[16]) = (1, usage, 0x20, 0xff);
        out[23] = id;
        out[42..44].copy_from_slice(&(cscds.len() as u16).to_be_bytes());
        out[44..46].copy_from_slice(&(segments.len() as u16).to_be_bytes());
    } else {
        (out[0], out[1]) = (id, usage);
        out[2..4].copy_from_slice(&(cscds.len() as u16).to_be_bytes());
        out[8..12].copy_from_slice(&(segments.len() as u32).to_be_bytes());
    }
    out.extend(cscds);
    out.extend(segments);
    out
}

/// Builds UNMAP (SBC-3, 5.28.2).
fn unmap_list(input: &mut Input<'_>) -> Vec<u8> {
    let descriptors = input.below(5);
    let times = input.pick(&[1, 1, 1, 1, 1, 1, 103, 129]);
    let mut body = Vec::new();
    for _ in 0..descriptors {
        body.extend(input.number().to_be_bytes());
        body.extend((input.number() as u32).to_be_bytes());
        body.extend([0; 4]);
    }
    let body = body.repeat(times);
    let mut out = ((body.len() + 6) as u16).to_be_bytes().to_vec();
    out.extend((body.len() as u16).to_be_bytes());
    out.extend([0; 4]);
    out.extend(body);
    out
}

/// Builds MODE SELECT from an answer of MODE SENSE, so that all unchanged bytes are valid.
fn mode_list(input: &mut Input<'_>, hosts: &mut Hosts, who: usize, lun: [u8; 8]) -> Vec<u8> {
    let (page, long, no_descriptor) = (input.u8() & 0x3f, input.coin(), input.coin());
    let flags = if no_descriptor { 8 } else { 0 };
    let (cdb, header) = if long {
        (vec![0x5a, flags | 0x10, page, 0, 0, 0, 0, 1, 0, 0], 8)
    } else {
        (vec![0x1a, flags, page, 0, 0xff, 0], 4)
    };
    let mut list = hosts.run(who, lun, &cdb, &[]).data_in.to_vec();
    // The mode data length and the device-specific parameter are reserved in a parameter list.
    let keep = if long { 4..8 } else { 3..4 };
    for at in 0..header.min(list.len()) {
        if !keep.contains(&at) {
            list[at] = 0;
        }
    }
    list
}

/// Builds PERSISTENT RESERVE OUT (SPC-4, 6.16.3).
fn reserve_list(input: &mut Input<'_>) -> Vec<u8> {
    let mut out = vec![0; 24];
    (out[7], out[15]) = (input.u8() & 3, input.u8() & 3);
    out[20] = input.pick(&[0, 0, 0, 1, 4, 8, 0xff]);
    out
}

/// Builds POPULATE TOKEN (SBC-4, 5.18.2), or WRITE USING TOKEN (5.56.2) with the session's last
/// token.
fn token_list(input: &mut Input<'_>, hosts: &mut Hosts, who: usize, write: bool) -> Vec<u8> {
    let mut list = vec![0; if write { 536 } else { 16 }];
    list[2] = input.u8() & 3;
    if write {
        list[8..16].copy_from_slice(&input.number().to_be_bytes());
        let ask = [0x84, 7, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0];
        let told = hosts.run(who, LUNS[0], &ask, &[]).data_in.to_vec();
        if let Some(token) = told.get(38..550) {
            list[16..528].copy_from_slice(token);
        }
        if input.u8() == 0 {
            list[16..20].copy_from_slice(&0xffff_0001_u32.to_be_bytes());
        }
    } else {
        list[4..8].copy_from_slice(&(input.number() as u32).to_be_bytes());
    }
    let ranges = input.below(4);
    for _ in 0..ranges {
        list.extend(input.number().to_be_bytes());
        list.extend((input.number() as u32).to_be_bytes());
        list.extend([0; 4]);
    }
    let at = if write { 534 } else { 14 };
    list[at..at + 2].copy_from_slice(&(ranges as u16 * 16).to_be_bytes());
    let length = (list.len() - 2) as u16;
    list[..2].copy_from_slice(&length.to_be_bytes());
    list
}

/// Builds SET TARGET PORT GROUPS (SPC-4, 6.45.2).
fn group_list(input: &mut Input<'_>) -> Vec<u8> {
    let mut list = vec![0; 4];
    for _ in 0..input.below(4) {
        list.extend([input.u8() & 0x0f, 0, 0, input.u8() & 3]);
    }
    list
}

/// Lets the input change a valid list: single bytes, or the length.
fn bend(input: &mut Input<'_>, list: &mut Vec<u8>) {
    for _ in 0..input.below(4) {
        let (at, byte) = (usize::from(input.u16()), input.u8());
        if !list.is_empty() {
            let at = at % list.len();
            list[at] = byte;
        }
    }
    match input.below(8) {
        6 => list.truncate(list.len().saturating_sub(input.u8().into())),
        7 => list.resize(list.len() + usize::from(input.u8()), 0),
        _ => {}
    }
}

fn length(list: &[u8], change: u8) -> [u8; 4] {
    // Mostly the actual length of the list.
    let length = if change < 0xf0 { list.len() as u32 } else { (change & 0x0f).into() };
    length.to_be_bytes()
}

/// Runs one command with its list.
fn command(input: &mut Input<'_>, hosts: &mut Hosts) {
    let what = input.u8();
    let (who, lun) = (input.below(3), LUNS[input.below(LUNS.len())]);
    let mut list = match what % 11 {
        0 | 1 => copy_list(input, what % 11 == 1),
        2 => unmap_list(input),
        3 | 4 => mode_list(input, hosts, who, lun),
        5 | 6 => reserve_list(input),
        kind @ (7 | 8) => token_list(input, hosts, who, kind == 8),
        9 => group_list(input),
        _ => Vec::new(),
    };
    bend(input, &mut list);
    let [a, b, c, d] = length(&list, input.u8());
    let action = input.u8();
    let cdb = match what % 11 {
        kind @ (0 | 1) => vec![0x83, kind, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d, 0, 0],
        2 => vec![0x42, action & 1, 0, 0, 0, 0, 0, c, d, 0],
        3 => vec![0x15, 0x10 | action & 1, 0, 0, d, 0],
        4 => vec![0x55, 0x10 | action & 1, 0, 0, 0, 0, 0, c, d, 0],
        5 | 6 => vec![0x5f, action & 7, action >> 4, 0, 0, a, b, c, d, 0],
        kind @ (7 | 8) => vec![0x83, kind + 9, 0, 0, 0, 0, 0, 0, 0, 7, a, b, c, d, 0, 0],
        9 => vec![0xa4, 0x0a, 0, 0, 0, 0, a, b, c, d, 0, 0],
        _ => vec![0x84, action % 9, input.u8() & 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0],
    };
    hosts.run(who, lun, &cdb, &list);
}

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let mut hosts = Hosts::new();
    for _ in 0..COMMANDS_MAX {
        if input.is_empty() {
            break;
        }
        match input.u8() {
            0xff => hosts.reconnect(input.below(3)),
            0xfe => hosts.wait(input.u32()),
            _ => {}
        }
        command(&mut input, &mut hosts);
    }
}

/// Appends a copy within volume 1, in either form.
fn copy(lid4: u8) -> Vec<u8> {
    let script = Script::new().u8(0).u8(lid4).u8(0).u8(0).u8(2).u8(1).u8(0);
    // Two descriptors of volumes 1 and 3, and a segment from one to the other.
    let script = script.u8(1).u8(0).u8(3).u8(0);
    let script = script.u8(2).u8(lid4).u8(1).number(8).number(0).number(64);
    script.u8(1).u8(0).u8(0).u8(0).u8(0).u8(0).u8(0).done()
}

/// Returns one list of each kind.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![copy(0), copy(1), [copy(1), copy(0)].concat()];
    let unmap = Script::new().u8(0).u8(2).u8(0).u8(0).u8(2).u8(0).number(8).number(8);
    seeds.push(unmap.number(100).number(4).u8(0).u8(0).u8(0).u8(0).done());
    for page in [0x3f, 0x08, 0x0a, 0x01, 0x1c] {
        for kind in [3, 4] {
            let mode = Script::new().u8(0).u8(kind).u8(0).u8(0).u8(page).u8(kind - 3).u8(0);
            seeds.push(mode.u8(0).u8(0).u8(0).u8(0).done());
        }
    }
    let populate = || {
        let list = Script::new().u8(0).u8(7).u8(0).u8(0).u8(0).number(0).u8(2);
        list.number(8).number(8).number(100).number(16).u8(0).u8(0).u8(0).u8(0).done()
    };
    let write = Script::new().u8(0).u8(8).u8(0).u8(0).u8(2).number(4).u8(1).u8(1);
    let write = write.number(200).number(12).u8(0).u8(0).u8(0).u8(0).done();
    seeds.push([populate(), write].concat());
    let groups = Script::new().u8(0).u8(9).u8(0).u8(0).u8(2).u8(2).u8(1).u8(0).u8(2);
    seeds.push(groups.u8(0).u8(0).u8(0).u8(0).done());
    let mut all = Vec::new();
    for (action, key, action_key) in
        [(0, 0, 1), (0x11, 1, 0), (0x14, 1, 1), (0x12, 1, 0), (3, 1, 0)]
    {
        let out = Script::new().u8(0).u8(5).u8(0).u8(0).u8(key).u8(action_key).u8(0);
        all.extend(out.u8(0).u8(0).u8(0).u8(action).done());
        seeds.push(all.clone());
    }
    seeds
}
