//! SANITIZE (SBC-4, 4.11 and 5.31): unmaps the whole volume in one commit, so that it reads as
//! zeros; tokens created from it end.
//!
//! That is BLOCK ERASE as far as a host can see. The bytes remain on the device until their
//! location is written again, and snapshots keep their content, because no host may change them.
//! CRYPTOGRAPHIC ERASE is not supported, because there is no key to discard. Neither is OVERWRITE:
//! a log never writes to the location of the old data. GOOD to these would claim something that was
//! not done. The operation can't fail half-way, so there is no failure mode to exit.

use block::{SectorRange, VolumeReply, VolumeRequest};
use target::{Change, Subject, Target};

use crate::device::Context;
use crate::sense::Sense;
use crate::step::{Command, Continue, Outcome, Response, Resumed, Step, request};

/// ZNR (bit 6) is for zoned devices only, and bytes 2 to 6 are reserved.
fn check_reserved(command: &Command) -> Result<(), Sense> {
    let cdb = &command.cdb;
    if cdb.bit(1, 6) {
        return Err(Sense::cdb_field(1, 6));
    }
    match (2..7).find(|&at| cdb.u8(at) != 0) {
        Some(at) => Err(Sense::cdb_bytes(at as u16)),
        None if cdb.u16(7) != 0 => Err(Sense::cdb_bytes(7)), // these have no parameter list
        None => Ok(()),
    }
}

/// The command after the volume was unmapped: its content is gone permanently, so its tokens end.
#[derive(Debug)]
struct Sanitizing;

impl Continue for Sanitizing {
    fn resume(self: Box<Self>, at: &Resumed<'_>, result: Result<VolumeReply, Sense>) -> Outcome {
        let VolumeReply::Done = result? else { return Err(Sense::INTERNAL_FAILURE) };
        Ok(match at.target.rods().revoke(at.volume) {
            Change::Durable => Step::Done(Response::good()),
            Change::Unsaved(change) => at.persist(Box::new(Revoking { change }), Subject::Tokens),
        })
    }
}

/// The command after the tokens have ended, which must become durable.
#[derive(Debug)]
struct Revoking {
    change: u64,
}

impl Continue for Revoking {
    fn saved(self: Box<Self>, target: &Target) -> Response {
        match target.rods().outcome(self.change, None) {
            Ok(()) => Response::good(),
            Err(_) => Response::check(Sense::INTERNAL_FAILURE),
        }
    }
}

/// BLOCK ERASE. IMMED would allow an earlier response, which is not needed.
pub(crate) fn block_erase(context: &Context<'_>, command: Command) -> Outcome {
    let volume = context.volume()?;
    check_reserved(&command)?;
    let ranges = vec![SectorRange::new(0, volume.size.0)];
    let unmap = VolumeRequest::Unmap { volume: volume.id, ranges };
    Ok(request(volume, None, Sanitizing, unmap))
}

/// EXIT FAILURE MODE: no operation can have failed, so there is nothing to do.
pub(crate) fn exit_failure_mode(context: &Context<'_>, command: Command) -> Outcome {
    context.volume()?;
    check_reserved(&command)?;
    Ok(Step::Done(Response::good()))
}
