//! The limits of EXTENDED COPY, and the commands that report them: VPD 8Fh (SPC-4, 7.8.17) and
//! RECEIVE COPY OPERATING PARAMETERS (6.22).

use block::{Offload, Offloads, VolumeAttributes};
use target::rods::{
    INACTIVITY_S_DEFAULT, INACTIVITY_S_MAX, LIFETIME_S_MAX, RANGES_MAX, ROD_BYTES_MAX,
};

use crate::device::Entry;
use crate::limits::{
    BLOCK_ZERO, CSCD_TYPE, CSCDS_MAX, DESCRIPTOR_BYTES_MAX, IDENTIFIED_MAX, OFFSET_SEGMENT_TYPE,
    OWN_UNIT, POINT_IN_TIME, SEGMENT_TYPE, SEGMENTS_MAX,
};

/// The number of copies in progress is unlimited, so the fields contain their maximum.
const CONCURRENT: u32 = u32::MAX;

/// Returns the longest segment: type 0Ah counts bytes in 32 bits, of whole blocks here. Type 02h
/// counts blocks in 16 bits, which is less.
fn segment_bytes_max(volume: &VolumeAttributes) -> u32 {
    (u64::from(u32::MAX) / volume.logical_block.bytes() * volume.logical_block.bytes()) as u32
}

/// Returns the granularity of segments, as an exponent of 2 bytes: a logical block.
fn granularity(volume: &VolumeAttributes) -> u8 {
    volume.logical_block.bytes().trailing_zeros() as u8
}

fn put(page: &mut Vec<u8>, code: u16, mut body: Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
    page.extend(code.to_be_bytes());
    page.extend((body.len() as u16).to_be_bytes());
    page.extend(body);
}

/// Returns whether any third-party copy command is supported: then INQUIRY sets 3PC, and the VPD
/// page exists.
pub(crate) fn is_offered(offloads: Offloads) -> bool {
    offloads.has(Offload::ExtendedCopy) || offloads.has(Offload::TokenCopy)
}

/// Returns the third-party copy VPD page, without its header: offloads that are off are omitted.
pub(crate) fn third_party_copy_page(volume: &VolumeAttributes, commands: &[Entry]) -> Vec<u8> {
    let copies = volume.offloads.has(Offload::ExtendedCopy);
    let tokens = volume.offloads.has(Offload::TokenCopy);
    let mut page = Vec::new();
    if tokens {
        put(&mut page, 0x0000, rod_token_limits(volume));
    }
    put(&mut page, 0x0001, supported_commands(volume.offloads, commands));
    if copies {
        put_descriptor_limits(&mut page);
    }
    if tokens {
        put(&mut page, 0x0106, rod_token_features());
        put(&mut page, 0x0108, rod_types());
    }
    let mut general = Vec::new();
    general.extend(CONCURRENT.to_be_bytes());
    general.extend((IDENTIFIED_MAX as u32).to_be_bytes());
    general.extend(segment_bytes_max(volume).to_be_bytes());
    general.extend([granularity(volume), 0]);
    general.resize(32, 0);
    put(&mut page, 0x8001, general);
    page
}

/// Appends the limits of EXTENDED COPY parameter lists (SPC-4, 7.8.17.4 to 7.8.17.6).
fn put_descriptor_limits(page: &mut Vec<u8>) {
    let mut parameter_data = vec![0; 4];
    parameter_data.extend((CSCDS_MAX as u16).to_be_bytes());
    parameter_data.extend((SEGMENTS_MAX as u16).to_be_bytes());
    parameter_data.extend((DESCRIPTOR_BYTES_MAX as u32).to_be_bytes());
    parameter_data.resize(28, 0); // no inline data
    put(page, 0x0004, parameter_data);
    put(page, 0x0008, vec![3, SEGMENT_TYPE, OFFSET_SEGMENT_TYPE, CSCD_TYPE]);
    let mut ids = vec![0, 2];
    ids.extend(OWN_UNIT.to_be_bytes());
    put(page, 0x000c, ids);
}

/// Returns the block device ROD token limits (SBC-4, 6.6.7).
fn rod_token_limits(volume: &VolumeAttributes) -> Vec<u8> {
    let blocks = |bytes: u64| (bytes / volume.logical_block.bytes()).to_be_bytes();
    let mut out = vec![0; 6];
    out.extend((RANGES_MAX as u16).to_be_bytes());
    out.extend(INACTIVITY_S_MAX.to_be_bytes());
    out.extend(INACTIVITY_S_DEFAULT.to_be_bytes());
    out.extend(blocks(ROD_BYTES_MAX));
    out.extend(blocks(ROD_BYTES_MAX)); // the maximum is also the optimum: the cost is the same
    out
}

/// Returns the ROD token features (SPC-4, 7.8.17.8): tokens of this array only, for disks.
fn rod_token_features() -> Vec<u8> {
    let mut out = vec![0; 12];
    out.extend(INACTIVITY_S_DEFAULT.to_be_bytes()); // MINIMUM TOKEN LIFETIME
    out.extend(LIFETIME_S_MAX.to_be_bytes()); // MAXIMUM TOKEN LIFETIME
    out.extend(INACTIVITY_S_MAX.to_be_bytes());
    out.resize(42, 0);
    let mut disks = vec![0, 0, 0, 44, 0, 0, 0, 0];
    disks.extend(ROD_BYTES_MAX.to_be_bytes());
    disks.resize(48, 0); // no optimum: the cost does not depend on the length
    out.extend((disks.len() as u16).to_be_bytes());
    out.extend(disks);
    out
}

/// Returns the supported ROD token and ROD types (SPC-4, 7.8.17.9).
fn rod_types() -> Vec<u8> {
    const TOKEN_OUT: u8 = 0x01;
    const TOKEN_IN: u8 = 0x02;
    let types = [(POINT_IN_TIME, TOKEN_OUT | TOKEN_IN), (BLOCK_ZERO, TOKEN_IN)];
    let mut out = vec![0, 0];
    out.extend((types.len() as u16 * 64).to_be_bytes());
    for (code, use_of_tokens) in types {
        let mut descriptor = code.to_be_bytes().to_vec();
        descriptor.push(use_of_tokens);
        descriptor.resize(64, 0);
        out.extend(descriptor);
    }
    out
}

/// Returns the service actions of the two opcodes, from the table of commands.
fn supported_commands(offloads: Offloads, commands: &[Entry]) -> Vec<u8> {
    let mut list = Vec::new();
    for opcode in [0x83, 0x84] {
        let on = commands.iter().filter(|it| it.opcode == opcode && it.is_on(offloads));
        let actions: Vec<u8> = on.filter_map(|entry| entry.action).collect();
        list.extend([opcode, actions.len() as u8]);
        list.extend(actions);
    }
    let mut body = vec![list.len() as u8];
    body.extend(list);
    body
}

/// Returns the RECEIVE COPY OPERATING PARAMETERS data (SPC-4, table 246), except the length in its
/// first 4 bytes.
pub(crate) fn operating_parameters(volume: &VolumeAttributes) -> Vec<u8> {
    let mut out = vec![0; 44];
    out[4] = 0x01; // SNLID: list identifiers are optional
    out[8..10].copy_from_slice(&(CSCDS_MAX as u16).to_be_bytes());
    out[10..12].copy_from_slice(&(SEGMENTS_MAX as u16).to_be_bytes());
    out[12..16].copy_from_slice(&(DESCRIPTOR_BYTES_MAX as u32).to_be_bytes());
    out[16..20].copy_from_slice(&segment_bytes_max(volume).to_be_bytes());
    out[34..36].copy_from_slice(&u16::MAX.to_be_bytes()); // TOTAL CONCURRENT COPIES
    out[36] = IDENTIFIED_MAX as u8; // MAXIMUM CONCURRENT COPIES
    out[37] = granularity(volume);
    out[43] = 3;
    out.extend([SEGMENT_TYPE, OFFSET_SEGMENT_TYPE, CSCD_TYPE]);
    out
}
