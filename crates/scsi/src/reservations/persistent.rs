//! PERSISTENT RESERVE OUT (SPC-4, 6.16 and 5.13).

use crate::bytes::{be_u8, be_u64, parameter_list};
use crate::nexus::{Attention, Nexus};
use crate::reservations::{Kind, NexusId, Registrant, Reservation, VolumeState};
use crate::response::{Command, Response, Status, Step};
use crate::sense::{Sense, SenseKey};
use crate::server::Context;
use crate::table::Outcome;

const LIST_BYTES: usize = 24;
/// The most nexuses that can register with a volume: 32 hosts with 32 paths each.
const REGISTRANTS_MAX: usize = 1024;

const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const RELEASE: u8 = 2;
const CLEAR: u8 = 3;
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;
const REGISTER_AND_IGNORE: u8 = 6;

/// Whom to tell what.
type Told = Vec<(NexusId, Attention)>;

/// Why an action was not done.
enum Refusal {
    /// RESERVATION CONFLICT.
    Conflict,
    /// CHECK CONDITION.
    Check(Sense),
}

/// The parameters of an action.
struct Asked<'a> {
    nexus: &'a Nexus,
    action: u8,
    scope: u8,
    kind: Option<Kind>,
    key: u64,
    /// SERVICE ACTION RESERVATION KEY.
    action_key: u64,
}

pub(crate) fn out(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    let action = cdb.service_action();
    if cdb.u32(5) as usize != LIST_BYTES {
        return Err(Sense::PARAMETER_LIST_LENGTH);
    }
    let list = parameter_list(&command.data_out, LIST_BYTES)?;
    let flags = be_u8(&list, 20);
    if flags & 0x0c != 0 {
        return Err(Sense::parameter(20, 0)); // SPEC_I_PT, ALL_TG_PT: not reported as capable
    }
    if flags & 0x01 != 0 && matches!(action, REGISTER | REGISTER_AND_IGNORE) {
        return Err(Sense::parameter(20, 0)); // APTPL: PTPL_C is 0
    }
    let asked = Asked {
        nexus: context.nexus,
        action,
        scope: cdb.u8(2) >> 4,
        kind: Kind::from_code(cdb.u8(2) & 0x0f),
        key: be_u64(&list, 0),
        action_key: be_u64(&list, 8),
    };
    let done = context.server.reservations.with(volume.id, |state| act(state, &asked));
    match done {
        Ok(told) => {
            if action == PREEMPT_AND_ABORT {
                context.server.abort(volume.id, &told);
            }
            context.server.attend(volume.id, &told);
        }
        Err(Refusal::Conflict) => {
            return Ok(Step::Done(Response::with_status(Status::ReservationConflict)));
        }
        Err(Refusal::Check(sense)) => return Err(sense),
    }
    let wanted = Some(LIST_BYTES as u64);
    // Commands that the preempted nexuses had under way end by themselves, those of several
    // requests early; what comes later meets the reservation.
    let after_all = action == PREEMPT_AND_ABORT;
    Ok(Step::Done(Response { transfer_bytes_wanted: wanted, after_all, ..Response::good() }))
}

fn act(state: &mut VolumeState, asked: &Asked<'_>) -> Result<Told, Refusal> {
    if matches!(asked.action, REGISTER | REGISTER_AND_IGNORE) {
        return register(state, asked);
    }
    // All others are for registered nexuses, with their key (SPC-4, 5.13.5).
    if state.key_of(asked.nexus) != Some(asked.key) {
        return Err(Refusal::Conflict);
    }
    match asked.action {
        RESERVE => reserve(state, asked),
        RELEASE => release(state, asked),
        CLEAR => Ok(clear(state, asked)),
        PREEMPT | PREEMPT_AND_ABORT => preempt(state, asked),
        _ => Err(Refusal::Check(Sense::cdb_field(1, 4))),
    }
}

fn register(state: &mut VolumeState, asked: &Asked<'_>) -> Result<Told, Refusal> {
    let own = state.key_of(asked.nexus);
    // A nexus that is not registered gives the key 0 (SPC-4, table 60).
    if asked.action == REGISTER && own.unwrap_or(0) != asked.key {
        return Err(Refusal::Conflict);
    }
    if asked.action_key == 0 {
        if own.is_none() {
            return Ok(Told::new());
        }
        state.generation = state.generation.wrapping_add(1);
        return Ok(unregister(state, asked.nexus));
    }
    let full = state.registrants.len() >= REGISTRANTS_MAX;
    match state.registrants.iter_mut().find(|who| who.nexus.is(asked.nexus)) {
        Some(who) => who.key = asked.action_key,
        None if full => {
            // INSUFFICIENT REGISTRATION RESOURCES
            return Err(Refusal::Check(Sense::new(SenseKey::IllegalRequest, 0x55, 0x04)));
        }
        None => {
            let nexus = NexusId::of(asked.nexus);
            state.registrants.push(Registrant { nexus, key: asked.action_key });
        }
    }
    state.generation = state.generation.wrapping_add(1);
    Ok(Told::new())
}

/// Removes a registration, and the reservation with it if it was the holder's, or the last of an
/// "all registrants" type (SPC-4, 5.13.11.2).
fn unregister(state: &mut VolumeState, nexus: &Nexus) -> Told {
    state.registrants.retain(|who| !who.nexus.is(nexus));
    let Some(reservation) = &state.reservation else { return Told::new() };
    let kind = reservation.kind;
    let ends = if kind.all_registrants() {
        state.registrants.is_empty()
    } else {
        reservation.holder.is(nexus)
    };
    if !ends {
        return Told::new();
    }
    state.reservation = None;
    if kind.admits_registrants() {
        return tell_others(state, nexus, Attention::ReservationsReleased);
    }
    Told::new()
}

fn tell_others(state: &VolumeState, nexus: &Nexus, what: Attention) -> Told {
    let others = state.registrants.iter().filter(|who| !who.nexus.is(nexus));
    others.map(|who| (who.nexus.clone(), what)).collect()
}

fn scope_and_kind(asked: &Asked<'_>) -> Result<Kind, Refusal> {
    if asked.scope != 0 {
        return Err(Refusal::Check(Sense::cdb_field(2, 7)));
    }
    asked.kind.ok_or(Refusal::Check(Sense::cdb_field(2, 3)))
}

fn reserve(state: &mut VolumeState, asked: &Asked<'_>) -> Result<Told, Refusal> {
    let kind = scope_and_kind(asked)?;
    match &state.reservation {
        Some(held) if held.kind == kind && state.holds(asked.nexus) => {}
        Some(_) => return Err(Refusal::Conflict),
        None => {
            state.reservation = Some(Reservation { kind, holder: NexusId::of(asked.nexus) });
        }
    }
    Ok(Told::new())
}

fn release(state: &mut VolumeState, asked: &Asked<'_>) -> Result<Told, Refusal> {
    let Some(held) = &state.reservation else { return Ok(Told::new()) };
    if !state.holds(asked.nexus) {
        return Ok(Told::new());
    }
    let kind = held.kind;
    if asked.scope != 0 || asked.kind != Some(kind) {
        // INVALID RELEASE OF PERSISTENT RESERVATION
        return Err(Refusal::Check(Sense::new(SenseKey::IllegalRequest, 0x26, 0x04)));
    }
    state.reservation = None;
    if kind.admits_registrants() {
        return Ok(tell_others(state, asked.nexus, Attention::ReservationsReleased));
    }
    Ok(Told::new())
}

fn clear(state: &mut VolumeState, asked: &Asked<'_>) -> Told {
    let told = tell_others(state, asked.nexus, Attention::ReservationsPreempted);
    state.reservation = None;
    state.registrants.clear();
    state.generation = state.generation.wrapping_add(1);
    told
}

/// PREEMPT (SPC-4, 5.13.11.2.4, table 63).
fn preempt(state: &mut VolumeState, asked: &Asked<'_>) -> Result<Told, Refusal> {
    let kind = scope_and_kind(asked)?;
    let held = state.reservation.clone();
    let takes_over = match &held {
        None => false,
        Some(held) if held.kind.all_registrants() => asked.action_key == 0,
        Some(held) => state
            .registrants
            .iter()
            .any(|who| who.nexus == held.holder && who.key == asked.action_key),
    };
    let everyone = takes_over && asked.action_key == 0;
    if asked.action_key == 0 && !everyone {
        return Err(Refusal::Check(Sense::parameter(8, 0)));
    }
    let named = |who: &Registrant| everyone || who.key == asked.action_key;
    if !takes_over && !state.registrants.iter().any(named) {
        return Err(Refusal::Conflict);
    }
    let mut told = Told::new();
    // The preempting nexus itself stays registered where it takes the reservation over.
    state.registrants.retain(|who| {
        let own = who.nexus.is(asked.nexus);
        let stays = !named(who) || (own && takes_over);
        if !stays && !own {
            told.push((who.nexus.clone(), Attention::RegistrationsPreempted));
        }
        stays
    });
    state.generation = state.generation.wrapping_add(1);
    if takes_over {
        state.reservation = Some(Reservation { kind, holder: NexusId::of(asked.nexus) });
        if held.is_some_and(|held| held.kind != kind) {
            told.extend(tell_others(state, asked.nexus, Attention::ReservationsReleased));
        }
    } else if state.registrants.is_empty() {
        state.reservation = None; // an "all registrants" reservation ends with the last of them
    }
    Ok(told)
}
