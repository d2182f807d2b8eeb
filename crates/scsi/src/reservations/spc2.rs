//! RESERVE and RELEASE (SPC-2, 7.21 to 7.24, 7.17), for hosts that use them, with the exceptions
//! that apply with a persistent reservation (SPC-4, 5.13.3; CRH is 1).

use crate::device::Context;
use crate::saving::answer;
use crate::sense::Sense;
use crate::step::{Command, Outcome, Response, Status, Step};

pub(crate) fn reserve(context: &Context<'_>, command: Command) -> Outcome {
    if command.cdb.u8(1) & 0x1f != 0 {
        return Err(Sense::cdb_field(1, 4)); // third parties and extents are obsolete
    }
    take(context)
}

pub(crate) fn reserve_10(context: &Context<'_>, command: Command) -> Outcome {
    refuse_third_party(&command)?;
    take(context)
}

pub(crate) fn release(context: &Context<'_>, command: Command) -> Outcome {
    if command.cdb.u8(1) & 0x1f != 0 {
        return Err(Sense::cdb_field(1, 4));
    }
    give_back(context)
}

pub(crate) fn release_10(context: &Context<'_>, command: Command) -> Outcome {
    refuse_third_party(&command)?;
    give_back(context)
}

fn refuse_third_party(command: &Command) -> Result<(), Sense> {
    if command.cdb.u8(1) & 0x10 != 0 {
        return Err(Sense::cdb_field(1, 4));
    }
    Ok(())
}

fn take(context: &Context<'_>) -> Outcome {
    let (volume, nexus) = (context.volume()?, context.nexus.id());
    Ok(match context.server.target.reserve(volume.id, nexus) {
        Ok(change) => answer(volume.id, change, Response::good(), false),
        Err(_) => Step::Done(Response::with_status(Status::ReservationConflict)),
    })
}

fn give_back(context: &Context<'_>) -> Outcome {
    let (volume, nexus) = (context.volume()?, context.nexus.id());
    let change = context.server.target.release(volume.id, nexus);
    Ok(answer(volume.id, change, Response::good(), false))
}
