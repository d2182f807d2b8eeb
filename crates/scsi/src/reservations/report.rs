//! PERSISTENT RESERVE IN (SPC-4, 6.15).

use target::volumes::Volume;

use crate::device::Context;
use crate::reservations::transport_id;
use crate::sense::Sense;
use crate::step::{Command, Outcome, Response, Step};

fn answer(
    context: &Context<'_>,
    command: &Command,
    body: impl FnOnce(&Volume) -> Vec<u8>,
) -> Outcome {
    let volume = context.volume()?;
    let out = context.server.target.volumes().look(volume.id, |state| {
        let body = body(state);
        let mut out = state.kept().generation.to_be_bytes().to_vec();
        out.extend((body.len() as u32).to_be_bytes());
        out.extend(body);
        out
    });
    Ok(Step::Done(Response::parameters(&out, command.cdb.u16(7).into())))
}

pub(crate) fn read_keys(context: &Context<'_>, command: Command) -> Outcome {
    answer(context, &command, |state| {
        state.kept().registrants.iter().flat_map(|who| who.key.to_be_bytes()).collect()
    })
}

pub(crate) fn read_reservation(context: &Context<'_>, command: Command) -> Outcome {
    answer(context, &command, |state| {
        let kept = state.kept();
        let Some(reservation) = &kept.reservation else { return Vec::new() };
        let holder = kept.registrants.iter().find(|who| who.nexus == reservation.holder);
        let key = match holder {
            Some(holder) if !reservation.kind.all_registrants() => holder.key,
            _ => 0,
        };
        let mut out = key.to_be_bytes().to_vec();
        out.extend([0, 0, 0, 0, 0, reservation.kind as u8, 0, 0]);
        out
    })
}

/// CRH, SIP_C, ATP_C and PTPL_C: all except the replacement of lost reservations, because none are
/// lost: an array with a damaged record of them does not start.
const CAPABLE: u8 = 0x10 | 0x08 | 0x04 | 0x01;
/// TMV, and ALLOW COMMANDS 100b: all commands named by table 208 are allowed.
const ALLOWED: u8 = 0x80 | 0b100 << 4;

/// REPORT CAPABILITIES (SPC-4, 6.15.4): all six types.
pub(crate) fn report_capabilities(context: &Context<'_>, command: Command) -> Outcome {
    let volume = context.volume()?;
    let kept =
        context.server.target.volumes().look(volume.id, |state| state.is_kept_through_power_loss());
    let out = [0, 8, CAPABLE, ALLOWED | u8::from(kept), 0xea, 0x01, 0, 0];
    Ok(Step::Done(Response::parameters(&out, command.cdb.u16(7).into())))
}

/// READ FULL STATUS (SPC-4, 6.15.5): a descriptor for each nexus, so ALL_TG_PT is always 0, even if
/// one command has registered an initiator port with all target ports.
pub(crate) fn read_full_status(context: &Context<'_>, command: Command) -> Outcome {
    if context.volume().is_err() {
        return Err(Sense::NO_SUCH_UNIT);
    }
    answer(context, &command, |state| {
        let mut out = Vec::new();
        for who in &state.kept().registrants {
            let reservation = state.kept().reservation.as_ref();
            let held =
                reservation.filter(|what| what.kind.all_registrants() || what.holder == who.nexus);
            out.extend(who.key.to_be_bytes());
            out.extend([0; 4]);
            out.extend([u8::from(held.is_some()), held.map_or(0, |what| what.kind as u8)]);
            out.extend([0; 4]);
            out.extend(who.nexus.target_port.to_be_bytes());
            let id = transport_id::of_port(&who.nexus.host);
            out.extend((id.len() as u32).to_be_bytes());
            out.extend(id);
        }
        out
    })
}
