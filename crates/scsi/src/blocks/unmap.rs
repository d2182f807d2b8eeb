//! UNMAP (SBC-3, 5.37).

use block::VolumeRequest;
use block::request::limits::UNMAP_RANGES_MAX;

use crate::blocks::read_write::sectors;
use crate::bytes::{be_u16, be_u32, be_u64};
use crate::device::Context;
use crate::sense::Sense;
use crate::step::{Answer, Command, Outcome, Response, Step, request};

const HEADER_BYTES: usize = 8;
const DESCRIPTOR_BYTES: usize = 16;

pub(crate) fn unmap(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    if cdb.bit(1, 0) {
        return Err(Sense::cdb_field(1, 0)); // ANCHOR: ANC_SUP is 0
    }
    let length = usize::from(cdb.u16(7));
    let wanted = Some(length as u64);
    let good = || Step::Done(Response::good().wanting(wanted));
    if length == 0 {
        return Ok(good());
    }
    let list = crate::bytes::parameter_list(&command.data_out, length)?;
    if list.len() < HEADER_BYTES {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let descriptors = usize::from(be_u16(&list, 2));
    if HEADER_BYTES + descriptors > list.len() {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    // Bytes after the last whole descriptor are ignored (SBC-3, 5.37.2).
    let count = descriptors / DESCRIPTOR_BYTES;
    if count > UNMAP_RANGES_MAX {
        return Err(Sense::parameter(2, 0));
    }
    let mut ranges = Vec::with_capacity(count);
    for index in 0..count {
        let at = HEADER_BYTES + index * DESCRIPTOR_BYTES;
        let range = sectors(volume, be_u64(&list, at), be_u32(&list, at + 8).into())?;
        if !range.is_empty() {
            ranges.push(range);
        }
    }
    if ranges.is_empty() {
        return Ok(good());
    }
    let unmap = VolumeRequest::Unmap { volume: volume.id, ranges };
    Ok(request(volume, wanted, Answer, unmap))
}
