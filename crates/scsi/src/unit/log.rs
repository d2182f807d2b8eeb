//! LOG SENSE (SPC-4, 6.8): the supported pages, logical block provisioning (SBC-3, 6.4.5), and the
//! general statistics.

use block::{SpaceUse, VolumeReply, VolumeRequest};

use crate::device::Context;
use crate::sense::Sense;
use crate::statistics;
use crate::step::{Command, Continue, Outcome, Response, Resumed, Step, request};
use crate::thresholds::SET_BYTES;

const SUPPORTED: u8 = 0x00;
const PROVISIONING: u8 = 0x0c;

pub(crate) fn sense(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    let allocation_length = usize::from(cdb.u16(7));
    if cdb.bit(1, 0) {
        return Err(Sense::cdb_field(1, 0)); // SP: saving is not supported
    }
    if cdb.u8(3) != 0 {
        return Err(Sense::cdb_bytes(3));
    }
    match cdb.u8(2) & 0x3f {
        SUPPORTED => {
            let out = [SUPPORTED, 0, 0, 3, SUPPORTED, PROVISIONING, statistics::PAGE];
            Ok(Step::Done(Response::parameters(&out, allocation_length)))
        }
        PROVISIONING => {
            let space = VolumeRequest::Space { volume: volume.id };
            Ok(request(volume, None, ProvisioningPage { allocation_length }, space))
        }
        statistics::PAGE => {
            let page = statistics::page(volume, context.server.statistics.of(volume.id));
            Ok(Step::Done(Response::parameters(&page, allocation_length)))
        }
        _ => Err(Sense::cdb_field(2, 5)),
    }
}

/// The command while the volume returns how much space is in use.
#[derive(Debug)]
struct ProvisioningPage {
    allocation_length: usize,
}

impl Continue for ProvisioningPage {
    fn resume(self: Box<Self>, _: &Resumed<'_>, result: Result<VolumeReply, Sense>) -> Outcome {
        let VolumeReply::Space(space) = result? else { return Err(Sense::INTERNAL_FAILURE) };
        let data = provisioning_data(space);
        Ok(Step::Done(Response::parameters(&data, self.allocation_length)))
    }
}

/// Returns the provisioning page: available and used space, shared by all logical units.
fn provisioning_data(space: SpaceUse) -> Vec<u8> {
    let free = space.pool_capacity_bytes.saturating_sub(space.pool_used_bytes) / SET_BYTES;
    let used = space.pool_used_bytes.div_ceil(SET_BYTES);
    let mut out = vec![PROVISIONING, 0, 0, 0];
    for (code, count) in [(1_u16, free), (2, used)] {
        out.extend(code.to_be_bytes());
        out.extend([0x03, 8]); // binary list; 8 bytes follow
        out.extend(u32::try_from(count).unwrap_or(u32::MAX).to_be_bytes());
        out.extend([0x02, 0, 0, 0]); // scope: not dedicated to this logical unit
    }
    let length = (out.len() - 4) as u16;
    out[2..4].copy_from_slice(&length.to_be_bytes());
    out
}
