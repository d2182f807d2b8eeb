//! POPULATE TOKEN and WRITE USING TOKEN (SBC-4, 5.18 and 5.56), by which Windows offloads copies to
//! an array ("ODX").
//!
//! | field | POPULATE TOKEN | WRITE USING TOKEN |
//! |---|---|---|
//! | data length | bytes 0..2 | bytes 0..2 |
//! | flags | byte 2: RTV, IMMED | byte 2: DEL_TKN, IMMED |
//! | inactivity timeout | bytes 4..8 | - |
//! | ROD type | bytes 8..12 | - |
//! | offset into the ROD | - | bytes 8..16 |
//! | token | - | bytes 16..528 |
//! | length of the ranges | bytes 14..16 | bytes 534..536 |
//! | ranges | from byte 16 | from byte 536 |

use std::sync::Arc;

use block::{CopySegment, SECTOR_BYTES, SectorRange, VolumeAttributes, VolumeRequest};
use target::rods::{
    INACTIVITY_S_DEFAULT, INACTIVITY_S_MAX, RANGES_MAX, ROD_BYTES_MAX, TOKEN_BYTES,
};
use target::{PreemptionMark, Rod, Token};

use crate::blocks::read_write::sectors;
use crate::bytes::{be_u16, be_u32, be_u64};
use crate::copies::{ListUse, Origin, begin};
use crate::copy::running::{After, CopyRest, list_of, start};
use crate::copy::token;
use crate::device::Context;
use crate::limits::{BLOCK_ZERO, POINT_IN_TIME, POINT_IN_TIME_ANY};
use crate::sense::{Sense, SenseKey};
use crate::step::{Command, Outcome, Response, Step};

/// The length of a block device range descriptor, in bytes.
const RANGE_BYTES: usize = 16;
/// INVALID TOKEN OPERATION, UNSUPPORTED TOKEN TYPE.
const UNSUPPORTED_TYPE: Sense = Sense::new(SenseKey::IllegalRequest, 0x23, 0x01);
/// INVALID TOKEN OPERATION, INVALID TOKEN LENGTH.
const WRONG_LENGTH: Sense = Sense::new(SenseKey::IllegalRequest, 0x23, 0x0a);

/// Parses the ranges of a list whose header ends at `start`, with the length of the ranges in its
/// last two bytes. Empty ranges are omitted; ranges must not overlap.
fn ranges(list: &[u8], start: usize, volume: &VolumeAttributes) -> Result<Vec<SectorRange>, Sense> {
    let (length_at, bytes) = (start - 2, usize::from(be_u16(list, start - 2)));
    let data_bytes = usize::from(be_u16(list, 0)) + 2;
    if list.len() < start {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    if data_bytes < start || data_bytes > list.len() {
        return Err(Sense::parameter(0, 0));
    }
    if bytes < RANGE_BYTES || start + bytes > data_bytes {
        return Err(Sense::parameter(length_at, 0));
    }
    let count = bytes / RANGE_BYTES;
    if count > RANGES_MAX {
        return Err(Sense::parameter(length_at, 0x08)); // TOO MANY SEGMENT DESCRIPTORS
    }
    let mut out = Vec::with_capacity(count);
    for at in (0..count).map(|index| start + index * RANGE_BYTES) {
        let range = sectors(volume, be_u64(list, at), be_u32(list, at + 8).into())?;
        if !range.is_empty() {
            out.push(range);
        }
    }
    check_ranges(&out, start)?;
    Ok(out)
}

fn check_ranges(ranges: &[SectorRange], start: usize) -> Result<(), Sense> {
    let total: u64 = ranges.iter().map(|range| range.count.0).sum();
    let mut sorted = ranges.to_vec();
    sorted.sort_unstable_by_key(|range| range.start);
    let overlap = |pair: &[SectorRange]| pair[0].start.0 + pair[0].count.0 > pair[1].start.0;
    if total > ROD_BYTES_MAX / SECTOR_BYTES || sorted.windows(2).any(overlap) {
        return Err(Sense::parameter(start, 0));
    }
    Ok(())
}

pub(crate) fn populate(context: &Context<'_>, command: Command) -> Outcome {
    let volume = context.volume()?;
    let wanted = Some(command.cdb.u32(10).into());
    let Some(list) = list_of(&command)? else {
        return Ok(Step::Done(Response::good().wanting(wanted)));
    };
    let ranges = ranges(&list, 16, volume)?;
    let inactivity_s = match be_u32(&list, 4) {
        asked if asked > INACTIVITY_S_MAX => return Err(Sense::parameter(4, 0)),
        asked => asked.max(INACTIVITY_S_DEFAULT),
    };
    let asks_type = list[2] & 0x02 != 0;
    if asks_type && ![POINT_IN_TIME, POINT_IN_TIME_ANY].contains(&be_u32(&list, 8)) {
        return Err(Sense::parameter(8, 0));
    }
    let id = command.cdb.u32(6);
    let listed = begin(&context.nexus.copies, id, Origin::PopulateToken, ListUse::Hold)?;
    let rods = context.server.target.rods();
    let initiator = &context.nexus.initiator().name;
    let token = token::build(volume, &ranges);
    let rod = rods.reserve(volume.id, &ranges, inactivity_s, initiator, token);
    let rod = rod.map_err(token::sense)?;
    let segments: Vec<CopySegment> = ranges
        .iter()
        .zip(&rod.pieces)
        .map(|(from, to)| CopySegment {
            source: volume.id,
            source_start: from.start,
            destination: rods.volume(),
            destination_start: to.start,
            count: from.count,
        })
        .collect();
    let rest = CopyRest {
        listed: Some(listed),
        failure: None,
        segments: 0,
        count: rod.sectors() / volume.logical_block.sectors(),
        after: After::Publish(rod),
        mark: PreemptionMark::new(context.nexus, volume.id),
    };
    start(context, volume, rest, VolumeRequest::Copy { segments }, wanted)
}

pub(crate) fn write_using(context: &Context<'_>, command: Command) -> Outcome {
    let volume = context.volume()?;
    let wanted = Some(command.cdb.u32(10).into());
    let Some(list) = list_of(&command)? else {
        return Ok(Step::Done(Response::good().wanting(wanted)));
    };
    let to = ranges(&list, 536, volume)?;
    let sectors: u64 = to.iter().map(|range| range.count.0).sum();
    let (request, after) = match be_u32(&list, 16) {
        // Its data is zeros of any length; unmapped blocks read as zeros (LBPRZ).
        BLOCK_ZERO => (VolumeRequest::Unmap { volume: volume.id, ranges: to }, After::Zeros),
        POINT_IN_TIME => {
            let rod = context.server.target.rods().find(&token_of(&list)?).map_err(token::sense)?;
            let skip = be_u64(&list, 8).saturating_mul(volume.logical_block.sectors());
            let own = context.server.target.rods().volume();
            let segments = pair_up(&rod, skip, &to)?
                .map(|(from, to)| CopySegment {
                    source: own,
                    source_start: from.start,
                    destination: volume.id,
                    destination_start: to.start,
                    count: to.count,
                })
                .collect();
            let delete = list[2] & 0x02 != 0;
            (VolumeRequest::Copy { segments }, After::Used { rod, delete })
        }
        _ => return Err(UNSUPPORTED_TYPE),
    };
    let id = command.cdb.u32(6);
    let listed = Some(begin(&context.nexus.copies, id, Origin::WriteUsingToken, ListUse::Hold)?);
    let count = sectors / volume.logical_block.sectors();
    let mark = PreemptionMark::new(context.nexus, volume.id);
    let rest = CopyRest { listed, failure: None, segments: 0, count, after, mark };
    start(context, volume, rest, request, wanted)
}

fn token_of(list: &[u8]) -> Result<Token, Sense> {
    let bytes = list.get(16..16 + TOKEN_BYTES).ok_or(Sense::PARAMETER_LIST_LENGTH)?;
    if usize::from(be_u16(bytes, 6)) != TOKEN_BYTES - 8 {
        return Err(WRONG_LENGTH);
    }
    bytes.try_into().map_err(|_| WRONG_LENGTH)
}

/// Returns the parts of a ROD after `skip` sectors that go into each of the ranges. The ROD must
/// fill all ranges; they are not written in part.
fn pair_up(
    rod: &Arc<Rod>,
    mut skip: u64,
    to: &[SectorRange],
) -> Result<impl Iterator<Item = (SectorRange, SectorRange)>, Sense> {
    let wanted: u64 = to.iter().map(|range| range.count.0).sum();
    if skip >= rod.sectors() {
        return Err(Sense::parameter(8, 0)); // OFFSET INTO ROD
    }
    if wanted > rod.sectors() - skip {
        return Err(Sense::parameter(534, 0));
    }
    let mut pairs = Vec::new();
    let mut pieces = rod.pieces.iter().copied();
    let mut from = SectorRange::default();
    for range in to {
        let mut range = *range;
        while !range.is_empty() {
            while from.is_empty() {
                from = pieces.next().ok_or(Sense::INTERNAL_FAILURE)?;
                skip -= from.take_front(skip).count.0;
            }
            let count = from.count.0.min(range.count.0);
            pairs.push((from.take_front(count), range.take_front(count)));
        }
    }
    Ok(pairs.into_iter())
}
