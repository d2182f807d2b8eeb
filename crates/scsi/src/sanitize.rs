//! SANITIZE (SBC-4, 4.11 and 5.31): all of the volume is unmapped in one commit, and then reads as
//! zeros; tokens that were made of it end.
//!
//! That is BLOCK ERASE as far as a host can see. The bytes stand on the device until their place is
//! written again, and snapshots keep what they hold, as no host may change them. CRYPTOGRAPHIC
//! ERASE is not offered, as there is no key to throw away. Nor is OVERWRITE: a log never writes to
//! the place where the old data is. To answer these would tell of something that was not done. The
//! operation can't fail half-way, so there is no failure mode to leave.

use block::{SectorRange, VolumeRequest};

use crate::response::{Command, Response, Rest, Step, request};
use crate::sense::Sense;
use crate::server::Context;
use crate::table::Outcome;

/// ZNR (bit 6) is of zoned devices, and bytes 2 to 6 are reserved.
fn check_reserved(command: &Command) -> Result<(), Sense> {
    let cdb = &command.cdb;
    if cdb.bit(1, 6) {
        return Err(Sense::cdb_field(1, 6));
    }
    match (2..7).find(|&at| cdb.u8(at) != 0) {
        Some(at) => Err(Sense::cdb_bytes(at as u16)),
        None if cdb.u16(7) != 0 => Err(Sense::cdb_bytes(7)), // no parameter list goes with these
        None => Ok(()),
    }
}

/// BLOCK ERASE. IMMED allows an early answer, which is not needed.
pub(crate) fn block_erase(context: &Context<'_>, command: Command) -> Outcome {
    let volume = context.volume()?;
    check_reserved(&command)?;
    let ranges = vec![SectorRange::new(0, volume.size.0)];
    let unmap = VolumeRequest::Unmap { volume: volume.id, ranges };
    Ok(request(volume, None, Rest::Sanitize, unmap))
}

/// EXIT FAILURE MODE: the last operation did not fail, so there is nothing to do.
pub(crate) fn exit_failure_mode(context: &Context<'_>, command: Command) -> Outcome {
    context.volume()?;
    check_reserved(&command)?;
    Ok(Step::Done(Response::good()))
}
