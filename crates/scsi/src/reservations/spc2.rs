//! RESERVE and RELEASE (SPC-2, 7.21 to 7.24, 7.17), for hosts that lock so, with the exceptions
//! that a persistent reservation makes (SPC-4, 5.13.3; CRH is 1).

use crate::reservations::NexusId;
use crate::response::{Command, Response, Status, Step};
use crate::sense::Sense;
use crate::server::Context;
use crate::table::Outcome;

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
    let (volume, nexus) = (context.volume()?, context.nexus);
    let taken = context.server.reservations.with(volume.id, |state| {
        if state.spc2.as_ref().is_some_and(|holder| !holder.is(nexus)) {
            return false;
        }
        // A nexus that a persistent reservation admits gets GOOD, and nothing is established.
        if !state.registry.admits(nexus) {
            state.spc2 = Some(NexusId::of(nexus));
        }
        true
    });
    let status = if taken { Status::Good } else { Status::ReservationConflict };
    Ok(Step::Done(Response::with_status(status)))
}

fn give_back(context: &Context<'_>) -> Outcome {
    let (volume, nexus) = (context.volume()?, context.nexus);
    context.server.reservations.with(volume.id, |state| {
        if state.spc2.as_ref().is_some_and(|holder| holder.is(nexus)) {
            state.spc2 = None;
        }
    });
    Ok(Step::Done(Response::good()))
}
