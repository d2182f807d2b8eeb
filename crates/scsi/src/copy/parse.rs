//! EXTENDED COPY parameter lists (SPC-4, 6.4.2 and 6.5.2).
//!
//! | field | LID1 | LID4 |
//! |---|---|---|
//! | list identifier | byte 0 | bytes 20..24 |
//! | list id usage | byte 1, bits 4..3 | byte 1, bits 4..3 |
//! | CSCD descriptor list length | bytes 2..4 | bytes 42..44 |
//! | segment descriptor list length | bytes 8..12 | bytes 44..46 |
//! | inline data length | bytes 12..16 | bytes 46..48 |
//! | first CSCD descriptor | byte 16, its id is 0 | byte 48, its id is 1 |

use crate::bytes::{be_u8, be_u16, be_u32, be_u64};
use crate::copies::ListUse;
use crate::limits::{
    CSCD_BYTES, CSCD_TYPE, CSCDS_MAX, DESCRIPTOR_BYTES_MAX, OFFSET_SEGMENT_BYTES,
    OFFSET_SEGMENT_TYPE, SEGMENT_BYTES, SEGMENT_TYPE, SEGMENTS_MAX,
};
use crate::sense::Sense;

/// The format of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Lid1,
    Lid4,
}

/// A CSCD descriptor: identification (E4h).
#[derive(Clone, Debug)]
pub(crate) struct CscdDescriptor {
    /// The offset of its first byte in the parameter list.
    pub at: usize,
    /// NUL: it identifies no copy source or destination.
    pub nul: bool,
    /// PERIPHERAL DEVICE TYPE.
    pub device_type: u8,
    pub code_set: u8,
    pub association: u8,
    pub designator_type: u8,
    pub designator: Vec<u8>,
    /// DISK BLOCK LENGTH: 0 if the sender does not specify it.
    pub block_bytes: u32,
}

/// The length of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    /// Block device to block device (02h).
    Blocks(u16),
    /// Block device with offset to block device with offset (0Ah): byte offsets in the first
    /// blocks.
    Bytes { bytes: u32, source_offset: u16, destination_offset: u16 },
}

/// A segment descriptor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment {
    /// DC: the number of blocks is in units of the destination's blocks.
    pub counts_destination: bool,
    pub source: u16,
    pub destination: u16,
    pub length: Length,
    pub source_lba: u64,
    pub destination_lba: u64,
}

/// A parameter list.
#[derive(Debug)]
pub(crate) struct List {
    pub id: u32,
    pub list_use: ListUse,
    /// The id of the first descriptor in `cscds`.
    pub first_cscd: u16,
    pub cscds: Vec<CscdDescriptor>,
    pub segments: Vec<Segment>,
}

struct Header {
    id: u32,
    bytes: usize,
    cscd_bytes: usize,
    segment_bytes: usize,
    inline_bytes: usize,
    cscd_length_at: usize,
    inline_at: usize,
}

fn header(list: &[u8], form: Form) -> Result<Header, Sense> {
    let header = match form {
        Form::Lid1 => Header {
            id: be_u8(list, 0).into(),
            bytes: 16,
            cscd_bytes: be_u16(list, 2).into(),
            segment_bytes: be_u32(list, 8) as usize,
            inline_bytes: be_u32(list, 12) as usize,
            cscd_length_at: 2,
            inline_at: 12,
        },
        Form::Lid4 => Header {
            id: be_u32(list, 20),
            bytes: 48,
            cscd_bytes: be_u16(list, 42).into(),
            segment_bytes: be_u16(list, 44).into(),
            inline_bytes: be_u16(list, 46).into(),
            cscd_length_at: 42,
            inline_at: 46,
        },
    };
    if list.len() < header.bytes {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    if form == Form::Lid4 {
        if be_u8(list, 0) != 0x01 {
            return Err(Sense::parameter(0, 0)); // PARAMETER LIST FORMAT
        }
        if be_u16(list, 2) != 0x20 {
            return Err(Sense::parameter(2, 0)); // HEADER CSCD DESCRIPTOR LIST LENGTH
        }
        if be_u8(list, 15) & 0x02 != 0 {
            return Err(Sense::parameter(15, 0)); // G_SENSE: GOOD has no sense data here
        }
        if be_u8(list, 16) != 0xff {
            return Err(Sense::parameter(16, 0)); // HEADER CSCD DESCRIPTOR TYPE CODE
        }
    }
    Ok(header)
}

/// Parses a parameter list, or returns what is wrong with it.
pub(crate) fn parse(list: &[u8], form: Form) -> Result<List, Sense> {
    let header = header(list, form)?;
    let descriptors = header.cscd_bytes.saturating_add(header.segment_bytes);
    let total = header.bytes.saturating_add(descriptors).saturating_add(header.inline_bytes);
    if total > list.len() || descriptors > DESCRIPTOR_BYTES_MAX {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let list_use = list_use(list, header.id)?;
    let first_segment = header.bytes + header.cscd_bytes;
    let cscds = cscds(list, header.bytes, first_segment, header.cscd_length_at)?;
    let segments = segments(list, first_segment, first_segment + header.segment_bytes)?;
    if header.inline_bytes > 0 {
        return Err(Sense::parameter(header.inline_at, 0x0b)); // INLINE DATA LENGTH EXCEEDED
    }
    let first_cscd = if form == Form::Lid4 { 1 } else { 0 };
    Ok(List { id: header.id, list_use, first_cscd, cscds, segments })
}

fn list_use(list: &[u8], id: u32) -> Result<ListUse, Sense> {
    match be_u8(list, 1) >> 3 & 3 {
        0 => Ok(ListUse::Hold),
        2 => Ok(ListUse::HoldFailure),
        3 if id == 0 => Ok(ListUse::None),
        _ => Err(Sense::parameter(1, 0)),
    }
}

fn cscds(
    list: &[u8],
    start: usize,
    end: usize,
    length_at: usize,
) -> Result<Vec<CscdDescriptor>, Sense> {
    let mut out = Vec::new();
    let mut at = start;
    while at < end {
        if be_u8(list, at) != CSCD_TYPE {
            return Err(Sense::parameter(at, 0x07)); // UNSUPPORTED TARGET DESCRIPTOR TYPE CODE
        }
        if out.len() == CSCDS_MAX {
            return Err(Sense::parameter(length_at, 0x06)); // TOO MANY TARGET DESCRIPTORS
        }
        let next = at + CSCD_BYTES;
        let descriptor = list.get(at..next.min(end)).unwrap_or(&[]);
        if descriptor.len() < CSCD_BYTES {
            return Err(Sense::PARAMETER_LIST_LENGTH);
        }
        out.push(cscd(descriptor, at)?);
        at = next;
    }
    Ok(out)
}

/// Parses an identification CSCD descriptor (SPC-4, 6.4.5.6).
fn cscd(bytes: &[u8], at: usize) -> Result<CscdDescriptor, Sense> {
    // LU ID TYPE says how to interpret a LU IDENTIFIER field (SPC-4, 6.4.5.1), which is absent
    // here.
    let length = usize::from(be_u8(bytes, 7));
    if length > 20 {
        return Err(Sense::parameter(at + 7, 0));
    }
    let designator = bytes.get(8..8 + length).unwrap_or(&[]).to_vec();
    Ok(CscdDescriptor {
        at,
        nul: be_u8(bytes, 1) & 0x20 != 0,
        device_type: be_u8(bytes, 1) & 0x1f,
        code_set: be_u8(bytes, 4) & 0x0f,
        association: be_u8(bytes, 5) >> 4 & 3,
        designator_type: be_u8(bytes, 5) & 0x0f,
        designator,
        block_bytes: be_u32(bytes, 28) & 0x00ff_ffff,
    })
}

fn segments(list: &[u8], start: usize, end: usize) -> Result<Vec<Segment>, Sense> {
    let mut out = Vec::new();
    let mut at = start;
    while at < end {
        let bytes = match be_u8(list, at) {
            SEGMENT_TYPE => SEGMENT_BYTES,
            OFFSET_SEGMENT_TYPE => OFFSET_SEGMENT_BYTES,
            // UNSUPPORTED SEGMENT DESCRIPTOR TYPE CODE
            _ => return Err(Sense::parameter(at, 0x09)),
        };
        if out.len() == SEGMENTS_MAX {
            return Err(Sense::parameter(at, 0x08)); // TOO MANY SEGMENT DESCRIPTORS
        }
        let next = at + bytes;
        if next > end {
            return Err(Sense::PARAMETER_LIST_LENGTH);
        }
        if usize::from(be_u16(list, at + 2)) != bytes - 4 {
            return Err(Sense::parameter(at + 2, 0));
        }
        out.push(segment(list, at));
        at = next;
    }
    Ok(out)
}

fn segment(list: &[u8], at: usize) -> Segment {
    let length = if be_u8(list, at) == SEGMENT_TYPE {
        Length::Blocks(be_u16(list, at + 10))
    } else {
        Length::Bytes {
            bytes: be_u32(list, at + 8),
            source_offset: be_u16(list, at + 28),
            destination_offset: be_u16(list, at + 30),
        }
    };
    Segment {
        counts_destination: be_u8(list, at + 1) & 0x02 != 0,
        source: be_u16(list, at + 4),
        destination: be_u16(list, at + 6),
        length,
        source_lba: be_u64(list, at + 12),
        destination_lba: be_u64(list, at + 20),
    }
}
