//! Parameter lists of maximum length.

use libiscsi::Naa;

use super::volumes::{BLOCKS, On};

/// The most segments of one EXTENDED COPY (VPD 8Fh).
pub const SEGMENTS: u64 = 64;
/// The most ranges and bytes of one token (VPD 8Fh).
const TOKEN_RANGES: u64 = 32;
const TOKEN_BYTES: u64 = 16 << 30;
/// The most ranges of one UNMAP (Block Limits).
const UNMAP_RANGES: u64 = 512;
/// The reservation key of this initiator.
pub const KEY: u64 = 0x626f_756e_6465_6421;

/// A segment of a copy, type 0Ah: by bytes, in blocks of 512 bytes.
pub struct Segment {
    /// The source and destination volume.
    pub on: On,
    pub bytes: u32,
    pub from: u64,
    pub to: u64,
}

/// Returns the parameter list of EXTENDED COPY (LID1): `names` of the volumes, without list
/// identifier.
pub fn copy_list(names: &[Naa], segments: &[Segment]) -> Vec<u8> {
    let mut list = libiscsi::copy_parameters(names, &[], 512);
    let first = list.len();
    put_segments(&mut list, segments, 0);
    let bytes = (list.len() - first) as u32;
    list[8..12].copy_from_slice(&bytes.to_be_bytes());
    list
}

/// Returns the same for EXTENDED COPY (LID4).
pub fn copy_list_lid4(names: &[Naa], segments: &[Segment]) -> Vec<u8> {
    let descriptors = libiscsi::copy_parameters(names, &[], 512).split_off(16);
    let mut list = vec![0; 48];
    list[0] = 1;
    list[1] = 0x18; // no list identifier
    list[3] = 0x20;
    list[16] = 0xff;
    list[42..44].copy_from_slice(&(descriptors.len() as u16).to_be_bytes());
    list.extend(descriptors);
    let first = list.len();
    put_segments(&mut list, segments, 1);
    let bytes = (list.len() - first) as u16;
    list[44..46].copy_from_slice(&bytes.to_be_bytes());
    list
}

fn put_segments(list: &mut Vec<u8>, segments: &[Segment], first_cscd: u16) {
    for segment in segments {
        let mut descriptor = [0; 32];
        descriptor[0] = 0x0a;
        descriptor[3] = 0x1c;
        let cscd = (segment.on as u16 + first_cscd).to_be_bytes();
        descriptor[4..6].copy_from_slice(&cscd);
        descriptor[6..8].copy_from_slice(&cscd);
        descriptor[8..12].copy_from_slice(&segment.bytes.to_be_bytes());
        descriptor[12..20].copy_from_slice(&segment.from.to_be_bytes());
        descriptor[20..28].copy_from_slice(&segment.to.to_be_bytes());
        list.extend(descriptor);
    }
}

/// Returns as many segments as possible, one after another, from the volume's first half to its
/// second one, `shift` blocks further on.
pub fn segments(on: On, bytes: u32, shift: u64) -> Vec<Segment> {
    let step = u64::from(bytes).next_multiple_of(1 << 20) / 512;
    let segment = |n| Segment { on, bytes, from: n * step, to: BLOCKS / 2 + n * step + shift };
    (0..SEGMENTS).map(segment).collect()
}

/// Returns as many ranges as possible, of maximum length, none at a boundary of the map.
pub fn unmap_list() -> Vec<u8> {
    let each = BLOCKS / UNMAP_RANGES;
    let range = |n| (n * each + n % 9, (each - 9) as u32);
    libiscsi::unmap_parameters(&(0..UNMAP_RANGES).map(range).collect::<Vec<_>>())
}

/// Returns the parameter list of POPULATE TOKEN, for as much as one token represents.
pub fn populate_list(shift: u64) -> Vec<u8> {
    with_ranges(vec![0; 16], shift)
}

/// Returns the parameter list of WRITE USING TOKEN, with the token of zeros.
pub fn zeros_list(shift: u64) -> Vec<u8> {
    let mut list = vec![0; 536];
    list[16..20].copy_from_slice(&0xffff_0001_u32.to_be_bytes());
    list[22..24].copy_from_slice(&504_u16.to_be_bytes());
    with_ranges(list, shift)
}

/// Returns the same with space for a token (see [`put_token`]).
pub fn token_list(shift: u64) -> Vec<u8> {
    with_ranges(vec![0; 536], shift)
}

/// Puts a token into such a list.
pub fn put_token(list: &mut [u8], token: &[u8]) {
    list[16..16 + token.len()].copy_from_slice(token);
}

fn with_ranges(mut list: Vec<u8>, shift: u64) -> Vec<u8> {
    let header = list.len();
    let blocks = TOKEN_BYTES / TOKEN_RANGES / 512;
    for n in 0..TOKEN_RANGES {
        list.extend((n * blocks + shift).to_be_bytes());
        list.extend((blocks as u32).to_be_bytes());
        list.extend([0; 4]);
    }
    let (all, ranges) = (list.len() as u16 - 2, (list.len() - header) as u16);
    list[..2].copy_from_slice(&all.to_be_bytes());
    list[header - 2..header].copy_from_slice(&ranges.to_be_bytes());
    list
}

/// Returns the basic list of PERSISTENT RESERVE OUT.
pub fn reserve_list(key: u64, action_key: u64) -> Vec<u8> {
    let mut list = vec![0; 24];
    list[..8].copy_from_slice(&key.to_be_bytes());
    list[8..16].copy_from_slice(&action_key.to_be_bytes());
    list
}

/// Returns the list of REGISTER with SPEC_I_PT and this many TransportIDs, with the longest names.
pub fn register_list(ids: u32) -> Vec<u8> {
    let mut list = reserve_list(0, KEY);
    list[20] = 8;
    list.extend([0; 4]);
    for n in 0..ids {
        let mut name = format!("iqn.2026-01.com.example:{n:->199}").into_bytes();
        name.extend(b",i,0x805200000000\0");
        name.resize(name.len().next_multiple_of(4), 0);
        list.extend([0x45, 0]);
        list.extend((name.len() as u16).to_be_bytes());
        list.extend(name);
    }
    let bytes = list.len() as u32 - 28;
    list[24..28].copy_from_slice(&bytes.to_be_bytes());
    list
}
