//! SANITIZE (SBC-4, 4.11 and 5.31): all of the volume is unmapped in one commit, and then reads as
//! zeros; tokens that were made of it end.
//!
//! That is BLOCK ERASE as far as a host can see. The bytes stand on the device until their place is
//! written again, and snapshots keep what they hold, as no host may change them. CRYPTOGRAPHIC
//! ERASE is not offered, as there is no key to throw away. Nor is OVERWRITE: a log never writes to
//! the place where the old data is. To answer these would tell of something that was not done. The
//! operation can't fail half-way, so there is no failure mode to leave.

use block::{SectorRange, VolumeReply, VolumeRequest};
use target::{Change, Subject, Target};

use crate::device::Context;
use crate::sense::Sense;
use crate::step::{Command, Continue, Outcome, Response, Resumed, Step, request};

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

/// What is left when the volume was unmapped: what it held is gone for good, so its tokens end.
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

/// What is left when the tokens have ended: that must be durable.
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

/// BLOCK ERASE. IMMED allows an early answer, which is not needed.
pub(crate) fn block_erase(context: &Context<'_>, command: Command) -> Outcome {
    let volume = context.volume()?;
    check_reserved(&command)?;
    let ranges = vec![SectorRange::new(0, volume.size.0)];
    let unmap = VolumeRequest::Unmap { volume: volume.id, ranges };
    Ok(request(volume, None, Sanitizing, unmap))
}

/// EXIT FAILURE MODE: the last operation did not fail, so there is nothing to do.
pub(crate) fn exit_failure_mode(context: &Context<'_>, command: Command) -> Outcome {
    context.volume()?;
    check_reserved(&command)?;
    Ok(Step::Done(Response::good()))
}
