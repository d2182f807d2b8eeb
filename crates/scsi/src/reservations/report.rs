//! PERSISTENT RESERVE IN (SPC-4, 6.15).

use crate::reservations::VolumeState;
use crate::response::{Command, Response, Step};
use crate::sense::Sense;
use crate::server::Context;
use crate::table::Outcome;

fn answer(
    context: &Context<'_>,
    command: &Command,
    body: impl FnOnce(&VolumeState) -> Vec<u8>,
) -> Outcome {
    let volume = context.volume()?;
    let out = context.server.reservations.with(volume.id, |state| {
        let body = body(state);
        let mut out = state.generation.to_be_bytes().to_vec();
        out.extend((body.len() as u32).to_be_bytes());
        out.extend(body);
        out
    });
    Ok(Step::Done(Response::parameters(&out, command.cdb.u16(7).into())))
}

pub(crate) fn read_keys(context: &Context<'_>, command: Command) -> Outcome {
    answer(context, &command, |state| {
        state.registrants.iter().flat_map(|who| who.key.to_be_bytes()).collect()
    })
}

pub(crate) fn read_reservation(context: &Context<'_>, command: Command) -> Outcome {
    answer(context, &command, |state| {
        let Some(reservation) = &state.reservation else { return Vec::new() };
        let holder = state.registrants.iter().find(|who| who.nexus == reservation.holder);
        let key = match holder {
            Some(holder) if !reservation.kind.all_registrants() => holder.key,
            _ => 0,
        };
        let mut out = key.to_be_bytes().to_vec();
        out.extend([0, 0, 0, 0, 0, reservation.kind as u8, 0, 0]);
        out
    })
}

/// Without SPEC_I_PT, ALL_TG_PT and persistence through power loss; all six types.
pub(crate) fn report_capabilities(context: &Context<'_>, command: Command) -> Outcome {
    context.volume()?;
    let out = [0, 8, 0x00, 0x80, 0xea, 0x01, 0, 0];
    Ok(Step::Done(Response::parameters(&out, command.cdb.u16(7).into())))
}

pub(crate) fn read_full_status(context: &Context<'_>, command: Command) -> Outcome {
    if context.volume().is_err() {
        return Err(Sense::NO_SUCH_UNIT);
    }
    answer(context, &command, |state| {
        let mut out = Vec::new();
        for who in &state.registrants {
            let reservation = state.reservation.as_ref();
            let held =
                reservation.filter(|what| what.kind.all_registrants() || what.holder == who.nexus);
            out.extend(who.key.to_be_bytes());
            out.extend([0; 4]);
            out.extend([u8::from(held.is_some()), held.map_or(0, |what| what.kind as u8)]);
            out.extend([0; 4]);
            out.extend(who.nexus.target_port.to_be_bytes());
            let id = transport_id(&who.nexus.initiator);
            out.extend((id.len() as u32).to_be_bytes());
            out.extend(id);
        }
        out
    })
}

/// The TransportID of an iSCSI initiator port (SPC-4, 7.6.4.6).
fn transport_id(initiator: &crate::nexus::InitiatorPort) -> Vec<u8> {
    let mut name = initiator.name.clone().into_bytes();
    name.extend(b",i,0x");
    for byte in initiator.isid {
        name.extend(format!("{byte:02x}").bytes());
    }
    name.push(0);
    name.resize(name.len().next_multiple_of(4).max(20), 0);
    let [high, low] = (name.len() as u16).to_be_bytes();
    let mut out = vec![0x45, 0, high, low];
    out.extend(name);
    out
}
