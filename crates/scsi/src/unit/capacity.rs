//! READ CAPACITY (SBC-3, 5.15 and 5.16).

use block::VolumeAttributes;

use crate::device::Context;
use crate::limits::{blocks, can_deallocate, physical_exponent};
use crate::sense::Sense;
use crate::step::{Command, Outcome, Response, Step};

pub(crate) fn read_capacity_10(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    if cdb.u32(2) != 0 && !cdb.bit(8, 0) {
        return Err(Sense::cdb_bytes(2));
    }
    let last = blocks(volume).saturating_sub(1);
    let mut out = [0; 8];
    out[..4].copy_from_slice(&u32::try_from(last).unwrap_or(u32::MAX).to_be_bytes());
    out[4..].copy_from_slice(&(volume.logical_block.bytes() as u32).to_be_bytes());
    Ok(Step::Done(Response::parameters(&out, out.len())))
}

pub(crate) fn read_capacity_16(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    if cdb.u64(2) != 0 && !cdb.bit(14, 0) {
        return Err(Sense::cdb_bytes(2));
    }
    let out = capacity_data(volume);
    Ok(Step::Done(Response::parameters(&out, cdb.u32(10) as usize)))
}

/// READ CAPACITY (16) data (SBC-3, 5.16.2).
pub(crate) fn capacity_data(volume: &VolumeAttributes) -> [u8; 32] {
    let mut out = [0; 32];
    out[..8].copy_from_slice(&blocks(volume).saturating_sub(1).to_be_bytes());
    out[8..12].copy_from_slice(&(volume.logical_block.bytes() as u32).to_be_bytes());
    out[13] = physical_exponent(volume);
    if can_deallocate(volume) {
        out[14] = 0xc0; // LBPME and LBPRZ: thin; unmapped blocks read as zeros
    }
    out
}
