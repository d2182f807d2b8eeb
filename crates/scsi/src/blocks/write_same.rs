//! WRITE SAME (SBC-3, 5.43 and 5.44): zeroing, deallocation, and repeated patterns.

use block::{DataOut, FRAME_BYTES, FrameMut, SectorRange, VolumeAttributes, VolumeRequest};

use crate::blocks::read_write::{Extent, refuse_protection};
use crate::device::Context;
use crate::sense::Sense;
use crate::step::{Answer, Command, Outcome, Response, Step, request};

pub(crate) fn write_same(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    let mut extent = Extent::of(cdb);
    refuse_protection(cdb)?;
    let unmap = cdb.bit(1, 3);
    if cdb.bit(1, 4) {
        return Err(Sense::cdb_field(1, 4)); // ANCHOR: blocks can't be anchored (ANC_SUP is 0)
    }
    if cdb.u8(1) & 0x06 != 0 {
        return Err(Sense::cdb_field(1, 2)); // PBDATA and LBDATA are obsolete, and change meaning
    }
    let no_data = cdb.bit(1, 0);
    if no_data && cdb.opcode() != 0x93 {
        return Err(Sense::cdb_field(1, 0)); // only the 16-byte command has NDOB
    }
    if extent.blocks == 0 {
        // WSNZ is 0: a length of 0 means up to the end of the medium (SBC-3, 5.43).
        let all = volume.size.0 / volume.logical_block.sectors();
        extent.blocks = all.checked_sub(extent.lba).ok_or(Sense::OUT_OF_RANGE)?;
    }
    let range = extent.sectors(volume)?;
    let block = volume.logical_block.bytes();
    let wanted = Some(if no_data { 0 } else { block });
    if !no_data && command.data_out.len() as u64 != block {
        let response = Response::check(Sense::INFORMATION_UNIT);
        return Ok(Step::Done(response.wanting(wanted)));
    }
    if range.is_empty() {
        return Ok(Step::Done(Response::good().wanting(wanted)));
    }
    let data = if no_data { None } else { Some(&command.data_out) };
    let same = request_for(volume, range, data, unmap);
    Ok(request(volume, wanted, Answer, same))
}

/// UNMAP of zeros deallocates, because LBPRZ guarantees zeros afterwards; UNMAP of anything else
/// must write it (SBC-3, 4.7.3.4.3).
fn request_for(
    volume: &VolumeAttributes,
    range: SectorRange,
    data: Option<&DataOut>,
    unmap: bool,
) -> VolumeRequest {
    let volume = volume.id;
    let zero = data.is_none_or(|data| data.slices().flatten().all(|&byte| byte == 0));
    match (zero, data) {
        (true, _) if unmap => VolumeRequest::Unmap { volume, ranges: vec![range] },
        (false, Some(data)) => {
            let block = data.to_vec();
            let mut frame = FrameMut::stale();
            for chunk in frame.chunks_mut(block.len().clamp(1, FRAME_BYTES)) {
                chunk.copy_from_slice(&block[..chunk.len()]);
            }
            VolumeRequest::Fill { volume, range, pattern: frame.freeze(), fua: false }
        }
        _ => VolumeRequest::Zero { volume, range, fua: false },
    }
}
