//! What EXTENDED COPY takes, and where it is told: VPD 8Fh (SPC-4, 7.8.17) and RECEIVE COPY
//! OPERATING PARAMETERS (6.22).

use block::request::limits::COPY_SEGMENTS_MAX;
use block::{Offloads, VolumeAttributes};

use crate::copy::cscd::OWN_UNIT;
use crate::table::entries;

/// CSCD descriptors in a list.
pub(crate) const CSCDS_MAX: usize = 64;
/// Segment descriptors in a list.
pub(crate) const SEGMENTS_MAX: usize = COPY_SEGMENTS_MAX;
/// Bytes of a CSCD descriptor.
pub(crate) const CSCD_BYTES: usize = 32;
/// Bytes of a segment descriptor.
pub(crate) const SEGMENT_BYTES: usize = 28;
/// Bytes of all descriptors.
pub(crate) const DESCRIPTOR_BYTES_MAX: usize =
    CSCDS_MAX * CSCD_BYTES + SEGMENTS_MAX * SEGMENT_BYTES;
/// Bytes of a parameter list that are looked at. Longer lists are refused before their bytes are
/// copied; the largest that can be right is the longer header and all descriptors.
pub(crate) const PARAMETER_BYTES_MAX: usize = 128 << 10;
/// Identification.
pub(crate) const CSCD_TYPE: u8 = 0xe4;
/// Block device to block device.
pub(crate) const SEGMENT_TYPE: u8 = 0x02;
/// Copies that can be in progress and be asked for by their list identifier, for a nexus.
pub(crate) const IDENTIFIED_MAX: usize = 255;
/// Copies in progress: there is no limit, so the fields hold what they can.
const CONCURRENT: u32 = u32::MAX;

/// The longest segment: its number of blocks has 16 bits.
fn segment_bytes_max(volume: &VolumeAttributes) -> u32 {
    (u64::from(u16::MAX) * volume.logical_block.bytes()) as u32
}

/// The granularity of segments, as an exponent of 2 bytes: a logical block.
fn granularity(volume: &VolumeAttributes) -> u8 {
    volume.logical_block.bytes().trailing_zeros() as u8
}

fn put(page: &mut Vec<u8>, code: u16, mut body: Vec<u8>) {
    body.resize(body.len().next_multiple_of(4), 0);
    page.extend(code.to_be_bytes());
    page.extend((body.len() as u16).to_be_bytes());
    page.extend(body);
}

/// Whether any third-party copy command is there: INQUIRY says so (3PC), and has the VPD page.
pub(crate) fn is_offered(offloads: Offloads) -> bool {
    [0x83, 0x84].into_iter().flat_map(entries).any(|entry| entry.is_on(offloads))
}

/// The third-party copy VPD page, without its header.
pub(crate) fn third_party_copy_page(volume: &VolumeAttributes) -> Vec<u8> {
    let mut page = Vec::new();
    put(&mut page, 0x0001, supported_commands(volume.offloads));
    let mut parameter_data = vec![0; 4];
    parameter_data.extend((CSCDS_MAX as u16).to_be_bytes());
    parameter_data.extend((SEGMENTS_MAX as u16).to_be_bytes());
    parameter_data.extend((DESCRIPTOR_BYTES_MAX as u32).to_be_bytes());
    parameter_data.resize(28, 0); // no inline data
    put(&mut page, 0x0004, parameter_data);
    put(&mut page, 0x0008, vec![2, SEGMENT_TYPE, CSCD_TYPE]);
    let mut ids = vec![0, 2];
    ids.extend(OWN_UNIT.to_be_bytes());
    put(&mut page, 0x000c, ids);
    let mut general = Vec::new();
    general.extend(CONCURRENT.to_be_bytes());
    general.extend((IDENTIFIED_MAX as u32).to_be_bytes());
    general.extend(segment_bytes_max(volume).to_be_bytes());
    general.extend([granularity(volume), 0]);
    general.resize(32, 0);
    put(&mut page, 0x8001, general);
    page
}

/// The service actions of the two opcodes, from the table of commands.
fn supported_commands(offloads: Offloads) -> Vec<u8> {
    let mut list = Vec::new();
    for opcode in [0x83, 0x84] {
        let on = entries(opcode).iter().filter(|entry| entry.is_on(offloads));
        let actions: Vec<u8> = on.filter_map(|entry| entry.action).collect();
        list.extend([opcode, actions.len() as u8]);
        list.extend(actions);
    }
    let mut body = vec![list.len() as u8];
    body.extend(list);
    body
}

/// RECEIVE COPY OPERATING PARAMETERS data (SPC-4, table 246).
pub(crate) fn operating_parameters(volume: &VolumeAttributes) -> Vec<u8> {
    let mut out = vec![0; 44];
    out[4] = 0x01; // SNLID: list identifiers can be left out
    out[8..10].copy_from_slice(&(CSCDS_MAX as u16).to_be_bytes());
    out[10..12].copy_from_slice(&(SEGMENTS_MAX as u16).to_be_bytes());
    out[12..16].copy_from_slice(&(DESCRIPTOR_BYTES_MAX as u32).to_be_bytes());
    out[16..20].copy_from_slice(&segment_bytes_max(volume).to_be_bytes());
    out[34..36].copy_from_slice(&u16::MAX.to_be_bytes()); // TOTAL CONCURRENT COPIES
    out[36] = IDENTIFIED_MAX as u8; // MAXIMUM CONCURRENT COPIES
    out[37] = granularity(volume);
    out[43] = 2;
    out.extend([SEGMENT_TYPE, CSCD_TYPE]);
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}
