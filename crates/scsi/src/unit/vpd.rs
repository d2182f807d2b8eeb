//! Vital product data (SPC-4, 7.8; SBC-3, 6.6).

use block::request::limits::{COMMAND_BYTES_MAX, UNMAP_RANGES_MAX, VOLUME_BYTES_MAX};
use block::{Offload, VolumeAttributes};
use target::TargetPort;

use crate::bytes::put_text;
use crate::device::{Context, Unit};
use crate::limits::{atomic_blocks_max, can_deallocate, compared_blocks_max, physical_exponent};
use crate::sense::Sense;
use crate::unit::third_party;

/// All pages of a volume, in ascending order.
pub(crate) const PAGES: [u8; 10] = [0x00, 0x80, 0x83, 0x85, 0x86, 0x87, 0x8f, 0xb0, 0xb1, 0xb2];

/// Returns the pages of this volume: third-party copy only if it is supported.
fn pages(volume: &VolumeAttributes) -> impl Iterator<Item = u8> {
    let copies = third_party::is_offered(volume.offloads);
    PAGES.into_iter().filter(move |page| *page != 0x8f || copies)
}

/// Returns the page with this code, with its header.
pub(crate) fn page(context: &Context<'_>, code: u8) -> Result<Vec<u8>, Sense> {
    let body = match (&context.unit, code) {
        (Unit::Volume(volume), 0x00) => pages(volume).collect(),
        (Unit::Volume(volume), code) if pages(volume).any(|page| page == code) => {
            volume_page(context, volume, code)?
        }
        (_, 0x00) => vec![0x00],
        _ => return Err(Sense::cdb_bytes(2)),
    };
    let [high, low] = (body.len() as u16).to_be_bytes();
    let mut out = vec![context.unit.peripheral(), code, high, low];
    out.extend(body);
    Ok(out)
}

fn volume_page(
    context: &Context<'_>,
    volume: &VolumeAttributes,
    code: u8,
) -> Result<Vec<u8>, Sense> {
    Ok(match code {
        0x80 => volume.serial.clone().into_bytes(),
        0x83 => device_identification(context, volume),
        0x85 => Vec::new(), // no management address is reported over the data path
        0x86 => extended_inquiry(volume),
        0x87 => vec![0x3f, 0xff, 0x00, 0x00], // all pages: shared by all nexuses
        0x8f => third_party::third_party_copy_page(volume, context.server.commands),
        0xb0 => block_limits(volume),
        0xb1 => block_characteristics(),
        0xb2 => logical_block_provisioning(volume),
        _ => return Err(Sense::cdb_bytes(2)),
    })
}

/// A designator of a logical unit: code set, type, bytes.
pub(crate) struct Designator {
    pub code_set: u8,
    pub kind: u8,
    pub bytes: Vec<u8>,
}

/// The length of a T10 vendor identification, in bytes.
const VENDOR_BYTES: usize = 8;
/// The longest designator that fits into a CSCD descriptor, in bytes.
const CSCD_NAME_BYTES_MAX: usize = 20;
const BINARY: u8 = 1;
const ASCII: u8 = 2;
const UTF8: u8 = 3;

/// Returns the designators of a volume.
pub(crate) fn designators(vendor: &str, volume: &VolumeAttributes) -> Vec<Designator> {
    let mut t10 = vec![0; VENDOR_BYTES];
    put_text(&mut t10, vendor);
    t10.extend(volume.serial.bytes());
    let mut name = String::from("naa.");
    for byte in volume.naa {
        name.push_str(&format!("{byte:02x}"));
    }
    vec![
        Designator { code_set: BINARY, kind: 3, bytes: volume.naa.to_vec() },
        Designator { code_set: BINARY, kind: 2, bytes: eui(&volume.naa).to_vec() },
        Designator { code_set: ASCII, kind: 1, bytes: t10 },
        Designator { code_set: UTF8, kind: 8, bytes: name_string(&name) },
    ]
}

/// A designator that fits into a CSCD descriptor: code set, type, length, and bytes padded with
/// zeros. One command compares many of them, so it needs no allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CscdName {
    kind: (u8, u8),
    len: u8,
    bytes: [u8; CSCD_NAME_BYTES_MAX],
}

impl CscdName {
    /// Returns the designator in a descriptor; `None` if it is too long.
    pub(crate) fn new(kind: (u8, u8), name: &[u8]) -> Option<Self> {
        let mut bytes = [0; CSCD_NAME_BYTES_MAX];
        bytes.get_mut(..name.len())?.copy_from_slice(name);
        Some(Self { kind, len: name.len() as u8, bytes })
    }

    /// Returns the volume's designator with this code set and type.
    pub(crate) fn of(vendor: &str, volume: &VolumeAttributes, kind: (u8, u8)) -> Option<Self> {
        match kind {
            (BINARY, 3) => Self::new(kind, &volume.naa),
            (BINARY, 2) => Self::new(kind, &eui(&volume.naa)),
            (ASCII, 1) => {
                let serial = volume.serial.as_bytes();
                let mut own = [0; CSCD_NAME_BYTES_MAX];
                let len = VENDOR_BYTES + serial.len();
                put_text(&mut own[..VENDOR_BYTES], vendor);
                own.get_mut(VENDOR_BYTES..len)?.copy_from_slice(serial);
                Self::new(kind, &own[..len])
            }
            _ => None,
        }
    }
}

/// Returns the 16-byte EUI-64 based name with the same company and the same bits as an NAA 6 name:
/// the vendor extension as identifier extension, then company and vendor identifier (SPC-4,
/// 7.8.6.5.4).
fn eui(naa: &[u8; 16]) -> [u8; 16] {
    let number = u128::from_be_bytes(*naa);
    let (high, low) = ((number >> 64) as u64, number as u64);
    // Drops the NAA nibble, which leaves four zero bits at the end of the vendor's part.
    (u128::from(low) << 64 | u128::from(high << 4)).to_be_bytes()
}

/// Returns a SCSI name string: null-terminated, padded to four bytes (SPC-4, 7.8.6.11).
fn name_string(name: &str) -> Vec<u8> {
    let mut bytes = name.as_bytes().to_vec();
    bytes.push(0);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn put_designator(out: &mut Vec<u8>, association: u8, designator: &Designator) {
    let bytes = &designator.bytes[..designator.bytes.len().min(255)];
    // Ports and the device belong to a protocol: PIV, and protocol identifier 5 for iSCSI.
    let (protocol, piv) = if association == 0 { (0, 0) } else { (0x50, 0x80) };
    out.extend([protocol | designator.code_set, piv | association << 4 | designator.kind, 0]);
    out.push(bytes.len() as u8);
    out.extend(bytes);
}

fn device_identification(context: &Context<'_>, volume: &VolumeAttributes) -> Vec<u8> {
    let identity = &context.server.identity;
    let mut out = Vec::new();
    for designator in designators(&identity.vendor, volume) {
        put_designator(&mut out, 0, &designator);
    }
    let id = context.nexus.target_port();
    let port = context.server.target.ports().iter().find(|port| port.relative_id == id);
    if let Some(TargetPort { relative_id, group, name }) = port {
        let four = |number: u16| {
            let [high, low] = number.to_be_bytes();
            vec![0, 0, high, low]
        };
        put_designator(
            &mut out,
            1,
            &Designator { code_set: BINARY, kind: 4, bytes: four(*relative_id) },
        );
        put_designator(&mut out, 1, &Designator { code_set: BINARY, kind: 5, bytes: four(*group) });
        let bytes = name_string(name);
        put_designator(&mut out, 1, &Designator { code_set: UTF8, kind: 8, bytes });
    }
    let bytes = name_string(&identity.target_name);
    put_designator(&mut out, 2, &Designator { code_set: UTF8, kind: 8, bytes });
    out
}

fn extended_inquiry(volume: &VolumeAttributes) -> Vec<u8> {
    let mut out = vec![0; 60];
    out[1] = 0x07; // HEADSUP, ORDSUP, SIMPSUP
    out[2] = u8::from(volume.write_cache); // V_SUP
    out[3] = 0x01; // LUICLR
    out
}

fn block_limits(volume: &VolumeAttributes) -> Vec<u8> {
    let block = volume.logical_block.bytes();
    let physical = 1_u32 << physical_exponent(volume);
    let mut out = vec![0; 60];
    // The limits of a disabled command are 0 (SBC-3, 6.6.4).
    if volume.offloads.has(Offload::CompareAndWrite) {
        out[1] = compared_blocks_max(volume) as u8;
    }
    out[2..4].copy_from_slice(&(physical as u16).to_be_bytes());
    out[4..8].copy_from_slice(&((COMMAND_BYTES_MAX / block) as u32).to_be_bytes());
    out[8..12]
        .copy_from_slice(&((block::request::limits::LEAF_BYTES / block) as u32).to_be_bytes());
    if volume.offloads.has(Offload::Unmap) {
        out[16..20].copy_from_slice(&u32::MAX.to_be_bytes()); // the field's maximum
        out[20..24].copy_from_slice(&(UNMAP_RANGES_MAX as u32).to_be_bytes());
    }
    if can_deallocate(volume) {
        out[24..28].copy_from_slice(&physical.to_be_bytes()); // freed in blocks of 4 KiB
        out[28..32].copy_from_slice(&0x8000_0000_u32.to_be_bytes()); // UGAVALID, from LBA 0
    }
    if volume.offloads.has(Offload::WriteSame) {
        out[32..40].copy_from_slice(&(VOLUME_BYTES_MAX / block).to_be_bytes());
    }
    // WRITE ATOMIC: any alignment and length up to this; ATOMIC BOUNDARY is not supported.
    let atomic = atomic_blocks_max(volume) as u32;
    out[40..44].copy_from_slice(&atomic.to_be_bytes());
    out
}

fn block_characteristics() -> Vec<u8> {
    let mut out = vec![0; 60];
    out[1] = 0x01; // non-rotating medium
    // WABEREQ: after SANITIZE BLOCK ERASE, blocks can be read and contain zeros.
    out[3] = 0x40;
    out
}

/// Returns the unit of provisioning counts: 2^n logical blocks are 1 MiB, so that 32 bits suffice.
pub(crate) fn threshold_exponent(volume: &VolumeAttributes) -> u8 {
    8 + physical_exponent(volume)
}

fn logical_block_provisioning(volume: &VolumeAttributes) -> Vec<u8> {
    let mut out = vec![threshold_exponent(volume), 0, 0, 0];
    if volume.offloads.has(Offload::Unmap) {
        out[1] |= 0x80; // LBPU
    }
    if volume.offloads.has(Offload::WriteSame) {
        out[1] |= 0x60; // LBPWS, LBPWS10
    }
    if can_deallocate(volume) {
        out[1] |= 0x04; // LBPRZ
        out[2] = 0x02; // thin provisioned
    }
    out
}
