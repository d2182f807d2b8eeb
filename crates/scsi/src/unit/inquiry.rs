//! INQUIRY: standard data (SPC-4, 6.6). The VPD pages are in [`vpd`].

use crate::bytes::put_text;
use crate::device::Context;
use crate::sense::Sense;
use crate::step::{Command, Outcome, Response, Step};
use crate::unit::{third_party, vpd};

/// SAM-5, iSCSI, SPC-4, SBC-3 (SPC-4, table 144: no version claimed).
const VERSION_DESCRIPTORS: [u16; 4] = [0x00a0, 0x0960, 0x0460, 0x04c0];

pub(crate) fn inquiry(context: &Context<'_>, command: Command) -> Outcome {
    let cdb = &command.cdb;
    let allocation_length = usize::from(cdb.u16(3));
    if cdb.bit(1, 1) {
        return Err(Sense::cdb_field(1, 1)); // CMDDT is obsolete
    }
    if cdb.bit(1, 0) {
        let page = vpd::page(context, cdb.u8(2))?;
        return Ok(Step::Done(Response::parameters(&page, allocation_length)));
    }
    if cdb.u8(2) != 0 {
        return Err(Sense::cdb_bytes(2));
    }
    Ok(Step::Done(Response::parameters(&standard(context), allocation_length)))
}

fn standard(context: &Context<'_>) -> [u8; 96] {
    let identity = &context.server.identity;
    let mut out = [0; 96];
    out[0] = context.unit.peripheral();
    out[2] = 0x06; // SPC-4
    out[3] = 0x12; // HISUP; response data format 2
    out[4] = (out.len() - 5) as u8;
    out[5] = 0x30; // TPGS: implicit and explicit
    if third_party::is_offered(context.offloads()) {
        out[5] |= 0x08; // 3PC
    }
    out[6] = if context.server.target.ports().len() > 1 { 0x10 } else { 0 }; // MULTIP
    out[7] = 0x02; // CMDQUE
    put_text(&mut out[8..16], &identity.vendor);
    put_text(&mut out[16..32], &identity.product);
    put_text(&mut out[32..36], &identity.revision);
    for (slot, version) in out[58..74].chunks_mut(2).zip(VERSION_DESCRIPTORS) {
        slot.copy_from_slice(&version.to_be_bytes());
    }
    out
}
