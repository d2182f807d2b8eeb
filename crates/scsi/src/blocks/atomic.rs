//! WRITE ATOMIC (16) (SBC-4, 4.29 and 5.48): a write that readers see completely or not at all,
//! also after a loss of power. One request to a volume is atomic, so the limit is its length.

use block::VolumeRequest;

use crate::blocks::read_write::{Extent, fua, lay_out, refuse_protection};
use crate::device::Context;
use crate::limits::atomic_blocks_max;
use crate::sense::Sense;
use crate::step::{Answer, Command, Outcome, Response, Step, request};

pub(crate) fn write_atomic(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    refuse_protection(cdb)?;
    let extent = Extent { lba: cdb.u64(2), blocks: cdb.u16(12).into(), length_at: 12 };
    let range = extent.sectors(volume)?;
    if extent.blocks > atomic_blocks_max(volume) {
        return Err(Sense::cdb_bytes(12));
    }
    if cdb.u16(10) != 0 {
        return Err(Sense::cdb_bytes(10)); // ATOMIC BOUNDARY: MAXIMUM ATOMIC BOUNDARY SIZE is 0
    }
    let bytes = (extent.blocks * volume.logical_block.bytes()) as usize;
    let wanted = Some(bytes as u64);
    // No part of it may be written, so all of its data must have arrived.
    if command.data_out.len() < bytes {
        let response = Response::check(Sense::INFORMATION_UNIT);
        return Ok(Step::Done(response.wanting(wanted)));
    }
    if range.is_empty() {
        return Ok(Step::Done(Response::good().wanting(wanted)));
    }
    let data = lay_out(command.data_out, bytes, range.start.offset_in_block_bytes());
    let write = VolumeRequest::Write { volume: volume.id, range, data, fua: fua(cdb) };
    Ok(request(volume, wanted, Answer, write))
}
