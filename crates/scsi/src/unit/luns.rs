//! REPORT LUNS (SPC-4, 6.33).

use crate::device::Context;
use crate::lun::{REPORT_LUNS, encode};
use crate::sense::Sense;
use crate::step::{Command, Outcome, Response, Step};

pub(crate) fn report_luns(context: &Context<'_>, command: Command) -> Outcome {
    let (units, well_known) = match command.cdb.u8(2) {
        0x00 => (true, false),
        0x01 => (false, true),
        0x02 => (true, true),
        0x10 => (false, false), // administrative logical units: none
        _ => return Err(Sense::cdb_bytes(2)),
    };
    let mut out = vec![0; 8];
    if well_known {
        out.extend(REPORT_LUNS);
    }
    if units {
        out.extend(context.luns.luns.keys().flat_map(|&lun| encode(lun)));
    }
    let length = (out.len() - 8) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    context.nexus.luns_reported();
    Ok(Step::Done(Response::parameters(&out, command.cdb.u32(6) as usize)))
}
