//! COMPARE AND WRITE (SBC-3, 5.2), the primitive of VMware's locks.

use block::VolumeRequest;

use crate::blocks::read_write::{fua, lay_out, refuse_protection, sectors};
use crate::device::Context;
use crate::limits::compared_blocks_max;
use crate::sense::Sense;
use crate::step::{Answer, Command, Outcome, Response, Step, request};

pub(crate) fn compare_and_write(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    refuse_protection(cdb)?;
    let blocks = u64::from(cdb.u8(13));
    let range = sectors(volume, cdb.u64(2), blocks)?;
    if blocks > compared_blocks_max(volume) {
        return Err(Sense::cdb_bytes(13));
    }
    let half = (blocks * volume.logical_block.bytes()) as usize;
    let wanted = Some(2 * half as u64);
    if blocks == 0 && !command.data_out.is_empty() {
        // More blocks than the limit: too many is the only invalid length.
        return Err(Sense::cdb_bytes(13));
    }
    // A lock is taken completely or not at all, so both buffers must have arrived, and nothing
    // else.
    if command.data_out.len() != 2 * half {
        let response = Response::check(Sense::INFORMATION_UNIT);
        return Ok(Step::Done(response.wanting(wanted)));
    }
    if blocks == 0 {
        return Ok(Step::Done(Response::good().wanting(wanted)));
    }
    let phase = range.start.offset_in_block_bytes();
    let data = command.data_out.copy(half, half, phase);
    let caw = VolumeRequest::CompareAndWrite {
        volume: volume.id,
        range,
        expected: lay_out(command.data_out, half, phase),
        data,
        fua: fua(cdb),
        sender: None,
    };
    Ok(request(volume, wanted, Answer, caw))
}
