//! EXTENDED COPY (SPC-4, 6.4 and 6.5).
//!
//! A parameter list is parsed completely before it has any effect ([`parse`]). Each CSCD descriptor
//! is then looked up among the volumes that the *sender* may access, and nowhere else ([`cscd`]):
//! another host's volume is not found (CVE-2020-28374). All segments become one
//! [`VolumeRequest::Copy`].
//!
//! A segment that can't be processed ends the copy. The segments before it are copied; the sense
//! data contains its number, which shows the host that they were (SPC-4, 5.17.7.4).

use block::{CopySegment, SECTOR_BYTES, SectorRange, VolumeAttributes, VolumeRequest};
use target::{Access, PreemptionMark};

use crate::blocks::read_write::sectors;
use crate::copies::{ListUse, Origin, begin};
use crate::copy::cscd::{self, Cscd};
use crate::copy::parse::{self, Form, Length, List, Segment};
use crate::copy::running::{After, CopyRest, DEVICE_FAILURE, list_of, start};
use crate::device::Context;
use crate::sense::{Sense, SenseKey};
use crate::step::{Command, Outcome, Response, Step};

/// The range exceeds a volume. COPY ABORTED has no more specific code for it.
const OUT_OF_RANGE: Sense = Sense::new(SenseKey::CopyAborted, 0x00, 0x00);
/// UNEXPECTED INEXACT SEGMENT: the bytes do not fill the destination's last block.
const INEXACT: Sense = Sense::new(SenseKey::CopyAborted, 0x26, 0x0a);

pub(crate) fn extended_copy_lid1(context: &Context<'_>, command: Command) -> Outcome {
    extended_copy(context, &command, Form::Lid1)
}

pub(crate) fn extended_copy_lid4(context: &Context<'_>, command: Command) -> Outcome {
    extended_copy(context, &command, Form::Lid4)
}

fn extended_copy(context: &Context<'_>, command: &Command, form: Form) -> Outcome {
    let volume = context.volume()?;
    let wanted = Some(command.cdb.u32(10).into());
    let Some(bytes) = list_of(command)? else {
        return Ok(Step::Done(Response::good().wanting(wanted)));
    };
    let list = parse::parse(&bytes, form)?;
    let listed = match list.list_use {
        ListUse::None => None,
        list_use => {
            let origin = match form {
                Form::Lid1 => Origin::ExtendedCopyLid1,
                Form::Lid4 => Origin::ExtendedCopyLid4,
            };
            Some(begin(&context.nexus.copies, list.id, origin, list_use)?)
        }
    };
    let (segments, failure) = resolve(context, &list);
    let count = segments.iter().map(|segment| segment.count.0 * SECTOR_BYTES).sum();
    let processed = failure.map_or(list.segments.len(), |(index, _)| index);
    let rest = CopyRest {
        listed,
        failure: failure.map(|(_, sense)| sense),
        segments: processed as u16,
        count,
        after: After::ThirdParty,
        mark: PreemptionMark::new(context.nexus, volume.id),
    };
    start(context, volume, rest, VolumeRequest::Copy { segments }, wanted)
}

/// Resolves segments to requests, up to the first that can't be processed: its number and the
/// reason.
fn resolve(context: &Context<'_>, list: &List) -> (Vec<CopySegment>, Option<(usize, Sense)>) {
    let cscds = cscd::resolve(context, &list.cscds);
    let mut out = Vec::with_capacity(list.segments.len());
    for (index, segment) in list.segments.iter().enumerate() {
        match resolve_one(context, list, &cscds, segment) {
            Ok(copy) if copy.count.0 > 0 => out.push(copy),
            Ok(_) => {}
            Err(mut sense) => {
                sense.command_specific = Some(index as u64);
                return (out, Some((index, sense)));
            }
        }
    }
    (out, None)
}

fn resolve_one(
    context: &Context<'_>,
    list: &List,
    cscds: &[Cscd],
    segment: &Segment,
) -> Result<CopySegment, Sense> {
    let source = cscd::find(context, list, cscds, segment.source)?;
    let destination = cscd::find(context, list, cscds, segment.destination)?;
    let (reservations, nexus) = (context.server.target.volumes(), context.nexus.id());
    if reservations.conflict(source.id, nexus, Access::Read)
        || reservations.conflict(destination.id, nexus, Access::Write)
        || context.server.controls.of(destination.id).write_protected
    {
        return Err(DEVICE_FAILURE);
    }
    let (read, write) = match segment.length {
        Length::Blocks(blocks) => by_blocks(segment, blocks, source, destination)?,
        Length::Bytes { bytes, source_offset, destination_offset } => {
            let count = exact_sectors(bytes.into())?;
            let at = |volume, lba, offset| by_bytes(volume, lba, offset, count);
            (
                at(source, segment.source_lba, source_offset)?,
                at(destination, segment.destination_lba, destination_offset)?,
            )
        }
    };
    Ok(CopySegment {
        source: source.id,
        source_start: read.start,
        destination: destination.id,
        destination_start: write.start,
        count: write.count,
    })
}

/// Blocks to blocks (segment type 02h): returns source and destination ranges.
fn by_blocks(
    segment: &Segment,
    blocks: u16,
    source: &VolumeAttributes,
    destination: &VolumeAttributes,
) -> Result<(SectorRange, SectorRange), Sense> {
    // The number of blocks counts blocks of the volume that DC selects (SPC-4, 6.4.6.5).
    let counted = if segment.counts_destination { destination } else { source };
    let bytes = u64::from(blocks) * counted.logical_block.bytes();
    let (from, to) = (source.logical_block.bytes(), destination.logical_block.bytes());
    if bytes % from != 0 || bytes % to != 0 {
        return Err(INEXACT);
    }
    let read = sectors(source, segment.source_lba, bytes / from).map_err(|_| OUT_OF_RANGE)?;
    let write =
        sectors(destination, segment.destination_lba, bytes / to).map_err(|_| OUT_OF_RANGE)?;
    Ok((read, write))
}

/// Converts bytes to sectors. Partial sectors are not moved: such a segment is inexact.
fn exact_sectors(bytes: u64) -> Result<u64, Sense> {
    if bytes.is_multiple_of(SECTOR_BYTES) { Ok(bytes / SECTOR_BYTES) } else { Err(INEXACT) }
}

/// Returns a range that starts at a byte of a block (segment type 0Ah; SPC-4, 6.4.6.13).
fn by_bytes(
    volume: &VolumeAttributes,
    lba: u64,
    offset_bytes: u16,
    count: u64,
) -> Result<SectorRange, Sense> {
    let offset = exact_sectors(offset_bytes.into())?;
    let unit = volume.logical_block.sectors();
    if offset >= unit {
        return Err(INEXACT);
    }
    let start = lba.checked_mul(unit).and_then(|start| start.checked_add(offset));
    let range = start.map(|start| SectorRange::new(start, count));
    range.filter(|range| range.fits(volume.size)).ok_or(OUT_OF_RANGE)
}
